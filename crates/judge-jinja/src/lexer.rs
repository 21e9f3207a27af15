//! From the text of a template to its pieces, as Jinja2's lexer cuts it: plain text, whose white space is taken away as `trim_blocks`,
//! `lstrip_blocks` and the signs in tags say, and the tokens of each tag.
//!
//! All line breaks become LF first, and one at the very end goes: Jinja2 does both before it reads anything.

use std::cell::Cell;
use std::sync::Arc;

use super::fault::{Result, TemplateError, fault, refuse, too_large};
use super::python_text::is_space;

/// What a template is made of.
pub(crate) enum Piece {
    /// Text that is written as it is; never empty.
    Data(Arc<str>),
    /// `{{ … }}`: its tokens, and the line where it begins.
    Print(Vec<Token>, usize),
    /// `{% … %}`, in the same way.
    Statement(Vec<Token>, usize),
}

/// A token of a tag, with its line.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) line: usize,
}

/// The kinds of tokens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Name(Arc<str>),
    Str(String),
    Int(i128),
    Float(f64),
    /// One of [`OPERATORS`].
    Operator(&'static str),
}

/// Jinja2's operators and brackets, longest first.
const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
    ":", "|", ",", ";",
];

/// Cuts a template into its pieces.
///
/// # Errors
/// For a tag, a comment or a text that never ends, and for characters and escapes that cannot be read; with the line.
pub(crate) fn pieces(source: &str) -> Result<Vec<Piece>> {
    let text = source.replace("\r\n", "\n").replace('\r', "\n");
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let mut lexer = Lexer { text, at: 0, pieces: Vec::new(), line_starts: true, known: Cell::new((0, 1)) };
    while lexer.at < text.len() {
        lexer.next()?;
    }
    Ok(lexer.pieces)
}

struct Lexer<'s> {
    text: &'s str,
    /// Byte offset of what is read next.
    at: usize,
    pieces: Vec<Piece>,
    /// Whether what was read last ended a line; true at the start.
    line_starts: bool,
    /// An offset with its line: lines are counted on from there.
    known: Cell<(usize, usize)>,
}

impl<'s> Lexer<'s> {
    /// The line of an offset, from 1.
    fn line(&self, at: usize) -> usize {
        let (from, line) = self.known.get();
        let (from, line) = if at < from { (0, 1) } else { (from, line) };
        let line = line + self.text[from..at].matches('\n').count();
        self.known.set((at, line));
        line
    }

    /// An error that is placed at an offset.
    fn fault<T>(&self, at: usize, message: &str) -> Result<T> {
        fault(message).map_err(|e: TemplateError| e.at(self.line(at)))
    }

    /// Reads plain text up to the next tag, and that tag.
    fn next(&mut self) -> Result<()> {
        let rest = &self.text[self.at..];
        let found = rest.as_bytes().windows(2).position(|pair| matches!(pair, b"{{" | b"{%" | b"{#"));
        let Some(found) = found else {
            self.data(rest, "+"); // no tag follows that could take white space away
            self.at = self.text.len();
            return Ok(());
        };
        let (begin, open) = (self.at + found, &rest[found..found + 2]);
        let (sign, inside) = sign(&self.text[begin + 2..]);
        self.data(&rest[..found], if open == "{{" && sign.is_empty() { "+" } else { sign });
        match open {
            "{#" => {
                // With nothing behind it Jinja2 does not miss its end.
                if inside.is_empty() {
                    self.at = self.text.len();
                    return Ok(());
                }
                let Some(end) = inside.find("#}") else { return self.fault(begin, "Missing end of comment tag") };
                let signed = inside[..end].chars().next_back().filter(|c| matches!(c, '-' | '+'));
                self.close(&inside[end + 2..], signed, true);
            }
            "{%" if let Some((sign, rest)) = raw(inside, "raw") => {
                // Behind `raw` no line break is taken away.
                let mut body = if sign == "-" { rest.trim_start_matches(is_space) } else { rest };
                self.line_starts = false;
                if body.is_empty() {
                    self.at = self.text.len();
                    return Ok(());
                }
                let from = body;
                let (length, sign, end, rest) = loop {
                    let Some(tag) = body.find("{%") else { return self.fault(begin, "Missing end of raw directive") };
                    let (first, tail) = self::sign(&body[tag + 2..]);
                    if let Some((last, rest)) = raw(tail, "endraw") {
                        break (from.len() - body.len() + tag, first, last, rest);
                    }
                    body = &body[tag + 2..];
                };
                self.line_starts = self.text[..self.text.len() - from.len()].ends_with('\n');
                self.data(&from[..length], sign);
                self.close(rest, end.chars().next(), true);
            }
            _ => {
                let line = self.line(begin);
                let (tokens, rest, sign) = self.tokens(inside, begin, open == "{{")?;
                self.close(rest, sign, open == "{%");
                self.pieces.push(if open == "{{" {
                    Piece::Print(tokens, line)
                } else {
                    Piece::Statement(tokens, line)
                });
            }
        }
        Ok(())
    }

