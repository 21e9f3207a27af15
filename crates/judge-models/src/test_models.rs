//! One model on every engine, and what it answers. For tests only: they ask whether engines agree
//! with one another and with `fixtures`.

use std::ops::ControlFlow;
use std::path::Path;

use burn::tensor::Device;
use judge_core::{Outcome, Reading, Request, TextModel};

use crate::engine::tensor::Shapes;
use crate::{Dtype, Kernel, LoadOptions, Model};

/// The model in padded batches, its layers over `devices` devices, each of which is the processor.
fn batched(folder: &Path, options: &LoadOptions, devices: usize) -> Model {
    Model::load_batched(folder, options, Shapes { step: 16, pass: 8 }, vec![Device::flex(); devices]).unwrap()
}

/// The model in passes over one sequence each, without padding: the reference for the other
/// engines.
pub(crate) fn alone(folder: &Path, options: &LoadOptions) -> Model {
    let options = LoadOptions { max_batch_tokens: Some(1), ..options.clone() };
    Model::load_batched(folder, &options, Shapes { step: 1, pass: 0 }, vec![Device::flex()]).unwrap()
}

/// The model on every engine in f32, by name: one sequence at a time, in padded batches, in two
/// stages, and packed for each kernel that this processor has.
pub(crate) fn in_f32(folder: &Path) -> Vec<(String, Model)> {
    let options = LoadOptions { dtype: Some(Dtype::F32), max_batch_tokens: Some(300), ..LoadOptions::default() };
    let mut models = vec![
        ("one at a time".to_owned(), alone(folder, &options)),
        ("batched".to_owned(), batched(folder, &options, 1)),
        ("batched, in two stages".to_owned(), batched(folder, &options, 2)),
    ];
    models.extend(packed(folder, &options));
    models
}

/// The model packed for each kernel that this processor has, by name.
fn packed(folder: &Path, options: &LoadOptions) -> impl Iterator<Item = (String, Model)> {
    Kernel::available().into_iter().map(move |kernel| {
        let options = LoadOptions { kernel: Some(kernel), ..options.clone() };
        (format!("packed, {kernel}"), Model::load(folder, &options).unwrap())
    })
}

/// The model on every engine in bf16, by name: packed for each kernel that this processor has, and
/// in padded batches.
pub(crate) fn in_bf16(folder: &Path) -> Vec<(String, Model)> {
    let options = LoadOptions { dtype: Some(Dtype::Bf16), max_batch_tokens: Some(300), ..LoadOptions::default() };
    let mut models: Vec<(String, Model)> = packed(folder, &options).collect();
    models.push(("batched in bf16".to_owned(), batched(folder, &options, 1)));
    models
}

/// The model on every engine in f32 and then in bf16, by name.
pub(crate) fn engines(folder: &Path) -> Vec<(String, Model)> {
    let (in_f32, in_bf16) = (in_f32(folder), in_bf16(folder));
    assert!(in_f32.iter().all(|(_, model)| is_f32(model)));
    assert!(!in_bf16.iter().any(|(_, model)| is_f32(model)));
    in_f32.into_iter().chain(in_bf16).collect()
}

/// Whether a model of [`engines`] is one in f32.
pub(crate) fn is_f32(model: &Model) -> bool {
    model.info.dtype == "f32"
}

/// The answers in the order of the requests.
///
/// # Panics
/// If a request is answered twice or not at all, or the run fails.
pub(crate) fn answers(model: &Model, requests: &[Request]) -> Vec<Outcome> {
    let mut answers = vec![None; requests.len()];
    model
        .run(requests, &mut |index, outcome| {
            assert!(answers[index].replace(outcome).is_none(), "request {index} is answered twice");
            ControlFlow::Continue(())
        })
        .unwrap();
    answers.into_iter().map(Option::unwrap).collect()
}

/// The reading of an outcome.
///
/// # Panics
/// If the item is unscored.
pub(crate) fn reading(outcome: &Outcome) -> &Reading {
    match outcome {
        Outcome::Read(reading) => reading,
        Outcome::Unscored(fault) => panic!("{fault}"),
    }
}
