//! The few ways in which NumPy and scikit-learn have their objects put together, recognised one by one.
//!
//! Each idiom is matched in full: the callable, the number of arguments, and every argument whose value NumPy does not vary. A pickle that
//! calls the right function with another argument is refused, although the result might be harmless: what is not recognised is not guessed
//! at.
//!
//! | written by | opcodes | here |
//! |---|---|---|
//! | bytes, protocol 2 | `_codecs.encode(text, "latin1")` | `Node::Bytes` |
//! | array, up to protocol 4 | `_reconstruct(ndarray, (0,), b"b")`, then BUILD | `Node::Array` |
//! | array, protocol 5 | `_frombuffer(buffer, dtype, shape, order)` | `Node::Array` |
//! | dtype | `dtype(code, align, copy)`, then BUILD | `Node::DType` |
//! | NumPy scalar | `scalar(dtype, bytes)` | `Node::Int`, `Node::Float`, `Node::Bool` |
//! | object | NEWOBJ without arguments, then BUILD with a dictionary | `Node::Object` |
//! | array, by joblib | an object of class `NumpyArrayWrapper`, then the array's bytes | `Node::Array` |

use super::arena::{Foreign, Id, Node};
use super::element::{Bytes, Element, Repr};
use super::error::cut;
use super::globals::Global;
use super::machine::Machine;
use super::value::{Array, Data};
use super::{Problem, ReadError};

/// Axes that an array may have. A classifier's have at most two, the paths of a cross-validated logistic regression five.
///
/// A constant and not one of [`Limits`](super::Limits): more axes cannot mean a larger array, only a stranger one.
const MAX_AXES: usize = 5;

