//! What different kernels have in common, to the bit: a whole model read with them, on any processor.
//!
//! Products of bf16 are exact in f32, but for those that are subnormal or too large, so whether they are fused with their sum does not
//! show: in bf16 `portable` has the bits of `avx512`, `avx2` and `neon` here.
//!
//! The checksums are of one processor. Wherever else these tests run, with instructions of ARM too, they must come out the same:
//! what a model says does not depend on the machine beyond its kernel.

use judge_core::{
    Layer, Lens, Prompt, Request, Want,
    request::{LabelRead, Pooling, ReadAt},
};

use crate::fixtures::folder;
use crate::test_models::{answers, reading};
use crate::{Dtype, Kernel, LoadOptions, Model, WeightForm};

/// What a model of the fixtures says with a kernel: states of all layers, pooled, and label logits, their bits put together.
fn checksum(family: &str, kernel: Kernel, dtype: Dtype, weight_form: WeightForm) -> u64 {
    let options =
        LoadOptions { kernel: Some(kernel), dtype: Some(dtype), weights: weight_form, ..LoadOptions::default() };
    let model = Model::load(folder(family), &options).unwrap();
    let layers: Vec<Layer> = (0..=model.info.n_layers).map(Layer).collect();
    let pooled = layers.iter().flat_map(|&layer| [(layer, Pooling::Last), (layer, Pooling::Mean)]).collect();
    let read = LabelRead { tokens: vec![3, 4, 5], layers, lens: Lens::Normed, at: ReadAt::PromptEnd, label_mass: true };
    let want = Want { pooled, labels: vec![read], ..Want::default() };
    // Of lengths for which products and tiles of keys are cut in all ways.
    let requests = [1, 2, 11, 60].map(|count| {
        let words = ["ba", "de", "fi", "go", "ku", "la", "me", "3", "ni", "po", "ru"];
        let text = (0..count).map(|i| words[i * i % words.len()]).collect::<Vec<_>>().join(" ");
        Request { prompt: Prompt::Raw(text), want: want.clone() }
    });
    let mut sum = 0_u64;
    let mut add = |bits: u64| sum = (sum.rotate_left(5) ^ bits).wrapping_mul(0x517c_c1b7_2722_0a95);
    for outcome in answers(&model, &requests) {
        let reading = reading(&outcome);
        reading.pooled.iter().flat_map(|state| &state.values).for_each(|x| add(u64::from(x.to_bits())));
        for step in reading.labels.iter().flat_map(|labels| &labels.steps) {
            step.logits.iter().for_each(|x| add(u64::from(x.to_bits())));
            step.label_mass.iter().for_each(|x| add(u64::from(x.to_bits())));
        }
    }
    sum
}

#[test]
fn kernels_of_one_kind_have_the_same_bits_on_every_processor() {
    const FUSED: &[Kernel] = &[Kernel::Avx512, Kernel::Avx2, Kernel::Neon];
    const INTEGERS: &[Kernel] = &[Kernel::Avx512Vnni, Kernel::Avx2Int8, Kernel::NeonInt8];
    const PORTABLE: &[Kernel] = &[Kernel::Portable];
    // Of bf16, f32, and bf16 with weights of eight bits.
    let cases = [
        ("qwen3-on", FUSED, [0x78af_b5f3_68ed_fccd, 0xf531_d4ae_71e3_2495, 0x4e76_5cfd_4028_7e9b]),
        ("qwen3-on", INTEGERS, [0x78af_b5f3_68ed_fccd, 0xf531_d4ae_71e3_2495, 0xddf7_7782_cf4a_d1a7]),
        ("qwen3-on", PORTABLE, [0x78af_b5f3_68ed_fccd, 0x7a84_84a5_5195_3e03, 0x4e76_5cfd_4028_7e9b]),
        ("gemma2-on", FUSED, [0xcc0f_5d23_aa39_fb2c, 0x52d9_bbec_ab27_a73f, 0xa928_929e_f158_18f9]),
        ("gemma2-on", INTEGERS, [0xcc0f_5d23_aa39_fb2c, 0x52d9_bbec_ab27_a73f, 0x7d14_1179_cfc3_b263]),
        ("gemma2-on", PORTABLE, [0xcc0f_5d23_aa39_fb2c, 0xa319_2ec1_58d2_d814, 0xa928_929e_f158_18f9]),
    ];
    let mut wrong = Vec::new();
    for (family, alike, expected) in cases {
        for kernel in Kernel::available().into_iter().filter(|kernel| alike.contains(kernel)) {
            let ways = [
                (Dtype::Bf16, WeightForm::AsStored),
                (Dtype::F32, WeightForm::AsStored),
                (Dtype::Bf16, WeightForm::Int8),
            ];
            let found = ways.map(|(dtype, form)| checksum(family, kernel, dtype, form));
            if found != expected {
                wrong.push(format!("{family}, {kernel}: {found:#x?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