    /// Puts plain text down, without the white space at its end that the sign of the tag behind it takes away.
    fn data(&mut self, text: &str, sign: &str) {
        let kept = match sign {
            "-" => text.trim_end_matches(is_space),
            "+" => text,
            _ => {
                let line = text.rfind('\n').map_or(0, |i| i + 1);
                if (line > 0 || self.line_starts) && text[line..].chars().all(is_space) { &text[..line] } else { text }
            }
        };
        if !kept.is_empty() {
            self.pieces.push(Piece::Data(kept.into()));
        }
    }

    /// Goes on behind a tag that ended with this sign, where `rest` begins: `-` takes white space away, and no sign one line
    /// break behind a statement or comment.
    fn close(&mut self, rest: &'s str, sign: Option<char>, trims: bool) {
        let after = match sign {
            Some('-') => rest.trim_start_matches(is_space),
            None if trims => rest.strip_prefix('\n').unwrap_or(rest),
            _ => rest,
        };
        self.at = self.text.len() - after.len();
        self.line_starts = self.text[..self.at].ends_with('\n');
    }

    /// The tokens of a tag that begins at `begin`, what is behind it, and the sign of its end.
    fn tokens(&self, inside: &'s str, begin: usize, prints: bool) -> Result<(Vec<Token>, &'s str, Option<char>)> {
        let close = if prints { "}}" } else { "%}" };
        let mut tokens = Vec::new();
        let mut open = Vec::new();
        let mut rest = inside;
        loop {
            rest = rest.trim_start_matches(is_space);
            let at = self.text.len() - rest.len();
            let line = self.line(at);
            let Some(first) = rest.chars().next() else { return self.fault(begin, "unexpected end of template") };
            if open.is_empty() {
                let (sign, end) = sign(rest);
                if let Some(after) = end.strip_prefix(close).filter(|_| !prints || sign != "+") {
                    return Ok((tokens, after, sign.chars().next()));
                }
            }
            let (kind, length) = match first {
                '"' | '\'' => {
                    let Some(length) = string_length(rest, first) else {
                        return self.fault(at, "a text in a tag never ends");
                    };
                    let content = unescape(&rest[1..length - 1]).map_err(|e| e.at(line))?;
                    (Kind::Str(content), length)
                }
                c if c.is_ascii_digit() => number(rest).map_err(|e| e.at(line))?,
                c if c.is_alphanumeric() || c == '_' => {
                    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                    (Kind::Name(rest[..length].into()), length)
                }
                c => {
                    let Some(operator) = OPERATORS.iter().find(|o| rest.starts_with(**o)) else {
                        return self.fault(at, &format!("unexpected char {c:?}"));
                    };
                    match *operator {
                        "(" => open.push(")"),
                        "[" => open.push("]"),
                        "{" => open.push("}"),
                        o @ (")" | "]" | "}") if open.pop() != Some(o) => {
                            return self.fault(at, &format!("unexpected {o:?}"));
                        }
                        _ => {}
                    }
                    (Kind::Operator(operator), operator.len())
                }
            };
            tokens.push(Token { kind, line });
            rest = &rest[length..];
        }
    }
}

/// The sign that a text starts with, `-`, `+` or none, and what follows.
fn sign(text: &str) -> (&str, &str) {
    text.split_at(usize::from(text.starts_with(['-', '+'])))
}