impl<'a> Machine<'a> {
    /// What an allowed global makes of its arguments.
    ///
    /// An array made by `_reconstruct` is empty until BUILD fills it. A tree with one that was never filled is refused.
    ///
    /// # Errors
    ///
    /// For an allowed global that is no callable here, or is given other arguments than NumPy gives it.
    pub(super) fn reduce(&mut self, callable: Id, arguments: Id) -> Result<Node<'a>, ReadError> {
        let global = match self.slots[callable].node {
            Node::Global(global) => global,
            Node::Opaque(foreign) => return Ok(Node::Opaque(foreign)),
            _ => return Err(self.unexpected("a global", callable)),
        };
        let arguments = self.tuple(arguments)?;
        match (global, arguments.as_slice()) {
            // Decoding is put off: only its length is needed here, and that was counted when the text was read.
            (Global::Encode, &[text, encoding]) => match (&self.slots[text].node, self.str(encoding)?) {
                (&Node::Str { text, latin1: Some(len) }, "latin1") => {
                    Ok(Node::Bytes(Bytes::new(Repr::Latin1 { text, len })))
                }
                (_, "latin1") => Err(self.unexpected("text of the code points 0 to 255", text)),
                _ => Err(self.unexpected("the text latin1", encoding)),
            },
            // `bytes()`, the one call without arguments.
            (Global::EmptyBytes, &[]) => Ok(Node::Bytes(Bytes::new(Repr::Raw(&[])))),
            // `align` and `copy` must be truth values; which ones makes no difference to a plain dtype.
            (Global::DType, &[code, align, copy]) => {
                self.flag(align)?;
                self.flag(copy)?;
                let code = self.str(code)?;
                let element = Element::from_code(code);
                element.map(|element| Node::DType(element, false)).ok_or_else(|| self.element_type(code, ""))
            }
            // The array stays empty until BUILD.
            (Global::Reconstruct, &[class, shape, code]) => {
                self.expect_global(class, Global::NdArray)?;
                self.expect_empty_shape_and_code(shape, code)?;
                Ok(Node::Array(None))
            }
            // A `numpy.float64` among settings or scores.
            (Global::Scalar, &[dtype, bytes]) => self.scalar(dtype, bytes),
            // Since NumPy 2.3 a fifth argument describes orders of axes other than C's and Fortran's. No classifier's numbers lie so.
            (Global::FromBuffer, &[buffer, dtype, shape, order, ref axes @ ..]) if axes.len() < 2 => {
                if let Some(&axes) = axes.first().filter(|axes| !matches!(self.slots[**axes].node, Node::None)) {
                    if self.str(order)? != "K" {
                        return Err(self.unexpected("no order of axes", axes));
                    }
                    let (offset, opcode) = (self.offset, self.opcode);
                    return Ok(Node::Opaque(Foreign { module: "numpy", name: "ndarray", offset, opcode }));
                }
                let (fortran, (element, swapped)) = (self.is_fortran(order)?, self.dtype(dtype)?);
                if element == Element::Object {
                    return Err(self.element_type("O8", ""));
                }
                let numbers = self.bytes_of(buffer)?.of_numbers(element, swapped);
                let array = self.array_of(shape, element, fortran, Data::Numbers(numbers), numbers.len())?;
                Ok(Node::Array(Some((array, None))))
            }
            (Global::Class(_) | Global::NdArray, _) => {
                Err(self.refused(format!("{} may not be called here", global.dotted())))
            }
            _ => Err(self.refused(format!("{} may not be called with these arguments here", global.dotted()))),
        }
    }

    /// An object of an allowed class, without attributes as yet.
    ///
    /// A class with arguments to `__new__` would need its code to be understood. None of the allowed ones has any.
    pub(super) fn new_object(&self, class: Id, arguments: Id) -> Result<Node<'a>, ReadError> {
        if let Node::Opaque(foreign) = self.slots[class].node {
            return Ok(Node::Opaque(foreign));
        }
        match (&self.slots[class].node, self.tuple(arguments)?.as_slice()) {
            (&Node::Global(Global::Class(class)), []) => Ok(Node::Object { class, state: None }),
            (Node::Global(Global::Class(_)), _) => Err(self.unexpected("no arguments", arguments)),
            (Node::Global(global), _) => {
                Err(self.refused(format!("{} may not be the class of a new object here", global.dotted())))
            }
            _ => Err(self.unexpected("a class", class)),
        }
    }

    /// Gives an array its content, a dtype its byte order or an object its attributes.
    ///
    /// It happens once for an object or an array: a second state would be applied over the first by Python and is refused here. A dtype
    /// may be given its state again, since that only repeats what is known. The state's dictionary is closed to changes from then on,
    /// because Python copies its entries into the object.
    pub(super) fn build(&mut self, target: Id, state: Id) -> Result<(), ReadError> {
        let node = match &self.slots[target].node {
            // The state confirms what the code says, and adds the order of bytes.
            &Node::DType(element, _) => Node::DType(element, self.dtype_state(element, state)?),
            Node::Opaque(_) => return Ok(()),
            // `__setstate__` is not run. Of scikit-learn's it only warns of another release.
            &Node::Object { state: None, class } => {
                let Node::Dict(_) = self.slots[state].node else {
                    return Err(self.unexpected("a dictionary of attributes", state));
                };
                self.slots[state].complete = true;
                Node::Object { class, state: Some(state) }
            }
            Node::Array(None) => self.array_state(state)?,
            Node::Object { .. } | Node::Array(_) => return Err(self.changed(target)),
            _ => return Err(self.unexpected("an object, array or dtype", target)),
        };
        self.slots[target].node = node;
        Ok(())
    }

    /// An array with its state: what `__setstate__` of `numpy.ndarray` is given, version 1, which every release of NumPy writes.
    ///
    /// Data are bytes for numbers and a list for objects, one item for each element.
    fn array_state(&mut self, state: Id) -> Result<Node<'a>, ReadError> {
        let &[version, shape, dtype, fortran, data] = self.tuple(state)?.as_slice() else {
            return Err(self.unexpected("an array's version, shape, dtype, order and data", state));
        };
        if !matches!(self.slots[version].node, Node::Int(1)) {
            return Err(self.unexpected("version 1 of an array's state", version));
        }
        let ((element, swapped), fortran) = (self.dtype(dtype)?, self.flag(fortran)?);
        if element != Element::Object {
            let numbers = self.bytes_of(data)?.of_numbers(element, swapped);
            let array = self.array_of(shape, element, fortran, Data::Numbers(numbers), numbers.len())?;
            return Ok(Node::Array(Some((array, None))));
        }
        let Node::List(items) = &self.slots[data].node else {
            return Err(self.unexpected("a list of objects", data));
        };
        let array = self.array_of(shape, element, fortran, Data::Objects(Vec::new()), items.len())?;
        self.slots[data].complete = true;
        Ok(Node::Array(Some((array, Some(data)))))
    }

    /// An array whose data, of numbers `found` bytes and of objects as many items, are as long as its shape and elements say.
    fn array_of(
        &self,
        shape: Id,
        element: Element,
        fortran: bool,
        data: Data<'a>,
        found: usize,
    ) -> Result<Array<'a>, ReadError> {
        let (shape, n_elements) = self.lengths(shape)?;
        self.check_length(n_elements.saturating_mul(element.size()), found)?;
        Ok(Array { element, shape, fortran, data })
    }

    fn check_length(&self, expected: usize, found: usize) -> Result<(), ReadError> {
        let why = || format!("an array needs {expected} bytes (of objects: items) for its shape, found {found}");
        if found == expected { Ok(()) } else { Err(self.refused(why())) }
    }

    /// The array behind joblib's stand-in, whose attributes these are. Its bytes, which are taken, follow a byte that says how many
    /// others align them in the file, and these; joblib 1.1 and older do not align. `None` for an array of objects, which follows as
    /// a pickle of its own.
    pub(super) fn joblib_array(&mut self, state: Id) -> Result<Option<Array<'a>>, ReadError> {
        let Node::Dict(entries) = &self.slots[state].node else {
            return Err(self.unexpected("a dictionary of attributes", state));
        };
        let is = |id: Id, name: &str| matches!(self.slots[id].node, Node::Str { text, .. } if text == name);
        // As Python has it, the last entry of a key counts.
        let find = |name| entries.iter().rev().find(|(key, _)| is(*key, name)).map(|&(_, value)| value);
        let need = |name| find(name).ok_or_else(|| self.unexpected("the attributes of an array of joblib's", state));
        let (subclass, shape, order, dtype) = (need("subclass")?, need("shape")?, need("order")?, need("dtype")?);
        let alignment = find("numpy_array_alignment_bytes");
        let is_aligned = alignment.is_some_and(|id| !matches!(self.slots[id].node, Node::None));
        self.expect_global(subclass, Global::NdArray)?;
        let (fortran, (element, swapped)) = (self.is_fortran(order)?, self.dtype(dtype)?);
        if element == Element::Object {
            return Ok(None);
        }
        let (shape, n_elements) = self.lengths(shape)?;
        if is_aligned {
            let padding = self.take(1)?[0];
            self.take(padding.into())?;
        }
        let bytes = self.take(n_elements.saturating_mul(element.size()) as u64)?;
        let data = Data::Numbers(Bytes::new(Repr::Raw(bytes)).of_numbers(element, swapped));
        Ok(Some(Array { element, shape, fortran, data }))
    }

    /// Whether the first axis runs fastest.
    fn is_fortran(&self, order: Id) -> Result<bool, ReadError> {
        match self.str(order)? {
            "C" => Ok(false),
            "F" => Ok(true),
            _ => Err(self.unexpected("the order C or F", order)),
        }
    }

    /// The lengths of an array's axes, and their product, which is bounded after each one, so that it cannot wrap round, and axes of
    /// length 0 cannot hide what the others say.
    fn lengths(&self, shape: Id) -> Result<(Vec<usize>, usize), ReadError> {
        let axes = self.tuple(shape)?;
        if axes.len() > MAX_AXES {
            return Err(self.unexpected("at most 5 axes", shape));
        }
        let most = self.limits.array_elements;
        let (mut lengths, mut n_elements) = (Vec::with_capacity(axes.len()), 1usize);
        for axis in axes {
            let Node::Int(length) = self.slots[axis].node else {
                return Err(self.unexpected("the length of an axis", axis));
            };
            let length = usize::try_from(length).map_err(|_| self.unexpected("a length of at least 0", axis))?;
            self.check_limit("elements of an array", most, length)?;
            n_elements = n_elements.saturating_mul(length);
            self.check_limit("elements of an array", most, n_elements)?;
            lengths.push(length);
        }
        Ok((lengths, n_elements))
    }

    /// A number of NumPy's, which is an array of no axes to pickle and a plain number here.
    ///
    /// All integer types become 64 bits and all floats double precision, exactly.
    fn scalar(&self, dtype: Id, bytes: Id) -> Result<Node<'a>, ReadError> {
        let (element, swapped) = self.dtype(dtype)?;
        let content = self.bytes_of(bytes)?.of_numbers(element, swapped);
        if element == Element::Object {
            return Err(self.unexpected("the dtype of a number", dtype));
        }
        self.check_length(element.size(), content.len())?;
        let content = content.to_cow();
        match (element, element.integer(&content), element.float(&content)) {
            (Element::Bool, Some(value), _) => Ok(Node::Bool(value != 0)),
            (_, Some(value), _) => Ok(Node::Int(value)),
            (_, _, Some(value)) => Ok(Node::Float(value)),
            _ => Err(self.unexpected("the bytes of a number", bytes)),
        }
    }

    /// Whether bytes are big-endian: a dtype's state says the byte order and, of the kinds of elements that are read, nothing else.
    ///
    /// The eight parts are version (3), byte order, subarray, field names, fields, item size, alignment and flags. −1 for size and
    /// alignment means the type's own. Flags are 0 for numbers and 63 for objects. `|` is the byte order of types for which there is none.
    fn dtype_state(&self, element: Element, state: Id) -> Result<bool, ReadError> {
        let state_tuple = self.tuple(state)?;
        let &[version, order, subarray, names, fields, size, alignment, flags] = state_tuple.as_slice() else {
            return Err(self.unexpected("the eight parts of a dtype's state", state));
        };
        for (id, allowed) in [(version, &[3][..]), (size, &[-1]), (alignment, &[-1]), (flags, &[0, 63])] {
            match self.slots[id].node {
                Node::Int(value) if allowed.contains(&value) => {}
                _ => return Err(self.unexpected("the state of a plain dtype", id)),
            }
        }
        for id in [subarray, names, fields] {
            if !matches!(self.slots[id].node, Node::None) {
                return Err(self.unexpected("a dtype without fields", id));
            }
        }
        match self.str(order)? {
            "<" | "|" => Ok(false),
            ">" => Ok(true),
            order => Err(self.element_type(element.name(), order)),
        }
    }

    /// Refuses anything but one particular name in this place.
    ///
    /// The error names what was expected, since the other name may be a foreign one.
    fn expect_global(&self, id: Id, expected: Global) -> Result<(), ReadError> {
        match self.slots[id].node {
            Node::Global(global) if global == expected => Ok(()),
            _ => Err(self.unexpected(expected.dotted(), id)),
        }
    }

    /// What NumPy begins every array with: shape (0,) and the type code b.
    ///
    /// They are placeholders that the state replaces. Protocol 2 may write the code as text.
    fn expect_empty_shape_and_code(&self, shape: Id, code: Id) -> Result<(), ReadError> {
        match self.tuple(shape)?.as_slice() {
            [axis] if matches!(self.slots[*axis].node, Node::Int(0)) => {}
            _ => return Err(self.unexpected("the shape (0,)", shape)),
        }
        match &self.slots[code].node {
            Node::Bytes(bytes) if bytes.len() == 1 && *bytes.to_cow() == *b"b" => Ok(()),
            Node::Str { text: "b", .. } => Ok(()),
            _ => Err(self.unexpected("the type code b", code)),
        }
    }

    /// The kind of elements that a dtype names.
    ///
    /// A dtype whose state has not been given yet is accepted: its code says everything, and its byte order is then the machine's own in
    /// Python, little-endian here.
    fn dtype(&self, id: Id) -> Result<(Element, bool), ReadError> {
        match self.slots[id].node {
            Node::DType(element, swapped) => Ok((element, swapped)),
            _ => Err(self.unexpected("a dtype", id)),
        }
    }

    /// A truth value, which old releases of NumPy write as 0 or 1.
    ///
    /// Other integers are refused, though Python would take them for true.
    fn flag(&self, id: Id) -> Result<bool, ReadError> {
        match self.slots[id].node {
            Node::Bool(flag) => Ok(flag),
            Node::Int(flag @ (0 | 1)) => Ok(flag == 1),
            _ => Err(self.unexpected("a truth value", id)),
        }
    }

    /// Bytes, whichever protocol wrote them.
    ///
    /// Text is not bytes, even where it could stand for them; protocol 2 says so by `_codecs.encode`.
    fn bytes_of(&self, id: Id) -> Result<Bytes<'a>, ReadError> {
        match self.slots[id].node {
            Node::Bytes(bytes) => Ok(bytes),
            _ => Err(self.unexpected("bytes", id)),
        }
    }

    /// A text, borrowed from the pickle.
    pub(super) fn str(&self, id: Id) -> Result<&'a str, ReadError> {
        match self.slots[id].node {
            Node::Str { text, .. } => Ok(text),
            _ => Err(self.unexpected("text", id)),
        }
    }

    /// The items of a tuple that is as short as those of the idioms here.
    ///
    /// Eight is the length of a dtype's state, the longest. The copy is of ids and so at most 64 bytes.
    fn tuple(&self, id: Id) -> Result<Vec<Id>, ReadError> {
        match &self.slots[id].node {
            Node::Tuple(items) if items.len() <= 8 => Ok(items.clone()),
            Node::Tuple(_) => Err(self.unexpected("a tuple of at most 8", id)),
            _ => Err(self.unexpected("a tuple", id)),
        }
    }

    /// The error of elements that are not read. Texts get one of their own, because labels that are texts are a common mistake, and one
    /// that its owner can fix.
    ///
    /// NumPy's codes for text begin with U, for byte strings with S. The byte order is empty where only the code is known.
    fn element_type(&self, code: &str, order: &str) -> ReadError {
        let (code, order) = (cut(code), cut(order));
        self.error(Problem::Array(match code.starts_with(['U', 'S']) {
            true => format!(
                "text (dtype {code:?}) is not read: fit with whole numbers as classes, e.g. by sklearn.preprocessing.LabelEncoder"
            ),
            false => format!("elements of dtype {code:?} in byte order {order:?} are not read"),
        }))
    }

    /// The error of a value that is not what an idiom has in its place.
    ///
    /// It names kinds and never content, except for globals and classes, which are on the list: foreign text does not get into it.
    pub(super) fn unexpected(&self, expected: &'static str, found: Id) -> ReadError {
        self.refused(format!("expected {expected}, found {}", self.kind(found)))
    }

    /// The kind of a node in words, as [`Value::kind`](super::Value::kind) says it for values.
    pub(super) fn kind(&self, id: Id) -> &'static str {
        match &self.slots[id].node {
            Node::None => "None",
            Node::Bool(_) => "a truth value",
            Node::Int(_) => "an integer",
            Node::LongInt(_) => "an integer of more than 64 bits",
            Node::Float(_) => "a float",
            Node::Str { .. } => "text",
            Node::Bytes(_) => "bytes",
            Node::Tuple(_) => "a tuple",
            Node::List(_) => "a list",
            Node::Dict(_) => "a dictionary",
            Node::Global(global) => global.dotted(),
            Node::Opaque(_) => "a value of a foreign class",
            Node::Object { class, .. } => class,
            Node::DType(..) => "a dtype",
            Node::Array(_) => "an array",
        }
    }
}
