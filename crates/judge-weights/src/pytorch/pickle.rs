//! The pickle of a dictionary of tensors, read without running anything.
//!
//! A pickle is a program for a machine with a stack. This one knows the operations that torch.save writes for a dictionary
//! of tensors, and a closed list of names that it may ask for ([`global`]); everything else is an error. Values
//! are plain data that refer to one another by number, so no pickle makes them deep, and each operation makes
//! at most one.

use std::collections::HashSet;

use safetensors::Dtype;

/// Axes of a tensor, at most, so that what a pickle says twice takes little memory.
const MOST_AXES: usize = 8;

/// A tensor as the pickle describes it: a view of a storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct View<'a> {
    /// Its name in the dictionary.
    pub(super) name: &'a str,
    /// The type of the storage's numbers.
    pub(super) dtype: Dtype,
    /// The storage's name.
    pub(super) key: &'a str,
    /// How many numbers the storage has.
    pub(super) numbers: usize,
    /// The first of them that is the tensor's.
    pub(super) offset: usize,
    /// Its shape.
    pub(super) shape: Vec<usize>,
    /// How far apart neighbours along each axis are, in numbers.
    pub(super) strides: Vec<usize>,
}

/// What a pickle may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Global {
    /// A dictionary.
    Dict,
    /// A tensor.
    Tensor,
    /// A tensor that is trained.
    Parameter,
    /// The type of a storage.
    Storage(Dtype),
}

/// The closed list.
fn global(module: &str, name: &str) -> Result<Global, String> {
    Ok(match (module, name) {
        ("collections", "OrderedDict") => Global::Dict,
        ("torch._utils", "_rebuild_tensor_v2") => Global::Tensor,
        ("torch._utils", "_rebuild_parameter") => Global::Parameter,
        ("torch", "DoubleStorage") => Global::Storage(Dtype::F64),
        ("torch", "FloatStorage") => Global::Storage(Dtype::F32),
        ("torch", "HalfStorage") => Global::Storage(Dtype::F16),
        ("torch", "BFloat16Storage") => Global::Storage(Dtype::BF16),
        ("torch", "LongStorage") => Global::Storage(Dtype::I64),
        ("torch", "IntStorage") => Global::Storage(Dtype::I32),
        ("torch", "ShortStorage") => Global::Storage(Dtype::I16),
        ("torch", "CharStorage") => Global::Storage(Dtype::I8),
        ("torch", "ByteStorage") => Global::Storage(Dtype::U8),
        ("torch", "BoolStorage") => Global::Storage(Dtype::BOOL),
        _ => {
            return Err(format!(
                "the pickle asks for {module}.{name}, which is not read: only dictionaries of plain tensors are. If you trust the file, \
                load it with torch.load and save its state_dict() again"
            ));
        }
    })
}

/// A value. Those with parts are numbers of the machine's lists.
#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    /// What no tensor is made of: nothing, truth.
    Other,
    Integer(i64),
    Text(&'a str),
    Global(Global),
    Tuple(usize),
    Dict(usize),
    Storage(usize),
    Tensor(usize),
}

/// A storage: its type, its name, and its numbers.
#[derive(Clone, Copy)]
struct Storage<'a> {
    dtype: Dtype,
    key: &'a str,
    numbers: usize,
}

/// The machine.
#[derive(Default)]
struct Machine<'a> {
    stack: Vec<Value<'a>>,
    /// Heights of the stack that were marked.
    marks: Vec<usize>,
    memo: Vec<Option<Value<'a>>>,
    tuples: Vec<Vec<Value<'a>>>,
    dicts: Vec<Vec<(Value<'a>, Value<'a>)>>,
    storages: Vec<Storage<'a>>,
    tensors: Vec<View<'a>>,
}

/// The tensors of a pickle, in the order of its dictionary.
///
/// # Errors
/// What is wrong with anything else than a dictionary of tensors.
pub(super) fn read(pickle: &[u8]) -> Result<Vec<View<'_>>, String> {
    let mut machine = Machine::default();
    let mut input = Input { bytes: pickle, at: 0 };
    loop {
        let at = input.at;
        let code = input.byte()?;
        if code == b'.' {
            break;
        }
        machine.step(code, &mut input).map_err(|fault| match fault {
            Fault::Whole(problem) => problem,
            Fault::Here(what) => damaged(what, input.at),
            Fault::Unknown => {
                format!("the pickle has the operation {code:#04x} at byte {at}, which no dictionary of tensors needs")
            }
        })?;
    }
    let here = |what: &str| damaged(what, input.at);
    let (&[Value::Dict(dict)], []) = (&machine.stack[..], &machine.marks[..]) else {
        return Err(here("the value is no dictionary"));
    };
    let mut names = HashSet::new();
    let mut views = Vec::with_capacity(machine.dicts[dict].len());
    for (key, value) in &machine.dicts[dict] {
        let Value::Text(name) = *key else { return Err(here("a key is no text")) };
        if !names.insert(name) {
            return Err(format!("tensor {name}: it appears twice"));
        }
        match value {
            Value::Tensor(tensor) => views.push(View { name, ..machine.tensors[*tensor].clone() }),
            _ => {
                return Err(format!(
                    "{name:?} is no tensor: only dictionaries from names to tensors are read; save the model's state_dict() alone"
                ));
            }
        }
    }
    Ok(views)
}

