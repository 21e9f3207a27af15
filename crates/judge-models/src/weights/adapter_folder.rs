//! A LoRA adapter written as a folder of PEFT's, which PEFT, TRL and vLLM load, and this crate.
//!
//! ```text
//!  adapter_model.safetensors   base_model.model.MODULE.lora_A.weight, .lora_B.weight, base_model.model.TENSOR of a head
//!  adapter_config.json         last: without it a folder is no adapter
//! ```

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use safetensors::tensor::{Dtype as Stored, TensorView};
use serde_json::{Value, json};

use judge_weights::lora::{Adapter, PREFIX, lora_scale};

use crate::Error;
use crate::base::BaseName;
use crate::folder::file;
use crate::new_folder::NewFolder;

/// An adapter as it is to be written.
pub(crate) struct AdapterFolder<'a> {
    /// What PEFT loads as its base: a folder or a name of the hub; `None` where it lies in no lasting place.
    pub(crate) base: Option<BaseName>,
    /// The rank of every pair.
    pub(crate) rank: usize,
    /// The numerator of the scale.
    pub(crate) alpha: f64,
    /// Whether the scale is `alpha / sqrt(rank)`.
    pub(crate) rslora: bool,
    /// What PEFT finds the adapted modules by: the last parts of their names, or whole names.
    pub(crate) targets: Vec<String>,
    /// The blocks that are adapted; `None` for all.
    pub(crate) layers: Option<Vec<usize>>,
    /// The pairs.
    pub(crate) factors: Vec<Factors<'a>>,
    /// The tensors of a head of labels, which make the adapter a classifier's; empty without one.
    pub(crate) head: Vec<Whole<'a>>,
    /// The modules that the tensors of the head are of.
    pub(crate) head_modules: Vec<String>,
}

/// A tensor that is written whole.
pub(crate) struct Whole<'a> {
    /// Its name in the base.
    pub(crate) name: String,
    /// Its shape.
    pub(crate) shape: &'a [usize],
    /// Its numbers, row-major.
    pub(crate) values: &'a [f32],
}

/// The factors of one matrix.
pub(crate) struct Factors<'a> {
    /// The matrix's name in the base, without `.weight`.
    pub(crate) stem: String,
    /// Columns of the matrix.
    pub(crate) d_in: usize,
    /// Rows of the matrix.
    pub(crate) d_out: usize,
    /// `[rank, d_in]`, row-major.
    pub(crate) a: &'a [f32],
    /// `[d_out, rank]`, row-major.
    pub(crate) b: &'a [f32],
}

impl<'a> AdapterFolder<'a> {
    /// Writes the folder, reads it back and compares it with these numbers before it gets its name. Returns the
    /// name of the first tensor that came back otherwise; the folder is then not kept.
    ///
    /// # Errors
    /// [`Error::OutputExists`] unless `output` is absent or an empty folder, [`Error::Write`], and those of
    /// reading an adapter.
    pub(crate) fn write(&self, output: &Path) -> Result<Option<String>, Error> {
        let new = NewFolder::begin(output, |name| [file::ADAPTER_CONFIG, file::ADAPTER_WEIGHTS].contains(&name))?;
        let fault = |path: &Path| {
            let path = path.to_owned();
            move |source| Error::Write { path, source }
        };
        let path = new.path().join(file::ADAPTER_WEIGHTS);
        fs::write(&path, self.tensors().map_err(std::io::Error::other).map_err(fault(&path))?).map_err(fault(&path))?;
        let path = new.path().join(file::ADAPTER_CONFIG);
        fs::write(&path, format!("{:#}\n", self.config())).map_err(fault(&path))?;
        if let Some(tensor) = self.differs(new.path())? {
            return Ok(Some(tensor));
        }
        new.finish()?;
        Ok(None)
    }

    /// The safetensors file.
    fn tensors(&self) -> Result<Vec<u8>, safetensors::SafeTensorError> {
        let mut tensors: Vec<(String, Vec<usize>, &[f32])> = Vec::new();
        for Factors { stem, d_in, d_out, a, b } in &self.factors {
            tensors.push((format!("{PREFIX}{stem}.lora_A.weight"), vec![self.rank, *d_in], a));
            tensors.push((format!("{PREFIX}{stem}.lora_B.weight"), vec![*d_out, self.rank], b));
        }
        let of_head = |Whole { name, shape, values }: &Whole<'a>| (format!("{PREFIX}{name}"), shape.to_vec(), *values);
        tensors.extend(self.head.iter().map(of_head));
        let bytes: Vec<Vec<u8>> =
            tensors.iter().map(|(.., values)| values.iter().flat_map(|x| x.to_le_bytes()).collect()).collect();
        let views = tensors.iter().zip(&bytes).map(|((name, shape, _), bytes)| {
            TensorView::new(Stored::F32, shape.clone(), bytes).map(|view| (name.as_str(), view))
        });
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        safetensors::serialize(views.collect::<Result<Vec<_>, _>>()?, Some(metadata))
    }

    /// `adapter_config.json`, with the fields that decide about numbers and those that loaders ask for.
    fn config(&self) -> Value {
        let head = (!self.head_modules.is_empty()).then_some(&self.head_modules);
        json!({
            "peft_type": "LORA",
            "task_type": if head.is_some() { "SEQ_CLS" } else { "CAUSAL_LM" },
            "base_model_name_or_path": self.base.as_ref().map(|base| &base.name),
            "revision": self.base.as_ref().and_then(|base| base.revision.as_ref()),
            "inference_mode": true,
            "r": self.rank,
            "lora_alpha": self.alpha,
            "use_rslora": self.rslora,
            "lora_dropout": 0.0,
            "bias": "none",
            "fan_in_fan_out": false,
            "init_lora_weights": true,
            "target_modules": self.targets,
            "layers_to_transform": self.layers,
            "modules_to_save": head,
        })
    }

    /// The base's name of the first tensor that the adapter in a folder changes otherwise; `None` if it is this adapter.
    pub(crate) fn differs(&self, path: &Path) -> Result<Option<String>, Error> {
        let mut read = Adapter::open(path)?;
        if read.n_changes() != self.factors.len() + self.head.len() {
            return Ok(Some(file::ADAPTER_WEIGHTS.to_owned()));
        }
        let scale = lora_scale(self.alpha, self.rank, self.rslora);
        for Factors { stem, d_in, d_out, a, b } in &self.factors {
            let name = format!("{stem}.weight");
            let found = read.low_rank(&name, [*d_out, *d_in])?;
            let is_same = found
                .is_some_and(|found| found.scale == scale && found.rank == self.rank && found.a == *a && found.b == *b);
            if !is_same {
                return Ok(Some(name));
            }
        }
        for Whole { name, shape, values } in &self.head {
            let found = read.take_replacement(name, shape)?;
            if found.as_deref() != Some(values) {
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    }
}
