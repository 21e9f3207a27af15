//! The fields of items that are cut before a judge sees them.

use std::collections::BTreeSet;

use serde_json::{Map, json};

use crate::rows::cut::CUT;
use crate::{Cut, Error, Extra, Field, RowItem};

/// Cuts the fields of an item, and notes in its other fields what was cut.
///
/// # Errors
/// [`Error::FieldClash`] for an item that has a field of the note's name.
pub(crate) fn cut<I: RowItem>(item: &mut I, cuts: &[Cut], count: &dyn Fn(&str) -> usize) -> Result<(), Error> {
    let mut note = Map::new();
    for cut in cuts {
        let mut most = 0;
        item.edit(item.field_named(&cut.field), &mut |text| {
            if let Some((kept, tokens)) = cut.of_text(text, count) {
                *text = kept;
                most = most.max(tokens);
            }
        });
        if most > 0 {
            note.insert(cut.field.clone(), json!(most));
        }
    }
    if let (false, Some(extra)) = (note.is_empty(), item.extra_mut()) {
        if extra.text(CUT).is_some() {
            return Err(Error::FieldClash { field: CUT.to_owned() });
        }
        extra.set(CUT, &note)?;
    }
    Ok(())
}

/// Refuses two cuts of one field of an item, of which the second would cut what the first has left.
///
/// # Errors
/// [`Error::CutTwice`].
pub(crate) fn check_once(item: &impl RowItem, cuts: &[Cut]) -> Result<(), Error> {
    for (place, second) in cuts.iter().enumerate() {
        let field = item.field_named(&second.field);
        if let Some(first) = cuts[..place].iter().find(|first| item.field_named(&first.field) == field) {
            let (first, second, field) = (first.to_string(), second.to_string(), field.to_owned());
            return Err(Error::CutTwice { first, second, field });
        }
    }
    Ok(())
}

/// Whether an item has a text in a field that can be cut.
pub(crate) fn can_be_cut(item: &mut impl RowItem, name: &str) -> bool {
    let mut is_there = false;
    item.edit(item.field_named(name), &mut |_| is_there = true);
    is_there
}

/// The fields of an item that can be cut, each once.
pub(crate) fn cuttable(item: &mut impl RowItem) -> Vec<String> {
    let extra = item.extra().into_iter().flat_map(Extra::iter).map(|(name, _)| name.to_owned());
    let known = Field::ALL.iter().map(|field| field.as_str().to_owned());
    let names: BTreeSet<String> = known.chain(extra).chain(item.inner()).collect();
    names.into_iter().filter(|name| item.field_named(name) == name && can_be_cut(item, name)).collect()
}
