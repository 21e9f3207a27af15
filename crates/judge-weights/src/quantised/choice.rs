//! Which method of quantisation a folder uses.
//!
//! [`method`](fn@method) is asked once for a folder. Whatever a configuration says that changes weights in a way that is not
//! computed here is refused by its field, and fields that are not known are warned of.

use std::path::PathBuf;

use serde_json::Value;

use super::method::Method;
use super::settings::Settings;
use super::{awq, bitsandbytes, compressed, fp8, gptq, mxfp4};
use crate::Error;

/// What is supported, as errors say it.
const METHODS: &str = "fp8, fbgemm_fp8, compressed-tensors (float-quantized, int-quantized, naive-quantized and pack-quantized), mxfp4 (gpt-oss), gptq, awq and bitsandbytes";

/// Reads the settings of a folder.
type Read = fn(&Settings) -> Result<Method, Error>;

/// As [`methods`], each with how its settings are read.
const KNOWN: [(&str, &str, &str, Read); 7] = [
    (
        "fp8",
        "E4M3 with scales by block, row or tensor",
        "`weight_block_size` as stated, edges cut; scales f32, bf16, f16 or powers of two (`ue8m0`)",
        fp8::read,
    ),
    ("fbgemm_fp8", "E4M3 with a scale for each row", "", fp8::read),
    (
        "compressed-tensors",
        "`float-quantized`, `int-quantized`, `naive-quantized` (8 bits), `pack-quantized` (4 and 8 bits), `mixed-precision` of these",
        "zero points, `g_idx`, scales by tensor, channel, group or block",
        compressed::read,
    ),
    ("mxfp4", "the experts of gpt-oss", "exact in bf16", mxfp4::read),
    ("gptq", "4 and 8 bits, `checkpoint_format` `gptq` and `gptq_v2`", "`g_idx` (`desc_act`)", gptq::read),
    ("awq", "4 bits, `version` `gemm`", "", awq::read),
    (BITSANDBYTES, "`nf4`, `fp4` (nested too), int8", "", bitsandbytes::read),
];

const BITSANDBYTES: &str = "bitsandbytes";

/// Every `quant_method` that is read: its name, what is read of it, and what there is to know about it, both in Markdown.
pub fn methods() -> impl Iterator<Item = [&'static str; 3]> {
    KNOWN.into_iter().map(|(name, read, notes, _)| [name, read, notes])
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
    let name = if unnamed { BITSANDBYTES } else { settings.text("quant_method") };
    let Some((.., read)) = KNOWN.into_iter().find(|(known, ..)| *known == name) else {
        return Err(settings.refuse("quant_method", METHODS));
    };
    read(&settings).map(Some)
}
