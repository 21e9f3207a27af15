//! Digests of sets of rows that need no order: those of parts add up, in whatever order rows came and however they were cut.
//!
//! ```text
//! row ── RowHasher: names, kinds and lengths of its values ──► 256 bits ──► SetDigest: their sum modulo 2^256
//! ```
//!
//! A sum sees a row that is missing, or counted twice or three times; the exclusive or of all hashes would not see the latter. It
//! is a proof against accidents: whoever wants to can make rows whose hashes sum to what they like.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;
use std::str::FromStr;

use judge_core::ItemId;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Error;

/// Makes the hash of one row of its values, BLAKE3 of 256 bits.
///
/// Each value goes in with its name, its kind and its length, so no two rows run together: neither `("ab", "c")` and `("a", "bc")`,
/// nor a missing text and an empty one. Values count in the order in which they are given.
///
/// ```
/// use judge_data::{RowHasher, SetDigest};
///
/// let hash = |text: &str| RowHasher::new("example").text("prompt", text).finish();
/// let mut rows = SetDigest::default();
/// rows.add(hash("one"));
/// rows.add(hash("two"));
/// let mut in_other_order = SetDigest::default();
/// in_other_order.add(hash("two"));
/// assert_ne!(in_other_order, rows);
/// in_other_order.add(hash("one"));
/// assert_eq!(in_other_order, rows);
/// ```
#[derive(Clone, Debug)]
pub struct RowHasher(blake3::Hasher);

impl RowHasher {
    /// A row of the given kind; rows of two kinds never have the same hash.
    #[must_use]
    pub fn new(kind: &str) -> Self {
        Self(blake3::Hasher::new()).bytes_of("row", b'k', kind.as_bytes())
    }

    /// A value that is not there.
    #[must_use]
    pub fn null(self, name: &str) -> Self {
        self.bytes_of(name, b'0', &[])
    }

    /// A text.
    #[must_use]
    pub fn text(self, name: &str, text: &str) -> Self {
        self.bytes_of(name, b't', text.as_bytes())
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(self, name: &str, bytes: &[u8]) -> Self {
        self.bytes_of(name, b'b', bytes)
    }

    /// A whole number.
    #[must_use]
    pub fn integer(self, name: &str, number: i128) -> Self {
        self.bytes_of(name, b'i', &number.to_le_bytes())
    }

    /// An id. The number 1 and the text "1" are two.
    #[must_use]
    pub fn id(self, name: &str, id: &ItemId) -> Self {
        match id {
            ItemId::Integer(number) => self.integer(name, *number),
            ItemId::Text(text) => self.text(name, text),
        }
    }

    /// Numbers, by their bits: 0 and -0 are two, and so are NaNs of different bits.
    #[must_use]
    pub fn numbers(mut self, name: &str, numbers: &[f64]) -> Self {
        self.head(name, b'f', 8 * numbers.len());
        numbers.iter().for_each(|number| {
            self.0.update(&number.to_bits().to_le_bytes());
        });
        self
    }

    /// The hash of all values so far.
    #[must_use]
    pub fn finish(self) -> RowHash {
        RowHash(*self.0.finalize().as_bytes())
    }

    fn bytes_of(mut self, name: &str, kind: u8, bytes: &[u8]) -> Self {
        self.head(name, kind, bytes.len());
        self.0.update(bytes);
        self
    }

    fn head(&mut self, name: &str, kind: u8, len: usize) {
        self.0.update(&(name.len() as u64).to_le_bytes());
        self.0.update(name.as_bytes());
        self.0.update(&[kind]);
        self.0.update(&(len as u64).to_le_bytes());
    }
}

/// The hash of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowHash(pub [u8; 32]);

impl RowHash {
    /// That of an id alone.
    #[cfg(feature = "arrow")]
    pub(crate) fn of_id(id: &ItemId) -> Self {
        RowHasher::new("id").id("id", id).finish()
    }

    /// The first 16 bytes, which tell rows apart where a set has less than some 10^15 of them.
    #[must_use]
    pub fn short(&self) -> [u8; 16] {
        std::array::from_fn(|at| self.0[at])
    }
}

/// The sum of the hashes of a set of rows modulo 2^256, in which a row counts as often as it was added. Of no rows it is 0.
///
/// In files and messages it is 64 hexadecimal digits, the highest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SetDigest {
    /// 64 bits each, the lowest first.
    limbs: [u64; 4],
}

impl SetDigest {
    /// Adds a row. Its hash counts as a number whose lowest byte comes first.
    pub fn add(&mut self, row: RowHash) {
        let (limbs, _) = row.0.as_chunks::<8>();
        *self += Self { limbs: std::array::from_fn(|at| u64::from_le_bytes(limbs[at])) };
    }
}

impl AddAssign for SetDigest {
    /// Adds all rows of another set.
    fn add_assign(&mut self, other: Self) {
        let mut carry = false;
        for (limb, other) in self.limbs.iter_mut().zip(other.limbs) {
            let (sum, first) = limb.overflowing_add(other);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, first || second);
        }
    }
}

impl Sum for SetDigest {
    fn sum<I: Iterator<Item = Self>>(sets: I) -> Self {
        sets.fold(Self::default(), |mut all, set| {
            all += set;
            all
        })
    }
}

impl fmt::Display for SetDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limbs.iter().rev().try_for_each(|limb| write!(f, "{limb:016x}"))
    }
}

impl FromStr for SetDigest {
    type Err = Error;

