//! Values that refer to each other by their place.

use super::array::{Bytes, Data, Element, Order};
use super::globals::Global;
use super::{ReadError, Value};

/// Place of a node in the arena.
pub(super) type Id = usize;

/// A value that refers to others by their place, so that a shared one exists once however often it is referred to.
#[derive(Debug)]
pub(super) enum Node<'a> {
    None,
    Bool(bool),
    Int(i64),
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
    /// A class and the dictionary of its attributes, if any were given.
    Object {
        class: &'static str,
        state: Option<Id>,
    },
    DType(Element),
    /// Empty until it is given its content.
    Array(Option<ArrayNode<'a>>),
    /// As an array; the mask beside it.
    MaskedArray(Option<(ArrayNode<'a>, Bytes<'a>)>),
}

/// An array whose data fit its shape. Its objects, if it holds any, are still places in the arena.
#[derive(Debug)]
pub(super) struct ArrayNode<'a> {
    pub(super) element: Element,
    pub(super) shape: Vec<usize>,
    pub(super) order: Order,
    pub(super) data: DataNode<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum DataNode<'a> {
    Numbers(Bytes<'a>),
    /// The list of the objects.
    Objects(Id),
}

/// Where a node began, for error messages; and whether it has been used in a way that copies it in Python, after which a change would
/// mean something else there than here.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    pub(super) node: Node<'a>,
    pub(super) offset: usize,
    pub(super) opcode: &'static str,
    pub(super) complete: bool,
}

impl<'a> DataNode<'a> {
    /// The same with the objects in place of their list.
    pub(super) fn expanded(
        self,
        objects: impl FnOnce(Id) -> Result<Vec<Value<'a>>, ReadError>,
    ) -> Result<Data<'a>, ReadError> {
        Ok(match self {
            Self::Numbers(bytes) => Data::Numbers(bytes),
            Self::Objects(list) => Data::Objects(objects(list)?),
        })
    }
}
