//! The lines of a journal: `CHECK TAB BODY NEWLINE`, where the check is the short hash of the body.
//!
//! A body is `ROW TAB FATE TAB ATTACHED TAB JSON`, `synced`, `resumed`, `forgotten TAB ROW` or `finishing TAB JSON`. JSON has no newlines:
//! `body.rs` lets none through. `ATTACHED` is the short hash of what belongs to the row and lies elsewhere, or `-`.

use judge_core::Reason;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as NoReason, StrDeserializer};

use crate::Fate;

/// Length of a short hash: 64 bits, in hexadecimal. It finds accidents; it is no protection from intent.
const HASH: usize = 16;
const SYNCED: &str = "synced";
const RESUMED: &str = "resumed";
const FORGOTTEN: &str = "forgotten";
const FINISHING: &str = "finishing";
const SCORED: &str = "scored";
/// Appended to a fate's word for a row with a human score.
const GRADED: &str = "+graded";

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A row is written.
    Row { row: usize, fate: &'a str, attached: Option<&'a str>, json_at: usize },
    /// All lines before this, and what is attached to them, are on the disk.
    Synced,
    /// A run was resumed here.
    Resumed,
    /// What is attached to a row is lost, so the row is not done.
    Forgotten { row: usize },
    /// The output is being put in place; what remains is in the JSON.
    Finishing { json: &'a [u8] },
}

impl<'a> Line<'a> {
    /// Reads a line with its newline; `None` if it is damaged.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let (check, rest) = line.split_at_checked(HASH)?;
        let body = rest.strip_prefix(b"\t")?.strip_suffix(b"\n")?;
        if short_hash(&[body]).as_bytes() != check {
            return None;
        }
        let mut fields = body.splitn(4, |&byte| byte == b'\t');
        let row = match std::str::from_utf8(fields.next()?).ok()? {
            SYNCED => return Some(Self::Synced),
            RESUMED => return Some(Self::Resumed),
            FORGOTTEN => {
                let row = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
                return Some(Self::Forgotten { row });
            }
            FINISHING => return body.get(FINISHING.len() + 1..).map(|json| Self::Finishing { json }),
            row => row.parse().ok()?,
        };
        let fate = std::str::from_utf8(fields.next()?).ok()?;
        let attached = std::str::from_utf8(fields.next()?).ok()?;
        let json = fields.next()?;
        let json_at = line.len() - 1 - json.len(); // all but the newline is behind it
        Some(Self::Row { row, fate, attached: Some(attached).filter(|&hash| hash != "-"), json_at })
    }
}

/// A line for a row; the second value is where its JSON starts.
pub(super) fn row(row: usize, fate: Fate, attached: Option<&str>, json: &[u8]) -> (Vec<u8>, usize) {
    let mut body = format!("{row}\t{}\t{}\t", fate_name(fate), attached.unwrap_or("-")).into_bytes();
    let json_at = HASH + 1 + body.len();
    body.extend(json);
    (checked(&body), json_at)
}

pub(super) fn synced() -> Vec<u8> {
    checked(SYNCED.as_bytes())
}

pub(super) fn resumed() -> Vec<u8> {
    checked(RESUMED.as_bytes())
}

pub(super) fn forgotten(row: usize) -> Vec<u8> {
    checked(format!("{FORGOTTEN}\t{row}").as_bytes())
}

pub(super) fn finishing(json: &[u8]) -> Vec<u8> {
    checked(&[FINISHING.as_bytes(), b"\t", json].concat())
}

fn checked(body: &[u8]) -> Vec<u8> {
    [short_hash(&[body]).as_bytes(), b"\t", body, b"\n"].concat()
}

/// The first 64 bits of the BLAKE3 hash of the parts, one after the other.
pub(crate) fn short_hash(parts: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new();
    parts.iter().for_each(|part| _ = hasher.update(part));
    hasher.finalize().to_hex()[..HASH].to_owned() // has four times as many
}

fn fate_name(fate: Fate) -> String {
    let word = fate.unscored.map_or(SCORED, Reason::as_str);
    format!("{word}{}", if fate.graded { GRADED } else { "" })
}

/// Reads what [`row`] wrote; `None` for a reason that this version does not know.
pub(super) fn fate(name: &str) -> Option<Fate> {
    let (word, graded) = name.strip_suffix(GRADED).map_or((name, false), |word| (word, true));
    if word == SCORED {
        return Some(Fate { unscored: None, graded });
    }
    let word: StrDeserializer<'_, NoReason> = word.into_deserializer();
    Reason::deserialize(word).ok().map(|reason| Fate { unscored: Some(reason), graded })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        for fate_of_row in [
            Fate::SCORED,
            Fate { graded: true, ..Fate::SCORED },
            Fate::unscored(Reason::TooLong),
            Fate { graded: true, ..Fate::unscored(Reason::NoLabel) },
        ] {
            for attached in [None, Some("0123456789abcdef")] {
                let (line, json_at) = row(17, fate_of_row, attached, br#"{"a":"b\tc"}"#);
                let Some(Line::Row { row: 17, fate: name, attached: found, json_at: at }) = Line::parse(&line) else {
                    panic!("{line:?}")
                };
                assert_eq!((fate(name), found, at), (Some(fate_of_row), attached, json_at));
                assert_eq!(&line[json_at..], b"{\"a\":\"b\\tc\"}\n");
            }
        }
        assert_eq!(Line::parse(&synced()), Some(Line::Synced));
        assert_eq!(Line::parse(&resumed()), Some(Line::Resumed));
        assert_eq!(Line::parse(&forgotten(5)), Some(Line::Forgotten { row: 5 }));
        assert_eq!(Line::parse(&finishing(b"{}")), Some(Line::Finishing { json: b"{}" }));
        assert_eq!(fate("of another version"), None);
    }

    #[test]
    fn any_change_of_a_byte_is_noticed() {
        let (line, _) = row(3, Fate::SCORED, None, br#"{"id":"a"}"#);
        for at in 0..line.len() {
            let mut damaged = line.clone();
            damaged[at] ^= 1;
            assert_eq!(Line::parse(&damaged), None, "{at}");
            assert_eq!(Line::parse(&line[..at]), None, "{at}");
            assert_eq!(Line::parse(&[&line[..at], &vec![0; line.len() - at]].concat()), None, "{at}");
        }
    }
}
