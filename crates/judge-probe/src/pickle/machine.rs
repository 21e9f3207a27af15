//! The stack machine: opcodes in, an arena of values that refer to each other out.
//!
//! It owns the order of the opcodes, the stack, the memo and the bounds on all of these. What an allowed global makes of its arguments is
//! `construct`'s, which names are allowed is `globals`', and the tree is written by `expand`. A pickle is read in one pass from front to
//! back; nothing is looked ahead for.
//!
//! | Python's unpickler | here |
//! |---|---|
//! | imports a global | looks it up in a closed list; another name is an opaque value |
//! | calls it (REDUCE) | recognises one of NumPy's idioms |
//! | `cls.__new__(cls, *args)` (NEWOBJ) | the name of an allowed class, no arguments |
//! | `obj.__setstate__(state)` (BUILD) | keeps the dictionary, array or dtype state, once |
//! | extension codes, persistent ids | refused |

use std::collections::HashMap;
use std::mem::take;
use std::str::Utf8Error;

use super::arena::{Foreign, Id, Node, Slot};
use super::compressed::{compression, is_compressed, trailing};
use super::element::{Bytes, Repr};
use super::globals::{Global, JOBLIB_ARRAY};
use super::{Limits, Problem, ReadError, Value, expand, opcode};

/// What is wrong with a pickle of a protocol that is not announced.
const OLD_PROTOCOL: &str =
    "protocol 0 or 1 is not read: load the object in Python and save it anew with pickle.dump(model, file, protocol=4)";

/// The state of one reading. It begins with an empty stack and ends at STOP with one value on it; nothing of the machine outlives it but
/// slices of the pickle.
///
/// Every growth is bounded before it happens: opcodes by [`Limits::opcodes`], the memo by [`Limits::memo_entries`], values by the opcodes
/// that push them (one each), and bytes by the pickle itself, which they are slices of.
pub(super) struct Machine<'a> {
    /// The pickle, which text and bytes are slices of.
    bytes: &'a [u8],
    /// The caller's bounds, copied. `construct` needs that of array elements.
    pub(super) limits: Limits,
    /// The next byte to read, never beyond the end.
    position: usize,
    /// Where the opcode being run stands, and its name.
    pub(super) offset: usize,
    /// Name of the opcode at `offset`, as `pickletools` has it. Both are kept as state, so that every error can say where without a
    /// parameter.
    pub(super) opcode: &'static str,
    /// Where the frame that was announced ends, while inside one. An opcode may not cross it: real picklers never do.
    frame_end: Option<usize>,
    /// The arena: all values made so far, kept even when they are popped, so that a place never changes its value.
    pub(super) slots: Vec<Slot<'a>>,
    /// Places of the values that opcodes work on.
    stack: Vec<Id>,
    /// Heights of the stack at its marks.
    marks: Vec<usize>,
    /// Values to be recalled, by number. A map and not a list: the numbers are the pickle's word, and 2³² of them would be room for
    /// nothing.
    memo: HashMap<u32, Id>,
    /// Opcodes that were run, STOP included.
    n_opcodes: usize,
    /// How many pickles within one another are being run, besides the outermost.
    inner: usize,
    /// The first foreign name.
    foreign: Option<Foreign<'a>>,
}

impl<'a> Machine<'a> {
    /// A machine at the first byte. Nothing is allocated until opcodes run.
    ///
    /// # Errors
    ///
    /// [`Problem::TooLarge`] for a pickle of more bytes than allowed, before any of them is looked at.
    pub(super) fn new(bytes: &'a [u8], limits: &Limits) -> Result<Self, ReadError> {
        let machine = Self {
            bytes,
            limits: *limits,
            position: 0,
            offset: 0,
            opcode: "PROTO",
            frame_end: None,
            slots: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            n_opcodes: 0,
            inner: 0,
            foreign: None,
        };
        machine.check_limit("bytes of the pickle", limits.pickle_bytes, bytes.len())?;
        Ok(machine)
    }

