//! The file itself.
//!
//! It owns the layout of bytes: the metadata entry, the names of tensors, the checksum and the versions. How transformers and calibrators
//! map to tensors is `stages`' and `calibrator`'s; what numbers a probe may have is checked by the types that are built from them, not
//! here. Opening, naming and replacing files on disk is not this crate's.
//!
//! A file is read in this order, each step before the next may trust it: container, entry, version, description, names of tensors,
//! checksum, parts. The checksum is neither first, because it covers tensors by name, nor a protection against anyone who can compute it
//! anew.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::calibrator::{self, Layout};
use super::stages::{self, Stage};
use super::tensors::{Numbers, matrix, tensor, vector};
use super::{ProbeOrigin, SavedProbe, SavedProbeError};
use crate::{
    DataHash, DecisionRule, DenseClassifier, Error, FittedClassifier, FittedProbe, HiddenLayer, LinearClassifier,
    Precision,
};

/// Key of the one metadata entry. It tells a saved probe from any other safetensors file.
const ENTRY: &str = "judge_probe";
/// The first version with calibrators.
const VERSION: u32 = 3;
/// What probes without one are written as, so that those who know no calibrators read them.
const WITHOUT_CALIBRATOR: u32 = 2;

/// What the metadata entry holds.
///
/// Written by `serde_json` with its shortest exact form of each number, and read back to the same bits. Unknown fields are refused: a
/// reader that skips what it does not know would use a probe otherwise than it was meant.
///
/// The order of the fields is the order in the file, and so part of the equal bytes of equal probes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    version: u32,
    rule: DecisionRule,
    classes: Vec<i64>,
    precision: Precision,
    /// The transformers, from the features on.
    stages: Vec<Stage>,
    /// How many there are; not written where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    hidden_layers: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calibrator: Option<Layout>,
    origin: ProbeOrigin,
}

/// What it held in version 1, which knew no transformers but a scaler, with tensors `mean` and `scale`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstDescription {
    /// Known to be 1 by then; named so that it is no unknown field.
    #[serde(rename = "version")]
    _version: u32,
    rule: DecisionRule,
    classes: Vec<i64>,
    precision: Precision,
    /// Whether the probe begins with a scaler.
    scaled: bool,
    #[serde(default)]
    hidden_layers: usize,
    origin: ProbeOrigin,
}

impl From<FirstDescription> for Description {
    /// The version number is not carried over: only writing uses it, and writes its own.
    fn from(first: FirstDescription) -> Self {
        let FirstDescription { rule, classes, precision, scaled, hidden_layers, origin, .. } = first;
        let stages = if scaled { vec![Stage::Scaler] } else { Vec::new() };
        Self { version: VERSION, rule, classes, precision, stages, hidden_layers, calibrator: None, origin }
    }
}

/// By reference, as serde calls it.
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The version alone, of any version.
///
/// Unknown fields are allowed here alone, so that a file of a later version is refused by its number and not by a field.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// The names of a hidden layer's tensors.
///
/// Layers count from 0, the one that meets the features first.
fn hidden_names(layer: usize) -> [String; 2] {
    ["intercepts", "weights"].map(|part| format!("hidden.{layer}.{part}"))
}

