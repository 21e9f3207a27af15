//! Which attributes Python's types and Jinja2's own objects have, and which of them a template may use.

use super::value::Value;

/// What an attribute of a type is.
pub(crate) enum Found {
    /// A method that [`call`](super::methods::call) runs.
    Method,
    /// A method that changes its object, which the sandbox keeps from templates.
    Unsafe,
    /// Python has it, this module does not.
    Refused,
    /// There is none.
    Absent,
}

/// The methods of texts.
#[rustfmt::skip]
const TEXT: [&str; 45] = [
    "capitalize", "casefold", "center", "count", "encode", "endswith", "expandtabs", "find", "format", "format_map",
    "index", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric",
    "isprintable", "isspace", "istitle", "isupper", "join", "ljust", "lower", "lstrip", "partition", "removeprefix",
    "removesuffix", "replace", "rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines",
    "startswith", "strip", "swapcase", "title", "upper", "zfill",
];

/// Looks an attribute of a type up.
pub(crate) fn find(value: &Value, name: &str) -> Found {
    let (own, refused, unsafe_): (&[&str], &[&str], &[&str]) = match value {
        Value::Str(_) => (&TEXT, &["maketrans", "translate"], &[]),
        // Their arguments would be escaped.
        Value::Markup(_) => {
            let refused =
                TEXT.contains(&name) || ["maketrans", "translate", "striptags", "unescape", "escape"].contains(&name);
            return if refused { Found::Refused } else { Found::Absent };
        }
        Value::List(_) => (
            &["copy", "count", "index"],
            &[],
            &["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"],
        ),
        Value::Tuple(_) | Value::Range(_) => (&["count", "index"], &[], &[]),
        Value::Dict(_) => (
            &["copy", "get", "items", "keys", "values"],
            &["fromkeys"],
            &["clear", "pop", "popitem", "setdefault", "update"],
        ),
        Value::View(..) => (&[], &["isdisjoint", "mapping"], &[]),
        Value::Bool(_) | Value::Int(_) => (
            &["bit_length"],
            &["as_integer_ratio", "bit_count", "conjugate", "from_bytes", "to_bytes", "is_integer"],
            &[],
        ),
        Value::Float(_) => {
            (&["is_integer"], &["as_integer_ratio", "conjugate", "fromhex", "from_number", "hex", "imag", "real"], &[])
        }
        Value::Loop(_) => (&["cycle", "changed"], &[], &[]),
        Value::Cycler(_) => (&["next", "reset"], &["pos"], &[]),
        Value::Joiner(_) => (&[], &["sep", "used"], &[]),
        Value::Macro(_) => (&[], &["explicit_caller"], &[]),
        Value::Once(_) | Value::Function(_) | Value::Method(_) => return Found::Refused,
        Value::Undefined(_) | Value::None | Value::Namespace(_) => (&[], &[], &[]),
    };
    let among = |names: &[&str]| names.contains(&name);
    if among(own) {
        Found::Method
    } else if among(unsafe_) {
        Found::Unsafe
    } else if among(refused) || (name.starts_with('_') && matches!(value, Value::Loop(_) | Value::Macro(_))) {
        Found::Refused
    } else {
        Found::Absent
    }
}
