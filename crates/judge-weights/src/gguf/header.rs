//! The header of a GGUF file: keys with values, and the table of tensors.
//!
//! All numbers are little-endian; a text is its length (u64) and its bytes in UTF-8:
//!
//! ```text
//!  "GGUF" | version u32 (2, 3) | tensors u64 | keys u64
//!  keys times     text key | u32 type | value
//!  tensors times  text name | u32 dimensions | u64 each, fastest first | u32 type | u64 offset
//!  padding to the next multiple of general.alignment (32)
//!  data: offsets count from here, each a multiple of the alignment
//! ```
//!
//! [`read`] is a pure function of a file's bytes. It keeps what settings of a model can be (numbers,
//! short texts and short lists of numbers); of the rest, such as the vocabulary, it keeps where it lies
//! ([`Header::long_text`], [`Header::texts`], [`Header::all_numbers`]). It
//! gives every tensor with a range of bytes that the file has. A file may be damaged in any way, so
//! nothing is allocated by a count that it states, and no arithmetic on its numbers can overflow.

use std::collections::BTreeMap;
use std::ops::Range;

use super::kind::Kind;
use super::problem::GgufProblem;

/// The alignment of data in bytes, unless `general.alignment` says otherwise.
const ALIGNMENT: u64 = 32;

/// Lists within lists that are passed over, at most; deeper ones are taken for damage. It bounds
/// the recursion of `Reader::skip`.
const DEPTH: usize = 4;

/// Dimensions of a tensor, at most: `GGML_MAX_DIMS` of llama.cpp.
const DIMENSIONS: u32 = 4;

/// The types of values whose size is fixed: their number and the bytes of a value. In this order
/// u8, i8, u16, i16, u32, i32, f32, bool, u64, i64, f64.
const SIZES: [(u32, usize); 11] =
    [(0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (7, 1), (10, 8), (11, 8), (12, 8)];
/// Elements of a list that is kept: as many as a model may have blocks.
const LONGEST_LIST: usize = 1 << 12;
/// Bytes of a text that is kept.
const LONGEST_TEXT: usize = 256;
/// The number of the type of texts.
const TEXT: u32 = 8;
/// The number of the type of lists: type of the elements (u32), how many (u64), the elements.
const LIST: u32 = 9;

/// What is read of a header.
pub struct Header {
    /// Keys with values, as far as they are kept.
    pub values: BTreeMap<String, Stated>,
    /// Where the other values lie in the file: their type, and their bytes.
    others: BTreeMap<String, (u32, Range<usize>)>,
    /// The tensors by their names in the file.
    pub tensors: BTreeMap<String, Entry>,
}

/// A value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Stated {
    /// Numbers of any type, a single one or a list; a truth is 0 or 1. Integers beyond 2^53 are rounded.
    Numbers(Vec<f64>),
    /// A short text.
    Text(String),
}

impl Header {
    /// The text of a key; empty if it has none.
    pub fn text(&self, key: &str) -> &str {
        match self.values.get(key) {
            Some(Stated::Text(text)) => text,
            _ => "",
        }
    }

    /// The number of a key, or its list of numbers; `None` if it has neither.
    pub fn numbers(&self, key: &str) -> Option<&[f64]> {
        match self.values.get(key) {
            Some(Stated::Numbers(numbers)) => Some(numbers),
            _ => None,
        }
    }

    /// The numbers of a setting, at least one: a single one, or one for each block. `None` if the file does not state it.
    ///
    /// # Errors
    /// [`GgufProblem::Value`] for a key that has an empty list or no numbers. Such a setting is not taken for one that is not stated.
    pub fn setting(&self, key: &str) -> Result<Option<&[f64]>, GgufProblem> {
        match self.numbers(key) {
            Some(numbers) if !numbers.is_empty() => Ok(Some(numbers)),
            _ => self
                .found(key)
                .map_or(Ok(None), |found| Err(GgufProblem::value(key, found, "a number, or one for each block"))),
        }
    }

    /// The text of a setting; empty if the file does not state it.
    ///
    /// # Errors
    /// [`GgufProblem::Value`] for a key that has something else.
    pub fn setting_text(&self, key: &str) -> Result<&str, GgufProblem> {
        match (self.values.get(key), self.found(key)) {
            (Some(Stated::Text(text)), _) => Ok(text),
            (_, None) => Ok(""),
            (_, Some(found)) => Err(GgufProblem::value(key, found, format!("a text of up to {LONGEST_TEXT} bytes"))),
        }
    }

