//! A prompt's numbers are the same bits whatever runs beside it, in whatever order, on however many threads, and
//! whatever else is read from the same pass.

use half::bf16;
use judge_core::testing::check_backbone;
use judge_core::{
    Backbone, Layer, Lens, Outcome, Prompt, Request, Want,
    request::{Generation, LabelRead, Pooling, ReadAt, ReplyPooling, Sampling},
};
use judge_models::{Dtype, Kernel, LoadOptions, Model, WeightForm};
use rayon::ThreadPoolBuilder;
use serde_json::json;
use tempfile::TempDir;

use crate::common::{self, Stored, fixtures, json, labels_at_end, raw, write_tensors};

fn family(name: &str, options: &LoadOptions) -> Model {
    Model::load(fixtures().join("families").join(name), options).unwrap()
}

/// A model with weights that look random and are the same each time. A row of its products takes more than one piece
/// of every kernel's sums, 1,024 coordinates or 2,048 on the matrix unit, and ends within one.
fn wide(head_dim: usize) -> TempDir {
    const D_MODEL: usize = 1056;
    const D_FF: usize = 2144;
    const LAYERS: usize = 1;
    let fixture = fixtures().join("families/qwen3-on");
    let folder = TempDir::new().unwrap();
    for name in ["tokenizer.json", "tokenizer_config.json", "generation_config.json"] {
        std::fs::copy(fixture.join(name), folder.path().join(name)).unwrap();
    }
    let mut config = json(fixture.join("config.json"));
    config["hidden_size"] = json!(D_MODEL);
    config["intermediate_size"] = json!(D_FF);
    config["num_hidden_layers"] = json!(LAYERS);
    config["head_dim"] = json!(head_dim);
    config["layer_types"] = json!(["full_attention"]);
    config["attention_bias"] = json!(false);
    std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();

    let d_vocab = config["vocab_size"].as_u64().unwrap() as usize;
    let (d_query, d_key) = (4 * head_dim, 2 * head_dim);
    let mut shapes = vec![
        ("model.embed_tokens".to_owned(), vec![d_vocab, D_MODEL]),
        ("lm_head".to_owned(), vec![d_vocab, D_MODEL]),
        ("model.norm".to_owned(), vec![D_MODEL]),
    ];
    for layer in 0..LAYERS {
        shapes.extend(
            [
                ("input_layernorm", vec![D_MODEL]),
                ("post_attention_layernorm", vec![D_MODEL]),
                ("self_attn.q_norm", vec![head_dim]),
                ("self_attn.k_norm", vec![head_dim]),
                ("self_attn.q_proj", vec![d_query, D_MODEL]),
                ("self_attn.k_proj", vec![d_key, D_MODEL]),
                ("self_attn.v_proj", vec![d_key, D_MODEL]),
                ("self_attn.o_proj", vec![D_MODEL, d_query]),
                ("mlp.gate_proj", vec![D_FF, D_MODEL]),
                ("mlp.up_proj", vec![D_FF, D_MODEL]),
                ("mlp.down_proj", vec![D_MODEL, D_FF]),
            ]
            .map(|(name, shape)| (format!("model.layers.{layer}.{name}"), shape)),
        );
    }
    let numbers = |seed: usize, len: usize| {
        let number = move |i: usize| {
            let mixed = ((seed << 32 | i) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed >> 40) as f32 / (1 << 25) as f32 - 0.25
        };
        (0..len).flat_map(move |i| bf16::from_f32(number(i)).to_le_bytes()).collect::<Vec<u8>>()
    };
    let tensor = |(seed, (name, shape)): (usize, (String, Vec<usize>))| -> Stored {
        let bytes = numbers(seed + 1, shape.iter().product());
        (format!("{name}.weight"), safetensors::Dtype::BF16, shape, bytes)
    };
    let tensors: Vec<Stored> = shapes.into_iter().enumerate().map(tensor).collect();
    write_tensors(&folder.path().join("model.safetensors"), &tensors);
    folder
}

