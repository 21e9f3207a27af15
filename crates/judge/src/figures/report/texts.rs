//! Texts of data sets, which are hostile and of any length, as they may stand on a page.

use judge_cli::pages::is_unseen;

/// Characters of an id.
pub const ID: usize = 100;
/// Characters of a text.
pub const TEXT: usize = 400;
/// Characters of settings.
pub const SETTINGS: usize = 20_000;

/// The beginning of a text, and how long it is where that is not all of it.
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{} … ({} characters)", &text[..end], text.chars().count()),
    }
}

/// A text in which nothing is unseen: control characters, and those that turn the direction of writing or have no width, are written as
/// `\u{202e}`.
/// Line ends and tabs stay.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match is_unseen(c) && !matches!(c, '\n' | '\t') {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown
}

/// The beginning of a text, in which nothing is unseen.
#[must_use]
pub fn shown(text: &str, most: usize) -> String {
    visible(&cut(text, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_and_say_so() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äöü … (4 characters)");
    }

    #[test]
    fn nothing_is_unseen() {
        assert_eq!(visible("a\u{202e}b\0c\r\n\td\u{7f}\u{85}"), "a\\u{202e}b\\u{0}c\\u{d}\n\td\\u{7f}\\u{85}");
    }
}
