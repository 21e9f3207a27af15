//! Values that refer to each other by their place.
//!
//! The machine makes nodes and changes them in place, as Python's memo lets a pickle do. It owns no limits and no errors: those are the
//! machine's. Nodes are written out to [`Value`](super::Value)s by `expand`, once, when the pickle has been read to its end.

use super::element::{Bytes, Element};
use super::error::cut;
use super::globals::{Global, is_of_old_release};
use super::value::Array;
use super::{Problem, ReadError};

/// Place of a node in the arena.
///
/// Ids are handed out in ascending order and never reused, so an id is valid as long as the arena.
pub(super) type Id = usize;

/// A value that refers to others by their place, so that a shared one exists once however often it is referred to.
///
/// Cycles are possible here, as in Python: a list can be appended to itself. `expand` refuses them.
///
/// A node holds its own items' ids, so that n nodes and their references take memory in proportion to the opcodes that made them.
#[derive(Debug)]
pub(super) enum Node<'a> {
    None,
    Bool(bool),
    Int(i64),
    /// An integer of more than 64 bits, by the number of its bytes: the state of a generator, for instance, which nothing reads.
    LongInt(u64),
    Float(f64),
    /// With the number of its characters if all lie in 0 to 255, so that it may stand for bytes.
    Str {
        text: &'a str,
        latin1: Option<usize>,
    },
    Bytes(Bytes<'a>),
    Tuple(Vec<Id>),
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Global),
    /// A foreign name, or whatever a pickle would have it make: never looked into.
    Opaque(Foreign<'a>),
    /// A class and the dictionary of its attributes, if any were given.
    Object {
        class: &'static str,
        state: Option<Id>,
    },
    /// A dtype, known from its code alone, and whether its numbers are big-endian, which its later state says.
    DType(Element, bool),
    /// Empty until it is given its content; of objects the array has none, and the list that they are in stands beside it.
    Array(Option<(Array<'a>, Option<Id>)>),
}

/// A name that is not on the list, and where the pickle refers to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Foreign<'a> {
    pub(super) module: &'a str,
    pub(super) name: &'a str,
    pub(super) offset: usize,
    pub(super) opcode: &'static str,
}

impl Foreign<'_> {
    /// Whether it stands for an array of NumPy's in a form that is not read: masked, or with an order of axes of its own.
    pub(super) fn is_array(self) -> bool {
        let Self { module, name, .. } = self;
        (module, name) == ("numpy", "ndarray") || module == "numpy.ma" || module.starts_with("numpy.ma.")
    }

    pub(super) fn error(self) -> ReadError {
        let (module, name) = (cut(self.module), cut(self.name));
        let problem = match is_of_old_release(self.module) {
            true => Problem::Refused(format!(
                "{module}.{name} is of scikit-learn before 0.22, which is not read: load the object with that release, fit it with a \
                 newer one, and save it anew"
            )),
            false => Problem::ForeignGlobal { module, name },
        };
        ReadError { offset: self.offset, opcode: self.opcode, problem }
    }
}

/// Where a node began, for error messages; and whether it has been used in a way that copies it in Python, after which a change would
/// mean something else there than here.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    pub(super) node: Node<'a>,
    /// Byte of the pickle at which the opcode stands that made the node.
    pub(super) offset: usize,
    /// Name of that opcode.
    pub(super) opcode: &'static str,
    /// Set on a list or dictionary once an array or object has taken it over. Such a node may be referred to but no longer changed.
    pub(super) complete: bool,
}
