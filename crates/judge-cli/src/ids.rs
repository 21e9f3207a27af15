//! Ids that look the same: CSV has texts where JSON has numbers.

use judge_core::ItemId;

/// The id that looks the same, `1` as `"1"` and `"1"` as `1`; `None` for a text that is no number.
#[must_use]
pub fn alike(id: &ItemId) -> Option<ItemId> {
    match id {
        ItemId::Integer(number) => Some(ItemId::Text(number.to_string())),
        ItemId::Text(text) => {
            text.parse().ok().filter(|number: &i128| number.to_string() == *text).map(ItemId::Integer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_their_texts_look_the_same() {
        for (id, expected) in [(ItemId::from(-1), Some(ItemId::from("-1"))), (ItemId::from("7"), Some(ItemId::from(7)))]
        {
            assert_eq!(alike(&id), expected);
        }
        for text in ["", "a", "07", "+7", "7.0", " 7"] {
            assert_eq!(alike(&text.into()), None, "{text:?}");
        }
    }
}
