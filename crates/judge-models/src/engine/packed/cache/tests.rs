use std::fs;

use judge_core::{Backbone, Layer, Prompt, Reading, Request, Want, request::Pooling};
use judge_kernels::numbers::Numbers;
use judge_kernels::pack::PackedLinear;
use judge_kernels::supported::Supported;
use judge_kernels::tile::Word;
use tempfile::TempDir;

use super::*;
use crate::fixtures::{copy, folder};
use crate::test_models::{answers, reading};
use crate::{Kernel, LoadOptions, Model};

/// The states of all layers at the end of some prompts.
fn states(model: &Model) -> Vec<Reading> {
    let pooled = (0..=model.info().n_layers).map(|layer| (Layer(layer), Pooling::Mean)).collect();
    let want = Want { pooled, ..Want::default() };
    let prompts = ["a b", "a b a b c", "c"];
    let requests = prompts.map(|text| Request { prompt: Prompt::Raw(text.into()), want: want.clone() });
    answers(model, &requests).iter().map(|outcome| reading(outcome).clone()).collect()
}

fn load(folder: &Path, dtype: Dtype, cache: Option<&Path>) -> Result<Model, Error> {
    let options = LoadOptions { dtype: Some(dtype), packed_cache: cache.map(Path::to_owned), ..LoadOptions::default() };
    Model::load(folder, &options)
}

/// The files of a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_model_whose_packed_weights_are_kept_is_the_same_to_the_bit() {
    let names = ["llama-on", "gemma4_text-experts", "lfm2-on", "gpt_oss-on"];
    let others =
        ["../encoders/modernbert-on", "../quantised/gptq-8", "../quantised/bnb-nf4", "../gguf/llama", "../heads/llama"];
    for name in names.into_iter().chain(others) {
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let cache = TempDir::new().unwrap();
            let to = cache.path().join("made").join("on the way");
            let plain = load(&folder(name), dtype, None).unwrap();
            let first = load(&folder(name), dtype, Some(&to)).unwrap();
            let written = files(&to);
            assert_eq!(written.len(), 1, "{name}: {written:?}");
            let time = || fs::metadata(&written[0]).unwrap().modified().unwrap();
            let before = time();
            let second = load(&folder(name), dtype, Some(&to)).unwrap();
            assert_eq!((files(&to), time()), (written.clone(), before), "{name}: it is written once");
            let expected = states(&plain);
            assert_eq!(states(&first), expected, "{name}");
            assert_eq!(states(&second), expected, "{name}");
            assert_eq!(second.info(), plain.info());
            assert_eq!(second.reward_head(), plain.reward_head());
        }
    }
}

#[test]
fn another_state_of_the_weights_is_another_file() {
    let (model, cache) = (copy("qwen3-on"), TempDir::new().unwrap());
    let load = |options: LoadOptions| {
        let options = LoadOptions { packed_cache: Some(cache.path().to_owned()), ..options };
        Model::load(model.path(), &options).unwrap();
        files(cache.path()).len()
    };
    assert_eq!(load(LoadOptions::default()), 1);
    assert_eq!(load(LoadOptions { dtype: Some(Dtype::F32), ..LoadOptions::default() }), 2);
    let int8 = LoadOptions { weights: WeightForm::Int8, ..LoadOptions::default() };
    assert_eq!([load(int8.clone()), load(int8)], [3, 3]);
    // Touched: whether its numbers are the same is not known.
    let weights = files(model.path()).into_iter().find(|file| file.extension() == Some("safetensors".as_ref()));
    let file = File::options().append(true).open(weights.unwrap()).unwrap();
    file.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(1)).unwrap();
    assert_eq!(load(LoadOptions::default()), 4);
    // A file in the folder that has no weights is none of its state.
    fs::write(model.path().join("notes.txt"), "seen").unwrap();
    assert_eq!(load(LoadOptions::default()), 4);
    let folders = || [model.path()];
    let keys = [false, true]
        .map(|is_padded| key("fingerprint", Dtype::F32, WeightForm::AsStored, is_padded, folders()).unwrap());
    assert_ne!(keys[0], keys[1]);
    assert_ne!(key("another", Dtype::F32, WeightForm::AsStored, false, folders()).unwrap(), keys[0]);
}

#[test]
fn a_damaged_file_is_refused_and_a_failed_load_leaves_none() {
    let (model, cache) = (copy("llama-off"), TempDir::new().unwrap());
    let problem = || match load(model.path(), Dtype::F32, Some(cache.path())) {
        Err(Error::PackedCache { path, problem }) => (path, problem),
        other => panic!("{other:?}"),
    };
    load(model.path(), Dtype::F32, Some(cache.path())).unwrap();
    let path = files(cache.path())[0].clone();
    let whole = fs::read(&path).unwrap();
    for end in [0, 7, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..end]).unwrap();
        assert_eq!(problem(), (path.clone(), PackedCacheProblem::Damaged), "{end}");
    }
    // Whole, but of another model.
    let mut writer = Writer::create(cache.path(), path.clone(), "other").unwrap();
    writer.put(&[("other.weight".to_owned(), 3)], 4, &[1; 96]).unwrap();
    writer.finish().unwrap();
    drop(writer);
    assert!(matches!(problem().1, PackedCacheProblem::Matrix { name } if name.contains("embed_tokens")));
    fs::remove_file(&path).unwrap();
    // A number that is not finite, at the end of the last tensor.
    let weights = model.path().join("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&weights, bytes).unwrap();
    assert!(matches!(
        load(model.path(), Dtype::F32, Some(cache.path())),
        Err(Error::Weights(crate::WeightsError::Tensor { .. }))
    ));
    assert_eq!(files(cache.path()), Vec::<PathBuf>::new());
}

/// Where the layout of packed matrices changes, files that were written before must not be read: change
/// the number in `DOMAIN`, and the hashes here.
#[test]
fn the_layout_is_the_one_that_the_name_stands_for() {
    let values: Vec<f32> = (0..5 * 37).map(|i| i as f32 / 8.0).collect();
    let halves: Vec<half::bf16> = values.iter().map(|&x| half::bf16::from_f32(x)).collect();
    let kernel = Supported::choose(Some(Kernel::Portable)).unwrap();
    let hash = |word, numbers: Numbers<'_>| {
        let mut matrix = PackedLinear::zeros(kernel, word, 37, 5);
        matrix.fill(0, numbers);
        let bytes: Vec<u8> = matrix.arrays().flatten().flat_map(|word| word.to_le_bytes()).collect();
        blake3::hash(&bytes).to_hex()[..16].to_owned()
    };
    let found = [hash(Word::Pair, Numbers::Bf16(&halves)), hash(Word::Single, Numbers::F32(&values))];
    assert_eq!(
        (DOMAIN, found),
        ("judge-models packed matrices 2", ["cba7f714f6ff665d", "39577f18761f998b"].map(str::to_owned))
    );
}

#[test]
fn two_that_write_the_same_file_do_not_meet() {
    let (model, cache) = (copy("llama-off"), TempDir::new().unwrap());
    let expected = states(&load(model.path(), Dtype::Bf16, None).unwrap());
    let all: Vec<Model> = std::thread::scope(|scope| {
        let one = || scope.spawn(|| load(model.path(), Dtype::Bf16, Some(cache.path())).unwrap());
        let threads: Vec<_> = (0..8).map(|_| one()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(files(cache.path()).len(), 1);
    let last = load(model.path(), Dtype::Bf16, Some(cache.path())).unwrap();
    all.iter().chain([&last]).for_each(|model| assert_eq!(states(model), expected));
}