/// What is wrong with a pickle that is damaged, or not what torch.save writes for tensors.
fn damaged(what: &str, at: usize) -> String {
    format!("the pickle is damaged or no dictionary of tensors: {what} before byte {at}")
}

/// Why a step cannot be taken.
enum Fault {
    /// What is wrong, as a whole.
    Whole(String),
    /// What is wrong here.
    Here(&'static str),
    /// The operation is not known.
    Unknown,
}

impl From<String> for Fault {
    fn from(problem: String) -> Self {
        Self::Whole(problem)
    }
}

impl<'a> Machine<'a> {
    /// Runs one operation.
    fn step(&mut self, code: u8, input: &mut Input<'a>) -> Result<(), Fault> {
        match code {
            // PROTO, FRAME: what follows them says nothing about values.
            0x80 => {
                input.byte()?;
            }
            0x95 => {
                input.take(8)?;
            }
            b'(' => self.marks.push(self.stack.len()),
            b'N' | 0x88 | 0x89 => self.stack.push(Value::Other),
            // An integer of 32 bits with a sign.
            b'J' => self.stack.push(Value::Integer(i64::from(input.unsigned(4)? as i32))),
            b'K' => self.stack.push(Value::Integer(i64::from(input.byte()?))),
            b'M' => self.stack.push(Value::Integer(input.unsigned(2)? as i64)),
            // LONG1: little-endian with a sign. More than eight bytes count nothing that lies in a file.
            0x8a => {
                let length = usize::from(input.byte()?);
                let bytes = input.take(length)?;
                if length > 8 {
                    return Err(Fault::Here("an integer of more than 64 bits"));
                }
                let filler = if bytes.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
                let mut eight = [filler; 8];
                eight[..length].copy_from_slice(bytes);
                self.stack.push(Value::Integer(i64::from_le_bytes(eight)));
            }
            b'X' | 0x8c => {
                let length = input.unsigned(if code == b'X' { 4 } else { 1 })?;
                let text = std::str::from_utf8(input.take(length as usize)?);
                self.stack.push(Value::Text(text.map_err(|_| Fault::Here("a text that is not UTF-8"))?));
            }
            b'c' => {
                let (module, name) = (input.line()?, input.line()?);
                self.stack.push(Value::Global(global(module, name)?));
            }
            0x93 => {
                let (name, module) = (self.pop()?, self.pop()?);
                let (Value::Text(module), Value::Text(name)) = (module, name) else {
                    return Err(Fault::Here("a name that is no text"));
                };
                self.stack.push(Value::Global(global(module, name)?));
            }
            // BINPUT, LONG_BINPUT, MEMOIZE, BINGET, LONG_BINGET.
            b'q' => self.memoise(usize::from(input.byte()?))?,
            b'r' => self.memoise(input.unsigned(4)? as usize)?,
            0x94 => self.memoise(self.memo.len())?,
            b'h' => self.recall(usize::from(input.byte()?))?,
            b'j' => self.recall(input.unsigned(4)? as usize)?,
            b')' => self.push_tuple(Vec::new()),
            0x85..=0x87 => {
                let from = self.stack.len().checked_sub(usize::from(code - 0x84));
                let from = from.filter(|&from| from >= self.floor()).ok_or(Fault::Here("too few values"))?;
                let parts = self.stack.split_off(from);
                self.push_tuple(parts);
            }
            b't' => {
                let parts = self.since_mark()?;
                self.push_tuple(parts);
            }
            b'}' => {
                self.dicts.push(Vec::new());
                self.stack.push(Value::Dict(self.dicts.len() - 1));
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.top_dict()?.push((key, value));
            }
            b'u' => {
                let parts = self.since_mark()?;
                let (pairs, rest) = parts.as_chunks::<2>();
                if !rest.is_empty() {
                    return Err(Fault::Here("a key without a value"));
                }
                self.top_dict()?.extend(pairs.iter().map(|[key, value]| (*key, *value)));
            }
            b'Q' => {
                let value = self.pop()?;
                let storage = self.storage(value)?;
                self.storages.push(storage);
                self.stack.push(Value::Storage(self.storages.len() - 1));
            }
            b'R' => {
                let (arguments, callee) = (self.pop()?, self.pop()?);
                let made = self.call(callee, arguments)?;
                self.stack.push(made);
            }
            // BUILD: what PyTorch hangs on a dictionary, its `_metadata`, says nothing about tensors.
            b'b' => {
                self.pop()?;
                self.top_dict()?;
            }
            _ => return Err(Fault::Unknown),
        }
        Ok(())
    }

