//! Files of saved probes: what is read back, what is refused, and files of the right form but with changes, not damaged but made.

use judge_probe::{Error, ProbedModel, SavedProbe};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

/// Name, type, shape and bytes.
pub(crate) type Tensor = (String, Dtype, Vec<usize>, Vec<u8>);

/// A model without a revision or known heads.
pub(crate) fn model(d_model: usize) -> ProbedModel {
    ProbedModel { name: "tiny".into(), revision: None, fingerprint: Some("5eed".into()), d_model, n_heads: None }
}

#[track_caller]
pub(crate) fn problem<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::SavedProbe(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Writes a probe and reads it back; fails unless it is the same, to the byte.
#[track_caller]
pub(crate) fn kept(saved: &SavedProbe) -> SavedProbe {
    let bytes = saved.to_bytes().unwrap();
    let read = SavedProbe::from_bytes(&bytes).unwrap();
    assert_eq!(read, *saved);
    assert_eq!(read.to_bytes().unwrap(), bytes);
    read
}

/// The file of a probe with changes to its description and tensors, and a checksum that fits them.
pub(crate) fn made_from(saved: &SavedProbe, change: impl Fn(&mut String, &mut Vec<Tensor>)) -> Vec<u8> {
    let bytes = saved.to_bytes().unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let mut text = header.metadata().as_ref().unwrap()["judge_probe"].clone();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut names: Vec<&str> = file.names().into_iter().filter(|name| *name != "checksum").collect();
    names.sort_unstable();
    let mut tensors: Vec<Tensor> = names
        .into_iter()
        .map(|name| (name, file.tensor(name).unwrap()))
        .map(|(name, view)| (name.to_owned(), view.dtype(), view.shape().to_vec(), view.data().to_vec()))
        .collect();
    change(&mut text, &mut tensors);
    let mut hasher = blake3::Hasher::new();
    for part in std::iter::once(text.as_bytes()).chain(tensors.iter().map(|tensor| tensor.3.as_slice())) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    tensors.push(("checksum".to_owned(), Dtype::U8, vec![32], hasher.finalize().as_bytes().to_vec()));
    let views =
        tensors.iter().map(|(name, dtype, shape, data)| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()));
    safetensors::serialize(views, Some([("judge_probe".to_owned(), text)].into())).unwrap()
}
