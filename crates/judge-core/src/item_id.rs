use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

/// What names an item: a string or a whole number, echoed unchanged. `1` and `"1"` are two ids.
///
/// In JSON it is the bare string or number. Numbers reach from `i64::MIN` to `u64::MAX`: others are neither written nor read.
/// `1.0` is refused, since it could not be echoed as it was written. `-0` is 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemId {
    /// A whole number from `i64::MIN` to `u64::MAX`.
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

/// Why a number is no id.
fn too_large(number: i128) -> String {
    format!("the id {number} is too large for a whole number (64 bits); write it as a string")
}

impl Serialize for ItemId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            // Formats without 128-bit numbers still take what fits 64 bits.
            Self::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(small), _) => serializer.serialize_i64(small),
                (_, Ok(large)) => serializer.serialize_u64(large),
                // A reader of JSON would round it.
                _ => Err(ser::Error::custom(too_large(*number))),
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
                match i64::try_from(number).is_ok() || u64::try_from(number).is_ok() {
                    true => Ok(ItemId::Integer(number)),
                    false => Err(E::custom(too_large(number))),
                }
            }

            /// The whole number `-0`, which a reader of JSON takes for a float.
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<ItemId, E> {
                match number == 0.0 && number.is_sign_negative() {
                    true => Ok(ItemId::Integer(0)),
                    false => Err(E::invalid_type(de::Unexpected::Float(number), &self)),
                }
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
    fn zero_may_have_a_sign() {
        assert_eq!(serde_json::from_str::<ItemId>("-0").unwrap(), ItemId::Integer(0));
    }

    /// What would be written and could not be read again.
    #[test]
    fn a_number_beyond_64_bits_is_neither_written_nor_read() {
        for number in [1_i128 << 70, -(1_i128 << 65), i128::from(u64::MAX) + 1, i128::from(i64::MIN) - 1] {
            let error = serde_json::to_string(&ItemId::Integer(number)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("the id {number} is too large")), "{error}");
            let number: de::value::I128Deserializer<serde_json::Error> =
                de::IntoDeserializer::into_deserializer(number);
            assert!(ItemId::deserialize(number).is_err());
        }
    }

    #[test]
    fn what_is_neither_string_nor_whole_number_is_refused() {
        for text in ["1.0", "0.0", "null", "true", "[1]", "{}", "1e30"] {
            let error = serde_json::from_str::<ItemId>(text).unwrap_err().to_string();
            assert!(error.contains("a string or a whole number"), "{text}: {error}");
        }
    }
}
