//! What these tests share: the folders of the fixtures, copies of them that are changed, and what models say.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use judge_core::{
    Backbone, Layer, Lens, Outcome, Prompt, Reading, Request, TextModel, Want,
    model::BackboneError,
    request::{Generation, LabelRead, Pooling, ReadAt},
    reward::RewardHead,
};
use judge_models::{AdapterProblem, Dtype, Error, GgufProblem, LoadOptions, Model, TensorProblem, WeightsError};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde_json::Value;
use tempfile::TempDir;

/// The folder of all fixtures, as cargo names it when the tests run: their binary may have been built elsewhere.
pub(crate) fn fixtures() -> PathBuf {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    PathBuf::from(root).join("tests/fixtures")
}

pub(crate) fn json(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Changes a file of JSON.
pub(crate) fn edit(path: impl AsRef<Path>, change: impl FnOnce(&mut Value)) {
    let mut fields = json(&path);
    change(&mut fields);
    fs::write(path, fields.to_string()).unwrap();
}

/// Puts the files of a folder into another, those in folders too, but not what is expected of its model.
pub(crate) fn copy_into(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            copy_into(&path, &to.join(name));
        } else if !name.starts_with("expected") {
            fs::write(to.join(name), fs::read(&path).unwrap()).unwrap();
        }
    }
}

/// A copy of a folder of the fixtures, to be changed.
pub(crate) fn copy(of: &str) -> TempDir {
    let to = TempDir::new().unwrap();
    copy_into(&fixtures().join(of), to.path());
    to
}

/// A tensor: its name, dtype, shape and bytes.
pub(crate) type Stored = (String, safetensors::Dtype, Vec<usize>, Vec<u8>);

/// The tensors of a file of weights.
pub(crate) fn tensors(path: &Path) -> Vec<Stored> {
    let bytes = fs::read(path).unwrap();
    let own = |(name, view): (&str, TensorView<'_>)| {
        (name.to_owned(), view.dtype(), view.shape().to_vec(), view.data().to_vec())
    };
    SafeTensors::deserialize(&bytes).unwrap().iter().map(own).collect()
}