    /// What a key has, for messages; `None` if the file does not have the key.
    fn found(&self, key: &str) -> Option<String> {
        match (self.values.get(key), self.others.get(key)) {
            (Some(Stated::Numbers(numbers)), _) if numbers.is_empty() => Some("an empty list".to_owned()),
            (Some(Stated::Numbers(numbers)), _) => Some(listed(numbers)),
            (Some(Stated::Text(text)), _) => Some(format!("the text {text:?}")),
            (None, Some((TEXT, _))) => Some("a long text".to_owned()),
            (None, Some(_)) => Some("a list of texts, or a long one".to_owned()),
            (None, None) => None,
        }
    }

    /// The whole number of a key; `None` if it has no single one.
    pub fn whole(&self, key: &str) -> Option<u64> {
        match self.numbers(key) {
            Some(&[number]) if number >= 0.0 && number.fract() == 0.0 && number < 2_f64.powi(53) => Some(number as u64),
            _ => None,
        }
    }

    /// The text of a key, however long; `None` if it has none that is UTF-8. `bytes` is the file that the
    /// header was read from.
    pub fn long_text<'a>(&'a self, key: &str, bytes: &'a [u8]) -> Option<&'a str> {
        match (self.values.get(key), self.others.get(key)) {
            (Some(Stated::Text(text)), _) => Some(text),
            (None, Some((TEXT, range))) => str::from_utf8(bytes.get(range.start + 8..range.end)?).ok(),
            _ => None,
        }
    }

    /// The list of texts of a key; `None` if it has none, or one with a text that is not UTF-8. `bytes` is
    /// the file that the header was read from.
    pub fn texts<'a>(&self, key: &str, bytes: &'a [u8]) -> Option<Vec<&'a str>> {
        let (LIST, range) = self.others.get(key)? else { return None };
        let mut reader = Reader { bytes: bytes.get(..range.end)?, at: range.start };
        if reader.u32(key).ok()? != TEXT {
            return None;
        }
        // Not allocated by the count, which the reader has checked by passing over the list.
        let count = reader.u64(key).ok()?;
        (0..count).map(|_| reader.str(key).ok()).collect()
    }

    /// The list of numbers of a key, however long; `None` if it has none. `bytes` is the file that the
    /// header was read from.
    pub fn all_numbers(&self, key: &str, bytes: &[u8]) -> Option<Vec<f64>> {
        if let Some(numbers) = self.numbers(key) {
            return Some(numbers.to_vec());
        }
        let (LIST, range) = self.others.get(key)? else { return None };
        let mut reader = Reader { bytes: bytes.get(..range.end)?, at: range.start };
        let kind = reader.u32(key).ok()?;
        let size = size(kind)?;
        reader.u64(key).ok()?;
        Some(reader.bytes[reader.at..].chunks_exact(size).map(|bytes| number(kind, bytes)).collect())
    }

    /// The first key that `wanted` accepts.
    pub fn find_key(&self, wanted: impl Fn(&str) -> bool) -> Option<&str> {
        self.values.keys().chain(self.others.keys()).map(String::as_str).find(|key| wanted(key))
    }
}

/// A tensor of the table.
#[derive(Clone, Debug)]
pub struct Entry {
    /// How its numbers are stored.
    pub kind: Kind,
    /// Its dimensions, the slowest first, as in the shapes of all else. There are 1 to 4, and the
    /// last is whole blocks.
    pub shape: Vec<usize>,
    /// Its bytes in the file, which the file has.
    pub range: Range<usize>,
    /// Which of the parts of a split file it is in; 0 in a file of one part.
    pub part: usize,
}

