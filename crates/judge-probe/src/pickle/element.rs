//! What NumPy's arrays are made of: bytes, and the type that says which numbers they are. They stay slices of the pickle until numbers are
//! asked for.
//!
//! Complex numbers and text have no [`Element`] and are refused while the pickle is read.

use std::borrow::Cow;

/// Bytes of a pickle.
///
/// Copying it is cheap, since it borrows. In protocol 2 the bytes exist only as text, and big-endian numbers are turned round: each call
/// of [`to_cow`](Self::to_cow) does so anew in time proportional to their number.
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a> {
    repr: Repr<'a>,
    /// How many bytes at a time are turned round, where numbers are big-endian; else 1.
    turned: usize,
}

/// The two ways in which a pickle holds bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Repr<'a> {
    /// Bytes as they are, from protocol 3 on.
    Raw(&'a [u8]),
    /// Protocol 2 knows no bytes and writes text of the code points 0 to 255, here `len` of them. It is decoded where it is used, so
    /// that a pickle cannot have a long text decoded over and over.
    Latin1 {
        /// UTF-8 in the pickle: a code point of 128 or more takes two bytes there and is one byte of content.
        text: &'a str,
        /// Number of code points, counted once when the text was read.
        len: usize,
    },
}

impl<'a> Bytes<'a> {
    /// Bytes as they are.
    pub(super) fn new(repr: Repr<'a>) -> Self {
        Self { repr, turned: 1 }
    }

    /// The same as little-endian numbers.
    pub(super) fn of_numbers(self, element: Element, are_big_endian: bool) -> Self {
        Self { turned: if are_big_endian { element.size() } else { 1 }, ..self }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        match self.repr {
            Repr::Raw(bytes) => bytes.len(),
            Repr::Latin1 { len, .. } => len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, of numbers little-endian: borrowed from the pickle, but for protocol 2 and for big-endian numbers made anew.
    pub fn to_cow(&self) -> Cow<'a, [u8]> {
        let bytes = match self.repr {
            Repr::Raw(bytes) => Cow::Borrowed(bytes),
            Repr::Latin1 { text, .. } => Cow::Owned(text.chars().map(|code_point| code_point as u8).collect()),
        };
        if self.turned == 1 {
            return bytes;
        }
        let mut turned = bytes.into_owned();
        turned.chunks_mut(self.turned).for_each(<[u8]>::reverse);
        Cow::Owned(turned)
    }
}

impl PartialEq for Bytes<'_> {
    /// Compares content, not representation: the same bytes from protocols 2 and 5 are equal.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.to_cow() == other.to_cow()
    }
}

/// Type of an array's elements; numbers are little-endian, as [`Bytes::to_cow`] gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Element {
    /// Truth values of one byte.
    Bool,
    /// Integers of 8 bits.
    I8,
    /// Bytes as numbers.
    U8,
    /// Integers of 16 bits without a sign.
    U16,
    /// Integers of 32 bits without a sign.
    U32,
    /// Integers of 64 bits without a sign, read up to 2⁶³ − 1.
    U64,
    /// Integers of 16 bits.
    I16,
    /// Integers of 32 bits.
    I32,
    /// Integers of 64 bits.
    I64,
    /// Floats of 16 bits.
    F16,
    /// Floats of 32 bits.
    F32,
    /// Floats of 64 bits.
    F64,
    /// Any Python values.
    Object,
}

/// In the order of the variants: NumPy's code, as a pickled dtype has it, and name, and the bytes of an element. An object, which is an item
/// of a list, counts 1.
const TYPES: [(Element, &str, &str, usize); 13] = [
    (Element::Bool, "b1", "bool", 1),
    (Element::I8, "i1", "int8", 1),
    (Element::U8, "u1", "uint8", 1),
    (Element::U16, "u2", "uint16", 2),
    (Element::U32, "u4", "uint32", 4),
    (Element::U64, "u8", "uint64", 8),
    (Element::I16, "i2", "int16", 2),
    (Element::I32, "i4", "int32", 4),
    (Element::I64, "i8", "int64", 8),
    (Element::F16, "f2", "float16", 2),
    (Element::F32, "f4", "float32", 4),
    (Element::F64, "f8", "float64", 8),
    (Element::Object, "O8", "object", 1),
];

impl Element {
    /// The type of NumPy's code. Byte order is not part of it; the state of the dtype says it.
    pub(super) fn from_code(code: &str) -> Option<Self> {
        TYPES.iter().find(|(_, known, ..)| *known == code).map(|&(element, ..)| element)
    }

    /// NumPy's name.
    ///
    /// ```
    /// use judge_probe::pickle::Element;
    ///
    /// assert_eq!(Element::F16.name(), "float16");
    /// ```
    pub fn name(self) -> &'static str {
        TYPES[self as usize].2
    }

    /// Bytes of an element.
    pub(super) fn size(self) -> usize {
        TYPES[self as usize].3
    }

    /// The integer in an element's bytes; `None` for floats, objects, bytes of another length, and what 64 bits with a sign do not hold.
    ///
    /// No value is cut. A truth value gives 0 or 1 as NumPy stores it; the byte is not checked.
    pub(super) fn integer(self, bytes: &[u8]) -> Option<i64> {
        match self {
            Self::Bool | Self::U8 => Some(i64::from(*bytes.first()?)),
            Self::I8 => Some(i64::from(i8::from_le_bytes(bytes.try_into().ok()?))),
            Self::U16 => Some(i64::from(u16::from_le_bytes(bytes.try_into().ok()?))),
            Self::U32 => Some(i64::from(u32::from_le_bytes(bytes.try_into().ok()?))),
            Self::U64 => i64::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok(),
            Self::I16 => Some(i64::from(i16::from_le_bytes(bytes.try_into().ok()?))),
            Self::I32 => Some(i64::from(i32::from_le_bytes(bytes.try_into().ok()?))),
            Self::I64 => Some(i64::from_le_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }

    /// The float in an element's bytes; `None` for other types, and bytes of another length.
    ///
    /// Widening to double precision is exact. Integers are not converted: a caller that accepts both asks for both.
    pub(super) fn float(self, bytes: &[u8]) -> Option<f64> {
        match self {
            Self::F16 => Some(widen_f16(u16::from_le_bytes(bytes.try_into().ok()?))),
            Self::F32 => Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?))),
            Self::F64 => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }
}

/// IEEE 754 binary16, which every binary64 can hold.
///
/// Sign (1 bit), exponent e (5 bits, bias 15), fraction f (10 bits): (1024 + f) · 2^(e − 25) for a normal number, f · 2^−24 for a
/// subnormal one, which has e = 0. e = 31 marks infinity (f = 0) and NaN, whose payload is dropped.
fn widen_f16(bits: u16) -> f64 {
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match (bits >> 10) & 0x1f {
        0 => fraction * 2f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::widen_f16;

    #[test]
    fn halves_are_widened_exactly() {
        // numpy.float16 of 1, -2, 65504, 2^-24, 2^-14, 0.1, -0, inf.
        let cases = [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 2f64.powi(-24)),
            (0x0400, 2f64.powi(-14)),
            (0x2e66, 0.0999755859375),
            (0x8000, -0.0),
            (0x7c00, f64::INFINITY),
        ];
        for (bits, value) in cases {
            assert_eq!(widen_f16(bits).to_bits(), f64::to_bits(value), "{bits:04x}");
        }
        assert!(widen_f16(0x7c01).is_nan());
    }
}
