//! The methods of quantisation, and which of them a folder uses.
//!
//! `open.rs` asks [`format`](fn@format) once for a folder. A new method is a file that implements [`Format`]
//! and an arm of the match below; [`Quantised`](super::Quantised) needs no change. Whatever a
//! configuration says that changes weights in a way that is not computed here is refused by its
//! field, and fields that are not known are warned of.

use serde_json::Value;

use super::module::Module;
use super::settings::Settings;
use super::{awq, bitsandbytes, compressed, fp8, gptq, mxfp4};
use crate::Error;
use crate::folder::{Folder, file};
use crate::weights::codes::Coded;
use crate::weights::raw::Raw;

/// What is supported, as errors say it.
const METHODS: &str = "fp8, fbgemm_fp8, compressed-tensors (float-quantized, int-quantized, naive-quantized and pack-quantized), mxfp4 (gpt-oss), gptq, awq and bitsandbytes";

/// How a method stores a module. An implementation keeps the settings of the folder, no tensors.
pub(crate) trait Format {
    /// Pairs of ends of names, behind the path of the module: that of a tensor of codes, and that
    /// of the weight that it stands for. The first pair whose first end a name has counts.
    fn codes(&self) -> &'static [(&'static str, &'static str)];

    /// Whether a tensor with such a name does hold codes. In most methods a dense weight has the
    /// same name, and the dtype tells them apart.
    fn is_codes(&self, raw: &Raw<'_>) -> bool;

    /// Ends of the names of the tensors that a module may have beside its codes: those that are
    /// read, and those that only say how activations are rounded, which are left unread.
    fn partners(&self) -> &'static [&'static str];

    /// Whether a tensor that belongs to no module may be left unread. None by default.
    fn ignores(&self, _name: &str) -> bool {
        false
    }

    /// Whether a stack of matrices that no folder has one by one may be stored as one tensor of
    /// codes. If not, models with such stacks are refused for this method.
    fn has_stacks(&self) -> bool {
        false
    }

    /// The rows of a module's weight `[out, in]`, or of a stack of them where there are stacks. All
    /// shapes and dtypes, and indices that lead into other tensors, are checked here, so that
    /// expanding rows cannot fail.
    ///
    /// # Errors
    /// [`Error::Tensor`] for tensors that are missing or do not fit this shape or each other.
    fn open<'a>(&self, module: Module<'a>, shape: &[usize]) -> Result<Box<dyn Coded + 'a>, Error>;
}

/// The format that a folder's `config.json` names; `None` if it is not quantised. The settings are
/// those of `quantization_config`, else those inside `text_config`, where vision-language folders
/// may have them.
///
/// # Errors
/// [`Error::Unsupported`] with the field that says something that is not read.
/// `compression_config`, the older name of the settings of compressed-tensors, is refused as such.
pub(crate) fn format(folder: &Folder) -> Result<Option<Box<dyn Format>>, Error> {
    let (config, path) = (folder.config(), folder.file(file::CONFIG));
    let is_set = |value: &&Value| !value.is_null();
    if let Some(old) = config.get("compression_config").filter(is_set) {
        let found = old.get("quant_method").and_then(Value::as_str).unwrap_or("an unnamed method").to_owned();
        let field = "compression_config".to_owned();
        return Err(Error::Unsupported { path, field, found, supported: "quantization_config" });
    }
    /// The field of `config.json` that holds the settings.
    const FIELD: &str = "quantization_config";
    let inner = config.get("text_config").and_then(|text| text.get(FIELD)).filter(is_set);
    let (place, settings) = match (config.get(FIELD).filter(is_set), inner) {
        (None, None) => return Ok(None),
        (Some(settings), _) => (FIELD.to_owned(), settings),
        (None, Some(settings)) => (format!("text_config.{FIELD}"), settings),
    };
    let Value::Object(fields) = settings else {
        return Err(Error::Unsupported { path, field: place, found: settings.to_string(), supported: METHODS });
    };
    let settings = Settings { path, place, fields: fields.clone() };
    let is_on = |field| settings.get(field) == Some(&Value::Bool(true));
    // transformers takes files without a name for those of bitsandbytes, which once wrote none.
    let unnamed = settings.get("quant_method").is_none() && (is_on("load_in_4bit") || is_on("load_in_8bit"));
    Ok(Some(match settings.text("quant_method") {
        "fp8" => Box::new(fp8::Fp8::read(&settings)?),
        "fbgemm_fp8" => Box::new(fp8::Fbgemm::read(&settings)),
        "compressed-tensors" => Box::new(compressed::Compressed::read(&settings)?),
        "mxfp4" => Box::new(mxfp4::Mxfp4::read(&settings)),
        "gptq" => Box::new(gptq::Gptq::read(&settings)?),
        "awq" => Box::new(awq::Awq::read(&settings)?),
        "bitsandbytes" => Box::new(bitsandbytes::Bitsandbytes::read(&settings)),
        _ if unnamed => Box::new(bitsandbytes::Bitsandbytes::read(&settings)),
        _ => return Err(settings.refuse("quant_method", METHODS)),
    }))
}