    /// Runs to STOP and writes the result out as a tree.
    ///
    /// The first two bytes must announce protocol 2 to 5; the number itself is not kept, since an opcode means the same in all of them.
    /// The pickle must end with STOP, leave exactly one value, and fill the bytes: anything behind it would be data that a check by eye
    /// with `pickletools` might not show.
    ///
    /// The limit of opcodes counts STOP too. It is checked after the opcode's name is known, so that the error can say which one was too
    /// many.
    ///
    /// A pickle that refers to a foreign name and then does what is not understood is refused for the name, which says more; unless its
    /// elements say what is wrong.
    pub(super) fn run(mut self) -> Result<Value<'a>, ReadError> {
        let root = self.run_to_stop().map_err(|error| match (self.foreign, &error.problem) {
            (None, _) | (_, Problem::Array(_)) => error,
            (Some(foreign), _) => foreign.error(),
        })?;
        expand::expand(&self.slots, root, &self.limits)
    }

    /// The place of the value that is left.
    fn run_to_stop(&mut self) -> Result<Id, ReadError> {
        let root = self.pickle()?;
        if self.position < self.bytes.len() {
            return Err(self.refused(trailing(self.bytes.len() - self.position)));
        }
        Ok(root)
    }

    /// Runs one pickle, from the announcement of its protocol to STOP, on a stack and a memo that are empty.
    fn pickle(&mut self) -> Result<Id, ReadError> {
        (self.offset, self.opcode) = (self.position, "PROTO");
        match &self.bytes[self.position..] {
            [0x80, 2..=5, ..] => self.position += 2,
            other => {
                let found = &other[..other.len().min(2)];
                return Err(self.refused(match (compression(other), found.first()) {
                    (Some(format), _) => is_compressed(format),
                    // Opcodes above 0x7f came with the announcement.
                    (None, Some(&first)) if first < 0x80 && opcode::name(first).is_some() => OLD_PROTOCOL.to_owned(),
                    _ => format!("expected the announcement of protocol 2, 3, 4 or 5, found {found:02x?}"),
                }));
            }
        }
        loop {
            self.n_opcodes += 1;
            self.offset = self.position;
            self.opcode = "the end";
            let byte = self.take(1)?[0];
            self.opcode = opcode::name(byte).ok_or_else(|| self.refused(format!("0x{byte:02x} is no opcode")))?;
            self.check_limit("opcodes", self.limits.opcodes, self.n_opcodes)?;
            if byte == b'.' {
                break;
            }
            self.step(byte)?;
            match self.frame_end {
                Some(end) if self.position > end => return Err(self.frame_error(end as u64, "the end of an opcode")),
                Some(end) if self.position == end => self.frame_end = None,
                _ => {}
            }
        }
        let root = self.pop()?;
        let left_over = self.stack.len() + self.marks.len();
        if left_over > 0 {
            return Err(self.refused(format!("{left_over} values and marks are left below the result")));
        }
        Ok(root)
    }

    /// Runs a pickle within the pickle, with a stack and a memo of its own.
    fn inner_pickle(&mut self) -> Result<Id, ReadError> {
        self.inner += 1;
        self.check_limit("depth of the tree", self.limits.depth, self.inner)?;
        let (stack, marks, memo) = (take(&mut self.stack), take(&mut self.marks), take(&mut self.memo));
        let root = self.pickle()?;
        (self.stack, self.marks, self.memo) = (stack, marks, memo);
        self.inner -= 1;
        Ok(root)
    }

    /// Runs one opcode. What is not listed is forbidden, though `pickletools` may know it: references to other files (PERSID), extension
    /// codes (EXT1 …), sets, classes of Python 2 (INST, OBJ), and texts that were escaped (STRING, INT), none of which NumPy and
    /// scikit-learn write.
    ///
    /// The target of APPEND, SETITEM and BUILD stays on the stack. POP, POP_MARK and DUP are harmless and are run, since a tool that
    /// rewrites pickles may leave them.
    fn step(&mut self, byte: u8) -> Result<(), ReadError> {
        let node = match byte {
            // FRAME
            0x95 => return self.frame(),
            // MARK
            b'(' => {
                self.marks.push(self.stack.len());
                return Ok(());
            }
            // POP, POP_MARK, DUP. The value doubled is one place with two references.
            b'0' => return self.pop().map(drop),
            b'1' => return self.pop_to_mark().map(drop),
            b'2' => return self.top().map(|top| self.stack.push(top)),
            // NONE, NEWTRUE, NEWFALSE
            b'N' => Node::None,
            0x88 => Node::Bool(true),
            0x89 => Node::Bool(false),
            // BININT is signed; BININT1 and BININT2 are not.
            b'J' => Node::Int(i32::from_le_bytes(self.array()?).into()),
            b'K' => Node::Int(u8::from_le_bytes(self.array()?).into()),
            b'M' => Node::Int(u16::from_le_bytes(self.array()?).into()),
            // LONG1, LONG4
            0x8a | 0x8b => self.long(byte)?,
            // BINFLOAT, the only big-endian number of the format.
            b'G' => Node::Float(f64::from_be_bytes(self.array()?)),
            // SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
            0x8c | b'X' | 0x8d => self.text(byte)?,
            // SHORT_BINBYTES, BINBYTES, BINBYTES8, and BYTEARRAY8, whose content is read as bytes.
            b'C' | b'B' | 0x8e | 0x96 => Node::Bytes(Bytes::new(Repr::Raw(self.content(byte)?))),
            // EMPTY_LIST, EMPTY_DICT, EMPTY_TUPLE
            b']' => Node::List(Vec::new()),
            b'}' => Node::Dict(Vec::new()),
            b')' => Node::Tuple(Vec::new()),
            // TUPLE1 to TUPLE3 take their items without a mark.
            0x85..=0x87 => {
                let n_items = usize::from(byte - 0x84);
                let first = self.stack.len().checked_sub(n_items).filter(|first| *first >= self.floor());
                Node::Tuple(self.stack.split_off(first.ok_or_else(|| self.empty_stack())?))
            }
            // TUPLE
            b't' => Node::Tuple(self.pop_to_mark()?),
            // APPEND, APPENDS
            b'a' => return self.pop().and_then(|item| self.append(&[item])),
            b'e' => return self.pop_to_mark().and_then(|items| self.append(&items)),
            // SETITEM, SETITEMS
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                return self.set_items(&[key, value]);
            }
            b'u' => return self.pop_to_mark().and_then(|items| self.set_items(&items)),
            // BINPUT, LONG_BINPUT
            b'q' | b'r' => return self.index(byte).and_then(|index| self.remember(index)),
            // MEMOIZE: the number is the count of entries.
            // As Python counts; the limit of entries keeps the number far below the range.
            0x94 => return self.remember(u32::try_from(self.memo.len()).unwrap_or(u32::MAX)),
            // BINGET, LONG_BINGET
            b'h' | b'j' => return self.index(byte).and_then(|index| self.recall(index)),
            // GLOBAL of protocols 2 and 3: two lines of text.
            b'c' => {
                let module = self.line()?;
                let name = self.line()?;
                self.global(module, name)?
            }
            // STACK_GLOBAL of protocol 4. Module and name may come from the memo.
            0x93 => {
                let name = self.pop()?;
                let module = self.pop()?;
                let (module, name) = (self.str(module)?, self.str(name)?);
                self.global(module, name)?
            }
            // REDUCE
            b'R' => {
                let arguments = self.pop()?;
                let callable = self.pop()?;
                self.reduce(callable, arguments)?
            }
            // NEWOBJ
            0x81 => {
                let arguments = self.pop()?;
                let class = self.pop()?;
                self.new_object(class, arguments)?
            }
            // BUILD
            b'b' => {
                let state = self.pop()?;
                let target = self.top()?;
                self.build(target, state)?;
                return self.replace_stand_in(target, state);
            }
            _ => return Err(self.refused("the opcode is not allowed")),
        };
        self.push(node);
        Ok(())
    }

    /// FRAME of protocol 4: a promise that so many bytes hold whole opcodes.
    ///
    /// Frames change nothing about what is read; they let a reader of a stream fetch ahead. They are checked because a frame that does not
    /// fit is a sign of damage. They do not nest.
    fn frame(&mut self) -> Result<(), ReadError> {
        let length = u64::from_le_bytes(self.array()?);
        let end = (self.position as u64).saturating_add(length);
        if self.frame_end.is_some() {
            return Err(self.frame_error(end, "the frame around it to end first"));
        }
        match usize::try_from(end).ok().filter(|end| *end <= self.bytes.len()) {
            Some(end) => self.frame_end = Some(end),
            None => return Err(self.frame_error(end, "at most the end of the pickle")),
        }
        Ok(())
    }

    /// LONG1 and LONG4: little-endian two's complement of any length, of which 64 bits are read.
    ///
    /// No bytes at all are the number 0. A number of nine bytes or more is refused where it is read, even if its value would fit; Python
    /// writes the shortest form.
    fn long(&mut self, byte: u8) -> Result<Node<'a>, ReadError> {
        let bytes = self.content(byte)?;
        if bytes.len() > 8 {
            return Ok(Node::LongInt(bytes.len() as u64));
        }
        // Two's complement: the highest bit fills what is left.
        let sign = if bytes.last().is_some_and(|last| *last >= 0x80) { 0xff } else { 0 };
        let mut wide = [sign; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        Ok(Node::Int(i64::from_le_bytes(wide)))
    }

    /// A Unicode text. Whether it may stand for bytes, as in protocol 2, is found out now, once for each opcode: each use of it costs
    /// nothing then.
    ///
    /// UTF-8 is required. Python also lets lone surrogates through (`surrogatepass`); no attribute or setting of a classifier has them.
    fn text(&mut self, byte: u8) -> Result<Node<'a>, ReadError> {
        let bytes = self.content(byte)?;
        let text = self.utf8(bytes)?;
        let mut latin1 = Some(0);
        for code_point in text.chars() {
            latin1 = latin1.filter(|_| u32::from(code_point) < 256).map(|length| length + 1);
        }
        Ok(Node::Str { text, latin1 })
    }

    /// The bytes of an opcode of text, bytes or a long integer, behind their length of one byte, four or eight.
    fn content(&mut self, byte: u8) -> Result<&'a [u8], ReadError> {
        let length = match byte {
            0x8a | 0x8c | b'C' => u64::from(self.array::<1>()?[0]),
            0x8b | b'X' | b'B' => u64::from(u32::from_le_bytes(self.array()?)),
            _ => u64::from_le_bytes(self.array()?),
        };
        self.take(length)
    }

    /// The index that an opcode of the memo gives, of one byte or four.
    fn index(&mut self, byte: u8) -> Result<u32, ReadError> {
        match byte {
            b'q' | b'h' => Ok(self.array::<1>()?[0].into()),
            _ => self.array().map(u32::from_le_bytes),
        }
    }

    /// Where what was built is joblib's stand-in for an array, puts the array in its place. The array's bytes follow the opcode,
    /// outside of all frames.
    fn replace_stand_in(&mut self, built: Id, state: Id) -> Result<(), ReadError> {
        if !matches!(self.slots[built].node, Node::Object { class: JOBLIB_ARRAY, .. }) {
            return Ok(());
        }
        if let Some(end) = self.frame_end.take_if(|end| *end != self.position) {
            return Err(self.frame_error(end as u64, "its end before the bytes of an array of joblib's"));
        }
        self.frame_end = None;
        if let Some(array) = self.joblib_array(state)? {
            self.pop()?;
            self.push(Node::Array(Some((array, None))));
            return Ok(());
        }
        let array = self.inner_pickle()?;
        if !matches!(self.slots[array].node, Node::Array(Some(_))) {
            return Err(self.unexpected("an array", array));
        }
        self.pop()?;
        self.stack.push(array);
        Ok(())
    }

    /// Adds to the list on top, as APPEND and APPENDS do.
    ///
    /// Takes time in proportion to the items added, not to the list.
    fn append(&mut self, items: &[Id]) -> Result<(), ReadError> {
        let target = self.top()?;
        match &mut self.changing(target)?.node {
            Node::Opaque(_) => {}
            Node::List(list) => list.extend_from_slice(items),
            _ => return Err(self.unexpected("a list", target)),
        }
        Ok(())
    }

    /// Adds keys, each followed by its value, to the dictionary on top, as SETITEM and SETITEMS do. Whether keys repeat is seen when the
    /// tree is written out.
    ///
    /// An entry with an odd item left over is refused here, since the pairs would be shifted by one from there on.
    fn set_items(&mut self, items: &[Id]) -> Result<(), ReadError> {
        let target = self.top()?;
        if !items.len().is_multiple_of(2) {
            return Err(self.refused("expected as many values as keys, found a key without value"));
        }
        match &mut self.changing(target)?.node {
            Node::Opaque(_) => {}
            Node::Dict(entries) => entries.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1]))),
            _ => return Err(self.unexpected("a dictionary", target)),
        }
        Ok(())
    }

    /// A slot to be changed. What an object or an array has been built of is complete: to change it later would change the object behind
    /// its back.
    fn changing(&mut self, id: Id) -> Result<&mut Slot<'a>, ReadError> {
        if self.slots[id].complete {
            return Err(self.changed(id));
        }
        Ok(&mut self.slots[id])
    }

    /// Puts the top into the memo. Python lets a number be used again; so does this.
    ///
    /// The limit is checked after the entry is made: the memo is never more than one entry above it.
    fn remember(&mut self, index: u32) -> Result<(), ReadError> {
        let top = self.top()?;
        self.memo.insert(index, top);
        self.check_limit("entries of the memo", self.limits.memo_entries, self.memo.len())
    }

    /// Pushes a value of the memo: the same place, not a copy, which is how shared values and cycles arise.
    ///
    /// It may be a container that is still being filled, as Python allows. Nothing is copied.
    fn recall(&mut self, index: u32) -> Result<(), ReadError> {
        let id = *self.memo.get(&index).ok_or_else(|| self.refused(format!("the memo has no entry {index}")))?;
        self.stack.push(id);
        Ok(())
    }

    /// Looks a name up among those allowed. Nothing is imported: the name becomes one of an enumeration, or an error.
    ///
    /// A name that is not allowed makes an opaque value, and so does all that the pickle would do with it. Whether that is refused is seen
    /// when the tree is written out: only what a search or a classifier keeps beside its parameters may be opaque, and anywhere an array
    /// in a form that is not read. A wrong use of an allowed name is found where it is used.
    fn global(&mut self, module: &'a str, name: &'a str) -> Result<Node<'a>, ReadError> {
        if let Some(global) = Global::find(module, name) {
            return Ok(Node::Global(global));
        }
        if module == "joblib.numpy_pickle" || module == "joblib.numpy_pickle_compat" {
            let said = "written by joblib 0.9 or older, which is not read: load the object in Python and save it with pickle.dump";
            return Err(self.error(Problem::Array(said.to_owned())));
        }
        let foreign = Foreign { module, name, offset: self.offset, opcode: self.opcode };
        // What every search drags along is no reason to doubt the rest.
        if !foreign.is_array() && !module.starts_with("sklearn.metrics.") {
            self.foreign.get_or_insert(foreign);
        }
        Ok(Node::Opaque(foreign))
    }

    /// Makes a value and puts it on the stack, with the opcode that made it for error messages.
    ///
    /// Each opcode makes at most one value, so the arena needs no limit of its own.
    fn push(&mut self, node: Node<'a>) {
        self.stack.push(self.slots.len());
        self.slots.push(Slot { node, offset: self.offset, opcode: self.opcode, complete: false });
    }

    /// Height of the stack that opcodes may not go below.
    ///
    /// 0 outside all marks.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    /// The value on top. Below a mark lies what an opcode must not see.
    ///
    /// # Errors
    ///
    /// Where there is none, also if there are values but a mark lies above them.
    fn top(&self) -> Result<Id, ReadError> {
        match self.stack.last() {
            Some(top) if self.stack.len() > self.floor() => Ok(*top),
            _ => Err(self.empty_stack()),
        }
    }

    /// Takes the top off. The value stays in the arena; only the reference to it goes.
    fn pop(&mut self) -> Result<Id, ReadError> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    /// What has been pushed since the last mark, which is taken away with it.
    ///
    /// The items are in the order in which they were pushed.
    fn pop_to_mark(&mut self) -> Result<Vec<Id>, ReadError> {
        let mark = self.marks.pop().ok_or_else(|| self.refused("no mark on the stack"))?;
        Ok(self.stack.split_off(mark))
    }

    /// The next bytes; never more than there are.
    ///
    /// The length is a `u64` because opcodes of protocol 4 state it so; on a 32-bit machine it may not fit a `usize`.
    pub(super) fn take(&mut self, n_bytes: u64) -> Result<&'a [u8], ReadError> {
        let left = self.bytes.len() - self.position;
        match usize::try_from(n_bytes).ok().filter(|n_bytes| *n_bytes <= left) {
            Some(n_bytes) => {
                let taken = &self.bytes[self.position..self.position + n_bytes];
                self.position += n_bytes;
                Ok(taken)
            }
            None => Err(self.truncated(n_bytes)),
        }
    }

    /// The next N bytes, for numbers of fixed width.
    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    /// Text up to the end of its line, without it.
    ///
    /// No more than the limit of text is searched for the line break, so that a pickle without one is not walked through for every GLOBAL.
    fn line(&mut self) -> Result<&'a str, ReadError> {
        let rest = &self.bytes[self.position..];
        let length = rest.iter().take(self.limits.text_bytes.saturating_add(1)).position(|byte| *byte == b'\n');
        match length {
            Some(length) => {
                let line = self.utf8(&rest[..length])?;
                self.position += length + 1;
                Ok(line)
            }
            None => {
                self.check_limit("bytes of a text", self.limits.text_bytes, rest.len())?;
                Err(self.truncated(rest.len() as u64 + 1))
            }
        }
    }

    /// The text is a slice of the pickle, checked once and never copied.
    fn utf8(&self, bytes: &'a [u8]) -> Result<&'a str, ReadError> {
        let why = |error: Utf8Error| self.refused(format!("text is not UTF-8 from its byte {}", error.valid_up_to()));
        std::str::from_utf8(bytes).map_err(why)
    }

    /// Refuses more of something than the reader was told to expect.
    ///
    /// A limit itself is still allowed: only more than that is refused.
    pub(super) fn check_limit(&self, limit: &'static str, most: usize, found: usize) -> Result<(), ReadError> {
        if found > most { Err(self.error(Problem::TooLarge { limit, most, found })) } else { Ok(()) }
    }

    /// A problem at the opcode that is being run.
    pub(super) fn error(&self, problem: Problem) -> ReadError {
        ReadError { offset: self.offset, opcode: self.opcode, problem }
    }

    /// What is wrong with the opcode that is being run.
    pub(super) fn refused(&self, why: impl Into<String>) -> ReadError {
        self.error(Problem::Refused(why.into()))
    }

    /// The error of a list or dictionary that changes after it was used, or of an object that is given its content twice.
    pub(super) fn changed(&self, id: Id) -> ReadError {
        self.refused(format!("{} is changed after it was complete", self.kind(id)))
    }

    fn empty_stack(&self) -> ReadError {
        self.refused("nothing left to take from the stack")
    }

    fn frame_error(&self, end: u64, expected: &str) -> ReadError {
        self.refused(format!("the frame does not fit: it ends at byte {end}, expected {expected}"))
    }

    /// The error of a pickle that ends within an opcode, or without STOP.
    fn truncated(&self, needed: u64) -> ReadError {
        self.refused(format!("{needed} more bytes needed, {} left", self.bytes.len() - self.position))
    }
}
