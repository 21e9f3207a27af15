//! The functions of transformers' environment: Jinja2's globals, `raise_exception` and `strftime_now`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::Date;
use super::arguments::Call;
use super::budget::charge;
use super::fault::{Result, fault, refuse};
use super::value::{Cycler, Dict, Range, Value};

/// Their names.
pub(crate) const NAMES: [&str; 8] =
    ["range", "dict", "lipsum", "cycler", "joiner", "namespace", "raise_exception", "strftime_now"];

/// Most items of a `range`, as in Jinja2's sandbox.
const LONGEST_RANGE: usize = 100_000;

/// Calls one of [`NAMES`].
pub(crate) fn call(name: &str, call: Call, date: Date) -> Result<Value> {
    match name {
        "range" => {
            let bounds = call.unnamed(name)?;
            let bounds = bounds.iter().map(|v| v.index("an argument of range")).collect::<Result<Vec<_>>>()?;
            let (start, stop, step) = match bounds[..] {
                [stop] => (0, stop, 1),
                [start, stop] => (start, stop, 1),
                [start, stop, step] => (start, stop, step),
                _ => return fault("range expected 1 to 3 arguments"),
            };
            if step == 0 {
                return fault("range() arg 3 must not be zero");
            }
            let range = Range { start, stop, step };
            if range.len() > LONGEST_RANGE {
                return fault(format!("Range too big. The sandbox blocks ranges larger than {LONGEST_RANGE}."));
            }
            Ok(Value::Range(range))
        }
        "dict" => mapping(name, call).map(|dict| Value::Dict(Rc::new(dict))),
        "namespace" => {
            let fields = mapping(name, call)?;
            if fields.entries().iter().any(|(_, value)| matches!(value, Value::Namespace(_))) {
                return refuse("a namespace inside a namespace");
            }
            let namespace = Value::Namespace(Rc::new(RefCell::new(Dict::default())));
            for (name, value) in fields.entries() {
                let Value::Str(name) = name else { return refuse("a field of a namespace that is no text") };
                namespace.set_attribute(name, value.clone())?;
            }
            Ok(namespace)
        }
        "cycler" => {
            let items = call.unnamed(name)?;
            if items.is_empty() {
                return fault("at least one item has to be provided");
            }
            Ok(Value::Cycler(Rc::new(Cycler { items, at: Cell::new(0) })))
        }
        "joiner" => {
            let [separator] = call.bind(name, ["sep"])?;
            let separator = separator.unwrap_or_else(|| Value::from(", "));
            let Value::Str(separator) = separator else { return refuse("a joiner of anything but a text") };
            Ok(Value::Joiner(Rc::new((separator, Cell::new(false)))))
        }
        "raise_exception" => {
            let [why] = call.required(name, ["message"])?;
            fault(why.text()?.to_string())
        }
        "strftime_now" => {
            let [format] = call.required(name, ["format"])?;
            let Some(format) = format.as_str() else {
                return fault(format!("strftime() argument 1 must be str, not {}", format.type_name()));
            };
            charge(format.len().saturating_mul(Date::LONGEST))?;
            date.format(format).map(Value::from)
        }
        _ => refuse(format!("the function {name}")),
    }
}

/// Python's `dict(…)`: a mapping or pairs, and named fields.
fn mapping(what: &str, call: Call) -> Result<Dict> {
    if call.positional.len() > 1 {
        return fault(format!("{what} expected at most 1 argument"));
    }
    let mut dict = Dict::default();
    match call.positional.first() {
        None => {}
        Some(Value::Dict(from)) => from.entries().iter().try_for_each(|(k, v)| dict.insert(k.clone(), v.clone()))?,
        Some(pairs) => {
            for pair in pairs.iterate()? {
                let pair = pair.iterate()?;
                let [key, value] = &pair[..] else { return fault(format!("{what}: a pair has two items")) };
                dict.insert(key.clone(), value.clone())?;
            }
        }
    }
    for (name, value) in call.named {
        dict.insert(Value::Str(name), value)?;
    }
    Ok(dict)
}
