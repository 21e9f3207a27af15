//! What Python says of characters: their case, whether they are letters or digits, and whether it prints them.
//!
//! The texts to be met are those of Python 3.11, whose tables are Unicode 14's; the standard library's are newer. On nearly all
//! characters both agree. A template that depends on one of the others gets an error, since the text would be another one in another
//! version of Python.

use super::budget::read;
use super::fault::{Result, refuse};

/// Characters that have come after Unicode 14, with what is still free around them: first and last.
#[rustfmt::skip]
const NEWER: [(char, char); 67] = [
    ('\u{88f}', '\u{88f}'), ('\u{892}', '\u{897}'), ('\u{c5b}', '\u{c5c}'), ('\u{cd7}', '\u{cdc}'),
    ('\u{cf3}', '\u{cff}'), ('\u{ece}', '\u{ecf}'), ('\u{1acf}', '\u{1aff}'), ('\u{1b4d}', '\u{1b4f}'),
    ('\u{1b7f}', '\u{1b7f}'), ('\u{1c89}', '\u{1c8f}'), ('\u{20c1}', '\u{20cf}'), ('\u{2427}', '\u{243f}'),
    ('\u{2b96}', '\u{2b96}'), ('\u{2ffc}', '\u{2fff}'), ('\u{31e4}', '\u{31ef}'), ('\u{a7cb}', '\u{a7cf}'),
    ('\u{a7d2}', '\u{a7d2}'), ('\u{a7d4}', '\u{a7d4}'), ('\u{a7da}', '\u{a7f1}'), ('\u{fbc3}', '\u{fbd2}'),
    ('\u{fd90}', '\u{fd91}'), ('\u{fdc8}', '\u{fdce}'), ('\u{105bd}', '\u{105ff}'), ('\u{10940}', '\u{1097f}'),
    ('\u{10d3a}', '\u{10e5f}'), ('\u{10eb2}', '\u{10eff}'), ('\u{1123f}', '\u{1127f}'), ('\u{11375}', '\u{113ff}'),
    ('\u{116ca}', '\u{116ff}'), ('\u{11af9}', '\u{11bff}'), ('\u{11daa}', '\u{11edf}'), ('\u{11ef9}', '\u{11faf}'),
    ('\u{1342f}', '\u{1342f}'), ('\u{13439}', '\u{143ff}'), ('\u{14647}', '\u{167ff}'), ('\u{16b90}', '\u{16e3f}'),
    ('\u{16e9b}', '\u{16eff}'), ('\u{16ff2}', '\u{16fff}'), ('\u{187f8}', '\u{187ff}'), ('\u{18cd6}', '\u{18cff}'),
    ('\u{18d09}', '\u{1afef}'), ('\u{1b123}', '\u{1b14f}'), ('\u{1b153}', '\u{1b163}'), ('\u{1bca4}', '\u{1ceff}'),
    ('\u{1d246}', '\u{1d2df}'), ('\u{1df1f}', '\u{1dfff}'), ('\u{1e02b}', '\u{1e0ff}'), ('\u{1e300}', '\u{1e7df}'),
    ('\u{1f6d8}', '\u{1f6dc}'), ('\u{1f774}', '\u{1f77f}'), ('\u{1f7d9}', '\u{1f7df}'), ('\u{1f8b2}', '\u{1f8ff}'),
    ('\u{1fa54}', '\u{1fa5f}'), ('\u{1fa75}', '\u{1fa77}'), ('\u{1fa87}', '\u{1fa8f}'), ('\u{1faad}', '\u{1faaf}'),
    ('\u{1fabb}', '\u{1fabf}'), ('\u{1fac6}', '\u{1facf}'), ('\u{1fada}', '\u{1fadf}'), ('\u{1fae8}', '\u{1faef}'),
    ('\u{1faf7}', '\u{1faff}'), ('\u{1fbcb}', '\u{1fbef}'), ('\u{1fbfa}', '\u{1ffff}'), ('\u{2b739}', '\u{2b73f}'),
    ('\u{2cea2}', '\u{2ceaf}'), ('\u{2ebe1}', '\u{2f7ff}'), ('\u{3134b}', '\u{e0000}'),
];

