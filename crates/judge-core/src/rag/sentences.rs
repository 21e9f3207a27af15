//! A text cut into the sentences that are asked about, by rule.

use std::collections::BTreeMap;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

/// A sentence and its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// Its characters (Unicode code points), counted from 0, without the end.
    pub chars: Range<usize>,
    /// What it says, as it stands in the text.
    pub text: String,
}

/// The sentences of a text, in their order, by Unicode's rules (UAX #29, section 5) with care for what they do not know:
///
/// * An abbreviation (`Dr.`, `e.g.`, `No. 5`), an initial (`J. Smith`) and a number in front of what it counts end no sentence.
/// * A mark of a source behind a full stop, such as `[2]`, belongs to the sentence before it.
/// * Markdown: an item of a list begins a sentence, behind its bullet or number; so does a line of a quotation. A number is that of an item
///   where another line begins with the same, the one before or the next; else it belongs to the sentence, as in `12. They are red.`. A row
///   of a table is one sentence, and so is a block of code. Headings, the first row of a table and the lines below it claim nothing and are
///   left out, unless the text has nothing else.
/// * A line that ends within a sentence goes on in the next one: one that begins with a small letter, or that follows a full line of
///   prose.
///
/// What has no letter and no digit is no sentence. Places are those of the text as it was given.
///
/// ```
/// let text = "It was built by Dr. Lee in 1931 for $2.5 million.[1] See:\n- It has 102 floors.\n- It is open.";
/// let found = judge_core::rag::sentences(text);
/// let texts: Vec<&str> = found.iter().map(|sentence| sentence.text.as_str()).collect();
/// assert_eq!(texts, [
///     "It was built by Dr. Lee in 1931 for $2.5 million.[1]",
///     "See:",
///     "It has 102 floors.",
///     "It is open.",
/// ]);
/// assert_eq!(found[2].chars, 60..78);
/// ```
#[must_use]
pub fn sentences(text: &str) -> Vec<Sentence> {
    let blocks = blocks(text);
    let mut found: Vec<Range<usize>> = Vec::new();
    for block in blocks.iter().filter(|block| block.kind != Kind::Label) {
        found.extend(of_block(text, block));
    }
    if found.is_empty() {
        found = blocks.iter().flat_map(|block| of_block(text, block)).collect();
    }
    in_chars(text, found)
}

/// The sentences at these bytes of a text, in their order.
fn in_chars(text: &str, found: Vec<Range<usize>>) -> Vec<Sentence> {
    let (mut byte, mut chars) = (0, 0);
    let mut at = |to: usize| {
        chars += text[byte..to].chars().count();
        byte = to;
        chars
    };
    found
        .into_iter()
        .map(|bytes| Sentence { chars: at(bytes.start)..at(bytes.end), text: text[bytes].to_owned() })
        .collect()
}

/// What a block of lines is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Prose, to be cut.
    Prose,
    /// One sentence, whatever stands in it: code, a row of a table.
    Whole,
    /// A heading, or the head of a table.
    Label,
}

/// Lines that belong together, as bytes of the text, without the marks in front of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    kind: Kind,
    bytes: Range<usize>,
}

/// A line that is at least so long is one of running prose, which may go on in the next.
const FULL_LINE: usize = 60;

