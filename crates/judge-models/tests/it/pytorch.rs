//! Weights as torch.save writes them give what the same weights give in safetensors, to the bit. Files:
//! `scripts/parity/make_pytorch_fixtures.py`; what they say of their tensors is compared with torch in `pytorch/tests.rs` of `judge-weights`.

use std::fs;
use std::path::{Path, PathBuf};

use judge_core::{Backbone, request::Pooling};
use judge_models::{Error, LoadOptions, Model, WeightsError, merge_adapters};
use tempfile::TempDir;

use crate::common::{copy, fixtures, of_every_layer, raw, read, values};

/// A copy of a folder without its safetensors, and with these files of torch.save under other names.
fn with(of: &str, files: &[(&str, &str)]) -> TempDir {
    let folder = copy(of);
    let copied: Vec<PathBuf> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    for path in copied.iter().filter(|path| path.file_name().unwrap().to_string_lossy().contains("safetensors")) {
        fs::remove_file(path).unwrap();
    }
    let saved = fixtures().join("../../../judge-weights/tests/fixtures/pytorch");
    for (from, to) in files {
        fs::copy(saved.join(from), folder.path().join(to)).unwrap();
    }
    folder
}

fn load(folder: &Path, adapters: &[PathBuf]) -> Result<Model, Error> {
    Model::load(folder, &LoadOptions { adapters: adapters.to_vec(), ..LoadOptions::default() })
}

/// The states of every layer in bits, for a text of words of the fixtures' tokenizers.
fn states(model: &Model) -> Vec<u32> {
    let want = of_every_layer(model, &[Pooling::Last, Pooling::Mean]);
    let reading = read(model, raw("ba be bi bo ca"), &want);
    let found: Vec<u32> = values(&reading).into_iter().map(f32::to_bits).collect();
    assert!(found.iter().any(|&bits| bits != 0));
    found
}

const ONE: &str = "pytorch_model.bin";

const SHARDS: [(&str, &str); 3] = [
    ("pytorch_model.bin.index.json", "pytorch_model.bin.index.json"),
    ("pytorch_model-00001-of-00002.bin", "pytorch_model-00001-of-00002.bin"),
    ("pytorch_model-00002-of-00002.bin", "pytorch_model-00002-of-00002.bin"),
];

#[test]
fn a_model_a_reward_model_and_an_encoder_give_the_bits_of_safetensors() {
    let one = |file| vec![(file, ONE)];
    for (of, files) in [
        // Tied, transposed, cut out of others, as a parameter.
        ("families/llama-off", one("whole.bin")),
        ("families/qwen3-on", SHARDS.to_vec()),
        ("heads/llama", one("reward.bin")),
        ("encoder_heads/roberta", one("encoder.bin")),
    ] {
        let folder = with(of, &files);
        let (model, expected) = (load(folder.path(), &[]).unwrap(), load(&fixtures().join(of), &[]).unwrap());
        assert_eq!(states(&model), states(&expected), "{of}");
        let (head, other) = (model.reward_head(), expected.reward_head());
        assert_eq!(format!("{head:?}"), format!("{other:?}"), "{of}");
        assert_eq!(model.info().dtype, expected.info().dtype, "{of}");
        // Names, types, shapes and bytes are the same, so the model is; what is tied or transposed is stored otherwise.
        let is_same = model.info().fingerprint == expected.info().fingerprint;
        assert_eq!(is_same, of != "families/llama-off", "{of}");
    }
}

#[test]
fn an_adapter_gives_the_bits_of_safetensors_and_merges() {
    let base = with("families/llama-off", &[("whole.bin", ONE)]);
    let adapter = with("adapters/plain", &[("adapter.bin", "adapter_model.bin")]);
    let expected = states(&load(&fixtures().join("families/llama-off"), &[fixtures().join("adapters/plain")]).unwrap());
    let model = load(base.path(), &[adapter.path().to_owned()]).unwrap();
    assert_eq!(states(&model), expected);
    let to = TempDir::new().unwrap();
    let merged = to.path().join("merged");
    merge_adapters(base.path(), &[adapter.path().to_owned()], None, &merged, &mut |_, _| {}).unwrap();
    assert!(merged.join("model.safetensors").is_file() && !merged.join(ONE).is_file());
    assert_eq!(states(&load(&merged, &[]).unwrap()), expected);
}

#[test]
fn safetensors_count_where_both_are_there() {
    let folder = with("families/llama-off", &[]);
    fs::copy(fixtures().join("families/llama-off/model.safetensors"), folder.path().join("model.safetensors")).unwrap();
    fs::write(folder.path().join(ONE), "not read").unwrap();
    load(folder.path(), &[]).unwrap();
}

#[test]
fn what_is_damaged_or_missing_is_named() {
    let fails = |of: &str, files: &[(&str, &str)], change: &dyn Fn(&Path)| {
        let folder = with(of, files);
        change(folder.path());
        load(folder.path(), &[]).expect_err("a damaged folder must not load")
    };
    let command = fails("families/llama-off", &[("command.bin", ONE)], &|_| {});
    assert!(
        matches!(&command, Error::Weights(WeightsError::PyTorch { problem, .. }) if problem.contains("posix.system"))
    );
    assert!(command.to_string().contains(ONE), "{command}");
    let pointer = fails("families/llama-off", &[], &|folder| {
        fs::write(folder.join(ONE), "version https://git-lfs.github.com/spec/v1\n").unwrap();
    });
    assert!(matches!(pointer, Error::Weights(WeightsError::StandIn { .. })), "{pointer}");
    let shard = fails("families/qwen3-on", &SHARDS, &|folder| fs::remove_file(folder.join(SHARDS[2].1)).unwrap());
    let text = shard.to_string();
    assert!(
        matches!(shard, Error::Weights(WeightsError::Index { .. })) && text.contains("pytorch_model.bin.index.json"),
        "{text}"
    );
    let other = fails("families/llama-off", &[("reward.bin", ONE)], &|_| {});
    assert!(
        matches!(other, Error::Weights(WeightsError::TensorNames { .. }) | Error::Weights(WeightsError::Tensor { .. })),
        "{other}"
    );
    let none = fails("families/llama-off", &[], &|_| {});
    assert!(none.to_string().contains("or pytorch_model.bin"), "{none}");
}