/// The answer about a character that a newer Python, or Rust, may answer otherwise.
fn known<T>(c: char, answer: T) -> Result<T> {
    let after = NEWER.partition_point(|(first, _)| *first <= c);
    match after.checked_sub(1) {
        Some(i) if c <= NEWER[i].1 => refuse(format!("the character {c:?}, which is newer than Unicode 14,")),
        _ => Ok(answer),
    }
}

/// The case of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Case {
    None,
    Lower,
    Upper,
    /// A letter of two, of which the first alone is upper case.
    Title,
}

impl Case {
    fn of(c: char) -> Result<Self> {
        match c {
            // Their case has changed since Unicode 14.
            'ʕ' | 'ჼ' | '\u{a7f2}'..='\u{a7f4}' | 'ꭩ' => refuse(format!("asking for the case of {c:?}")),
            'ǅ' | 'ǈ' | 'ǋ' | 'ǲ' | 'ᾼ' | 'ῌ' | 'ῼ' => Ok(Self::Title),
            '\u{1f88}'..='\u{1f8f}' | '\u{1f98}'..='\u{1f9f}' | '\u{1fa8}'..='\u{1faf}' => Ok(Self::Title),
            _ if c.is_lowercase() => known(c, Self::Lower),
            _ if c.is_uppercase() => known(c, Self::Upper),
            _ => Ok(Self::None),
        }
    }
}

/// Appends the upper case of a character.
fn push_upper(out: &mut String, c: char) -> Result<()> {
    match c {
        _ if c.is_ascii() => out.push(c.to_ascii_uppercase()),
        // They have got an upper case since Unicode 14.
        'ƛ' | 'ɤ' | '\u{a7d3}' | '\u{a7d5}' => return refuse(format!("the upper case of {c:?}")),
        _ if c.is_lowercase() => out.extend(known(c, c.to_uppercase())?),
        _ => out.extend(c.to_uppercase()),
    }
    Ok(())
}

/// Appends the title case of a character: its upper case, but for letters that have a third form, which are refused.
fn push_title(out: &mut String, c: char) -> Result<()> {
    let has_own = matches!(c, '\u{1c4}'..='\u{1cc}' | '\u{1f1}'..='\u{1f3}' | '\u{10d0}'..='\u{10ff}');
    if has_own || c.to_uppercase().len() > 1 {
        return refuse(format!("the title case of {c:?}"));
    }
    push_upper(out, c)
}

/// Python's `str.upper`.
pub(crate) fn upper(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    text.chars().try_for_each(|c| push_upper(&mut out, c))?;
    Ok(out)
}

/// Python's `str.lower`. That of a sigma depends on the letters around it.
pub(crate) fn lower(text: &str) -> Result<String> {
    if text.is_ascii() {
        return Ok(text.to_ascii_lowercase());
    }
    let has_sigma = text.contains('Σ');
    for c in text.chars().filter(|c| !c.is_ascii()) {
        if has_sigma || c.is_uppercase() {
            known(c, ())?;
        }
        // Whether these count as letters around it has changed since Unicode 14.
        if has_sigma && matches!(c, 'ʕ' | '\u{1171e}') {
            return refuse(format!("the lower case of a sigma with {c:?}"));
        }
    }
    Ok(text.to_lowercase())
}

/// Each character of a text with its own part of the text's lower case.
fn with_lower<'l>(text: &str, lower: &'l str) -> impl Iterator<Item = (char, &'l str)> {
    let mut rest = lower;
    text.chars().map(move |c| {
        // Both lower cases of a sigma are equally long.
        let (own, tail) = rest.split_at(c.to_lowercase().map(char::len_utf8).sum());
        rest = tail;
        (c, own)
    })
}

