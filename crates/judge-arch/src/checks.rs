//! Checks of single fields of `config.json` that families, experts and encoders share, and what reads lists of a layer each.
//!
//! Every check passes what its first line says, and names the field of anything else as it is in the file. Limits are far above
//! published models: they keep damaged files from allocating memory or overflowing products of sizes. Factors are checked in f32,
//! where engines use them.

use serde_json::Value;

use super::problem::ConfigProblem;

/// Longest context in tokens that is accepted. A larger number in a file is taken for damage.
pub(super) const MAX_CONTEXT: usize = 1 << 28;

/// Overwrites top-level fields of one object with those of another; nested objects are replaced
/// whole. Anything but two objects leaves `base` as it is.
pub(super) fn overlay(base: &mut Value, over: Value) {
    if let (Value::Object(base), Value::Object(over)) = (base, over) {
        base.extend(over);
    }
}

/// The window of each layer, `[n_layers]`: by its name in `layer_types`, `full_attention` or `sliding_attention`, or where
/// a file does not list them, `sliding` for those layers, counted from 0, of which `slides` says so.
///
/// # Errors
/// [`ConfigProblem`] for a list of another length, for other names, and for a sliding layer of the list where `sliding` is
/// `None`.
pub(super) fn windows(
    layer_types: Option<Vec<String>>,
    sliding: Option<usize>,
    n_layers: usize,
    slides: impl Fn(usize) -> bool,
) -> Result<Vec<Option<usize>>, ConfigProblem> {
    let slides = match layer_types {
        Some(types) => second_kind(&types, &["full_attention", "sliding_attention"], n_layers)?,
        None => return Ok((0..n_layers).map(|layer| sliding.filter(|_| slides(layer))).collect()),
    };
    if sliding.is_none() && slides.contains(&true) {
        let needed_by = "sliding_attention in layer_types";
        return Err(ConfigProblem::Missing { field: "sliding_window", needed_by });
    }
    Ok(slides.into_iter().map(|slides| sliding.filter(|_| slides)).collect())
}

/// A factor of the family's own; `None` where it is 1 and changes nothing.
pub(super) fn factor(field: &'static str, found: f64) -> Result<Option<f64>, ConfigProblem> {
    positive(field, found).map(|found| Some(found).filter(|&found| found != 1.0))
}

/// A number that is divided by; `None` where it is 1. Its reciprocal must be finite and positive in
/// f32 as well, since engines multiply.
pub(super) fn divisor(field: &'static str, found: f64) -> Result<Option<f64>, ConfigProblem> {
    if is_positive(found) && !is_positive(found.recip()) {
        return Err(ConfigProblem::value(field, found, "a number whose reciprocal is finite and above 0 in f32"));
    }
    factor(field, found)
}

/// Checks a number with [`is_positive`].
pub(super) fn positive(field: &'static str, found: f64) -> Result<f64, ConfigProblem> {
    match is_positive(found) {
        true => Ok(found),
        false => Err(ConfigProblem::value(field, found, "a finite number above 0 in f32")),
    }
}

/// Whether a number is finite and above 0 after rounding to f32, in which engines use it. False for
/// NaN.
pub(super) fn is_positive(factor: f64) -> bool {
    let factor = factor as f32;
    factor.is_finite() && factor > 0.0
}

/// Checks the epsilon of a norm: finite in f32 and at least 0.
pub(super) fn norm_eps(found: f64) -> Result<f64, ConfigProblem> {
    if (found as f32).is_finite() && found >= 0.0 {
        return Ok(found);
    }
    Err(ConfigProblem::value("rms_norm_eps", found, "a finite number, at least 0"))
}

/// Checks a size: 1 to `most`.
pub(super) fn size(field: &'static str, found: usize, most: usize) -> Result<usize, ConfigProblem> {
    if (1..=most).contains(&found) {
        return Ok(found);
    }
    Err(ConfigProblem::value(field, found, format!("1 to {most}")))
}

/// Checks the positions that a convolution sees, its own included: 2 to 256.
pub(super) fn kernel(field: &'static str, found: usize) -> Result<usize, ConfigProblem> {
    match size(field, found, 1 << 8)? {
        1 => Err(ConfigProblem::value(field, found, "at least 2")),
        kernel => Ok(kernel),
    }
}

/// Checks `sliding_window`: at least 1, or `None` for no window.
pub(super) fn window(found: Option<usize>) -> Result<Option<usize>, ConfigProblem> {
    found.map(|found| size("sliding_window", found, usize::MAX)).transpose()
}

/// Which layers are of the second of two `known` kinds, by their names in `layer_types`, one for each layer.
pub(super) fn second_kind(
    types: &[String],
    known: &'static [&'static str; 2],
    n_layers: usize,
) -> Result<Vec<bool>, ConfigProblem> {
    if types.len() != n_layers {
        let (found, expected) = (format!("{} names", types.len()), format!("one for each of {n_layers} layers"));
        return Err(ConfigProblem::value("layer_types", found, expected));
    }
    let kind = |name: &String| match known.iter().position(|known| known == name) {
        Some(kind) => Ok(kind == 1),
        None => Err(ConfigProblem::Unknown { field: "layer_types", found: name.clone(), known }),
    };
    types.iter().map(kind).collect()
}

/// Fails for a setting that is on and asks for something unsupported.
pub(super) fn must_be_off(field: &'static str, is_on: bool) -> Result<(), ConfigProblem> {
    if is_on { Err(ConfigProblem::Unsupported { field, found: "true".to_owned() }) } else { Ok(()) }
}

/// Fails if the file says something else of a field than what transformers takes for granted
/// without reading it. A silent file passes. Numbers compare as JSON, so that `1` and `1.0` differ.
pub(super) fn check_granted(fields: &Value, granted: &[(&'static str, Value)]) -> Result<(), ConfigProblem> {
    for (field, expected) in granted {
        if let Some(found) = fields.get(field).filter(|found| *found != expected) {
            return Err(ConfigProblem::value(field, found, expected.to_string()));
        }
    }
    Ok(())
}