    /// Reads 64 hexadecimal digits, in small letters.
    ///
    /// # Errors
    /// [`Error::Form`] for anything else.
    fn from_str(text: &str) -> Result<Self, Error> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 64 || !text.bytes().all(is_digit) {
            let expected = "a digest of rows: 64 hexadecimal digits in small letters";
            return Err(Error::Form { expected, found: text.to_owned() });
        }
        let limb = |at: usize| u64::from_str_radix(&text[48 - 16 * at..64 - 16 * at], 16).unwrap_or_default(); // digits, by the check
        Ok(Self { limbs: std::array::from_fn(limb) })
    }
}

impl Serialize for SetDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SetDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(number: u64) -> RowHash {
        RowHasher::new("test").integer("number", i128::from(number)).finish()
    }

    fn set(rows: &[u64]) -> SetDigest {
        let mut set = SetDigest::default();
        rows.iter().for_each(|&number| set.add(row(number)));
        set
    }

    /// The arithmetic, against decimal digits worked out by hand: 2^64 - 1 + 1 carries, and 2^256 - 1 + 2 is 1.
    #[test]
    fn sums_carry_and_wrap_around() {
        let mut set = SetDigest::default();
        let number = |low: u8| RowHash(std::array::from_fn(|at| if at == 0 { low } else { 0 }));
        set.add(RowHash(std::array::from_fn(|at| if at < 8 { 255 } else { 0 })));
        set.add(number(1));
        assert_eq!(set.to_string(), format!("{}1{}", "0".repeat(47), "0".repeat(16)));
        let mut set = SetDigest::default();
        set.add(RowHash([255; 32]));
        assert_eq!(set.to_string(), "f".repeat(64));
        set.add(number(2));
        assert_eq!(set.to_string(), format!("{}1", "0".repeat(63)));
    }

    /// The definition, with the hash made by hand: whoever computes these digests elsewhere must get the same.
    #[test]
    fn a_hash_is_that_of_names_kinds_lengths_and_values() {
        let mut bytes = Vec::new();
        let mut put = |name: &str, kind: u8, value: &[u8]| {
            bytes.extend((name.len() as u64).to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.push(kind);
            bytes.extend((value.len() as u64).to_le_bytes());
            bytes.extend(value);
        };
        put("row", b'k', b"kind");
        put("id", b'i', &(-3_i128).to_le_bytes());
        put("text", b't', "größer".as_bytes());
        put("raw", b'b', &[0, 255]);
        put("none", b'0', &[]);
        put("numbers", b'f', &[1.5_f64.to_le_bytes(), (-0.0_f64).to_le_bytes()].concat());
        let hasher =
            RowHasher::new("kind").id("id", &ItemId::Integer(-3)).text("text", "größer").bytes("raw", &[0, 255]);
        let found = hasher.null("none").numbers("numbers", &[1.5, -0.0]).finish();
        assert_eq!(found.0, *blake3::hash(&bytes).as_bytes());
        assert_eq!(found.short(), found.0[..16]);
    }

    #[test]
    fn what_looks_alike_is_told_apart() {
        let new = || RowHasher::new("row");
        let rows = [
            new().text("a", "bc").finish(),
            new().text("ab", "c").finish(),
            new().text("a", "b").text("", "c").finish(),
            new().text("a", "").finish(),
            new().null("a").finish(),
            new().bytes("a", b"").finish(),
            new().numbers("a", &[]).finish(),
            new().numbers("a", &[0.0]).finish(),
            new().numbers("a", &[-0.0]).finish(),
            new().integer("a", 0).finish(),
            new().id("a", &ItemId::Text("0".to_owned())).finish(),
            new().finish(),
            RowHasher::new("other").finish(),
        ];
        for (at, row) in rows.iter().enumerate() {
            assert!(!rows[..at].contains(row), "{at}");
        }
    }

    #[test]
    fn what_is_no_digest_is_refused() {
        for text in [
            "",
            "0",
            &"g".repeat(64),
            &"F".repeat(64),
            &"0".repeat(65),
            &format!("+{}", "0".repeat(63)),
            &"é".repeat(32),
        ] {
            let error = text.parse::<SetDigest>().unwrap_err().to_string();
            assert!(error.contains("64 hexadecimal digits"), "{error}");
        }
        assert!(serde_json::from_str::<SetDigest>("7").is_err());
    }

    proptest! {
        #[test]
        fn order_and_cutting_do_not_matter_and_a_lost_or_repeated_row_does(
            rows in prop::collection::vec(0_u64..1000, 1..50), cut in any::<prop::sample::Index>(), seed in any::<u64>(),
        ) {
            let whole = set(&rows);
            let mut shuffled = rows.clone();
            shuffled.sort_by_key(|&number| row(number ^ seed));
            let (a, b) = shuffled.split_at(cut.index(rows.len()));
            prop_assert_eq!([a, b].into_iter().map(set).sum::<SetDigest>(), whole);
            prop_assert_ne!(set(&rows[1..]), whole);
            // Twice more, which the exclusive or would not see.
            let more = [&rows[..], &[rows[0], rows[0]]].concat();
            prop_assert_ne!(set(&more), whole);
            prop_assert_eq!(whole.to_string().parse::<SetDigest>().unwrap(), whole);
            prop_assert_eq!(serde_json::from_value::<SetDigest>(serde_json::to_value(whole).unwrap()).unwrap(), whole);
        }
    }
}