/// Python's `str.capitalize`.
pub(crate) fn capitalized(text: &str) -> Result<String> {
    let lower = lower(text)?;
    let mut out = String::with_capacity(lower.len());
    for (i, (c, small)) in with_lower(text, &lower).enumerate() {
        if i == 0 {
            push_title(&mut out, c)?;
        } else {
            out.push_str(small);
        }
    }
    Ok(out)
}

/// Python's `str.title`: a letter after anything that has no case is upper case, every other one lower case.
pub(crate) fn title(text: &str) -> Result<String> {
    let lower = lower(text)?;
    let mut out = String::with_capacity(lower.len());
    let mut inside = false;
    for (c, small) in with_lower(text, &lower) {
        if inside {
            out.push_str(small);
        } else {
            push_title(&mut out, c)?;
        }
        inside = Case::of(c)? != Case::None;
    }
    Ok(out)
}

/// Python's `str.swapcase`.
pub(crate) fn swapped(text: &str) -> Result<String> {
    let lower = lower(text)?;
    let mut out = String::with_capacity(lower.len());
    for (c, small) in with_lower(text, &lower) {
        match Case::of(c)? {
            Case::Upper => out.push_str(small),
            Case::Lower => push_upper(&mut out, c)?,
            Case::None | Case::Title => out.push(c),
        }
    }
    Ok(out)
}

/// Python's `str.islower`.
pub(crate) fn is_lower(text: &str) -> Result<bool> {
    all_are(text, Case::Lower)
}

/// Python's `str.isupper`.
pub(crate) fn is_upper(text: &str) -> Result<bool> {
    all_are(text, Case::Upper)
}

/// Whether all characters that have a case have this one, and at least one has.
fn all_are(text: &str, wanted: Case) -> Result<bool> {
    read(text.len())?;
    let mut any = false;
    for c in text.chars() {
        match Case::of(c)? {
            Case::None => {}
            case if case == wanted => any = true,
            _ => return Ok(false),
        }
    }
    Ok(any)
}

/// Python's `str.istitle`.
pub(crate) fn is_title(text: &str) -> Result<bool> {
    let (mut inside, mut any) = (false, false);
    for c in text.chars() {
        let case = Case::of(c)?;
        if case != Case::None && inside != (case == Case::Lower) {
            return Ok(false);
        }
        inside = case != Case::None;
        any |= inside;
    }
    Ok(any)
}

/// Python's `str.isalpha` of a character, where that is sure: letters with a case, and the blocks of letters that people write in.
pub(crate) fn is_letter(c: char) -> Result<bool> {
    match c {
        _ if c.is_ascii() => Ok(c.is_ascii_alphabetic()),
        _ if !c.is_alphabetic() => Ok(false),
        // A mark and symbols with a case, and numbers that are letters too.
        '\u{345}' | 'Ⓐ'..='ⓩ' | '\u{1f130}'..='\u{1f189}' => Ok(false),
        _ if c.is_numeric() => known(c, false),
        'ª'..='\u{2af}'
        | '\u{370}'..='\u{373}'
        | '\u{376}'..='\u{481}'
        | '\u{48a}'..='\u{52f}'
        | '\u{5d0}'..='\u{5ea}'
        | '\u{620}'..='\u{64a}'
        | '\u{e01}'..='\u{e30}'
        | '\u{1e00}'..='\u{1fff}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' => Ok(true),
        _ if c.is_lowercase() || c.is_uppercase() => known(c, true),
        _ => refuse(format!("asking whether {c:?} is a letter")),
    }
}

/// Python's `str.isalnum` of a character.
pub(crate) fn is_alphanumeric(c: char) -> Result<bool> {
    if c.is_numeric() { known(c, true) } else { is_letter(c) }
}

