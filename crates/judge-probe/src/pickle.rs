//! Reading Python pickles without Python: bytes in, a tree of plain values out.
//!
//! A pickle is a program for a stack machine, and Python's `pickle.load` runs it, whatever it calls. [`read`] builds no object and calls
//! nothing: a name that the pickle refers to must stand on a short list of what saved scikit-learn classifiers need, and even those
//! may only be put together the way NumPy and scikit-learn themselves do (an array from its dtype, shape and bytes; an object from
//! nothing but its attributes). Everything else is refused, with the byte where it stands; unless nothing reads it, such as the splitter
//! that a search keeps: it is then [opaque](Value::Opaque), a name and nothing more.
//!
//! Protocols 2 to 5 are read, and what joblib makes of them, whose arrays lie between the opcodes; [`decompress`] undoes gzip and
//! zlib. Text and bytes stay slices of the input, so a pickle takes little more memory than its own size, and every size is bounded by
//! [`Limits`]: above all that of the tree when values shared by reference are written out, which in a hostile pickle of a few hundred bytes
//! may have more leaves than there are atoms.
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
mod compressed;
mod construct;
mod element;
mod error;
mod expand;
mod globals;
mod limits;
mod machine;
mod opcode;
mod value;

pub use compressed::decompress;
pub use element::{Bytes, Element};
pub use error::{Problem, ReadError};
pub use limits::Limits;
pub use value::{Array, Data, Object, Value};

/// Reads one pickle, which must fill `bytes`.
///
/// # Errors
///
/// [`ReadError`], with the offset of the opcode concerned: damage, a global that is not allowed, an allowed one used in another way
/// than NumPy and scikit-learn use it, an opcode that they do not write, an exceeded limit, a value that contains itself.
pub fn read<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Value<'a>, ReadError> {
    machine::Machine::new(bytes, limits)?.run()
}
