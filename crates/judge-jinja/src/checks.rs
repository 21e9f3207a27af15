//! Jinja2's tests: what stands behind `is`.

use super::arguments::Call;
use super::fault::{Result, fault, refuse};
use super::letters::{is_lower, is_upper};
use super::operators::{self, compares};
use super::syntax::{Compare, Operator};
use super::value::{Value, hashable};

/// The answer of a test. `is_filter` knows the names of filters, which look at tests themselves.
pub(crate) fn apply(name: &str, value: &Value, call: Call, is_filter: fn(&str) -> bool) -> Result<bool> {
    if let Some(compare) = comparison(name) {
        let [other] = call.required(name, [if name == "in" { "seq" } else { "_other" }])?;
        return compares(compare, value, &other);
    }
    match name {
        "divisibleby" => {
            let [by] = call.required(name, ["num"])?;
            return remainder(value, &by)?.equals(&Value::Int(0));
        }
        "sameas" => {
            let [other] = call.required(name, ["other"])?;
            return match (value, &other) {
                (Value::None, Value::None) => Ok(true),
                (Value::Bool(a), Value::Bool(b)) => Ok(a == b),
                (a, b) if a.type_name() != b.type_name() => Ok(false),
                // Which equal values are one is CPython's own affair.
                _ => refuse(format!("the test sameas of two values of type {}", value.type_name())),
            };
        }
        _ => call.required(name, [])?,
    };
    match plain(name) {
        Some(test) => test(value),
        None if name == "filter" => is_name(value, is_filter),
        None => fault(format!("No test named '{name}'")),
    }
}

/// Whether Jinja2 has a test of this name.
pub(crate) fn is_test(name: &str) -> bool {
    comparison(name).is_some() || plain(name).is_some() || ["divisibleby", "sameas", "filter"].contains(&name)
}

/// The comparison that a test is, if it is one.
fn comparison(name: &str) -> Option<Compare> {
    Some(match name {
        "==" | "eq" | "equalto" => Compare::Eq,
        "!=" | "ne" => Compare::Ne,
        ">" | "gt" | "greaterthan" => Compare::Gt,
        ">=" | "ge" => Compare::Ge,
        "<" | "lt" | "lessthan" => Compare::Lt,
        "<=" | "le" => Compare::Le,
        "in" => Compare::In,
        _ => return None,
    })
}

/// A test that looks at nothing but the value.
fn plain(name: &str) -> Option<fn(&Value) -> Result<bool>> {
    let test: fn(&Value) -> Result<bool> = match name {
        "odd" => |value| remainder(value, &Value::Int(2))?.equals(&Value::Int(1)),
        "even" => |value| remainder(value, &Value::Int(2))?.equals(&Value::Int(0)),
        "defined" => |value| Ok(!value.is_undefined()),
        "undefined" => |value| Ok(value.is_undefined()),
        "test" => |value| is_name(value, is_test),
        "none" => |value| Ok(matches!(value, Value::None)),
        "boolean" => |value| Ok(matches!(value, Value::Bool(_))),
        "false" => |value| Ok(matches!(value, Value::Bool(false))),
        "true" => |value| Ok(matches!(value, Value::Bool(true))),
        "integer" => |value| Ok(matches!(value, Value::Int(_))),
        "float" => |value| Ok(matches!(value, Value::Float(_))),
        "number" => |value| Ok(matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_))),
        "lower" => |value| is_lower(&value.text()?),
        "upper" => |value| is_upper(&value.text()?),
        "string" => |value| Ok(value.as_str().is_some()),
        "mapping" => |value| Ok(matches!(value, Value::Dict(_))),
        // Whatever has a length and items: texts, mappings and even undefined values.
        "sequence" => {
            |value| Ok(["Undefined", "str", "Markup", "list", "tuple", "dict", "range"].contains(&value.type_name()))
        }
        "iterable" => |value| Ok(value.is_iterable()),
        "callable" => {
            |value| Ok(["Undefined", "function", "method", "macro", "loop", "joiner"].contains(&value.type_name()))
        }
        "escaped" => |value| Ok(matches!(value, Value::Markup(_))),
        _ => return None,
    };
    Some(test)
}

/// What is left of a value that is divided.
fn remainder(value: &Value, by: &Value) -> Result<Value> {
    operators::apply(Operator::Mod, value, by)
}

/// Whether a value is among names, where Python looks it up.
fn is_name(value: &Value, is_known: fn(&str) -> bool) -> Result<bool> {
    hashable(value)?;
    Ok(value.as_str().is_some_and(is_known))
}