/// Reads `name %}` with an optional sign before the end: that sign, and what follows. A `raw` itself takes no `+` there.
fn raw<'t>(inside: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let tail = inside.trim_start_matches(is_space).strip_prefix(name)?.trim_start_matches(is_space);
    let (sign, tail) = sign(tail);
    Some((sign, tail.strip_prefix("%}")?)).filter(|_| name == "endraw" || sign != "+")
}

/// Length of the text that `text` starts with, both quotes included; `None` if it never ends. A backslash takes the next
/// character along.
fn string_length(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().skip(1).find_map(|(i, c)| {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return Some(i + 1);
        }
        None
    })
}

/// The escapes of a text in a tag, which Jinja2 leaves to Python's codec `unicode-escape`.
fn unescape(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(code) = rest.next() else { return fault("\\ at end of string") };
        let digits = match code {
            '\n' => continue,
            '\\' | '\'' | '"' | 'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' => {
                out.push(match code {
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    'v' => '\u{b}',
                    itself => itself,
                });
                continue;
            }
            'x' => 2,
            'u' => 4,
            'U' => 8,
            'N' => return refuse("the escape \\N"),
            '0'..='7' => {
                let mut value = code.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = rest.clone().next().and_then(|c| c.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    rest.next();
                }
                out.extend(char::from_u32(value));
                continue;
            }
            code if code.is_ascii() => {
                out.push('\\');
                out.push(code);
                continue;
            }
            // Python escapes what is not ASCII first, and the two backslashes are then read as one.
            code => return refuse(format!("the escape \\{code}")),
        };
        let tail = rest.as_str();
        let value = tail.get(..digits).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(value) = value.and_then(|d| u32::from_str_radix(d, 16).ok()) else {
            return fault(format!("truncated escape \\{code}"));
        };
        match char::from_u32(value) {
            Some(c) => out.push(c),
            None => return refuse(format!("the escape \\{code}{value:0digits$x}, which is no character,")),
        }
        rest = tail[digits..].chars();
    }
    Ok(out)
}

/// The number that `text` starts with, and its length. Underscores between digits are left out.
fn number(text: &str) -> Result<(Kind, usize)> {
    let digits = |from: usize, radix: u32| {
        let mut end = from;
        let bytes = text.as_bytes();
        let is_digit = |i: usize| bytes.get(i).is_some_and(|b| char::from(*b).is_digit(radix));
        while is_digit(end) || (end > from && bytes.get(end) == Some(&b'_') && is_digit(end + 1)) {
            end += 1;
        }
        end
    };
    let plain = |from: usize, to: usize| text[from..to].replace('_', "");
    for (prefix, radix) in [("0b", 2), ("0o", 8), ("0x", 16)] {
        if text.get(..2).is_some_and(|p| p.eq_ignore_ascii_case(prefix)) {
            let start = 2 + usize::from(text[2..].starts_with('_'));
            let end = digits(start, radix);
            if end > start {
                return whole(i128::from_str_radix(&plain(start, end), radix)).map(|n| (n, end));
            }
        }
    }
    let whole_end = digits(0, 10);
    let mut end = whole_end;
    if text[end..].starts_with('.') && digits(end + 1, 10) > end + 1 {
        end = digits(end + 1, 10);
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        if digits(end + 1 + sign, 10) > end + 1 + sign {
            end = digits(end + 1 + sign, 10);
        }
    }
    if end > whole_end {
        return match plain(0, end).parse::<f64>() {
            // Jinja2 writes it into Python code as `inf`, which is no number there.
            Ok(x) if x.is_infinite() => refuse(format!("the number {}, which is infinite,", &text[..end])),
            Ok(x) => Ok((Kind::Float(x), end)),
            Err(_) => fault(format!("{:?} is no number", &text[..end])),
        };
    }
    // Jinja2 reads `012` as two numbers, which no expression can have side by side.
    if whole_end > 1 && text.starts_with('0') && text[..whole_end].bytes().any(|b| b.is_ascii_digit() && b != b'0') {
        return fault(format!("{:?} is no number", &text[..whole_end]));
    }
    whole(plain(0, whole_end).parse()).map(|n| (n, whole_end))
}

/// A whole number that was read.
fn whole(read: std::result::Result<i128, std::num::ParseIntError>) -> Result<Kind> {
    read.map(Kind::Int).or_else(|_| too_large())
}
