//! What a pickle holds once it is read: plain values, arrays, and objects as a class's name with attributes. Nothing here can act.
//!
//! Cycles, sharing and the order of the opcodes are gone: two references to one Python object are two equal values here.

use super::array::{Array, Bytes};

/// A value of a pickle. Text and bytes are slices of the pickle itself.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// `None`.
    None,
    /// A truth value, Python's or NumPy's.
    Bool(bool),
    /// An integer, Python's or NumPy's.
    Int(i64),
    /// A floating-point number, Python's or NumPy's; may be NaN or infinite.
    Float(f64),
    /// Text.
    Str(&'a str),
    /// Bytes.
    Bytes(Bytes<'a>),
    /// A list.
    List(Vec<Value<'a>>),
    /// A tuple.
    Tuple(Vec<Value<'a>>),
    /// A dictionary in the order of writing; no key stands twice.
    Dict(Vec<(Value<'a>, Value<'a>)>),
    /// A class or function that is itself the value, by its dotted name.
    Global(&'static str),
    /// What a name makes that is not on the list, where nothing reads it: the splitter of a search, for instance. Only the name is known.
    Opaque {
        /// The module of the name, as the pickle has it.
        module: &'a str,
        /// The name.
        name: &'a str,
    },
    /// An object that is its class and its attributes.
    Object(Object<'a>),
    /// An array of NumPy's.
    Array(Array<'a>),
    /// A masked array of NumPy's: the data, and a byte for each element that is 1 where it does not count.
    MaskedArray(Array<'a>, Bytes<'a>),
}

impl<'a> Value<'a> {
    /// The kind of value in words, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "a truth value",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Str(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
            Self::Tuple(_) => "a tuple",
            Self::Dict(_) => "a dictionary",
            Self::Global(name) => name,
            Self::Opaque { .. } => "a value of a class that is not read",
            Self::Object(object) => object.class,
            Self::Array(_) => "an array",
            Self::MaskedArray(..) => "a masked array",
        }
    }

    /// The entry of a dictionary under a text; `None` where there is none, or no dictionary.
    ///
    /// Takes time in proportion to the entries before it. A caller that looks up many keys should build a map.
    ///
    /// ```
    /// use judge_probe::pickle::Value;
    ///
    /// let settings = Value::Dict(vec![(Value::Str("C"), Value::Float(0.1))]);
    /// assert_eq!(settings.get("C"), Some(&Value::Float(0.1)));
    /// assert_eq!(settings.get("tol"), None);
    /// ```
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        match self {
            Self::Dict(entries) => entries.iter().find(|(known, _)| *known == Value::Str(key)).map(|(_, value)| value),
            _ => None,
        }
    }
}

/// An object that is its class and its attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Object<'a> {
    /// From the list of allowed globals, in the spelling of current releases.
    pub(super) class: &'static str,
    /// In the order of writing. Empty for an object that was pickled without state.
    pub(super) attributes: Vec<(&'a str, Value<'a>)>,
}

impl<'a> Object<'a> {
    /// Dotted name of its class.
    pub fn class(&self) -> &'static str {
        self.class
    }

    /// An attribute by its name.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All attributes in the order of writing, no name twice.
    pub fn attributes(&self) -> &[(&'a str, Value<'a>)] {
        &self.attributes
    }
}
