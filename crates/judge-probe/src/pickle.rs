//! Reading Python pickles without Python: bytes in, a tree of plain values out.
//!
//! A pickle is a program for a stack machine, and Python's `pickle.load` runs it, whatever it calls. [`read`] builds no object and calls
//! nothing: a name that the pickle refers to must stand on a short list of what saved scikit-learn classifiers need, and even those
//! may only be put together the way NumPy and scikit-learn themselves do (an array from its dtype, shape and bytes; an object from
//! nothing but its attributes). Everything else is refused, with the byte where it stands; unless nothing reads it, such as the splitter
//! that a search keeps: it is then [opaque](Value::Opaque), a name and nothing more.
//!
//! Protocols 2 to 5 are read, and what joblib makes of them, whose arrays lie between the opcodes; [`decompress`] undoes gzip and
//! zlib. Text and bytes stay slices of the input, so a pickle takes little more memory than its own size, and every size is bounded by [`Limits`]: above all that of the tree when values shared by reference are written out, which in a
//! hostile pickle of a few hundred bytes may have more leaves than there are atoms.
//!
//! ```
//! use judge_probe::pickle::{self, Limits, Problem, Value};
//!
//! // What `pickle.dumps([1, "two", None], protocol=4)` gives.
//! let bytes = b"\x80\x04\x95\x0e\0\0\0\0\0\0\0]\x94(K\x01\x8c\x03two\x94Ne.";
//! let list = pickle::read(bytes, &Limits::default())?;
//! assert_eq!(list, Value::List(vec![Value::Int(1), Value::Str("two"), Value::None]));
//!
//! // A pickle that would run a command is not even told what the command was to be.
//! let refused = pickle::read(b"\x80\x02cos\nsystem\n(S'...'\ntR.", &Limits::default()).unwrap_err();
//! assert_eq!(refused.problem, Problem::ForeignGlobal { module: "os".into(), name: "system".into() });
//! assert_eq!((refused.offset, refused.opcode), (2, "GLOBAL"));
//! # Ok::<(), pickle::ReadError>(())
//! ```

mod arena;
mod array;
mod compressed;
mod construct;
mod error;
mod expand;
mod globals;
mod machine;
mod opcode;
mod value;

pub use array::{Array, Bytes, Data, Element};
pub use compressed::decompress;
pub use error::{Limit, Problem, ReadError};
pub use value::{Object, Value};

/// How large a pickle and what it says may be. The defaults are far above any linear classifier and far below a machine's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the pickle.
    pub pickle_bytes: usize,
    /// Instructions, which bound every list, dictionary and stack.
    pub opcodes: usize,
    /// Values remembered for later reference.
    pub memo_entries: usize,
    /// Bytes of one text.
    pub text_bytes: usize,
    /// Elements of one array.
    pub array_elements: usize,
    /// How deep values may lie in one another.
    pub depth: usize,
    /// Values of the whole tree, where a value that is referred to twice counts twice.
    pub expanded_values: usize,
}

impl Default for Limits {
    /// 256 MiB, 2¹⁸ opcodes, 2¹⁷ memo entries, 2²⁰ bytes of text, 2²⁵ array elements, depth 64, 2¹⁸ values.
    fn default() -> Self {
        Self {
            pickle_bytes: 1 << 28,
            opcodes: 1 << 18,
            memo_entries: 1 << 17,
            text_bytes: 1 << 20,
            array_elements: 1 << 25,
            depth: 64,
            expanded_values: 1 << 18,
        }
    }
}

/// Reads one pickle, which must fill `bytes`.
///
/// # Errors
///
/// [`ReadError`], with the offset of the opcode concerned: damage, a global that is not allowed, an allowed one used in another way
/// than NumPy and scikit-learn use it, an opcode that they do not write, an exceeded limit, a value that contains itself.
pub fn read<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Value<'a>, ReadError> {
    machine::Machine::new(bytes, limits)?.run()
}
