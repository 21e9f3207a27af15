//! Decoders on a driver that runs nothing, with a cuBLASLt that multiplies on the host: the whole path of NVIDIA GPUs but the GPU. Models
//! are loaded, every kernel is compiled by the real NVRTC, every product is asked for with operands that cuBLASLt takes. What comes out
//! means nothing, since kernels are not run.
//!
//! The libraries are those of `judge-gpu`'s tests. Without a C compiler, NVRTC (`libnvrtc`) or CUDA's headers (`CUDA_PATH`) the test says
//! that it is skipped. Python's packages nvidia-cuda-nvrtc, -runtime, -nvcc, -cccl and -crt have the two, without a GPU.

#![cfg(feature = "cuda")]
#![allow(clippy::print_stdout, clippy::print_stderr)] // counts, and what was skipped

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use judge_core::request::{Generation, Pooling, Sampling};
use judge_core::{Backbone, Layer, Prompt, Request, TextModel, Want};
use judge_models::{CudaProblem, Device, Dtype, Error, LoadOptions, Model};

#[path = "../../judge-gpu/tests/fake/mod.rs"]
mod fake;

/// The fixture of a dense decoder, and kernels of one of its blocks, products included. Qwen2 has biases.
const DENSE: [(&str, usize); 3] = [("llama-off", 14), ("qwen3-off", 14), ("qwen2-off", 14)];

/// The fixture of a decoder whose blocks remember states, and kernels of one of its blocks, products included: a delta rule and an MLP;
/// attention beside a state space, and an MLP.
const STATES: [(&str, usize); 2] = [("qwen3_5_text-off", 26), ("falcon_h1-off", 53)];

#[test]
fn blocks_are_a_few_kernels_and_products_that_cublaslt_takes() {
    let Some((said, _)) = fake::run_inside() else { return };
    print!("{said}");
}