/// Reads the header of a file that is in memory as a whole, or mapped. Nothing is allocated by a
/// count that the file states.
///
/// # Errors
/// The first [`GgufProblem`]. A tensor of a type that is not read makes the whole file unreadable.
pub fn read(bytes: &[u8]) -> Result<Header, GgufProblem> {
    let mut reader = Reader { bytes, at: 0 };
    let magic: [u8; 4] = reader.array("its mark")?;
    if &magic != b"GGUF" {
        return Err(GgufProblem::Header(format!("it begins with {magic:?}, expected \"GGUF\"")));
    }
    let version = reader.u32("its version")?;
    if !matches!(version, 2 | 3) {
        return Err(GgufProblem::Header(format!("version {version}, expected 2 or 3 (little-endian)")));
    }
    let tensors = reader.u64("its number of tensors")?;
    let keys = reader.u64("its number of keys")?;
    let (mut values, mut others) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..keys {
        let key = reader.text("a key")?;
        // Readers differ in which of the two they take.
        if values.contains_key(&key) || others.contains_key(&key) {
            return Err(GgufProblem::Header(format!("the key {key} appears twice")));
        }
        let kind = reader.u32(&key)?;
        let start = reader.at;
        match reader.value(&key, kind)? {
            Some(value) => drop(values.insert(key, value)),
            None => drop(others.insert(key, (kind, start..reader.at))),
        }
    }
    let mut header = Header { values, others, tensors: BTreeMap::new() };
    let alignment = match header.numbers("general.alignment") {
        None => ALIGNMENT,
        // A number that is none of these is refused too.
        Some(&[stated]) if stated > 0.0 && stated % 8.0 == 0.0 && stated <= f64::from(u32::MAX) => stated as u64,
        Some(found) => {
            return Err(GgufProblem::value("general.alignment", listed(found), "a multiple of 8"));
        }
    };
    let mut table = Vec::new();
    for _ in 0..tensors {
        let name = reader.text("a tensor's name")?;
        let count = reader.u32(&name)?;
        let mut dimensions = Vec::new();
        for _ in 0..count.min(DIMENSIONS + 1) {
            dimensions.push(reader.u64(&name)?);
        }
        let number = reader.u32(&name)?;
        let offset = reader.u64(&name)?;
        let unsupported = |found: String| {
            GgufProblem::Header(format!(
                "tensor {name}: type {found} is not supported, only F64, F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, \
                IQ1_S to IQ4_XS, TQ1_0, TQ2_0, MXFP4 and NVFP4: quantise the model again, for example as Q4_K_M"
            ))
        };
        let kind = Kind::of(number).map_err(unsupported)?;
        table.push((name, dimensions, kind, offset));
    }
    let data = (reader.at as u64).next_multiple_of(alignment);
    for (name, dimensions, kind, offset) in table {
        if !offset.is_multiple_of(alignment) {
            return Err(GgufProblem::Header(format!(
                "tensor {name} begins at byte {offset} of the data, expected a multiple of {alignment}"
            )));
        }
        let entry = locate(&name, &dimensions, kind, data.checked_add(offset), bytes.len())?;
        if header.tensors.insert(name.clone(), entry).is_some() {
            return Err(GgufProblem::Twice { tensor: name });
        }
    }
    Ok(header)
}

/// Numbers for a message, as f32, with commas between.
pub fn listed(numbers: &[f64]) -> String {
    numbers.iter().map(|&number| (number as f32).to_string()).collect::<Vec<_>>().join(", ")
}

/// Where a tensor's bytes are, if the file, which has `found` bytes, has them all. `start` is where
/// they begin in the file, `None` if that overflows. `dimensions` are in the order of the file.
fn locate(name: &str, dimensions: &[u64], kind: Kind, start: Option<u64>, found: usize) -> Result<Entry, GgufProblem> {
    let block = kind.elements();
    let shape: Option<Vec<usize>> = dimensions.iter().rev().map(|&size| usize::try_from(size).ok()).collect();
    let is_whole = dimensions.first().is_some_and(|width| width.is_multiple_of(block as u64));
    let Some(shape) = shape.filter(|shape| is_whole && shape.len() <= DIMENSIONS as usize) else {
        return Err(GgufProblem::Dimensions { tensor: name.to_owned(), found: dimensions.to_vec(), block });
    };
    let count = shape.iter().try_fold(1_usize, |count, &size| count.checked_mul(size));
    let length = count.and_then(|count| (count / block).checked_mul(kind.bytes()));
    let start = start.and_then(|start| usize::try_from(start).ok());
    let range = start.and_then(|start| Some(start..start.checked_add(length?)?));
    match range {
        Some(range) if range.end <= found => Ok(Entry { kind, shape, range, part: 0 }),
        range => {
            let expected = range.map_or(u64::MAX, |range| range.end as u64);
            Err(GgufProblem::Truncated { what: format!("tensor {name}"), expected, found: found as u64 })
        }
    }
}

