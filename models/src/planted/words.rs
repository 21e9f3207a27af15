//! The words that questions are filled with. Training and shifted lists share no entry.

use super::draw::Draw;

/// People of the training topics.
const NAMES: &[&str] = &[
    "Ada", "Ben", "Cleo", "Dan", "Elif", "Finn", "Gita", "Hugo", "Ines", "Jan", "Kira", "Leo", "Mira", "Noor", "Otto",
    "Pia", "Quinn", "Rosa", "Sven", "Tara", "Udo", "Vera", "Wim", "Yara", "Zeno", "Alma", "Boris", "Dora", "Emil",
    "Greta",
];

/// Things that can be counted, in the plural, of the training topics.
const THINGS: &[&str] = &[
    "apples", "pears", "plums", "shells", "stamps", "coins", "pens", "cups", "books", "cards", "balls", "nuts", "eggs",
    "rolls", "stones", "leaves", "buttons", "candles", "spoons", "keys", "ropes", "bells", "lamps", "socks", "figs",
    "beans", "boats", "kites", "maps", "rings",
];

/// Short words without a number of their own, for lists.
const LISTED: &[&str] = &[
    "fox", "hen", "cow", "pig", "owl", "bee", "cat", "dog", "ant", "goat", "sun", "moon", "tree", "rain", "snow",
    "wind", "hill", "lake", "sand", "corn", "milk", "salt", "rice", "tea",
];

/// Colours.
const COLOURS: &[&str] = &["red", "blue", "green", "white", "black", "brown", "pink", "grey"];

/// People of the shifted topics.
const SHIFTED_NAMES: &[&str] =
    &["Bruno", "Carla", "Edda", "Felix", "Ivo", "Lena", "Milo", "Nils", "Paula", "Rolf", "Selma", "Tomas"];

/// Things of the shifted topics.
const SHIFTED_THINGS: &[&str] =
    &["drums", "hats", "bricks", "flags", "dolls", "clocks", "pins", "tiles", "gloves", "masks"];

/// Whether a word is in one of the lists above.
pub(super) fn is_listed(word: &str) -> bool {
    [NAMES, THINGS, LISTED, COLOURS, SHIFTED_NAMES, SHIFTED_THINGS].concat().contains(&word)
}

/// How often a word of the training topics is made up of syllables, so that a judge learns to carry words that it does not know.
const MADE_UP: f64 = 0.2;

/// Which lists to take words from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// The lists of the training topics, and made-up names.
    Trained,
    /// The lists of the shifted topics.
    Shifted,
}

impl Words {
    /// `n` different people.
    pub(super) fn names(self, draw: &mut Draw, n: usize) -> Vec<String> {
        distinct(n, || match self {
            Self::Trained if draw.chance(MADE_UP) => capitalised(&made_up(draw, "")),
            Self::Trained => draw.pick(NAMES).to_owned(),
            Self::Shifted => draw.pick(SHIFTED_NAMES).to_owned(),
        })
    }

    /// `n` different countable things, in the plural.
    pub(super) fn things(self, draw: &mut Draw, n: usize) -> Vec<String> {
        distinct(n, || match self {
            Self::Trained if draw.chance(MADE_UP) => made_up(draw, "s"),
            Self::Trained => draw.pick(THINGS).to_owned(),
            Self::Shifted => draw.pick(SHIFTED_THINGS).to_owned(),
        })
    }

    /// `n` different short words for lists (training only).
    pub(super) fn listed(draw: &mut Draw, n: usize) -> Vec<String> {
        distinct(n, || if draw.chance(MADE_UP) { made_up(draw, "") } else { draw.pick(LISTED).to_owned() })
    }

    /// `n` different colours (training only).
    pub(super) fn colours(draw: &mut Draw, n: usize) -> Vec<String> {
        distinct(n, || draw.pick(COLOURS).to_owned())
    }
}

const CONSONANTS: &[u8; 14] = b"bdfgklmnprstvz";
const VOWELS: &[u8; 5] = b"aeiou";

pub(super) fn made_up(draw: &mut Draw, ending: &str) -> String {
    let mut word = String::new();
    for _ in 0..2 {
        word.push(char::from(CONSONANTS[draw.below(CONSONANTS.len())]));
        word.push(char::from(VOWELS[draw.below(VOWELS.len())]));
    }
    word + ending
}

/// Whether [`made_up`] can make a word, with its ending `s` or none. It may be [capitalised].
pub(super) fn is_made_up(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let syllables = word.strip_suffix('s').unwrap_or(&word).as_bytes();
    let is_syllable = |pair: &[u8]| CONSONANTS.contains(&pair[0]) && VOWELS.contains(&pair[1]);
    syllables.len() == 4 && syllables.chunks(2).all(is_syllable)
}

/// An ASCII word with its first letter in upper case.
pub(super) fn capitalised(word: &str) -> String {
    let mut word = word.to_owned();
    word[..1].make_ascii_uppercase();
    word
}

/// Draws until there are `n` different words. Every list above is several times longer than any `n` asked for, so this ends.
fn distinct(n: usize, mut one: impl FnMut() -> String) -> Vec<String> {
    let mut words = Vec::with_capacity(n);
    while words.len() < n {
        let word = one();
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}
