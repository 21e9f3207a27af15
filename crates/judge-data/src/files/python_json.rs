//! JSON text as Python's `json.dumps(…, indent=4)` lays it out.

use std::io::{self, Write};

use serde_json::ser::{Formatter, PrettyFormatter};

/// Four spaces, floats as Python's `repr`, everything beyond ASCII escaped.
pub(crate) struct PythonFormatter(PrettyFormatter<'static>);

impl PythonFormatter {
    pub(crate) fn new() -> Self {
        Self(PrettyFormatter::with_indent(b"    "))
    }
}

/// Calls that the layout is left to.
macro_rules! delegate {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, writer: &mut W $(, $argument: $kind)*) -> io::Result<()> {
            self.0.$name(writer $(, $argument)*)
        })*
    };
}

impl Formatter for PythonFormatter {
    delegate! {
        begin_array();
        end_array();
        begin_array_value(first: bool);
        end_array_value();
        begin_object();
        end_object();
        begin_object_key(first: bool);
        begin_object_value();
        end_object_value();
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(repr(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        for c in fragment.chars() {
            if matches!(c, ' '..='~') {
                writer.write_all(&[c as u8])?; // one byte: it is ASCII
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

/// A finite number as Python writes it: the shortest digits that read back as the same number, with an exponent below
/// 1e-4 and from 1e16 on.
fn repr(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0")); // `{:e}` always has one
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..16).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{value:?}"), // within this range `Debug` has no exponent and always a fraction
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;

    /// Expected texts: `python3 -c 'print([repr(x) for x in (…)])'`, CPython 3.12.
    #[test]
    fn floats_as_python_writes_them() {
        for (value, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-1.0, "-1.0"),
            (0.1, "0.1"),
            (13.5, "13.5"),
            (1e-4, "0.0001"),
            (0.00012345, "0.00012345"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (5e-324, "5e-324"),
            (123456789012345.6, "123456789012345.6"),
            (1e15, "1000000000000000.0"),
            (9999999999999998.0, "9999999999999998.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
        ] {
            assert_eq!(repr(value), expected);
        }
    }

    /// Expected text: `json.dumps({"a": [1, 2.0, []], "b": {}, "ü\n\x7f😀\x01\"\\": None}, indent=4)`.
    #[test]
    fn layout_as_python_writes_it() {
        let value = serde_json::json!({"a": [1, 2.0, []], "b": {}, "ü\n\u{7f}😀\u{1}\"\\": null});
        let mut text = Vec::new();
        value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, PythonFormatter::new())).unwrap();
        let expected = "{\n    \"a\": [\n        1,\n        2.0,\n        []\n    ],\n    \"b\": {},\n    \
                        \"\\u00fc\\n\\u007f\\ud83d\\ude00\\u0001\\\"\\\\\": null\n}";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