/// Python's `str.isnumeric` of a character. Some ideographs are numbers.
pub(crate) fn is_numeric(c: char) -> Result<bool> {
    match c {
        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'.. if c.is_alphabetic() => {
            refuse(format!("asking whether {c:?} is a number"))
        }
        _ if c.is_numeric() => known(c, true),
        _ => Ok(false),
    }
}

/// Python's `str.isdigit` and `str.isdecimal` of a character. The two differ on digits outside ASCII, which are refused.
pub(crate) fn is_digit(c: char) -> Result<bool> {
    if !c.is_ascii() && c.is_numeric() {
        return refuse(format!("asking whether {c:?} is a digit"));
    }
    Ok(c.is_ascii_digit())
}

/// Python's `str.isprintable` of a character. The standard library's only copy of that table is in its debug
/// formatting. The leading letter keeps that from escaping combining marks.
pub(crate) fn is_printable(c: char) -> Result<bool> {
    match c {
        '\0'..='\u{ff}' => Ok(!matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{a0}' | '\u{ad}')),
        _ => known(c, format!("a{c}").escape_debug().skip(1).eq(std::iter::once(c))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap, HashSet};

    use super::super::python_text::is_space;
    use super::*;

    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Python {
        /// First, last and distance of the characters for which a method is true.
        Is(Vec<u32>),
        Makes(HashMap<char, String>),
    }

    /// All that Unicode has but for tags, variants and private use.
    const CHARACTERS: std::ops::RangeInclusive<char> = '\0'..='\u{3ffff}';

    fn one(is: fn(&str) -> Result<bool>, c: char) -> Result<bool> {
        is(c.encode_utf8(&mut [0; 4]))
    }

    /// Expected answers: `scripts/templates/make_letter_fixtures.py`.
    #[test]
    fn nothing_is_said_of_a_character_that_python_does_not_say() {
        let python: BTreeMap<String, Python> =
            serde_json::from_str(include_str!("../tests/fixtures/letters.json")).unwrap();
        let mut refused = BTreeMap::<&str, usize>::new();
        for (method, expected) in &python {
            let mut wrong = Vec::new();
            let mut check = |c: char, found: Result<bool>| match found {
                Ok(true) => {}
                Ok(false) => wrong.push(c),
                Err(_) => *refused.entry(method).or_default() += 1,
            };
            match expected {
                Python::Is(ranges) => {
                    let ranges = ranges.chunks(3).flat_map(|r| (r[0]..=r[1]).step_by(r[2] as usize));
                    let expected: HashSet<u32> = ranges.collect();
                    let is: fn(char) -> Result<bool> = match &**method {
                        "isalpha" => is_letter,
                        "isalnum" => is_alphanumeric,
                        "isdecimal" | "isdigit" => is_digit,
                        "isnumeric" => is_numeric,
                        "isprintable" => is_printable,
                        "isspace" => |c| Ok(is_space(c)),
                        "islower" => |c| one(is_lower, c),
                        "isupper" => |c| one(is_upper, c),
                        "istitle" => |c| one(is_title, c),
                        _ => panic!("{method}"),
                    };
                    CHARACTERS.for_each(|c| check(c, is(c).map(|is| is == expected.contains(&c.into()))));
                }
                Python::Makes(expected) => {
                    let make = match &**method {
                        "upper" => upper,
                        "lower" => lower,
                        "capitalize" => capitalized,
                        _ => panic!("{method}"),
                    };
                    for c in CHARACTERS {
                        let text = c.to_string();
                        check(c, make(&text).map(|made| made == *expected.get(&c).unwrap_or(&text)));
                    }
                }
            }
            assert!(wrong.is_empty(), "{method} of {} characters: {:?}", wrong.len(), &wrong[..wrong.len().min(20)]);
        }
        // What nobody can be sure of stays little where texts are made.
        for (method, most) in [("upper", 130), ("lower", 60), ("capitalize", 350), ("islower", 190), ("isupper", 190)] {
            assert!(refused[method] <= most, "{method} is refused for {} characters", refused[method]);
        }
    }
}