/// Prompts of 1 to 43 tokens.
fn requests(model: &Model) -> Vec<Request> {
    let top = Layer(model.info().n_layers);
    let words = ["ba", "de", "fi", "go", "3", "ku", "xa", "me"];
    (0..12_usize)
        .map(|i| {
            let prompt: Vec<&str> = (0..1 + (i * 17) % 43).map(|j| words[(i + j * j) % words.len()]).collect();
            let sampling = match i % 3 {
                0 => Sampling::Greedy,
                _ => Sampling::Random { temperature: 1.5, top_k: None, top_p: Some(0.95), seed: 7, stream: i as u64 },
            };
            let labels = LabelRead {
                tokens: vec![3, 4, 5, 6, 7],
                layers: model.info().layers(),
                lens: if i % 2 == 0 { Lens::Raw } else { Lens::Normed },
                at: if i % 4 == 3 { ReadAt::PromptEnd } else { ReadAt::EveryStep },
                label_mass: i % 3 > 0,
            };
            let pooled = model
                .info()
                .layers()
                .into_iter()
                .flat_map(|l| [Pooling::First, Pooling::Last, Pooling::Mean].map(|pooling| (l, pooling)));
            Request {
                prompt: Prompt::Raw(prompt.join(" ")),
                want: Want {
                    labels: vec![labels],
                    pooled: pooled.collect(),
                    attention_entropy: model.attention_layers().split_off(i % 2),
                    prompt_log_probs: i % 2 == 0,
                    continuations: ["ba de", "3", "ba go fi", "ku"][..i % 5]
                        .iter()
                        .map(|&text| format!(" {text}"))
                        .collect(),
                    generate: Some(Generation { max_new_tokens: 5, sampling, ..Generation::default() }),
                    reply: ReplyPooling::ALL.into_iter().flat_map(|of| [(Layer(0), of), (top, of)]).collect(),
                },
            }
        })
        .collect()
}

/// Answers by request, with their floats as bits.
fn answers(model: &Model, requests: &[Request]) -> Vec<(Outcome, Vec<u32>)> {
    let with_bits = |(index, outcome): (usize, Outcome)| {
        let reading = outcome.reading().unwrap_or_else(|fault| panic!("request {index}: {fault}"));
        let steps = || reading.labels.iter().flat_map(|labels| &labels.steps);
        let bits: Vec<u32> = steps()
            .flat_map(|step| &step.logits)
            .chain(reading.pooled.iter().flat_map(|state| &state.values))
            .chain(reading.reply.iter().flat_map(|state| &state.values))
            .chain(reading.attention_entropy.iter().flat_map(|heads| &heads.values))
            .chain(steps().filter_map(|step| step.label_mass.as_ref()))
            .chain(reading.prompt_log_probs.iter().flat_map(|found| &found.log_probs))
            .chain(reading.continuations.iter().flat_map(|found| &found.tokens.log_probs))
            .map(|x| x.to_bits())
            .collect();
        (outcome, bits)
    };
    common::answers(model, requests).unwrap().into_iter().enumerate().map(with_bits).collect()
}

/// Weights in f32, packed in bf16 for each kernel that this processor has, and rounded to 8 bits, for each kernel too that
/// multiplies these as integers.
fn every_way() -> Vec<LoadOptions> {
    let bf16 = LoadOptions { dtype: Some(Dtype::Bf16), ..LoadOptions::default() };
    let int8 = LoadOptions { weights: WeightForm::Int8, ..bf16.clone() };
    let of_a_kernel = |kernel: Kernel| {
        let weights = if kernel.multiplies_integers() { &int8 } else { &bf16 };
        LoadOptions { kernel: Some(kernel), ..weights.clone() }
    };
    let f32 = LoadOptions { dtype: Some(Dtype::F32), ..LoadOptions::default() };
    Kernel::available().into_iter().map(of_a_kernel).chain([f32, int8.clone()]).collect()
}

