//! Python's operators on two values, and its signs.

use super::budget::charge;
use super::fault::{Result, fault, refuse, too_large};
use super::format;
use super::syntax::{Compare, Operator};
use super::value::Value;

/// `left operator right`.
pub(crate) fn apply(operator: Operator, left: &Value, right: &Value) -> Result<Value> {
    if let (Operator::Mod, Value::Str(pattern)) = (operator, left) {
        return format::percent(pattern, right).map(Value::from);
    }
    for value in [left, right] {
        // Python escapes the other side.
        if matches!(value.defined()?, Value::Markup(_)) {
            return refuse(format!("an operator on a {}", value.type_name()));
        }
    }
    match (operator, left, right) {
        (Operator::Add, Value::Str(a), Value::Str(b)) => {
            charge(a.len() + b.len())?;
            return Ok(Value::from(format!("{a}{b}")));
        }
        (Operator::Add, Value::List(a), Value::List(b)) => return Value::list([&a.values[..], &b.values[..]].concat()),
        (Operator::Add, Value::Tuple(a), Value::Tuple(b)) => {
            return Value::tuple([&a.values[..], &b.values[..]].concat());
        }
        (Operator::Mul, sequence @ (Value::Str(_) | Value::List(_) | Value::Tuple(_)), times)
        | (Operator::Mul, times, sequence @ (Value::Str(_) | Value::List(_) | Value::Tuple(_)))
            if times.as_int().is_some() =>
        {
            return repeated(sequence, times.as_int().unwrap_or(0));
        }
        _ => {}
    }
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        return whole(operator, a, b);
    }
    match (left.as_number(), right.as_number()) {
        (Some(a), Some(b)) => float(operator, a, b).map(Value::Float),
        _ => fault(format!(
            "unsupported operand types for {}: '{}' and '{}'",
            spelling(operator),
            left.type_name(),
            right.type_name()
        )),
    }
}

fn spelling(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Sub => "-",
        Operator::Mul => "*",
        Operator::Div => "/",
        Operator::FloorDiv => "//",
        Operator::Mod => "%",
        Operator::Pow => "**",
    }
}

/// `-value` or `+value`.
pub(crate) fn signed(sign: &str, value: &Value) -> Result<Value> {
    match (value.defined()?.as_int(), value) {
        (Some(n), _) if sign == "-" => n.checked_neg().map(Value::Int).map_or_else(too_large, Ok),
        (Some(n), _) => Ok(Value::Int(n)),
        (None, Value::Float(x)) => Ok(Value::Float(if sign == "-" { -x } else { *x })),
        _ => fault(format!("bad operand type for unary {sign}: '{}'", value.type_name())),
    }
}

/// A text, list or tuple several times over; none times if `times` is negative.
fn repeated(sequence: &Value, times: i128) -> Result<Value> {
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    match sequence {
        Value::List(items) | Value::Tuple(items) => {
            charge(items.values.len().saturating_mul(times).saturating_mul(size_of::<Value>()))?;
            let values = std::iter::repeat_n(&items.values, times).flatten().cloned().collect();
            if matches!(sequence, Value::List(_)) { Value::list(values) } else { Value::tuple(values) }
        }
        _ => {
            let text = sequence.as_str().unwrap_or_default();
            charge(text.len().saturating_mul(times))?;
            Ok(Value::from(text.repeat(times)))
        }
    }
}

/// An operator on whole numbers. Booleans are 0 and 1.
fn whole(operator: Operator, a: i128, b: i128) -> Result<Value> {
    let exact = |n: Option<i128>| n.map(Value::Int).map_or_else(too_large, Ok);
    match operator {
        Operator::Add => exact(a.checked_add(b)),
        Operator::Sub => exact(a.checked_sub(b)),
        Operator::Mul => exact(a.checked_mul(b)),
        Operator::Div | Operator::FloorDiv | Operator::Mod if b == 0 => fault("division by zero"),
        Operator::Div => {
            // Up to here both are floats exactly, so that the quotient is rounded once, as in Python.
            if a.abs() > 1 << 53 || b.abs() > 1 << 53 {
                return refuse("the quotient of whole numbers of more than 53 bits");
            }
            Ok(Value::Float(a as f64 / b as f64))
        }
        Operator::FloorDiv => exact(a.checked_div(b).map(|q| q - i128::from(a % b != 0 && (a < 0) != (b < 0)))),
        Operator::Mod => exact(a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r })),
        Operator::Pow if b >= 0 => exact(u32::try_from(b).ok().and_then(|b| a.checked_pow(b))),
        Operator::Pow => float(operator, a as f64, b as f64).map(Value::Float),
    }
}

/// An operator on floats. Quotients and remainders are rounded down, as in Python.
fn float(operator: Operator, a: f64, b: f64) -> Result<f64> {
    let remainder = || {
        let r = a % b;
        if r != 0.0 && (r < 0.0) != (b < 0.0) {
            r + b
        } else if r == 0.0 {
            0.0_f64.copysign(b)
        } else {
            r
        }
    };
    Ok(match operator {
        Operator::Add => a + b,
        Operator::Sub => a - b,
        Operator::Mul => a * b,
        Operator::Div | Operator::FloorDiv | Operator::Mod if b == 0.0 => return fault("division by zero"),
        Operator::Div => a / b,
        Operator::Mod => remainder(),
        Operator::FloorDiv => {
            let r = a % b;
            let quotient = (a - r) / b - if r != 0.0 && (r < 0.0) != (b < 0.0) { 1.0 } else { 0.0 };
            if quotient == 0.0 {
                0.0_f64.copysign(a / b)
            } else {
                let floor = quotient.floor();
                if quotient - floor > 0.5 { floor + 1.0 } else { floor }
            }
        }
        Operator::Pow if a == 0.0 && b < 0.0 => return fault("0.0 cannot be raised to a negative power"),
        Operator::Pow if a < 0.0 && b.fract() != 0.0 && b.is_finite() => return refuse("a complex number"),
        Operator::Pow => {
            let power = a.powf(b);
            if power.is_infinite() && a.is_finite() && b.is_finite() {
                return fault("Result too large");
            }
            power
        }
    })
}

/// The answer of a comparison.
pub(crate) fn compares(compare: Compare, left: &Value, right: &Value) -> Result<bool> {
    Ok(match compare {
        Compare::Eq => left.equals(right)?,
        Compare::Ne => !left.equals(right)?,
        Compare::Lt => left.order(right)?.is_some_and(|o| o.is_lt()),
        Compare::Le => left.order(right)?.is_some_and(|o| o.is_le()),
        Compare::Gt => left.order(right)?.is_some_and(|o| o.is_gt()),
        Compare::Ge => left.order(right)?.is_some_and(|o| o.is_ge()),
        Compare::In => right.contains(left)?,
        Compare::NotIn => !right.contains(left)?,
    })
}
