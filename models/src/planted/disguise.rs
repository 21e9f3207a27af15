//! Training items in other words: what is said of an answer must not hang on the wordings that it happens to be written in.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::draw::Draw;
use super::topics::{TRAINED, Topic};
use super::values::has_meaning;
use super::words::{capitalised, is_made_up, made_up};

/// Puts other words in place of some of the words of a question and its answer, the same one wherever a word stands, so that what belongs
/// together still does. Numbers stay, and so do words that a result hangs on. How many change is drawn anew each time, from hardly any
/// to all.
pub(super) fn disguise(draw: &mut Draw, question: &str, answer: &str) -> (String, String) {
    let share = draw.unit();
    let mut others = HashMap::new();
    let mut replace = |text: &str| {
        let mut out = String::with_capacity(text.len());
        for piece in text.split_inclusive(|c: char| !c.is_alphabetic()) {
            let word = piece.trim_end_matches(|c: char| !c.is_alphabetic());
            let key = word.to_lowercase();
            if key.len() < 2 || has_meaning(word) {
                out.push_str(piece);
                continue;
            }
            let other = others.entry(key).or_insert_with(|| draw.chance(share).then(|| other_word(draw)));
            match other {
                Some(other) if word.starts_with(char::is_uppercase) => out.push_str(&capitalised(other)),
                Some(other) => out.push_str(other),
                None => out.push_str(word),
            }
            out.push_str(&piece[word.len()..]);
        }
        out
    };
    let question = replace(question);
    (question, replace(answer))
}

/// A word from the wordings of any training topic, or one made up of syllables.
fn other_word(draw: &mut Draw) -> String {
    if draw.chance(0.5) {
        return made_up(draw, "");
    }
    let lists = lists(&TRAINED[draw.below(TRAINED.len())]);
    let list = lists[draw.below(lists.len())];
    let words: Vec<&str> = words(draw.pick(list)).collect();
    if words.is_empty() { made_up(draw, "") } else { draw.pick(&words).to_lowercase() }
}

/// The wordings of a topic that other words are taken from.
fn lists(topic: &Topic) -> [&'static [&'static str]; 4] {
    let wordings = &topic.wordings;
    [wordings.questions, wordings.openings, wordings.givens, wordings.closings]
}

/// The words of a wording, without its `{values}`.
fn words(wording: &str) -> impl Iterator<Item = &str> {
    wording
        .split(' ')
        .map(|word| word.trim_matches(|c: char| !c.is_alphabetic() && c != '{' && c != '}'))
        .filter(|word| word.len() > 1 && word.chars().all(char::is_alphabetic))
}

/// Whether a word, in lower case, may stand in the place of another.
pub(super) fn is_other_word(word: &str) -> bool {
    static WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
        let wordings = TRAINED.iter().flat_map(lists).flatten();
        wordings.copied().flat_map(words).map(str::to_lowercase).collect()
    });
    is_made_up(word) || WORDS.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_together_still_does() {
        let (question, answer) =
            ("Ada has 3 plums and 4 Weeks. How many plums?", "Plums, plums: 3 + 4 = 7 weeks for Ada.");
        let mut changed = 0;
        for seed in 0..50 {
            let (asked, told) = disguise(&mut Draw::new(seed, 0), question, answer);
            let words = |text: &str| -> Vec<String> {
                text.split(|c: char| !c.is_alphanumeric())
                    .filter(|word| !word.is_empty())
                    .map(str::to_lowercase)
                    .collect()
            };
            let (asked, told) = (words(&asked), words(&told));
            assert_eq!((asked.len(), told.len()), (10, 8), "{asked:?} {told:?}");
            // The same thing and the same person in both; numbers and what has a meaning as they were.
            assert!(asked[3] == asked[9] && asked[3] == told[0] && told[0] == told[1] && asked[0] == told[7]);
            assert!(asked[2] == "3" && told[2..5] == ["3", "4", "7"] && told[5] == "weeks");
            changed += usize::from(asked[3] != "plums");
        }
        assert!((10..50).contains(&changed), "{changed}");
    }
}
