use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};

use judge_core::Layer;
use memmap2::Mmap;
use safetensors::tensor::{Metadata, TensorInfo};
use safetensors::{Dtype, SafeTensors};

use crate::Error;

/// The metadata's `format`.
pub(crate) const FORMAT: &str = "judge-states-1";

/// Hidden states on disk, read through a memory map: only the rows that are asked for are fetched.
///
/// A safetensors file with three tensors: `states` f32 `[rows, layers, d_model]`, row k being input row k; `layers` i64
/// `[layers]`, Hugging Face's `hidden_states` numbers; `scored` u8 `[rows]`, 0 where a row could not be read and its
/// states are zero. Written by [`StatesWriter`](crate::StatesWriter), or by any program.
#[derive(Debug)]
pub struct StatesFile {
    path: PathBuf,
    map: Mmap,
    metadata: BTreeMap<String, String>,
    layers: Vec<Layer>,
    rows: usize,
    d_model: usize,
    states_at: usize,
    scored_at: usize,
}

impl StatesFile {
    /// Opens a file and checks its header. The file must not be changed while it is open.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Safetensors`] if the header is broken or the file is cut short; [`Error::Tensor`] if one
    /// of the tensors is absent or of another dtype or shape.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let file = File::open(&path).map_err(Error::io("open", &path))?;
        // SAFETY: the map is private and read-only. Should another process cut the file short in spite of what the
        // documentation asks, the operating system ends this one; results are published by rename, never in place.
        let map = unsafe { Mmap::map(&file) }.map_err(Error::io("map", &path))?;
        let (header, found) =
            SafeTensors::read_metadata(&map).map_err(|source| Error::Safetensors { path: path.clone(), source })?;
        let data_at = 8 + header; // the length of the header, then the header

        let tensors = Tensors { path: &path, found: &found };
        let layers = tensors.get("layers", Dtype::I64, &[None])?;
        let n_layers = layers.shape[0]; // `get` has checked the number of axes
        let states = tensors.get("states", Dtype::F32, &[None, Some(n_layers), None])?;
        let (rows, d_model) = (states.shape[0], states.shape[2]);
        let scored = tensors.get("scored", Dtype::U8, &[Some(rows)])?;

        let numbers = &map[data_at + layers.data_offsets.0..data_at + layers.data_offsets.1]; // checked by `read_metadata`
        let layers = numbers.as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes));
        let layers = layers.map(|number| {
            usize::try_from(number).map(Layer).map_err(|_| Error::Tensor {
                path: path.clone(),
                tensor: "layers",
                expected: "layer numbers from 0".into(),
                found: number.to_string(),
            })
        });
        Ok(Self {
            layers: layers.collect::<Result<_, _>>()?,
            metadata: found.metadata().clone().unwrap_or_default().into_iter().collect(),
            states_at: data_at + states.data_offsets.0,
            scored_at: data_at + scored.data_offsets.0,
            rows,
            d_model,
            map,
            path,
        })
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of rows, unscored ones included.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The layers, in the order of the second axis.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Width of a state.
    pub fn d_model(&self) -> usize {
        self.d_model
    }

    /// Settings and model fingerprint of the run that wrote it.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The states of a row, shape `[layers, d_model]`, row-major; `None` if the row was not scored or does not exist.
    pub fn row(&self, row: usize) -> Option<Vec<f32>> {
        self.values(row, 0, self.layers.len())
    }

    /// The state of one row and layer, shape `[d_model]`; `None` if the row was not scored or does not exist, or the
    /// layer is not in the file.
    pub fn state(&self, row: usize, layer: Layer) -> Option<Vec<f32>> {
        let index = self.layers.iter().position(|&l| l == layer)?;
        self.values(row, index, 1)
    }

    fn values(&self, row: usize, first_layer: usize, n_layers: usize) -> Option<Vec<f32>> {
        if row >= self.rows || *self.map.get(self.scored_at + row)? == 0 {
            return None;
        }
        let start = self.states_at + 4 * self.d_model * (row * self.layers.len() + first_layer);
        let bytes = self.map.get(start..start + 4 * self.d_model * n_layers)?;
        Some(bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect())
    }
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
            Error::Tensor {
                path: self.path.to_path_buf(),
                tensor,
                expected: format!("{dtype:?} [{}]", sizes.join(", ")),
                found: info.map_or("no such tensor".into(), |i| format!("{:?} {:?}", i.dtype, i.shape)),
            }
        })
    }
}
