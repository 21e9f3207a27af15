//! What a pickle holds once it is read: plain values, arrays, and objects as a class's name with attributes. Nothing here can act.
//!
//! Cycles, sharing and the order of the opcodes are gone: two references to one Python object are two equal values here.

use super::element::{Bytes, Element};

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
    /// A class that is itself the value, by its dotted name.
    Global(&'static str),
    /// What a name makes that is not on the list, where nothing reads it: the splitter of a search, for instance. Anywhere, a masked array
    /// of NumPy's, or one with an order of axes of its own. Only the name is known.
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

/// An array of NumPy's, whose data are as many as its shape says.
///
/// Invariant: for numbers, the length of [`data`](Self::data) is the product of the shape and the size of an element in bytes; for objects
/// it is the product of the shape. An axis may have length 0. There are at most five axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<'a> {
    /// Type of one element.
    pub(super) element: Element,
    /// Lengths of the axes, in the order in which Python shows them.
    pub(super) shape: Vec<usize>,
    /// Whether the first axis runs fastest in `data`, and not the last.
    pub(super) fortran: bool,
    /// Content in that order.
    pub(super) data: Data<'a>,
}

/// What an array holds, in the order of memory.
#[derive(Debug, Clone, PartialEq)]
pub enum Data<'a> {
    /// The numbers' bytes.
    Numbers(Bytes<'a>),
    /// The objects.
    Objects(Vec<Value<'a>>),
}

impl<'a> Array<'a> {
    /// Type of the elements.
    pub fn element(&self) -> Element {
        self.element
    }

    /// Length of each axis; none for a single number.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// What it holds, in the order of memory: see [`is_fortran`](Self::is_fortran).
    pub fn data(&self) -> &Data<'a> {
        &self.data
    }

    /// Whether the first axis, not the last, runs fastest in memory.
    pub fn is_fortran(&self) -> bool {
        self.fortran
    }

    /// The numbers of an array of floats, last axis fastest whatever the order in memory; `None` for other elements, and for an array
    /// of more than two axes whose last does not run fastest.
    ///
    /// NaN and infinities are returned as they are. `float16` and `float32` are widened exactly. Each call decodes and allocates the whole
    /// array.
    pub fn floats(&self) -> Option<Vec<f64>> {
        self.numbers(|bytes| self.element.float(bytes))
    }

    /// The numbers of an array of integers or truth values, in the order of [`floats`](Self::floats).
    ///
    /// `None` for floats, even whole ones: labels that were floats are a decision for the caller.
    pub fn integers(&self) -> Option<Vec<i64>> {
        self.numbers(|bytes| self.element.integer(bytes))
    }

    /// Decodes all elements in the order of memory and, for a matrix in Fortran order, transposes: element (i, j) of a `[n_rows,
    /// n_columns]` matrix lies at j · n_rows + i. One axis or none has the same order either way.
    fn numbers<T: Copy>(&self, decode: impl Fn(&[u8]) -> Option<T>) -> Option<Vec<T>> {
        let Data::Numbers(bytes) = &self.data else { return None };
        let numbers: Option<Vec<T>> = bytes.to_cow().chunks_exact(self.element.size()).map(decode).collect();
        match (self.fortran, self.shape.as_slice()) {
            (true, &[n_rows, n_columns]) => {
                let numbers = numbers?;
                // As many as rows times columns: checked when the array was read.
                let places = (0..n_rows).flat_map(|i| (0..n_columns).map(move |j| j * n_rows + i));
                Some(places.map(|place| numbers[place]).collect())
            }
            (false, _) | (_, &[] | &[_]) => numbers,
            _ => None,
        }
    }
}
