use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use judge_core::Layer;
use memmap2::Mmap;
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};
use serde_json::json;

use crate::{Error, Settings};

/// One file of hidden states, mapped into memory.
#[derive(Debug)]
pub(super) struct MappedStates {
    pub(super) path: PathBuf,
    map: Mmap,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) layers: Vec<Layer>,
    pub(super) rows: usize,
    pub(super) d_model: usize,
    states_at: usize,
    scored_at: usize,
}

impl MappedStates {
    /// Opens a file and checks its header; no state is read.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        // SAFETY: the map is private and read-only. Should another process cut the file short in spite of what the
        // documentation asks, the operating system ends this one; results are published by rename, never in place.
        let map = unsafe { Mmap::map(&file) }.map_err(Error::io("map", path))?;
        let (header, found) = SafeTensors::read_metadata(&map)
            .map_err(|source| Error::Safetensors { path: path.to_path_buf(), source })?;
        let data_at = 8 + header; // the length of the header, then the header

        let tensors = Tensors { path, found: &found };
        let layers = tensors.get("layers", Dtype::I64, &[None])?;
        let n_layers = layers.shape[0]; // `get` has checked the number of axes
        let states = tensors.get("states", Dtype::F32, &[None, Some(n_layers), None])?;
        let (rows, d_model) = (states.shape[0], states.shape[2]);
        let scored = tensors.get("scored", Dtype::U8, &[Some(rows)])?;

        let numbers = &map[data_at + layers.data_offsets.0..data_at + layers.data_offsets.1]; // checked by `read_metadata`
        let layers = numbers.as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes));
        let layers = layers.map(|number| {
            let wrong = |_| Error::content(path, "layers", "layer numbers from 0", number.to_string());
            usize::try_from(number).map(Layer).map_err(wrong)
        });
        Ok(Self {
            layers: layers.collect::<Result<_, _>>()?,
            metadata: found.metadata().clone().unwrap_or_default().into_iter().collect(),
            states_at: data_at + states.data_offsets.0,
            scored_at: data_at + scored.data_offsets.0,
            rows,
            d_model,
            path: path.to_path_buf(),
            map,
        })
    }

    /// Everything that the rows depend on.
    pub(super) fn settings(&self) -> Settings {
        settings(&self.metadata, &self.layers, self.d_model)
    }

    pub(super) fn is_scored(&self, row: usize) -> bool {
        row < self.rows && self.map.get(self.scored_at + row).is_some_and(|&scored| scored != 0)
    }

    /// The states of a scored row in these layers, by their places in the file; `None` if it is not scored.
    pub(super) fn values(&self, row: usize, layers: Range<usize>) -> Result<Option<Vec<f32>>, Error> {
        if !self.is_scored(row) {
            return Ok(None);
        }
        let start = self.states_at + 4 * self.d_model * (row * self.layers.len() + layers.start);
        let bytes = &self.map[start..start + 4 * self.d_model * layers.len()]; // within the tensor, checked when opened
        let values: Vec<f32> = bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
        match values.iter().position(|value| !value.is_finite()) {
            Some(index) => {
                let found = format!("{} in row {row}, value {}", values[index], layers.start * self.d_model + index);
                Err(Error::content(&self.path, "states", "finite numbers", found))
            }
            None => Ok(Some(values)),
        }
    }
}

/// Everything that the rows of a file depend on.
pub(super) fn settings(metadata: &BTreeMap<String, String>, layers: &[Layer], d_model: usize) -> Settings {
    let mut settings: Settings = metadata.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
    settings.insert("shape.layers".into(), json!(layers));
    settings.insert("shape.d_model".into(), json!(d_model));
    settings
}

/// The tensors of a header, for lookups that say what they expected.
struct Tensors<'a> {
    path: &'a Path,
    found: &'a Metadata,
}

impl<'a> Tensors<'a> {
    /// `shape` has `None` where any size will do.
    fn get(&self, tensor: &'static str, dtype: Dtype, shape: &[Option<usize>]) -> Result<&'a TensorInfo, Error> {
        let tensors: HashMap<String, &'a TensorInfo> = self.found.tensors();
        let info = tensors.get(tensor).copied();
        let fits = |info: &&TensorInfo| {
            info.dtype == dtype
                && info.shape.len() == shape.len()
                && info.shape.iter().zip(shape).all(|(&found, wanted)| wanted.is_none_or(|w| w == found))
        };
        info.filter(fits).ok_or_else(|| {
            let sizes: Vec<String> = shape.iter().map(|s| s.map_or("any".into(), |s| s.to_string())).collect();
            let expected = format!("a tensor {dtype:?} [{}]", sizes.join(", "));
            let found = info.map_or("no such tensor".into(), |i| format!("{:?} {:?}", i.dtype, i.shape));
            Error::content(self.path, tensor, expected, found)
        })
    }
}
