//! From the arena, where values are shared, to a tree, where they are not.
//!
//! It is the last step of reading and the only recursive one. Opcodes are bounded before, so the arena is small; the tree it describes
//! need not be: n lists, each holding the one before twice, make 2ⁿ leaves. That is why the values are counted while they are written, not
//! afterwards.

use std::borrow::Cow;
use std::collections::HashSet;

use super::arena::{Id, Node, Slot};
use super::error::cut;
use super::globals::is_unread;
use super::value::{Array, Data};
use super::{Limits, Object, Problem, ReadError, Value};

/// Writes the value out with everything it refers to. The count of values runs along, so that a tree that would be too large is given up
/// as soon as it is.
///
/// Time and memory are in proportion to the tree, hence to [`Limits::expanded_values`]. The root has depth 1.
///
/// # Errors
///
/// [`Problem::TooLarge`] for values, depth and text; [`Problem::Refused`] for a value within itself, a key that stands twice or is of a
/// wrong type, an unfinished array. Each names the opcode that made the value, not the opcode STOP.
pub(super) fn expand<'a>(slots: &[Slot<'a>], root: Id, limits: &Limits) -> Result<Value<'a>, ReadError> {
    Expansion { slots, limits, n_values: 0, path: Vec::new(), owner: None, unread: false }.value(root)
}

/// What is wrong with an array that was begun and never filled.
const UNFINISHED: &str = "the array was never given its content";

/// One value being written out, from the root downwards.
struct Expansion<'s, 'a> {
    /// The finished arena. Nothing in it changes any more.
    slots: &'s [Slot<'a>],
    /// Of which depth, values and bytes of text matter here.
    limits: &'s Limits,
    /// Values written so far. A shared value counts as often as it is referred to: that is what a tree of it costs, and how a small pickle
    /// grows to a large one.
    n_values: usize,
    /// The values around the present one.
    ///
    /// Its length is the depth. A value on it that appears again contains itself; one that has left it is merely shared.
    path: Vec<Id>,
    /// The class of the object whose dictionary of attributes is written out next.
    owner: Option<&'static str>,
    /// Whether nothing reads what is being written out, so that foreign classes may be in it.
    unread: bool,
}