impl SavedProbe {
    /// The file's bytes.
    ///
    /// # Errors
    ///
    /// [`SavedProbeError::Content`] where the container's writer refuses, or that of JSON.
    ///
    /// The size is 8 bytes for each number, plus the description and a header of names and shapes. Two copies of the numbers are in memory
    /// for a moment: the tensors and the result.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let (classifier, stages) = (self.probe.classifier(), self.probe.stages());
        let description = Description {
            version: if self.calibrator.is_some() { VERSION } else { WITHOUT_CALIBRATOR },
            rule: classifier.rule(),
            classes: classifier.classes().to_vec(),
            precision: self.probe.precision(),
            stages: stages.iter().map(Stage::of).collect(),
            hidden_layers: self.probe.hidden_layers().len(),
            calibrator: self.calibrator.as_ref().map(Layout::of),
            origin: self.origin.clone(),
        };
        let description = serde_json::to_string(&description).map_err(|error| description_error(&error))?;
        let mut tensors = vec![
            Numbers::matrix("coefficients", classifier.coefficients()),
            Numbers::vector("intercepts", classifier.intercepts()),
        ];
        for (index, stage) in stages.iter().enumerate() {
            tensors.extend(stages::tensors(stage, &stages::prefix(index)));
        }
        for (index, layer) in self.probe.hidden_layers().iter().enumerate() {
            let [intercepts, weights] = hidden_names(index);
            tensors.push(Numbers::vector(intercepts, layer.intercepts()));
            tensors.push(Numbers::matrix(weights, layer.weights()));
        }
        if let Some(calibrator) = &self.calibrator {
            tensors.extend(calibrator::tensors(calibrator)?);
        }
        tensors.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let checksum = checksum(&description, tensors.iter().map(|tensor| tensor.bytes.as_slice()));
        let container = |error| not_safetensors(0, error);
        let mut views =
            vec![("checksum", TensorView::new(Dtype::U8, vec![checksum.len()], &checksum).map_err(container)?)];
        for Numbers { name, shape, bytes } in &tensors {
            views.push((name.as_str(), TensorView::new(Dtype::F64, shape.clone(), bytes).map_err(container)?));
        }
        // A single entry, so that the order of a map cannot change the bytes.
        let metadata = HashMap::from([(ENTRY.to_owned(), description)]);
        Ok(safetensors::serialize(views, Some(metadata)).map_err(container)?)
    }

    /// Reads a file's bytes and checks everything: the checksum, the shapes against each other, that numbers are finite, that classes
    /// ascend, that the states named make up the features, that a calibrator's curves do not turn round and its errors are as many as its
    /// level needs.
    ///
    /// # Errors
    ///
    /// [`Error::SavedProbe`], and of the parts [`Error::NonFiniteFeature`] (of coefficients: row and column), [`Error::InvalidParameter`],
    /// [`Error::ParameterCount`], [`Error::ClassOrder`], [`Error::OneClass`], [`Error::CumulativeFunctions`], [`Error::FeatureCount`] (of
    /// transformers and layers), and [`Error::Empty`] for a tensor without numbers.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if matches!(bytes, [0x80, 2..=5, ..]) && SafeTensors::read_metadata(bytes).is_err() {
            return Err(SavedProbeError::Pickle.into());
        }
        let container = |error| not_safetensors(bytes.len(), error);
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(container)?;
        let text = header.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
        let text = text.ok_or_else(|| {
            SavedProbeError::Content(format!(
                "the safetensors file is no saved probe: it has no metadata entry {ENTRY:?}"
            ))
        })?;
        let Version { version } = serde_json::from_str(text).map_err(|error| description_error(&error))?;
        let description = match version {
            1 => serde_json::from_str::<FirstDescription>(text).map(Description::from),
            WITHOUT_CALIBRATOR | VERSION => serde_json::from_str(text),
            found => {
                return Err(SavedProbeError::Content(format!("format version {VERSION} is read, found {found}")).into());
            }
        };
        let Description { rule, classes, precision, stages, hidden_layers, calibrator, origin, .. } =
            description.map_err(|error| description_error(&error))?;
        let prefix = |stage| if version == 1 { String::new() } else { stages::prefix(stage) };

        // Borrows the bytes; the container's own checks of offsets and sizes run here.
        let file = SafeTensors::deserialize(bytes).map_err(container)?;
        let mut names = vec!["coefficients".to_owned(), "intercepts".to_owned()];
        for (index, stage) in stages.iter().enumerate() {
            names.extend(stage.names(&prefix(index)));
        }
        for layer in 0..hidden_layers {
            let of_layer = hidden_names(layer);
            // Before the next: the number of layers is the file's word.
            for name in &of_layer {
                tensor(&file, name, Dtype::F64, None)?;
            }
            names.extend(of_layer);
        }
        names.extend(calibrator.iter().flat_map(Layout::names));
        names.sort_unstable();
        let known = |name: &str| name == "checksum" || names.binary_search_by(|known| known.as_str().cmp(name)).is_ok();
        if let Some(name) = file.names().into_iter().find(|name| !known(name)) {
            return Err(SavedProbeError::Content(format!("unknown tensor {name:?}")).into());
        }
        // In the order of the names, as they were written.
        let mut contents = Vec::new();
        for name in &names {
            contents.push(tensor(&file, name, Dtype::F64, None)?.data());
        }
        let expected = checksum(text, contents.into_iter());
        if tensor(&file, "checksum", Dtype::U8, Some(&[expected.len()]))?.data() != expected {
            return Err(SavedProbeError::Content("the content does not match its checksum".to_owned()).into());
        }

        // From here on each part checks its own numbers, and the constructors check the parts against each other.
        let coefficients = matrix(&file, "coefficients")?;
        let intercepts = vector(&file, "intercepts", Some(coefficients.n_rows()))?;
        let output = LinearClassifier::from_parts(rule, classes, coefficients, intercepts)?;
        let mut hidden = Vec::new();
        for [intercepts, weights] in (0..hidden_layers).map(hidden_names) {
            let weights = matrix(&file, &weights)?;
            let intercepts = vector(&file, &intercepts, Some(weights.n_rows()))?;
            hidden.push(HiddenLayer::from_parts(weights, intercepts)?);
        }
        let classifier = DenseClassifier::from_parts(hidden, output)?;
        let read = |(index, stage): (usize, &Stage)| stage.read(&file, &prefix(index));
        let stages = stages.iter().enumerate().map(read).collect::<Result<Vec<_>, Error>>()?;
        let saved = Self::new(FittedProbe::new(stages, classifier, precision)?, origin)?;
        match calibrator {
            Some(layout) => saved.with_calibrator(layout.read(&file)?),
            None => Ok(saved),
        }
    }
}

/// Over the description and the tensors in the order of their names. Names and shapes are not hashed: names follow from the description,
/// and shapes must agree with each other.
fn checksum<'a>(description: &'a str, tensors: impl Iterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut hash = DataHash::new();
    std::iter::once(description.as_bytes()).chain(tensors).for_each(|part| hash.add(part));
    hash.bytes()
}

/// Where in the description the parser stopped, and why.
///
/// Both count from 1, within the entry's text and not the file.
fn description_error(error: &serde_json::Error) -> SavedProbeError {
    SavedProbeError::Content(format!("description, line {}, column {}: {error}", error.line(), error.column()))
}

fn not_safetensors(n_bytes: usize, error: safetensors::SafeTensorError) -> SavedProbeError {
    SavedProbeError::Content(format!("{n_bytes} bytes that are no safetensors file: {error}"))
}