    /// Below what height values belong to something that is not finished.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn pop(&mut self) -> Result<Value<'a>, Fault> {
        let has_one = self.stack.len() > self.floor();
        has_one.then(|| self.stack.pop()).flatten().ok_or(Fault::Here("too few values"))
    }

    fn since_mark(&mut self) -> Result<Vec<Value<'a>>, Fault> {
        let mark = self.marks.pop().ok_or(Fault::Here("a mark is missing"))?;
        Ok(self.stack.split_off(mark.min(self.stack.len())))
    }

    fn push_tuple(&mut self, parts: Vec<Value<'a>>) {
        self.tuples.push(parts);
        self.stack.push(Value::Tuple(self.tuples.len() - 1));
    }

    fn top_dict(&mut self) -> Result<&mut Vec<(Value<'a>, Value<'a>)>, Fault> {
        match self.stack.last() {
            Some(&Value::Dict(dict)) if self.stack.len() > self.floor() => Ok(&mut self.dicts[dict]),
            _ => Err(Fault::Here("something else than a dictionary is filled")),
        }
    }

    /// Numbers of the memo are given one after another.
    fn memoise(&mut self, number: usize) -> Result<(), Fault> {
        let value = *self.stack.last().ok_or(Fault::Here("too few values"))?;
        if number > self.memo.len() {
            return Err(Fault::Here("the memo has gaps"));
        }
        if number == self.memo.len() {
            self.memo.push(None);
        }
        self.memo[number] = Some(value);
        Ok(())
    }

    fn recall(&mut self, number: usize) -> Result<(), Fault> {
        let value = self.memo.get(number).copied().flatten().ok_or(Fault::Here("the memo has no such value"))?;
        self.stack.push(value);
        Ok(())
    }

    /// The storage that `("storage", type, key, device, numbers)` names.
    fn storage(&self, value: Value<'a>) -> Result<Storage<'a>, Fault> {
        match self.parts(value)? {
            &[
                Value::Text("storage"),
                Value::Global(Global::Storage(dtype)),
                Value::Text(key),
                Value::Text(_),
                numbers,
            ] => Ok(Storage { dtype, key, numbers: count(numbers)? }),
            _ => Err(Fault::Here("a storage is described in another way")),
        }
    }

    /// What a call makes.
    fn call(&mut self, callee: Value<'a>, arguments: Value<'a>) -> Result<Value<'a>, Fault> {
        let Value::Global(callee) = callee else { return Err(Fault::Here("something is called that is no function")) };
        match (callee, self.parts(arguments)?) {
            (Global::Dict, []) => {
                self.dicts.push(Vec::new());
                Ok(Value::Dict(self.dicts.len() - 1))
            }
            // A seventh says that the numbers are to be read with another sign, or conjugated.
            (Global::Tensor, &[Value::Storage(storage), offset, shape, strides, _, _]) => {
                let Storage { dtype, key, numbers } = self.storages[storage];
                let counts = |value| match self.parts(value)? {
                    parts if parts.len() > MOST_AXES => Err(Fault::Here("a tensor with too many axes")),
                    parts => parts.iter().map(|&value| count(value)).collect::<Result<_, _>>(),
                };
                let (shape, strides) = (counts(shape)?, counts(strides)?);
                let name = "";
                self.tensors.push(View { name, dtype, key, numbers, offset: count(offset)?, shape, strides });
                Ok(Value::Tensor(self.tensors.len() - 1))
            }
            (Global::Parameter, &[tensor @ Value::Tensor(_), _, _]) => Ok(tensor),
            _ => Err(Fault::Here("a call with other arguments than torch.save writes")),
        }
    }

    fn parts(&self, value: Value<'a>) -> Result<&[Value<'a>], Fault> {
        match value {
            Value::Tuple(tuple) => Ok(&self.tuples[tuple]),
            _ => Err(Fault::Here("something else than a tuple")),
        }
    }
}

fn count(value: Value<'_>) -> Result<usize, Fault> {
    match value {
        Value::Integer(value) => usize::try_from(value).map_err(|_| Fault::Here("a negative number")),
        _ => Err(Fault::Here("something else than an integer")),
    }
}

/// The bytes of a pickle, from front to back.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| damaged("it is cut off", self.bytes.len()))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.take(1).map(|bytes| bytes[0])
    }

    /// An integer of so many bytes, at most four.
    fn unsigned(&mut self, length: usize) -> Result<u64, String> {
        Ok(self.take(length)?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    fn line(&mut self) -> Result<&'a str, String> {
        let end = self.bytes[self.at..].iter().position(|&byte| byte == b'\n');
        let end = end.ok_or_else(|| damaged("it is cut off", self.bytes.len()))?;
        let line = std::str::from_utf8(self.take(end)?);
        self.at += 1;
        line.map_err(|_| damaged("a name that is not UTF-8", self.at))
    }
}