/// Reads a file from its beginning. In all functions `what` or `key` says what is being read, for
/// the error of a file that ends there.
struct Reader<'a> {
    /// The whole file.
    bytes: &'a [u8],
    /// Bytes that were read.
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next `count` bytes.
    fn take(&mut self, what: &str, count: usize) -> Result<&'a [u8], GgufProblem> {
        let end = self.at.saturating_add(count);
        let Some(taken) = self.bytes.get(self.at..end) else {
            let found = self.bytes.len() as u64;
            return Err(GgufProblem::Truncated { what: what.to_owned(), expected: end as u64, found });
        };
        self.at = end;
        Ok(taken)
    }

    /// The next `N` bytes.
    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], GgufProblem> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(what, N)?);
        Ok(array)
    }

    /// The next 4 bytes as a number.
    fn u32(&mut self, what: &str) -> Result<u32, GgufProblem> {
        self.array(what).map(u32::from_le_bytes)
    }

    /// The next 8 bytes as a number.
    fn u64(&mut self, what: &str) -> Result<u64, GgufProblem> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A text: its length, then so many bytes of UTF-8.
    fn text(&mut self, what: &str) -> Result<String, GgufProblem> {
        self.str(what).map(str::to_owned)
    }

    /// The same, borrowed from the file.
    fn str(&mut self, what: &str) -> Result<&'a str, GgufProblem> {
        let length = self.u64(what)?;
        let offset = self.at;
        let bytes = self.take(what, usize::try_from(length).unwrap_or(usize::MAX))?;
        str::from_utf8(bytes).map_err(|_| GgufProblem::Header(format!("the text at byte {offset} is not UTF-8")))
    }

    /// A value of type `kind`, if it is one that is kept; any other is passed over.
    fn value(&mut self, key: &str, kind: u32) -> Result<Option<Stated>, GgufProblem> {
        let start = self.at;
        self.skip(key, kind, DEPTH)?;
        let bytes = &self.bytes[start..self.at];
        let numbers = |kind: u32, bytes: &[u8]| {
            let each = bytes.chunks_exact(size(kind)?);
            (each.len() <= LONGEST_LIST).then(|| Stated::Numbers(each.map(|bytes| number(kind, bytes)).collect()))
        };
        Ok(match kind {
            TEXT => {
                let text = Some(&bytes[8..]).filter(|text| text.len() <= LONGEST_TEXT);
                text.and_then(|text| str::from_utf8(text).ok()).map(|text| Stated::Text(text.to_owned()))
            }
            LIST => numbers(Self { bytes, at: 0 }.u32(key)?, &bytes[12..]),
            kind => numbers(kind, bytes),
        })
    }

    /// Passes over a value of type `kind`, within which lists may be `depth` deep.
    fn skip(&mut self, key: &str, kind: u32, depth: usize) -> Result<(), GgufProblem> {
        if let Some(size) = size(kind) {
            return self.take(key, size).map(|_| ());
        }
        match kind {
            TEXT => {
                let length = self.u64(key)?;
                self.take(key, usize::try_from(length).unwrap_or(usize::MAX)).map(|_| ())
            }
            LIST if depth > 0 => {
                let kind = self.u32(key)?;
                let count = self.u64(key)?;
                match size(kind) {
                    Some(size) => {
                        let bytes = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
                        self.take(key, bytes.unwrap_or(usize::MAX)).map(|_| ())
                    }
                    // Each of these takes bytes, so that the file's end ends the loop.
                    None => (0..count).try_for_each(|_| self.skip(key, kind, depth - 1)),
                }
            }
            // A type that the format does not have, or lists within too many lists.
            _ => Err(GgufProblem::Header(format!("the value of {key} has the unknown type {kind}"))),
        }
    }
}

/// Bytes of a value of a type whose size is fixed.
fn size(kind: u32) -> Option<usize> {
    SIZES.iter().find(|(known, _)| *known == kind).map(|(_, size)| *size)
}

/// A number of a type of [`SIZES`], from as many bytes as it has.
fn number(kind: u32, bytes: &[u8]) -> f64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(all);
    match kind {
        1 => f64::from(bits as i8),
        3 => f64::from(bits as i16),
        5 => f64::from(bits as i32),
        6 => f64::from(f32::from_bits(bits as u32)),
        11 => bits as i64 as f64,
        12 => f64::from_bits(bits),
        _ => bits as f64,
    }
}

#[cfg(test)]
mod tests;