fn blocks(text: &str) -> Vec<Block> {
    let lines: Vec<Range<usize>> = lines(text);
    let line = |at: usize| lines.get(at).map(|bytes| text[bytes.clone()].trim());
    let mut numbers = BTreeMap::<u16, usize>::new();
    for words in (0..lines.len()).filter_map(line) {
        marks(words, |number| {
            *numbers.entry(number).or_default() += 1;
            true
        });
    }
    // The line that is asked about is counted too.
    let is_item =
        |number: u16| numbers.range(number.saturating_sub(1)..=number + 1).map(|(_, lines)| lines).sum::<usize>() > 1;
    let mut blocks: Vec<Block> = Vec::new();
    // Whether the last block goes on if the next line does.
    let mut is_open = false;
    let mut at = 0;
    while let Some(words) = line(at) {
        let bytes = trimmed(text, lines[at].clone());
        if let Some(fence) = fence(words) {
            let end = (at + 1..lines.len()).find(|&end| line(end).is_some_and(|line| closes(line, fence)));
            // A fence that is never closed goes to the end of the text.
            let last = end.unwrap_or(lines.len());
            if at + 1 < last {
                let bytes = trimmed(text, lines[at + 1].start..lines[last - 1].end);
                blocks.push(Block { kind: Kind::Whole, bytes });
            }
            (at, is_open) = (last + 1, false);
            continue;
        }
        if is_row(words) && line(at + 1).is_some_and(is_rule_of_table) {
            blocks.push(Block { kind: Kind::Label, bytes });
            at += 2;
            while line(at).is_some_and(is_row) {
                blocks.push(Block { kind: Kind::Whole, bytes: trimmed(text, lines[at].clone()) });
                at += 1;
            }
            is_open = false;
            continue;
        }
        let (marked, kind) = marks(words, is_item);
        let bytes = bytes.end - (words.len() - marked)..bytes.end;
        match blocks.last_mut() {
            Some(last)
                if is_open && marked == 0 && kind == Kind::Prose && goes_on(&text[last.bytes.clone()], words) =>
            {
                last.bytes.end = bytes.end;
            }
            _ if bytes.is_empty() => {}
            _ => blocks.push(Block { kind, bytes }),
        }
        is_open = !words.is_empty() && kind == Kind::Prose;
        at += 1;
    }
    blocks
}

/// The lines of a text, without their ends.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let line = |line: &str| {
        let bytes = start..start + line.trim_end_matches(['\n', '\r']).len();
        start += line.len();
        bytes
    };
    text.split_inclusive('\n').map(line).collect()
}

/// The same without white space around it.
fn trimmed(text: &str, bytes: Range<usize>) -> Range<usize> {
    let words = &text[bytes.clone()];
    let start = bytes.start + (words.len() - words.trim_start().len());
    start..start + words.trim().len()
}

/// The character and the length of a fence of code that begins here.
fn fence(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let length = line.chars().take_while(|found| *found == mark).count();
    (length >= 3 && !line[length..].contains(mark)).then_some((mark, length))
}

fn closes(line: &str, (mark, length): (char, usize)) -> bool {
    line.len() >= length && line.chars().all(|found| found == mark)
}

fn is_row(line: &str) -> bool {
    line.starts_with('|') && line.len() > 1
}

fn is_rule_of_table(line: &str) -> bool {
    is_row(line) && line.contains('-') && line.chars().all(|found| ['|', '-', ':', ' '].contains(&found))
}

/// How many bytes the marks in front of a line take, of a list, a quotation or a heading, and what follows them; `is_item` says whether a
/// number is that of an item.
fn marks(line: &str, mut is_item: impl FnMut(u16) -> bool) -> (usize, Kind) {
    let level = line.bytes().take_while(|&byte| byte == b'#').count();
    if (1..=6).contains(&level) && line[level..].starts_with(' ') {
        return (line.len() - line[level..].trim_start().len(), Kind::Label);
    }
    let mut rest = line;
    while let Some((number, inner)) = bullet(rest)
        && number.is_none_or(&mut is_item)
    {
        rest = inner.trim_start();
    }
    (line.len() - rest.len(), Kind::Prose)
}

