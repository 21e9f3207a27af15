//! Which method of quantisation a folder uses.
//!
//! [`method`](fn@method) is asked once for a folder. Whatever a configuration says that changes weights in a way that is not
//! computed here is refused by its field, and fields that are not known are warned of.

use std::path::PathBuf;

use serde_json::Value;

use super::method::Format;
use super::settings::Settings;
use super::{awq, bitsandbytes, compressed, fp8, gptq, mxfp4};
use crate::Error;

/// What is supported, as errors say it.
const METHODS: &str = "fp8, fbgemm_fp8, compressed-tensors (float-quantized, int-quantized, naive-quantized and pack-quantized), mxfp4 (gpt-oss), gptq, awq and bitsandbytes";

/// A method of quantisation, with the settings of a folder.
pub struct Method(pub(crate) Box<dyn Format>);

impl Method {
    /// Whether a stack of matrices that no folder has one by one may be stored as one tensor of
    /// codes. If not, models with such stacks are refused for this method.
    #[must_use]
    pub fn has_stacks(&self) -> bool {
        self.0.has_stacks()
    }
}

/// The method that a folder's `config.json` names; `None` if it is not quantised. The settings are
/// those of `quantization_config`, else those inside `text_config`, where vision-language folders
/// may have them.
///
/// # Errors
/// [`Error::Unsupported`] with the field that says something that is not read.
/// `compression_config`, the older name of the settings of compressed-tensors, is refused as such.
pub fn method(config: &Value, path: PathBuf) -> Result<Option<Method>, Error> {
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
    let format: Box<dyn Format> = match settings.text("quant_method") {
        "fp8" => Box::new(fp8::Fp8::read(&settings)?),
        "fbgemm_fp8" => Box::new(fp8::Fbgemm::read(&settings)),
        "compressed-tensors" => Box::new(compressed::Compressed::read(&settings)?),
        "mxfp4" => Box::new(mxfp4::Mxfp4::read(&settings)),
        "gptq" => Box::new(gptq::Gptq::read(&settings)?),
        "awq" => Box::new(awq::Awq::read(&settings)?),
        "bitsandbytes" => Box::new(bitsandbytes::Bitsandbytes::read(&settings)),
        _ if unnamed => Box::new(bitsandbytes::Bitsandbytes::read(&settings)),
        _ => return Err(settings.refuse("quant_method", METHODS)),
    };
    Ok(Some(Method(format)))
}