/// Writes a file of weights.
pub(crate) fn write_tensors(path: &Path, stored: &[Stored]) {
    let views =
        stored.iter().map(|(name, dtype, shape, bytes)| (name, TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
    fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

/// Changes the tensors of a file of weights.
pub(crate) fn retensor(path: &Path, change: impl FnOnce(&mut Vec<Stored>)) {
    let mut stored = tensors(path);
    change(&mut stored);
    write_tensors(path, &stored);
}

/// Renames the tensors of a file of weights; those for which `own` has no name are dropped.
pub(crate) fn rename(path: &Path, own: impl Fn(&str) -> Option<String>) {
    retensor(path, |stored| {
        let renamed = std::mem::take(stored).into_iter();
        *stored = renamed.filter_map(|(name, dtype, shape, bytes)| Some((own(&name)?, dtype, shape, bytes))).collect();
    });
}

/// Loads a model on the processor.
pub(crate) fn load(folder: impl AsRef<Path>, dtype: impl Into<Option<Dtype>>) -> Result<Model, Error> {
    Model::load(folder, &LoadOptions { dtype: dtype.into(), ..LoadOptions::default() })
}

pub(crate) fn raw(text: &str) -> Prompt {
    Prompt::Raw(text.to_owned())
}

/// A read of the labels at the prompt's end, without their mass.
pub(crate) fn labels_at_end(tokens: Vec<u32>, layers: Vec<Layer>, lens: Lens) -> LabelRead {
    LabelRead { tokens, layers, lens, at: ReadAt::PromptEnd, label_mass: false }
}

/// What only a model with a head over a vocabulary can bring.
pub(crate) fn wants_of_logits() -> [Want; 4] {
    let labels = vec![labels_at_end(vec![4], vec![Layer(1)], Lens::Raw)];
    [
        Want { labels, ..Want::default() },
        Want { generate: Some(Generation::default()), ..Want::default() },
        Want { prompt_log_probs: true, ..Want::default() },
        Want { continuations: vec![" ba".to_owned()], ..Want::default() },
    ]
}

/// The tensor that an error names, and what is wrong with it.
#[track_caller]
pub(crate) fn of_tensor(error: Error) -> (String, TensorProblem) {
    match error {
        Error::Weights(WeightsError::Tensor { tensor, problem, .. }) => (tensor, problem),
        other => panic!("{other:?}"),
    }
}

/// The tensors that an error says are missing, and those that nothing uses.
#[track_caller]
pub(crate) fn of_names(error: Error) -> (Vec<String>, Vec<String>) {
    match error {
        Error::Weights(WeightsError::TensorNames { missing, unused }) => (missing, unused),
        other => panic!("{other:?}"),
    }
}

/// What an error says is wrong with an adapter.
#[track_caller]
pub(crate) fn of_adapter(error: Error) -> AdapterProblem {
    match error {
        Error::Weights(WeightsError::Adapter { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

/// What an error says is wrong with a GGUF file.
#[track_caller]
pub(crate) fn of_gguf(error: Error) -> GgufProblem {
    match error {
        Error::Weights(WeightsError::Gguf { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

/// What a model answers, in the order of the requests.
pub(crate) fn answers(model: &Model, requests: &[Request]) -> Result<Vec<Outcome>, BackboneError> {
    let mut found = vec![None; requests.len()];
    model.run(requests, &mut |index, outcome| {
        assert!(found[index].replace(outcome).is_none(), "request {index} is answered twice");
        ControlFlow::Continue(())
    })?;
    Ok(found.into_iter().map(Option::unwrap).collect())
}

/// What a model reads for each prompt, all asked for the same.
///
/// # Panics
/// If the run fails, or a prompt is unscored or brings other states than were asked for.
pub(crate) fn readings(model: &Model, prompts: impl IntoIterator<Item = Prompt>, want: &Want) -> Vec<Reading> {
    let requests: Vec<Request> = prompts.into_iter().map(|prompt| Request { prompt, want: want.clone() }).collect();
    let readings = answers(model, &requests).unwrap().into_iter().map(|outcome| outcome.reading().unwrap().clone());
    readings
        .inspect(|found| assert!(found.pooled.iter().map(|of| (of.layer, of.pooling)).eq(want.pooled.clone())))
        .collect()
}

pub(crate) fn read(model: &Model, prompt: Prompt, want: &Want) -> Reading {
    readings(model, [prompt], want).remove(0)
}

/// Asks for the states of every layer, pooled in these ways.
pub(crate) fn of_every_layer(model: &Model, poolings: &[Pooling]) -> Want {
    let layers = model.info().layers().into_iter();
    let pooled = layers.flat_map(|layer| poolings.iter().map(move |&pooling| (layer, pooling))).collect();
    Want { pooled, ..Want::default() }
}

/// The last state of every layer for a text.
pub(crate) fn last_states(model: &Model, text: &str) -> Reading {
    read(model, raw(text), &of_every_layer(model, &[Pooling::Last]))
}

/// The states that were read, behind one another.
pub(crate) fn values(reading: &Reading) -> Vec<f32> {
    reading.pooled.iter().flat_map(|state| state.values.clone()).collect()
}

/// The rewards of prompts by the head of a model, all put before it at once.
pub(crate) fn rewards(model: &Model, prompts: &[Prompt]) -> Vec<Vec<f64>> {
    rewards_by(model.reward_head().unwrap(), model, prompts)
}

/// The same by one of its heads.
pub(crate) fn rewards_by(head: &RewardHead, model: &Model, prompts: &[Prompt]) -> Vec<Vec<f64>> {
    let found = readings(model, prompts.to_vec(), &head.want(model.info()));
    found.iter().map(|reading| head.of_reading(reading, model.info()).unwrap()).collect()
}

/// The text whose tokens are these, by the vocabulary of a folder.
pub(crate) fn text_of(folder: &Path, ids: &Value) -> String {
    let tokenizer = json(folder.join("tokenizer.json"));
    let words = tokenizer["model"]["vocab"].as_object().unwrap();
    let word = |id: &Value| words.iter().find(|(_, of)| *of == id).unwrap().0.as_str();
    ids.as_array().unwrap().iter().map(word).collect::<Vec<_>>().join(" ")
}
