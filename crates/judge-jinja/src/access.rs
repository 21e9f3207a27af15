//! `value.name`, `value[key]` and `value[a:b:c]`, as Jinja2's sandbox looks them up: an attribute first and then an item, or the
//! other way round; what neither has is undefined.

use std::rc::Rc;

use super::attributes;
use super::budget::{charge, look, read};
use super::fault::{Result, fault, refuse};
use super::value::{Loop, Range, Value};

/// `value.name`.
pub(crate) fn attribute(value: &Value, name: &str) -> Result<Value> {
    if let Some(found) = own(value, name)? {
        return Ok(found);
    }
    Ok(match value {
        Value::Dict(dict) => dict.get_str(name).cloned().unwrap_or_else(|| value.lacks(name)),
        _ => value.lacks(name),
    })
}

/// `value[key]`.
pub(crate) fn item(value: &Value, key: &Value) -> Result<Value> {
    let found = match (value.defined()?, key.as_int()) {
        (Value::Dict(dict), _) => match key {
            // Python cannot hash these, and Jinja2 takes that for an item that is not there.
            Value::List(_) | Value::Dict(_) => None,
            _ => dict.get(key)?.cloned(),
        },
        (Value::Str(text) | Value::Markup(text), Some(i)) => {
            character(text, i)?.map(|c| Value::from(&*c.encode_utf8(&mut [0; 4])))
        }
        (Value::List(items) | Value::Tuple(items), Some(i)) => {
            position(i, items.values.len()).map(|i| items.values[i].clone())
        }
        (Value::Range(range), Some(i)) => position(i, range.len()).map(|i| range.item(i)),
        _ => None,
    };
    match (found, key) {
        (Some(found), _) => Ok(found),
        (None, Value::Str(name)) => Ok(own(value, name)?.unwrap_or_else(|| value.lacks(name))),
        (None, Value::Markup(_)) => refuse("an item by the name of a safe text"),
        (None, _) => Ok(Value::Undefined(format!("'{} object' has no such element", value.type_name()).into())),
    }
}

/// The character of an index. It is read from the end that the index counts from, up to that character.
fn character(text: &str, i: i128) -> Result<Option<char>> {
    let (bytes, steps) = (text.as_bytes(), if i < 0 { -1 - i } else { i });
    let Some(steps) = usize::try_from(steps).ok().filter(|steps| *steps < bytes.len()) else { return Ok(None) };
    read(steps)?;
    // Where all on the way is ASCII, a character is a byte.
    let (way, at) =
        if i < 0 { (&bytes[bytes.len() - 1 - steps..], bytes.len() - 1 - steps) } else { (&bytes[..=steps], steps) };
    Ok(match way.is_ascii() {
        true => Some(char::from(bytes[at])),
        false if i < 0 => text.chars().nth_back(steps),
        false => text.chars().nth(steps),
    })
}

/// The index from the front of one that may count from the back.
fn position(i: i128, len: usize) -> Option<usize> {
    let i = if i < 0 { i + len as i128 } else { i };
    usize::try_from(i).ok().filter(|i| *i < len)
}

/// What Python's `getattr` gives: methods of the type, and the fields of objects.
fn own(value: &Value, name: &str) -> Result<Option<Value>> {
    let found = match (value.defined()?, name) {
        (Value::Namespace(fields), _) if name != "__class__" => {
            look();
            return Ok(fields.borrow().get_str(name).cloned());
        }
        _ if name.starts_with("__") => return refuse(format!("the attribute {name}")),
        (Value::Loop(variable), _) => of_loop(variable, name)?,
        (Value::Macro(called), "name") => Some(Value::Str(called.node.name.clone())),
        (Value::Macro(called), "arguments") => {
            let names = called.node.parameters.iter().map(|(name, _)| Value::Str(name.clone()));
            Some(Value::tuple(names.collect())?)
        }
        (Value::Macro(called), "catch_varargs") => Some(called.node.takes_varargs.into()),
        (Value::Macro(called), "catch_kwargs") => Some(called.node.takes_kwargs.into()),
        (Value::Macro(called), "caller") => Some(called.node.takes_caller.into()),
        (Value::Tuple(items), "grouper") if items.is_group => Some(items.values[0].clone()),
        (Value::Tuple(items), "list") if items.is_group => Some(items.values[1].clone()),
        (Value::Cycler(cycler), "current") => {
            look();
            Some(cycler.items[cycler.at.get()].clone())
        }
        (Value::Cycler(cycler), "items") => Some(Value::tuple(cycler.items.clone())?),
        (Value::Range(range), "start") => Some(Value::Int(range.start.into())),
        (Value::Range(range), "stop") => Some(Value::Int(range.stop.into())),
        (Value::Range(range), "step") => Some(Value::Int(range.step.into())),
        (Value::Int(_) | Value::Bool(_), "real" | "numerator") => value.as_int().map(Value::Int),
        (Value::Int(_) | Value::Bool(_), "imag") => Some(Value::Int(0)),
        (Value::Int(_) | Value::Bool(_), "denominator") => Some(Value::Int(1)),
        _ => None,
    };
    if found.is_some() {
        return Ok(found);
    }
    match attributes::find(value, name) {
        attributes::Found::Method => Ok(Some(Value::Method(Rc::new((value.clone(), name.into()))))),
        attributes::Found::Unsafe => {
            let why = format!("access to attribute '{name}' of '{}' object is unsafe.", value.type_name());
            Ok(Some(Value::Undefined(why.into())))
        }
        attributes::Found::Refused => refuse(format!("{name} of a {}", value.type_name())),
        attributes::Found::Absent => Ok(None),
    }
}