/// Models of every kind of block.
#[rustfmt::skip]
const ALONE: [&str; 18] = [
    "qwen3-on", "gemma2-on", "phi3-on", "internlm3-on", "ministral3-on", "cohere2-on", "granite-on",
    "qwen3_5_text-on", "granitemoehybrid-mamba", "falcon_h1-on", "nemotron_h-experts", "mixtral-on", "qwen2_moe-on",
    "qwen3_5_moe_text-on", "gpt_oss-on", "gemma4_text-off", "gemma4_text-on", "gemma4_text-experts",
];

#[test]
fn alone_among_others_and_in_any_order() {
    let integers = Kernel::available().into_iter().filter(|kernel| kernel.multiplies_integers());
    // Codes of four bits, with zeros.
    let of_codes = integers.map(|kernel| {
        (
            "../quantised/gptq-v2",
            LoadOptions { kernel: Some(kernel), dtype: Some(Dtype::Bf16), ..LoadOptions::default() },
        )
    });
    for (name, options) in ALONE.into_iter().flat_map(|n| every_way().into_iter().map(move |o| (n, o))).chain(of_codes)
    {
        let model = family(name, &options);
        let requests = requests(&model);
        let together = answers(&model, &requests);
        for (index, request) in requests.iter().enumerate() {
            assert_eq!(
                answers(&model, std::slice::from_ref(request))[0],
                together[index],
                "{name}: request {index} alone"
            );
        }
        let reversed: Vec<Request> = requests.iter().rev().cloned().collect();
        let mut again = answers(&model, &reversed);
        again.reverse();
        assert_eq!(again, together, "{name}: reversed");
    }
}

/// The bits of products that are cut into pieces, and of heads of all common widths.
#[test]
fn wide_rows_and_heads_alone_and_among_others() {
    for head_dim in [64, 80, 96, 128, 256] {
        let folder = wide(head_dim);
        for options in every_way() {
            let model = Model::load(folder.path(), &options).unwrap();
            let requests = &requests(&model)[..6];
            let together = answers(&model, requests);
            for (index, request) in requests.iter().enumerate().step_by(2) {
                let alone = answers(&model, std::slice::from_ref(request));
                assert_eq!(
                    alone[0], together[index],
                    "heads of {head_dim}, {:?}: request {index} alone",
                    options.kernel
                );
            }
            let cramped = LoadOptions { max_batch_tokens: Some(40), ..options };
            let cramped = Model::load(folder.path(), &cramped).unwrap();
            let pool = ThreadPoolBuilder::new().num_threads(3).build().unwrap();
            assert_eq!(pool.install(|| answers(&cramped, requests)), together, "heads of {head_dim}: in small passes");
        }
    }
}

#[test]
fn on_any_number_of_threads_and_with_any_room() {
    for (name, options) in ["mistral-on", "qwen3_moe-on", "olmoe-on", "gemma4_text-on", "gemma4_text-experts"]
        .into_iter()
        .flat_map(|n| every_way().into_iter().map(move |o| (n, o)))
    {
        let plenty = family(name, &options);
        let requests = requests(&plenty);
        let expected = answers(&plenty, &requests);
        for threads in [1, 2, 5] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| answers(&plenty, &requests)), expected, "{name}: {threads} threads");
        }
        for max_batch_tokens in [1, 40, 100] {
            let cramped = family(name, &LoadOptions { max_batch_tokens: Some(max_batch_tokens), ..options.clone() });
            assert_eq!(answers(&cramped, &requests), expected, "{name}: {max_batch_tokens} tokens at a time");
        }
    }
}

/// The same, for beginnings that are shared: windows, soft-caps and rotations that depend on the length are among them.
#[rustfmt::skip]
const SHARING: [&str; 21] = [
    "qwen3-on", "gemma2-on", "mistral-on", "llama-on", "phi3-on", "glm4-on", "qwen3_5_text-on", "lfm2-on",
    "qwen3_5_text-off", "granitemoehybrid-mamba", "granitemoehybrid-mamba-experts", "falcon_h1-on", "nemotron_h-on",
    "nemotron_h-experts", "qwen3_moe-on", "mixtral-off", "qwen3_5_moe_text-on", "gpt_oss-on", "gemma4_text-off",
    "gemma4_text-on", "gemma4_text-experts",
];

