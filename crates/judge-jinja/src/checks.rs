//! Jinja2's tests: what stands behind `is`.

use super::arguments::Call;
use super::fault::{Result, fault, refuse};
use super::letters::{is_lower, is_upper};
use super::names::{is_filter, is_test};
use super::operators::{self, compares};
use super::syntax::{Compare, Operator};
use super::value::{Value, hashable};

/// The answer of a test.
pub(crate) fn apply(name: &str, value: &Value, call: Call) -> Result<bool> {
    let compare = match name {
        "==" | "eq" | "equalto" => Some(Compare::Eq),
        "!=" | "ne" => Some(Compare::Ne),
        ">" | "gt" | "greaterthan" => Some(Compare::Gt),
        ">=" | "ge" => Some(Compare::Ge),
        "<" | "lt" | "lessthan" => Some(Compare::Lt),
        "<=" | "le" => Some(Compare::Le),
        "in" => Some(Compare::In),
        _ => None,
    };
    if let Some(compare) = compare {
        let [other] = call.required(name, [if name == "in" { "seq" } else { "_other" }])?;
        return compares(compare, value, &other);
    }
    let remainder = |by: &Value| operators::apply(Operator::Mod, value, by);
    match name {
        "divisibleby" => {
            let [by] = call.required(name, ["num"])?;
            return remainder(&by)?.equals(&Value::Int(0));
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
    Ok(match name {
        "odd" => remainder(&Value::Int(2))?.equals(&Value::Int(1))?,
        "even" => remainder(&Value::Int(2))?.equals(&Value::Int(0))?,
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "filter" | "test" => {
            // Python looks the value up among the names.
            hashable(value)?;
            value.as_str().is_some_and(if name == "filter" { is_filter } else { is_test })
        }
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "false" => matches!(value, Value::Bool(false)),
        "true" => matches!(value, Value::Bool(true)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "number" => matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_)),
        "lower" => is_lower(&value.text()?)?,
        "upper" => is_upper(&value.text()?)?,
        "string" => value.as_str().is_some(),
        "mapping" => matches!(value, Value::Dict(_)),
        // Whatever has a length and items: texts, mappings and even undefined values.
        "sequence" => {
            matches!(
                value,
                Value::Undefined(_)
                    | Value::Str(_)
                    | Value::Markup(_)
                    | Value::List(_)
                    | Value::Tuple(_)
                    | Value::Dict(_)
                    | Value::Range(_)
            )
        }
        "iterable" => value.is_iterable(),
        "callable" => matches!(
            value,
            Value::Undefined(_)
                | Value::Function(_)
                | Value::Method(_)
                | Value::Macro(_)
                | Value::Loop(_)
                | Value::Joiner(_)
        ),
        "escaped" => matches!(value, Value::Markup(_)),
        _ => return fault(format!("No test named '{name}'")),
    })
}