/// An attribute of `loop`.
fn of_loop(variable: &Loop, name: &str) -> Result<Option<Value>> {
    let at = variable.at.get();
    if variable.lazy && ["revindex", "revindex0", "last", "length", "nextitem"].contains(&name) {
        return refuse(format!("loop.{name} in a loop whose condition looks at what the loop may change"));
    }
    let items = variable.items.borrow();
    Ok(Some(match name {
        "index" => (at + 1).into(),
        "index0" => at.into(),
        "revindex" => (items.len() - at).into(),
        "revindex0" => (items.len() - at - 1).into(),
        "first" => (at == 0).into(),
        "last" => (at + 1 == items.len()).into(),
        "length" => items.len().into(),
        "depth" => (variable.depth + 1).into(),
        "depth0" => variable.depth.into(),
        "previtem" => match at.checked_sub(1) {
            Some(before) => items[before].clone(),
            None => Value::Undefined("there is no previous item".into()),
        },
        "nextitem" => match items.get(at + 1) {
            Some(next) => next.clone(),
            None => Value::Undefined("there is no next item".into()),
        },
        _ => return Ok(None),
    }))
}

/// `value[start:stop:step]`.
pub(crate) fn slice(value: &Value, bounds: &[Value; 3]) -> Result<Value> {
    let len = match value.defined()? {
        Value::Str(_) | Value::Markup(_) | Value::List(_) | Value::Tuple(_) | Value::Range(_) => {
            value.len()?.unwrap_or(0)
        }
        _ => return fault(format!("'{}' object has no slices", value.type_name())),
    };
    if bounds.iter().any(|b| !matches!(b, Value::None) && b.as_int().is_none()) {
        return fault("slice indices must be integers or None");
    }
    let step = bounds[2].as_int().unwrap_or(1);
    if step == 0 {
        return fault("slice step cannot be zero");
    }
    let n = len as i128;
    // The bounds of Python's `slice.indices`.
    let (lowest, highest) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let bound = |value: &Value, default: i128| match value.as_int() {
        None => default,
        Some(i) if i < 0 => i.saturating_add(n).max(lowest),
        Some(i) => i.min(highest),
    };
    let (start, stop) = if step > 0 {
        (bound(&bounds[0], lowest), bound(&bounds[1], highest))
    } else {
        (bound(&bounds[0], highest), bound(&bounds[1], lowest))
    };
    if let Value::Range(range) = value {
        let (of, by) = (i128::from(range.start), i128::from(range.step));
        let part = |i: i128| i64::try_from(of + i * by);
        return match (part(start), part(stop), i64::try_from(by.saturating_mul(step))) {
            (Ok(start), Ok(stop), Ok(step)) => Ok(Value::Range(Range { start, stop, step })),
            _ => refuse("a range of more than 64 bits"),
        };
    }
    let is_text = matches!(value, Value::Str(_) | Value::Markup(_));
    if is_text && step == 1 {
        let text = value.as_str().unwrap_or_default();
        let count = (stop - start).max(0) as usize;
        charge(text.len().min(count.saturating_mul(4)))?;
        return Ok(text_like(value, text.chars().skip(start as usize).take(count).collect()));
    }
    let mut indices = Vec::new();
    let mut i = start;
    while if step > 0 { i < stop } else { i > stop } {
        indices.push(i as usize);
        i = i.saturating_add(step);
    }
    charge(indices.len() * size_of::<Value>())?;
    match value {
        Value::List(items) => Value::list(indices.into_iter().map(|i| items.values[i].clone()).collect()),
        Value::Tuple(items) => Value::tuple(indices.into_iter().map(|i| items.values[i].clone()).collect()),
        _ => {
            let chars: Vec<char> = value.as_str().unwrap_or_default().chars().collect();
            Ok(text_like(value, indices.into_iter().map(|i| chars[i]).collect()))
        }
    }
}

/// A text that is as safe as the value it is taken from.
fn text_like(value: &Value, text: String) -> Value {
    if matches!(value, Value::Markup(_)) { Value::Markup(text.into()) } else { text.into() }
}