/// Prompts that share beginnings are read together; that must not show.
#[test]
fn with_and_without_shared_beginnings() {
    let words = ["ba", "de", "fi", "go", "3", "ku", "xa", "me"];
    let text = |seed: usize, len: usize| (0..len).map(move |j| words[(seed + j * j + j / 7) % words.len()]);
    // Three rubrics of 34 to 44 tokens, each before eight tails; two prompts are equal, two are others' beginnings.
    let mut prompts: Vec<Vec<&str>> = (0..24)
        .map(|i| text(i % 3, 34 + i % 3 * 5).chain(text(i * i, if i < 22 { 1 + i * 5 % 14 } else { 0 })).collect())
        .collect();
    prompts[20] = prompts[17].clone();
    let others = |i: usize| prompts.iter().enumerate().filter(move |&(other, _)| other != i).map(|(_, prompt)| prompt);
    let equal = (0..24).filter(|&i| others(i).any(|other| *other == prompts[i]));
    assert_eq!(equal.collect::<Vec<_>>(), [17, 20]);
    assert!((22..24).all(|i| others(i).any(|other| other.starts_with(&prompts[i]))));
    for (name, options) in SHARING.into_iter().flat_map(|n| every_way().into_iter().map(move |o| (n, o))) {
        let model = family(name, &options);
        let max_len = model.info().max_len;
        let mut requests = requests(&model);
        requests.extend(requests.clone());
        for (i, (request, prompt)) in requests.iter_mut().zip(&prompts).enumerate() {
            assert!(prompt.len() + 5 < max_len);
            request.prompt = Prompt::Raw(prompt.join(" "));
            if i % 4 != 0 {
                request.want.generate = None;
                request.want.reply.clear();
                for labels in &mut request.want.labels {
                    labels.at = ReadAt::PromptEnd;
                }
            }
        }
        let together = answers(&model, &requests);
        // Of each rubric, the equal ones, and the two beginnings.
        for index in [0, 4, 8, 17, 20, 22, 23] {
            let alone = answers(&model, std::slice::from_ref(&requests[index]));
            assert_eq!(alone[0], together[index], "{name}, {:?}: request {index} alone", options.kernel);
        }
        let cramped = family(name, &LoadOptions { max_batch_tokens: Some(96), ..options });
        assert_eq!(answers(&cramped, &requests), together, "{name}: in smaller passes");
    }
}

/// Several judges share one pass: none may change what another sees.
#[test]
fn whatever_else_is_read() {
    for options in every_way() {
        whatever_else_is_read_of(&family("llama-on", &options));
    }
}

fn whatever_else_is_read_of(model: &Model) {
    let last = Layer(model.info().n_layers);
    let labels = labels_at_end(vec![3, 4, 5], vec![Layer(1), last], Lens::Raw);
    let prompt = raw("ba de fi go ku la me");
    let alone = Want { labels: vec![labels.clone()], ..Want::default() };
    let shared = Want {
        labels: vec![labels],
        pooled: vec![(last, Pooling::Mean), (Layer(0), Pooling::Max), (last, Pooling::Last)],
        attention_entropy: vec![Layer(1), last],
        prompt_log_probs: true,
        continuations: vec![" ba".to_owned(), " ba de".to_owned()],
        reply: vec![(last, ReplyPooling::Last)],
        generate: Some(Generation { max_new_tokens: 3, ..Generation::default() }),
    };
    let logits = |want: Want| {
        let step = &common::read(model, prompt.clone(), &want).labels[0].steps[0];
        step.logits.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(logits(alone), logits(shared));
}

#[test]
fn the_contract_of_a_backbone_holds() {
    for name in ["llama-off", "qwen2-on", "qwen3_5_text-on", "lfm2-on", "granitemoehybrid-mamba"] {
        let prompts = ["ba", "ba de fi go ku la me ni po", "3 xa 4"].map(raw);
        for options in every_way() {
            check_backbone(&family(name, &options), &prompts).unwrap();
        }
    }
}
