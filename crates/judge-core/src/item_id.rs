use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What names an item: a string or a whole number, echoed unchanged. `1` and `"1"` are two ids.
///
/// In JSON it is the bare string or number. Numbers reach from `i64::MIN` to `u64::MAX` there; `1.0` is refused,
/// since it could not be echoed as it was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemId {
    /// A whole number.
    Integer(i128),
    /// A string, possibly empty.
    Text(String),
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

impl From<&str> for ItemId {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for ItemId {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Every whole number of at most 64 bits is an id as it is.
macro_rules! from_integers {
    ($($integer:ty),+) => {$(
        impl From<$integer> for ItemId {
            fn from(number: $integer) -> Self {
                Self::Integer(number as i128) // all of these are narrower
            }
        }
    )+};
}

from_integers!(i32, i64, u32, u64, usize);

impl Serialize for ItemId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            // Formats without 128-bit numbers still take what fits 64 bits.
            Self::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(small), _) => serializer.serialize_i64(small),
                (_, Ok(large)) => serializer.serialize_u64(large),
                _ => serializer.serialize_i128(*number),
            },
        }
    }
}

impl<'de> Deserialize<'de> for ItemId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;

        impl Visitor<'_> for IdVisitor {
            type Value = ItemId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a whole number")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<ItemId, E> {
                Ok(number.into())
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<ItemId, E> {
                Ok(number.into())
            }

            fn visit_i128<E: de::Error>(self, number: i128) -> Result<ItemId, E> {
                Ok(ItemId::Integer(number))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ItemId, E> {
                Ok(text.into())
            }
        }

        deserializer.deserialize_any(IdVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_ids_without_a_type_written_out() {
        let id = |number: ItemId| number;
        assert_eq!(id(1.into()), ItemId::Integer(1));
        let numbered: Vec<ItemId> = ["a", "b"].iter().enumerate().map(|(number, _)| number.into()).collect();
        assert_eq!(numbered, [ItemId::from(0_u64), ItemId::from(1_i64)]);
        assert_eq!(ItemId::from(u64::MAX), ItemId::Integer(u64::MAX.into()));
        assert_eq!(ItemId::from(-1_i32), ItemId::Integer(-1));
    }

    #[test]
    fn json_is_echoed_unchanged() {
        for text in ["\"a\"", "\"1\"", "1", "-7", "0", "18446744073709551615", "-9223372036854775808", "\"\""] {
            let id: ItemId = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
        }
    }

    #[test]
    fn what_is_neither_string_nor_whole_number_is_refused() {
        for text in ["1.0", "null", "true", "[1]", "{}", "1e30"] {
            let error = serde_json::from_str::<ItemId>(text).unwrap_err().to_string();
            assert!(error.contains("a string or a whole number"), "{text}: {error}");
        }
    }
}
