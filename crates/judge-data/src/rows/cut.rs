//! Fields that are cut to so many tokens before a judge sees them.

use std::fmt;
use std::str::FromStr;

/// The field of an output row that says what was cut.
pub(crate) const CUT: &str = "cut";

/// What stands where a text was cut in the middle.
const GAP: &str = " … ";

/// How much of a field a judge is shown: `FIELD=TOKENS`, `FIELD=TOKENS:head`, `FIELD=TOKENS:tail` or `FIELD=TOKENS:middle`.
///
/// Of a field of several texts, such as contexts, each is cut. What was cut is in the row's `cut`:
/// `{FIELD: the tokens of the longest text before}`.
///
/// ```
/// use judge_data::{Cut, Kept};
///
/// let cut: Cut = "contexts=512:middle".parse()?;
/// assert_eq!((cut.field.as_str(), cut.tokens, cut.kept), ("contexts", 512, Kept::Ends));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The field, or the column that it is in.
    pub field: String,
    /// At most so many tokens of it are kept, at least 1.
    pub tokens: usize,
    /// Which.
    pub kept: Kept,
}

/// What is kept of a text that is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// Its beginning: `head`.
    #[default]
    Head,
    /// Its end: `tail`.
    Tail,
    /// Both, without its middle: `middle`.
    Ends,
}

impl FromStr for Cut {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected FIELD=TOKENS, or FIELD=TOKENS:head, :tail or :middle, found {text:?}");
        let (field, rest) = text.split_once('=').ok_or_else(expected)?;
        let (tokens, kept) = match rest.split_once(':') {
            None => (rest, Kept::Head),
            Some((tokens, "head")) => (tokens, Kept::Head),
            Some((tokens, "tail")) => (tokens, Kept::Tail),
            Some((tokens, "middle")) => (tokens, Kept::Ends),
            Some(_) => return Err(expected()),
        };
        let tokens = tokens.trim().parse().ok().filter(|&tokens| tokens > 0).ok_or_else(expected)?;
        let field = field.trim().to_owned();
        if field.is_empty() { Err(expected()) } else { Ok(Self { field, tokens, kept }) }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = match self.kept {
            Kept::Head => "head",
            Kept::Tail => "tail",
            Kept::Ends => "middle",
        };
        write!(f, "{}={}:{kept}", self.field, self.tokens)
    }
}

impl Cut {
    /// What is kept of a text that has more tokens than [`tokens`](Self::tokens), and how many it had; `None` for a shorter one. `count`
    /// counts tokens.
    #[must_use]
    pub fn of_text(&self, text: &str, count: &dyn Fn(&str) -> usize) -> Option<(String, usize)> {
        let found = count(text);
        if found <= self.tokens {
            return None;
        }
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let head = |at: usize| text[..ends[at]].to_owned();
        let tail = |at: usize| text[ends[ends.len() - 1 - at]..].to_owned();
        let both = |at: usize| format!("{}{GAP}{}", head(at.div_ceil(2)), tail(at / 2));
        let kept = |at: usize| match self.kept {
            Kept::Head => head(at),
            Kept::Tail => tail(at),
            Kept::Ends => both(at),
        };
        // The longest that fits, by halves: a longer piece of a text has more tokens, but for a merge at its end.
        let (mut fits, mut exceeds) = (0, ends.len() - 1);
        while exceeds - fits > 1 {
            let middle = fits.midpoint(exceeds);
            if count(&kept(middle)) <= self.tokens { fits = middle } else { exceeds = middle }
        }
        Some((if fits == 0 { String::new() } else { kept(fits) }, found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    #[test]
    fn a_text_keeps_what_it_is_said_to_keep() {
        let kept = |cut: &str, text: &str| cut.parse::<Cut>().unwrap().of_text(text, &words);
        assert_eq!(kept("a=3", "one two three"), None);
        assert_eq!(kept("a=2", "one zwölf three"), Some(("one zwölf ".to_owned(), 3)));
        assert_eq!(kept("a=2:tail", "one zwölf three"), Some((" zwölf three".to_owned(), 3)));
        let (middle, tokens) = kept("a=5:middle", "a b c d e f g").unwrap();
        assert_eq!((middle.as_str(), tokens, words(&middle)), ("a b  …  f g", 7, 5));
        let nothing = "a=1".parse::<Cut>().unwrap().of_text("ab", &|text| 2 * text.len());
        assert_eq!(nothing, Some((String::new(), 4)), "not one character fits");
    }

    #[test]
    fn a_cut_says_what_it_is() {
        for text in ["response=3:head", "a b=1:tail", "x=7:middle"] {
            assert_eq!(text.parse::<Cut>().unwrap().to_string(), text);
        }
        for wrong in ["", "a", "=3", "a=", "a=0", "a=-1", "a=3:end", "a=3:"] {
            assert!(wrong.parse::<Cut>().unwrap_err().contains("FIELD=TOKENS:head"), "{wrong}");
        }
    }
}