impl<'a> Expansion<'_, 'a> {
    /// A value and all below it. The depth is checked before it is gone into, so that the recursion is as deep as the limit and no deeper.
    ///
    /// The order matters: the count comes first, so that a cycle or a deep value is never free; the cycle check comes before the depth
    /// check, so that a value within itself is reported as that.
    fn value(&mut self, id: Id) -> Result<Value<'a>, ReadError> {
        self.n_values += 1;
        self.check_limit(
            id,
            "values of the tree with shared ones written out",
            self.limits.expanded_values,
            self.n_values,
        )?;
        // The path is as short as the limit of depth, so that looking through it costs little.
        if self.path.contains(&id) {
            return Err(self.refused(id, "the value contains itself"));
        }
        self.path.push(id);
        self.check_limit(id, "depth of the tree", self.limits.depth, self.path.len())?;
        let value = self.content(id)?;
        self.path.pop();
        Ok(value)
    }

    /// The value itself. Arrays keep their bytes where they are; only arrays of objects are gone into.
    ///
    /// Keys are compared before either value of the entry is written out, so a repeated key costs nothing. Keys count as values of the
    /// tree too.
    fn content(&mut self, id: Id) -> Result<Value<'a>, ReadError> {
        let slots = self.slots;
        let owner = self.owner.take();
        Ok(match &slots[id].node {
            Node::None => Value::None,
            Node::Bool(value) => Value::Bool(*value),
            Node::Int(value) => Value::Int(*value),
            Node::LongInt(_) if self.unread => Value::Opaque { module: "builtins", name: "int" },
            Node::LongInt(n_bytes) => {
                return Err(self.refused(id, format!("an integer of {n_bytes} bytes, at most 8 expected")));
            }
            Node::Float(value) => Value::Float(*value),
            Node::Str { text, .. } => {
                self.check_limit(id, "bytes of a text", self.limits.text_bytes, text.len())?;
                Value::Str(text)
            }
            Node::Bytes(bytes) => Value::Bytes(*bytes),
            Node::Tuple(items) => Value::Tuple(self.values(items)?),
            Node::List(items) => Value::List(self.values(items)?),
            Node::Dict(entries) => {
                let mut expanded = Vec::new();
                let mut keys = HashSet::new();
                for &(key, value) in entries {
                    if !keys.insert(self.key(key)?) {
                        let key = cut(&self.key(key)?.1);
                        return Err(self.refused(id, format!("the key {key} stands twice in one dictionary")));
                    }
                    let outside = self.unread;
                    self.unread |= match (owner, &slots[key].node) {
                        (Some(class), Node::Str { text, .. }) => is_unread(class, text),
                        _ => false,
                    };
                    expanded.push((self.value(key)?, self.value(value)?));
                    self.unread = outside;
                }
                Value::Dict(expanded)
            }
            Node::Global(global) => Value::Global(global.dotted()),
            // Of an array what reads it says where it is.
            &Node::Opaque(foreign) if self.unread || foreign.is_array() => {
                Value::Opaque { module: foreign.module, name: foreign.name }
            }
            Node::Opaque(foreign) => return Err(foreign.error()),
            Node::Object { class, state } => {
                let attributes = state.map_or(Ok(Vec::new()), |state| self.attributes(class, state))?;
                Value::Object(Object { class, attributes })
            }
            // Its name says all there is to a dtype.
            Node::DType(element, _) => Value::Global(element.name()),
            // Of numbers one value, however many there are: their bytes are borrowed. Each object counts.
            Node::Array(Some((array, None))) => Value::Array(array.clone()),
            Node::Array(Some((array, Some(list)))) => match &slots[*list].node {
                Node::List(items) => Value::Array(Array { data: Data::Objects(self.values(items)?), ..array.clone() }),
                _ => return Err(self.refused(*list, UNFINISHED)),
            },
            Node::Array(None) => return Err(self.refused(id, UNFINISHED)),
        })
    }

    /// Items in their order. There is no room reserved for them: their number is the pickle's word until the count has been checked.
    fn values(&mut self, ids: &[Id]) -> Result<Vec<Value<'a>>, ReadError> {
        ids.iter().map(|id| self.value(*id)).collect()
    }

    /// An object's attributes: a dictionary whose keys are texts, as `__dict__` is.
    ///
    /// An attribute name that appears twice was refused as a repeated key of the dictionary.
    fn attributes(&mut self, class: &'static str, state: Id) -> Result<Vec<(&'a str, Value<'a>)>, ReadError> {
        self.owner = Some(class);
        let Value::Dict(entries) = self.value(state)? else {
            return Err(self.refused(state, "expected a dictionary of attributes, found another value"));
        };
        let named = entries.into_iter().map(|(key, value)| match key {
            Value::Str(name) => Ok((name, value)),
            other => Err(self.refused(state, format!("expected the name of an attribute, found {}", other.kind()))),
        });
        named.collect()
    }

    /// What tells a dictionary's keys apart: whether it is text, and what it reads. As in Python, True and 1.0 are the key 1, and text is
    /// compared byte by byte.
    ///
    /// A dictionary with a key twice is refused: Python would keep the last of both, and a reader that keeps the first reads another
    /// classifier than Python does. Tuples and bytes can be keys in Python; no object read here has them.
    fn key(&self, id: Id) -> Result<(bool, Cow<'a, str>), ReadError> {
        match &self.slots[id].node {
            Node::Str { text, .. } => Ok((true, Cow::Borrowed(text))),
            Node::Int(value) => Ok((false, value.to_string().into())),
            Node::Bool(value) => Ok((false, i64::from(*value).to_string().into())),
            // Below 2⁵³ a whole float is exactly its integer.
            Node::Float(value) if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 => {
                Ok((false, (*value as i64).to_string().into()))
            }
            Node::Float(value) => Ok((false, format!("{value:?}").into())),
            Node::None => Ok((false, "None".into())),
            _ => Err(self.refused(id, "expected a key: text, a number or None, found another value")),
        }
    }

    /// The same as the machine's, but at the place of the value in question: by now the machine stands at STOP.
    fn check_limit(&self, id: Id, limit: &'static str, most: usize, found: usize) -> Result<(), ReadError> {
        if found > most { Err(self.error(id, Problem::TooLarge { limit, most, found })) } else { Ok(()) }
    }

    fn refused(&self, id: Id, why: impl Into<String>) -> ReadError {
        self.error(id, Problem::Refused(why.into()))
    }

    /// A problem with the value at this place of the arena.
    fn error(&self, id: Id, problem: Problem) -> ReadError {
        ReadError { offset: self.slots[id].offset, opcode: self.slots[id].opcode, problem }
    }
}
