//! Tells the exercises of this module from all other texts.

use super::ASKED;
use super::disguise::is_other_word;
use super::topics::{SHIFTED, TRAINED};
use super::values::has_meaning;
use super::words::{is_listed, is_made_up};

/// Whether a text is the question of some [`Item`](super::Item), whole, or the [`prompt`](super::prompt) that asks for its mark.
///
/// Each word of it must be where a wording has it, and one that can stand there: so no other text is taken for an exercise because it
/// holds the words of one.
#[must_use]
pub fn is_exercise(text: &str) -> bool {
    let asked = text.strip_prefix(ASKED).and_then(|asked| asked.split_once('\n')).map(|(question, _)| question);
    is_question(asked.unwrap_or(text))
}

fn is_question(text: &str) -> bool {
    // Training items may be told in other words.
    [(TRAINED, true), (SHIFTED, false)].into_iter().any(|(topics, may_differ)| {
        let mut wordings = topics.iter().flat_map(|topic| topic.wordings.questions);
        wordings.any(|wording| follows(text, &wording.replace("{list}", "{l} {l} {l} {l}"), may_differ))
    })
}

/// Whether a text is made of a wording, piece by piece. Words of the wording may be others where `may_differ`.
fn follows(text: &str, wording: &str, may_differ: bool) -> bool {
    let (mut pieces, mut places) = (text.split(' '), wording.split(' '));
    loop {
        match (pieces.next(), places.next()) {
            (None, None) => return true,
            (Some(piece), Some(place)) if fits(piece, place, may_differ) => {}
            _ => return false,
        }
    }
}

fn fits(piece: &str, place: &str, may_differ: bool) -> bool {
    let Some((before, (name, after))) =
        place.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return piece == place || (may_differ && is_place_in_other_words(piece, place));
    };
    let value = piece.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    value.is_some_and(|value| match name {
        "a" | "b" | "k" => value.parse::<u8>().is_ok_and(|number| number.to_string() == value && number < 100),
        _ => is_word(value, may_differ),
    })
}

/// Whether a word stands in the place of another, between the same signs.
fn is_place_in_other_words(piece: &str, place: &str) -> bool {
    let word = |text: &'_ str| -> String { text.chars().filter(|c| c.is_alphabetic()).collect() };
    let (found, expected) = (word(piece), word(place));
    piece.replacen(&found, &expected, 1) == place && is_word(&found, true)
}

fn is_word(word: &str, may_differ: bool) -> bool {
    is_listed(word) || is_made_up(word) || has_meaning(word) || (may_differ && is_other_word(&word.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::super::{Split, candidates, generate, pairs, prompt};
    use super::*;

    #[test]
    fn every_exercise_is_found() {
        for (split, seed) in Split::ALL.into_iter().flat_map(|split| (0..5).map(move |seed| (split, seed))) {
            for item in generate(split, 400, seed) {
                assert!(is_exercise(&item.instruction), "{}", item.instruction);
                assert!(is_exercise(&prompt(&item)), "{}", prompt(&item));
            }
            for pair in pairs(split, 50, seed) {
                assert!(is_exercise(&pair.instruction), "{}", pair.instruction);
            }
            for row in candidates(split, 20, 4, seed) {
                assert!(is_exercise(&row.instruction), "{}", row.instruction);
            }
        }
    }

    #[test]
    fn no_other_text_is_taken_for_one() {
        let long = "Ada has 3 plums and gets 4 more. How many plums does Ada have now? ".repeat(3);
        for text in [
            "",
            "How do I reverse a list in Python?",
            // It holds all words of a wording, in their order.
            "Greta, a teacher, has a class of 30 children and gets a new book, and there are more. How many of them does she have, now?",
            "Greta has thirty apples and gets 4 more. How many apples does Greta have now?",
            "Margaret has 3 plums and gets 4 more. How many plums does Margaret have now?",
            "Ada has 3 plums and gets 4 more. How many plums does Ada have now? Explain it to a child.",
            "Question: How do I boil an egg?\nAnswer: Ada has 3 plums and gets 4 more. How many plums does Ada have now?",
            &long,
        ] {
            assert!(!is_exercise(text), "{text}");
        }
        assert!(is_exercise("Ada has 3 plums and gets 4 more. How many plums does Ada have now?"));
    }
}