/// What may be the number of an item, and what follows it, or a bullet or the mark of a quotation; `None` for a line without.
fn bullet(line: &str) -> Option<(Option<u16>, &str)> {
    if let Some(rest) = line.strip_prefix(['-', '*', '+', '•', '–', '·', '>']) {
        return (rest.starts_with(' ') || rest.is_empty() || line.starts_with('>')).then_some((None, rest));
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let label = match line.chars().next() {
        Some(letter) if digits == 0 && letter.is_ascii_alphabetic() => 1,
        _ => digits,
    };
    let rest = line[label..].strip_prefix(['.', ')']).filter(|rest| rest.starts_with(' '))?;
    // `a) …` is an item, `I. Newton` a name; a number of more than three digits is a year.
    let is_item = if digits > 0 { digits <= 3 } else { label == 1 && line[1..].starts_with(')') };
    is_item.then(|| (line[..digits].parse().ok(), rest))
}

/// Whether a paragraph goes on in this line.
fn goes_on(before: &str, line: &str) -> bool {
    let last = before.rsplit('\n').next().unwrap_or(before).trim();
    let is_ended = last.ends_with(|end: char| ".!?:;。！？…".contains(end) || is_closing(end));
    line.starts_with(char::is_lowercase) || (!is_ended && last.chars().count() >= FULL_LINE)
}

fn is_closing(end: char) -> bool {
    "\"')]}”’»*_".contains(end)
}

/// The sentences of a block.
fn of_block(text: &str, block: &Block) -> Vec<Range<usize>> {
    let words = &text[block.bytes.clone()];
    let says = |found: &str| found.contains(char::is_alphanumeric);
    if block.kind != Kind::Prose {
        return if says(words) { vec![block.bytes.clone()] } else { Vec::new() };
    }
    let plain = without_long_runs(&plain(words));
    let mut found: Vec<Range<usize>> = Vec::new();
    let (mut start, mut has_words) = (0, false);
    for (at, piece) in plain.split_sentence_bound_indices() {
        let end = at + piece.len();
        has_words |= says(piece);
        if end < plain.len() && (!has_words || is_unfinished(&plain[start..end], &plain[end..])) {
            continue;
        }
        found.push(start..end);
        (start, has_words) = (end, false);
    }
    // What says nothing at the end, such as an emoji, belongs to the sentence before it.
    if let Some(last) = found.pop_if(|last| !says(&plain[last.clone()]))
        && let Some(before) = found.last_mut()
    {
        before.end = last.end;
    }
    let first = block.bytes.start;
    found.into_iter().map(|found| trimmed(text, first + found.start..first + found.end)).collect()
}

/// The same text, byte by byte as long, in which ends of lines, marks of sources and code do not look like ends of sentences.
fn plain(words: &str) -> String {
    let mut plain = String::with_capacity(words.len());
    let mut rest = words;
    while let Some(next) = rest.chars().next() {
        let length = match next {
            '\n' | '\r' | '\u{b}' | '\u{c}' => {
                plain.push(' ');
                1
            }
            '[' => match source_mark(rest) {
                Some(length) => {
                    plain.extend(std::iter::repeat_n(')', length));
                    length
                }
                None => {
                    plain.push('[');
                    1
                }
            },
            '`' => match rest[1..].find('`') {
                Some(end) => {
                    plain.push('`');
                    for inner in rest[1..=end].chars() {
                        let shown = if inner.is_alphanumeric() { 'x' } else { '-' };
                        plain.extend(std::iter::repeat_n(shown, inner.len_utf8()));
                    }
                    plain.push('`');
                    end + 2
                }
                None => {
                    plain.push('`');
                    1
                }
            },
            '\u{85}' | '\u{2028}' | '\u{2029}' => {
                plain.extend(std::iter::repeat_n(' ', next.len_utf8()));
                next.len_utf8()
            }
            other => {
                plain.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    plain
}

/// The length of a mark of a source, such as `[1]`, `[2, 3]` or `[^4]`, that a text begins with.
fn source_mark(text: &str) -> Option<usize> {
    // No further than what a mark may have: the text behind it is not searched for each bracket in it.
    let rest = text.strip_prefix('[')?;
    let behind = rest.trim_start_matches(|found: char| found.is_ascii_digit() || ", ^-".contains(found));
    let inner = &rest[..rest.len() - behind.len()];
    (behind.starts_with(']') && inner.contains(|found: char| found.is_ascii_digit())).then(|| inner.len() + 2)
}

/// So many characters in a row without a letter or a digit: more than stand behind any full stop, sources included.
const LONGEST_RUN: usize = 128;

/// The same text, byte by byte as long, with a sign in the midst of each longer run, which ends the brackets and the white space that
/// belong to a full stop: for every one of these, Unicode's rules are looked up ahead to the next letter.
fn without_long_runs(plain: &str) -> String {
    let mut shown = String::with_capacity(plain.len());
    let mut run = 0;
    // With their marks: a vowel sign on a bracket is no letter.
    for next in plain.graphemes(true) {
        run = if next.starts_with(char::is_alphanumeric) { 0 } else { run + 1 };
        if run == LONGEST_RUN {
            shown.extend(std::iter::repeat_n('$', next.len()));
        } else {
            shown.push_str(next);
        }
    }
    shown
}

/// Words with a full stop that end no sentence, in small letters.
const ABBREVIATIONS: [&str; 62] = [
    "mr", "mrs", "ms", "dr", "prof", "sr", "st", "mt", "gen", "col", "lt", "capt", "sgt", "rep", "sen", "gov", "hon",
    "rev", "pres", "vs", "e.g", "i.e", "eg", "ie", "cf", "al", "fig", "figs", "eq", "sec", "ch", "vol", "pp", "p",
    "no", "nos", "art", "approx", "ca", "est", "dept", "univ", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep",
    "sept", "oct", "nov", "dec", "bzw", "z.b", "d.h", "u.a", "ggf", "vgl", "nr", "abs",
];

/// Of these, those that stand in front of a number alone.
const BEFORE_NUMBERS: [&str; 20] = [
    "fig", "figs", "eq", "sec", "ch", "vol", "pp", "p", "no", "nos", "art", "mar", "est", "approx", "ca", "abs", "nr",
    "al", "dec", "sep",
];

/// Words that begin a sentence rather than go on with a name behind `U.S.` and the like.
const STARTERS: [&str; 24] = [
    "the", "a", "an", "it", "its", "he", "she", "they", "this", "that", "these", "those", "we", "i", "you", "in", "on",
    "at", "but", "and", "however", "for", "as", "there",
];

/// What is longer, in characters, is no abbreviation.
const LONGEST_WORD: usize = 40;

/// Whether a sentence goes on behind what Unicode's rules take for its end.
fn is_unfinished(so_far: &str, rest: &str) -> bool {
    let Some(before) = so_far.trim_end().strip_suffix('.') else { return false };
    let is_edge = |found: char| found.is_whitespace() || "([\"'“‘".contains(found);
    let length = before.chars().rev().take(LONGEST_WORD + 1).take_while(|&found| !is_edge(found)).count();
    if length > LONGEST_WORD {
        return false;
    }
    let word = &before[before.char_indices().rev().take(length).last().map_or(before.len(), |(at, _)| at)..];
    let next = rest.trim_start();
    let follows_number = next.starts_with(|found: char| found.is_ascii_digit());
    if word.chars().all(|found| found.is_ascii_digit()) {
        // `1. First`, within a line: the number of an item.
        return before.len() == word.len();
    }
    let mut letters = word.chars();
    if let (Some(letter), None) = (letters.next(), letters.next()) {
        // An initial; `I` is a word.
        return letter.is_uppercase() && (letter != 'I' || before.len() == word.len());
    }
    let lower = word.to_lowercase();
    if BEFORE_NUMBERS.contains(&lower.as_str()) {
        return follows_number;
    }
    if ABBREVIATIONS.contains(&lower.as_str()) {
        return true;
    }
    // `U.S.`, `p.m.`: a name goes on, a new sentence does not.
    let is_acronym = word.split('.').all(|part| part.chars().count() == 1 && part.chars().all(char::is_alphabetic));
    let first = next.split(|found: char| !found.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    is_acronym && word.contains('.') && !STARTERS.contains(&first.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        let found = sentences(text);
        let chars: Vec<char> = text.chars().collect();
        for Sentence { chars: place, text } in &found {
            assert_eq!(chars[place.clone()].iter().collect::<String>(), *text);
        }
        found.into_iter().map(|sentence| sentence.text).collect()
    }

    #[test]
    fn prose_is_cut_where_a_sentence_ends() {
        for (text, expected) in [
            ("", vec![]),
            (" \n ", vec![]),
            ("Paris", vec!["Paris"]),
            ("One. Two! Three? Four", vec!["One.", "Two!", "Three?", "Four"]),
            ("Dr. A. B. Lee met Mr. Roe. They spoke.", vec!["Dr. A. B. Lee met Mr. Roe.", "They spoke."]),
            (
                "Pi is 3.14. See no. 5 and Fig. 2. No. Never.",
                vec!["Pi is 3.14.", "See no. 5 and Fig. 2.", "No.", "Never."],
            ),
            ("The U.S. Army left the U.S. The war ended.", vec!["The U.S. Army left the U.S.", "The war ended."]),
            (
                "It opens at 9 a.m. Monday. Fruit, e.g. Apples.",
                vec!["It opens at 9 a.m. Monday.", "Fruit, e.g. Apples."],
            ),
            ("So it is.[1][2, 3] Then more [4]. End.", vec!["So it is.[1][2, 3]", "Then more [4].", "End."]),
            ("\"Stop.\" He left. (It rained.) Then", vec!["\"Stop.\"", "He left.", "(It rained.)", "Then"]),
            ("Call `a.b. C` now. Done! 🙂", vec!["Call `a.b. C` now.", "Done! 🙂"]),
            ("`-`.A", vec!["`-`.A"]),
            ("これは本です。あれは猫です。", vec!["これは本です。", "あれは猫です。"]),
            ("Steps: 1. Open it. 2. Close it.", vec!["Steps: 1.", "Open it.", "2. Close it."]),
            (
                "So did I. He went. It was he and I. J. Roe saw.",
                vec!["So did I.", "He went.", "It was he and I.", "J. Roe saw."],
            ),
            ("Wait... What? Yes!!! Ok.", vec!["Wait...", "What?", "Yes!!!", "Ok."]),
        ] {
            assert_eq!(texts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn markdown_is_cut_by_its_lines() {
        let text = "# Towers\n\nThere are two:\n1. **Eiffel**. It is high.\n2) Tokyo\n   - red, and\n     white\n> Both are *old*.\n\n\
                    | name | height |\n|---|---:|\n| Eiffel | 330 m. High. |\n| Tokyo | 333 m |\n\n\
                    ```python\nprint(1). Not\nx = 2\n```\nAfter it.\n---\nEnd";
        assert_eq!(
            texts(text),
            [
                "There are two:",
                "**Eiffel**.",
                "It is high.",
                "Tokyo",
                "red, and\n     white",
                "Both are *old*.",
                "| Eiffel | 330 m. High. |",
                "| Tokyo | 333 m |",
                "print(1). Not\nx = 2",
                "After it.",
                "End",
            ]
        );
        assert_eq!(texts("## Paris"), ["Paris"], "a text of nothing else");
        assert_eq!(texts("12. They are red."), ["12. They are red."], "a number that is the answer");
        assert_eq!(texts("- 3) apples\n2. It is.\n40. No."), ["apples", "It is.", "40. No."]);
        assert_eq!(texts("1. Open it.\n1. Close it.\n\n4. Go."), ["Open it.", "Close it.", "4. Go."]);
        assert_eq!(texts("```\nopen"), ["open"]);
        assert_eq!(texts("| a |\n|---|"), ["| a |"]);
    }

    #[test]
    fn a_line_may_end_within_a_sentence() {
        let wrapped = "The tower was finished in the spring of that year, and it was for a\nLong time the highest building.\r\nIt is old.";
        assert_eq!(
            texts(wrapped),
            [
                "The tower was finished in the spring of that year, and it was for a\nLong time the highest building.",
                "It is old."
            ]
        );
        assert_eq!(texts("Paris\nLondon\nin England"), ["Paris", "London\nin England"]);
        assert_eq!(texts("a\u{2028}b. C"), ["a\u{2028}b.", "C"]);
    }

    /// What costs more time than its length does is found by these taking minutes.
    #[test]
    fn a_text_of_nothing_but_marks_is_cut_in_time() {
        let many = |text: &str| text.repeat(50_000);
        for text in [
            many("["),
            many("[1, "),
            many("a`"),
            many("! "),
            format!("A.{}B", many("(")),
            format!("A.{}B", many("(\u{903}")),
            format!("A.{}B", many(" ")),
            format!("P.{}", many("日.")),
            format!("Mr. {}", many("Mr. ")),
            many("```\n"),
            many("- "),
            many("|\n"),
        ] {
            let found = sentences(&format!("{text} End"));
            let begins: String = text.chars().take(9).collect();
            assert!(found.last().is_some_and(|last| last.text.ends_with("End")), "{begins}");
        }
        // A long run in the midst of a sentence does not cut it.
        let spaces = " ".repeat(300);
        assert_eq!(
            texts(&format!("It is old.{spaces}It is{spaces}high.")),
            ["It is old.", &format!("It is{spaces}high.")]
        );
    }

    proptest::proptest! {
        #[test]
        fn every_letter_of_prose_is_in_one_sentence(text in "[a-zA-Z0-9 .!?\\n\\[\\]`|*#>é。-]{0,80}") {
            let found = sentences(&text);
            let mut end = 0;
            for sentence in &found {
                proptest::prop_assert!(sentence.chars.start >= end && sentence.chars.end > sentence.chars.start);
                proptest::prop_assert!(sentence.text.contains(char::is_alphanumeric));
                proptest::prop_assert_eq!(sentence.text.trim(), &sentence.text);
                end = sentence.chars.end;
            }
            let has_words = text.contains(char::is_alphanumeric);
            proptest::prop_assert_eq!(found.is_empty(), !has_words, "{:?}", text);
        }
    }
}
