//! The file itself.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use super::{ProbeOrigin, SavedProbe, SavedProbeError};
use crate::{
    DecisionRule, Error, FittedClassifier, FittedProbe, FittedStandardScaler, LinearClassifier, Matrix, Precision,
};

const ENTRY: &str = "judge_probe";
const VERSION: u32 = 1;

/// What the metadata entry holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    version: u32,
    rule: DecisionRule,
    classes: Vec<i64>,
    precision: Precision,
    scaled: bool,
    origin: ProbeOrigin,
}

/// The version alone, of any version.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// A tensor's name, shape and bytes.
struct Numbers {
    name: &'static str,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Numbers {
    fn new(name: &'static str, shape: Vec<usize>, numbers: &[f64]) -> Self {
        Self { name, shape, bytes: numbers.iter().flat_map(|number| number.to_le_bytes()).collect() }
    }
}

impl SavedProbe {
    /// The file's bytes.
    ///
    /// # Errors
    ///
    /// [`SavedProbeError::Container`] where the container's writer refuses, and [`SavedProbeError::Description`] where that of JSON does.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let (classifier, scaler) = (self.probe.classifier(), self.probe.scaler());
        let description = Description {
            version: VERSION,
            rule: classifier.rule(),
            classes: classifier.classes().to_vec(),
            precision: self.probe.precision(),
            scaled: scaler.is_some(),
            origin: self.origin.clone(),
        };
        let description = serde_json::to_string(&description).map_err(|error| description_error(&error))?;
        let coefficients = classifier.coefficients();
        let mut tensors = vec![
            Numbers::new("coefficients", vec![coefficients.n_rows(), coefficients.n_features()], coefficients.values()),
            Numbers::new("intercepts", vec![classifier.intercepts().len()], classifier.intercepts()),
        ];
        if let Some(scaler) = scaler {
            tensors.push(Numbers::new("mean", vec![scaler.mean().len()], scaler.mean()));
            tensors.push(Numbers::new("scale", vec![scaler.scale().len()], scaler.scale()));
        }
        let checksum = checksum(&description, tensors.iter().map(|tensor| tensor.bytes.as_slice()));
        let container =
            |error: safetensors::SafeTensorError| SavedProbeError::Container { n_bytes: 0, reason: error.to_string() };
        let mut views =
            vec![("checksum", TensorView::new(Dtype::U8, vec![checksum.len()], &checksum).map_err(container)?)];
        for Numbers { name, shape, bytes } in &tensors {
            views.push((name, TensorView::new(Dtype::F64, shape.clone(), bytes).map_err(container)?));
        }
        // A single entry, so that the order of a map cannot change the bytes.
        let metadata = HashMap::from([(ENTRY.to_owned(), description)]);
        Ok(safetensors::serialize(views, Some(metadata)).map_err(container)?)
    }

    /// Reads a file's bytes and checks everything: the checksum, the shapes against each other, that numbers are finite, that classes
    /// ascend, that the states named make up the features.
    ///
    /// # Errors
    ///
    /// [`Error::SavedProbe`], and of the parts [`Error::NonFiniteFeature`] (of coefficients: row and column), [`Error::InvalidParameter`],
    /// [`Error::ParameterCount`], [`Error::ClassOrder`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let container = |error: safetensors::SafeTensorError| SavedProbeError::Container {
            n_bytes: bytes.len(),
            reason: error.to_string(),
        };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(container)?;
        let text = header.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
        let text = text.ok_or(SavedProbeError::NotAProbe { name: ENTRY })?;
        let Version { version } = serde_json::from_str(text).map_err(|error| description_error(&error))?;
        if version != VERSION {
            return Err(SavedProbeError::Version { expected: VERSION, found: version }.into());
        }
        let Description { rule, classes, precision, scaled, origin, .. } =
            serde_json::from_str(text).map_err(|error| description_error(&error))?;

        let file = SafeTensors::deserialize(bytes).map_err(container)?;
        let names: &[&'static str] =
            if scaled { &["coefficients", "intercepts", "mean", "scale"] } else { &["coefficients", "intercepts"] };
        if let Some(name) = file.names().into_iter().find(|name| *name != "checksum" && !names.contains(name)) {
            return Err(SavedProbeError::UnknownTensor { name: name.to_owned() }.into());
        }
        let mut contents = Vec::new();
        for name in names {
            contents.push(tensor(&file, name, Dtype::F64, None)?.data());
        }
        let expected = checksum(text, contents.into_iter());
        if tensor(&file, "checksum", Dtype::U8, Some(&[expected.len()]))?.data() != expected {
            return Err(SavedProbeError::Checksum.into());
        }

        let coefficients = tensor(&file, "coefficients", Dtype::F64, None)?;
        let &[n_functions, n_features] = coefficients.shape() else {
            return Err(tensor_error("coefficients", Dtype::F64, "rows and columns", &coefficients).into());
        };
        let vector = |name, length| Ok::<_, Error>(numbers(&tensor(&file, name, Dtype::F64, Some(&[length]))?));
        let scaler = if scaled {
            Some(FittedStandardScaler::from_parts(vector("mean", n_features)?, vector("scale", n_features)?)?)
        } else {
            None
        };
        let coefficients = Matrix::new(numbers(&coefficients), n_features)?;
        let intercepts = vector("intercepts", n_functions)?;
        let classifier = LinearClassifier::from_parts(rule, classes, coefficients, intercepts)?;
        Self::new(FittedProbe::new(scaler, classifier, precision)?, origin)
    }
}

fn tensor<'a>(
    file: &SafeTensors<'a>,
    name: &'static str,
    dtype: Dtype,
    shape: Option<&[usize]>,
) -> Result<TensorView<'a>, SavedProbeError> {
    let view = file.tensor(name).map_err(|_| SavedProbeError::MissingTensor { name })?;
    if view.dtype() == dtype && shape.is_none_or(|shape| shape == view.shape()) {
        return Ok(view);
    }
    let shape = shape.map_or("any shape".to_owned(), |shape| format!("{shape:?}"));
    Err(tensor_error(name, dtype, &shape, &view))
}

fn tensor_error(name: &'static str, dtype: Dtype, shape: &str, found: &TensorView<'_>) -> SavedProbeError {
    let found = format!("{:?} {:?}", found.dtype(), found.shape());
    SavedProbeError::Tensor { name, expected: format!("{dtype:?} {shape}"), found }
}

fn numbers(view: &TensorView<'_>) -> Vec<f64> {
    let (numbers, _) = view.data().as_chunks::<8>();
    numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

/// Over the description and the tensors in the order of their names, each with its length before it.
fn checksum<'a>(description: &'a str, tensors: impl Iterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in std::iter::once(description.as_bytes()).chain(tensors) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

fn description_error(error: &serde_json::Error) -> SavedProbeError {
    SavedProbeError::Description { line: error.line(), column: error.column(), reason: error.to_string() }
}