#[test]
#[ignore = "started as a process of its own by the test above, with other libraries"]
fn inside() {
    let Some(calls) = fake::calls() else { return };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/families");
    let load = |folder: &Path, dtype| {
        Model::load(
            folder,
            &LoadOptions { devices: vec![Device::Cuda(0)], dtype: Some(dtype), ..LoadOptions::default() },
        )
    };
    if let Err(Error::Cuda { problem: problem @ (CudaProblem::NoCompiler | CudaProblem::NoHeaders { .. }), .. }) =
        load(&fixtures.join(DENSE[0].0), Dtype::F32)
    {
        return eprintln!("skipped: {problem}");
    }
    // Kernels and products of requests, and of readings of the state at a layer.
    let calls_of = |model: &Model, requests: &[Request]| {
        std::fs::write(&calls, "").unwrap();
        model.run(requests, &mut |_, _| ControlFlow::Continue(())).unwrap();
        let calls = std::fs::read_to_string(&calls).unwrap();
        let lines: Vec<String> = calls
            .lines()
            .filter(|line| line.starts_with("kernel") || line.starts_with("product"))
            .map(str::to_owned)
            .collect();
        lines
    };
    let state = |layer| Want { pooled: vec![(Layer(layer), Pooling::Last)], ..Want::default() };
    let count = |model: &Model, layer: usize| {
        let prompt = Prompt::Raw("ba de fi go ku la me ni po ru sa te vi zo".to_owned());
        calls_of(model, &[Request { prompt, want: state(layer) }])
    };
    for (family, kernels) in DENSE {
        let model = load(&fixtures.join(family), Dtype::Bf16).unwrap();
        // With one block more that is not the last, whose rows all go on.
        let (one, two) = (count(&model, 1), count(&model, 2));
        let products = |lines: &[String]| lines.iter().filter(|line| line.starts_with("product")).count();
        println!(
            "{family}: {} kernels a block, {} of them products",
            two.len() - one.len(),
            products(&two) - products(&one)
        );
        assert!(two.len() - one.len() <= kernels, "{family}: {two:#?}");
    }
    // States go from position to position within a kernel: there are as many of them for few positions as for many.
    for (family, kernels) in STATES {
        let model = load(&fixtures.join(family), Dtype::Bf16).unwrap();
        let of_words = |words: usize| {
            let prompt = Prompt::Raw(["ba", "de", "fi"].repeat(words / 3).join(" "));
            let [one, two] =
                [1, 2].map(|layer| calls_of(&model, &[Request { prompt: prompt.clone(), want: state(layer) }]));
            println!("{family}: {} kernels a block of {words} words", two.len() - one.len());
            assert!(two.len() - one.len() <= kernels, "{family}, {words} words: {two:#?}");
            two.iter().filter(|line| line.starts_with("kernel")).count()
        };
        assert_eq!(of_words(3), of_words(60), "{family}");
    }
    // What prompts share is computed in a pass of its own, and its keys and values are read where they lie: with those of the others these
    // are two products more in a block, and no kernel. 24 prompts of 42 tokens share 37, of which 32 are a multiple of 16.
    let generate = Generation { max_new_tokens: 3, sampling: Sampling::Greedy, ..Generation::default() };
    let words = ["ba", "de", "fi", "go", "ku", "la"];
    let behind = |i: usize| (0..5).map(|j| words[i / 6_usize.pow(j) % 6]).collect::<Vec<_>>().join(" ");
    let prompts: Vec<String> = (0..24).map(|i| format!("{}xa {}", "ba de fi go ".repeat(9), behind(i))).collect();
    let requests = |want: Want| {
        let request = |prompt: &String| Request { prompt: Prompt::Raw(prompt.clone()), want: want.clone() };
        prompts.iter().map(request).collect::<Vec<_>>()
    };
    let model = load(&fixtures.join("qwen3-off"), Dtype::Bf16).unwrap();
    let (one, two) = (calls_of(&model, &requests(state(1))), calls_of(&model, &requests(state(2))));
    assert_eq!(two.len() - one.len(), 14 + 14 + 2, "{two:#?}");
    // Of prompts with their padding, and of new tokens with room for 16: all queries of a key head with the prefix, and its values.
    let text = Want { generate: Some(generate.clone()), ..Want::default() };
    for (rows, keys, want) in [(24 * 2 * 16, 32 + 16, state(2)), (24 * 2, 32 + 16 + 16, text)] {
        let lines = calls_of(&model, &requests(want));
        for line in [
            format!("product 2 of {rows} x 16 x 32, dtypes 14 and 0, rows 16, 16 and {keys} apart, epilogue 0, alone"),
            format!("product 2 of {rows} x 32 x 16, dtypes 14 and 14, rows {keys}, 16 and 16 apart, epilogue 0, alone"),
        ] {
            assert!(lines.contains(&line), "{line}: {lines:#?}");
        }
    }
    // Logits over the vocabulary, of a text and of a continuation, come of no copy of the head: all products take bf16 (14), and give f32
    // where they are logits.
    let model = load(&fixtures.join("llama-off"), Dtype::Bf16).unwrap();
    let wants = [
        Want { generate: Some(generate), ..Want::default() },
        Want { continuations: vec![" ba".to_owned(), " de fi".to_owned()], ..Want::default() },
    ];
    for want in wants {
        std::fs::write(&calls, "").unwrap();
        let request = Request { prompt: Prompt::Raw("ba de fi go".to_owned()), want };
        model.run(&[request], &mut |_, _| ControlFlow::Continue(())).unwrap();
        let said = std::fs::read_to_string(&calls).unwrap();
        let products: Vec<&str> = said.lines().filter(|line| line.starts_with("product")).collect();
        assert!(products.iter().all(|line| line.contains("dtypes 14 and")), "{products:#?}");
        let wide = format!("x {}, dtypes 14 and 0", model.info().d_vocab);
        assert!(products.iter().any(|line| line.contains(&wide)), "{products:#?}");
    }
    // A batch that finds no memory runs again in smaller ones. Scores of attention are its largest tensor: 256 rows of 4 heads, 64 by 64
    // positions, in f32, 16 MiB. Half of that fits.
    let text =
        |row: usize| (0..60).map(|i| ["ba", "de", "fi", "go"][(i + i / 7 * row) % 4]).collect::<Vec<_>>().join(" ");
    let want = Want { pooled: vec![(Layer(1), Pooling::Mean)], ..Want::default() };
    let requests: Vec<Request> =
        (0..256).map(|row| Request { prompt: Prompt::Raw(text(row)), want: want.clone() }).collect();
    std::fs::write(&calls, "").unwrap();
    std::fs::write(calls.with_extension("most"), (12 << 20).to_string()).unwrap();
    let mut answered = 0;
    let answer = &mut |_, _| {
        answered += 1;
        ControlFlow::Continue(())
    };
    model.run(&requests, answer).unwrap();
    std::fs::remove_file(calls.with_extension("most")).unwrap();
    assert_eq!(answered, 256);
    let said = std::fs::read_to_string(&calls).unwrap();
    let tokens = said.lines().filter_map(|line| line.strip_prefix("product 1 of ")?.split(' ').next()?.parse().ok());
    let mut batches: Vec<usize> = tokens.collect();
    batches.dedup();
    assert_eq!(batches, [256 * 64, 128 * 64]);
    // Every family goes all the way in every dtype.
    let mut families: Vec<PathBuf> = std::fs::read_dir(&fixtures).unwrap().map(|entry| entry.unwrap().path()).collect();
    families.sort();
    for family in families.iter().filter(|family| family.join("config.json").is_file()) {
        for dtype in [Dtype::F32, Dtype::Tf32, Dtype::Bf16] {
            match load(family, dtype) {
                Ok(model) => drop(count(&model, model.info().n_layers)),
                // Encoders are the processor's.
                Err(Error::Devices { .. }) => {}
                Err(error) => panic!("{}, {dtype}: {error}", family.display()),
            }
        }
    }
}
