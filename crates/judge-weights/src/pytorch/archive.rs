//! The entries of a zip archive, with and without its extension for files beyond 4 GiB. Only what torch.save uses: one
//! disk, no encryption, no compression.

use std::collections::BTreeMap;
use std::ops::Range;

/// Where the list of entries is said to be, at the end of the file.
const END: &[u8] = b"PK\x05\x06";
/// The same with 64 bits, and where that is.
const END_64: (&[u8], &[u8]) = (b"PK\x06\x06", b"PK\x06\x07");
/// An entry in the list.
const LISTED: &[u8] = b"PK\x01\x02";
/// An entry in its place.
const ENTRY: &[u8] = b"PK\x03\x04";
/// Bytes of the end of a file without the comment, which has at most `u16::MAX`.
const END_LENGTH: usize = 22;

/// What is wrong with an archive of something else.
const NO_PICKLE: &str = "the archive has no data.pkl, which describes the tensors: it is no file of torch.save";

/// What the list says of an entry.
struct Listed {
    /// The method by which it is compressed; 0 for none.
    method: u64,
    /// Whether it is encrypted.
    is_encrypted: bool,
    /// Its bytes, compressed or not.
    size: u64,
    /// Where it begins, with a header of its own.
    header: u64,
}

/// A zip archive in memory.
pub(super) struct Archive<'a> {
    file: &'a [u8],
    entries: BTreeMap<&'a str, Listed>,
}

impl<'a> Archive<'a> {
    /// Reads the list of entries.
    ///
    /// # Errors
    /// What is wrong, for what is no archive, and for a list that leads out of the file.
    pub(super) fn open(file: &'a [u8]) -> Result<Self, String> {
        // A pickle of protocol 2 that begins with the integer which such files begin with.
        if file.starts_with(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.") {
            return Err("the format of PyTorch before 1.6 is not supported, only zip archives: load the file with torch.load and save \
                it again with torch.save, or the model with save_pretrained of transformers, which writes safetensors"
                .to_owned());
        }
        if !file.starts_with(ENTRY) {
            return Err(no_archive("the first entry"));
        }
        let earliest = file.len().saturating_sub(END_LENGTH + usize::from(u16::MAX));
        let end = (earliest..file.len()).rev().find(|&at| file[at..].starts_with(END));
        let end = end.filter(|end| file.len() - end >= END_LENGTH).ok_or_else(|| no_archive("the end"))?;
        let (mut at, mut length) = (number(file, end + 16, 4)?, number(file, end + 12, 4)?);
        if let Some(locator) = end.checked_sub(20).filter(|&at| file[at..].starts_with(END_64.1)) {
            let wide = index(number(file, locator + 8, 8)?, locator)?;
            if !file.get(wide..).is_some_and(|rest| rest.starts_with(END_64.0)) {
                return Err(damaged("no list where one is said to be", locator));
            }
            (length, at) = (number(file, wide + 40, 8)?, number(file, wide + 48, 8)?);
        }
        let start = index(at, end)?;
        let stop = index(at.saturating_add(length), end)?;
        let mut at = start;
        let mut entries = BTreeMap::new();
        while at < stop {
            if !file.get(at..).is_some_and(|rest| rest.starts_with(LISTED)) {
                return Err(damaged("no entry of the list", at));
            }
            let [name, extra, comment] = [28, 30, 32].map(|place| length_at(file, at + place));
            let (name, extra, comment) = (name?, extra?, comment?);
            let text = part(file, at + 46, name)?;
            let text = std::str::from_utf8(text).map_err(|_| damaged("a name that is not UTF-8", at))?;
            let mut sizes = [number(file, at + 24, 4)?, number(file, at + 20, 4)?, number(file, at + 42, 4)?];
            widen(&mut sizes, part(file, at + 46 + name, extra)?, at)?;
            let [size, packed, header] = sizes;
            let (flags, method) = (number(file, at + 8, 2)?, number(file, at + 10, 2)?);
            if method == 0 && size != packed {
                return Err(damaged("two sizes of one entry", at));
            }
            let listed = Listed { method, is_encrypted: flags & 1 == 1, size, header };
            // Readers differ in which of the two they take.
            if entries.insert(text, listed).is_some() {
                return Err(damaged("a second entry of one name", at));
            }
            at += 46 + name + extra + comment;
        }
        Ok(Self { file, entries })
    }

    /// The folder inside the archive that has `data.pkl`, with its slash, and the bytes of that.
    ///
    /// # Errors
    /// What is wrong with an archive of something else, and those of [`bytes`](Self::bytes).
    pub(super) fn pickle(&self) -> Result<(&'a str, &'a [u8]), String> {
        let name = self.entries.keys().find(|name| **name == "data.pkl" || name.ends_with("/data.pkl"));
        let name = *name.ok_or(NO_PICKLE)?;
        let bytes = self.bytes(name)?.ok_or(NO_PICKLE)?;
        Ok((name.strip_suffix("data.pkl").unwrap_or_default(), bytes))
    }

    /// The bytes of an entry; `None` if there is none of this name.
    pub(super) fn bytes(&self, name: &str) -> Result<Option<&'a [u8]>, String> {
        Ok(self.range(name)?.map(|range| &self.file[range]))
    }

    /// Where the bytes of an entry lie, inside the file; `None` if there is none of this name.
    ///
    /// # Errors
    /// What is wrong with one that is compressed or encrypted, and with one that leads out of the file.
    pub(super) fn range(&self, name: &str) -> Result<Option<Range<usize>>, String> {
        let Some(listed) = self.entries.get(name) else { return Ok(None) };
        let refused = |found: &str| {
            format!(
                "the entry {name} is {found}, expected plain bytes as torch.save writes them: save the file again with it"
            )
        };
        if listed.is_encrypted {
            return Err(refused("encrypted"));
        }
        if listed.method != 0 {
            return Err(refused("compressed"));
        }
        let header = index(listed.header, 0)?;
        if !self.file.get(header..).is_some_and(|rest| rest.starts_with(ENTRY)) {
            return Err(damaged("no entry where one is listed", header));
        }
        let start = header + 30 + length_at(self.file, header + 26)? + length_at(self.file, header + 28)?;
        let size = index(listed.size, header)?;
        part(self.file, start, size).map(|_| Some(start..start + size))
    }
}

/// Replaces sizes and the place that do not fit 32 bits by those of 64, which follow one another in a part of its own.
fn widen(sizes: &mut [u64; 3], mut extra: &[u8], at: usize) -> Result<(), String> {
    const WIDE: u64 = 1;
    while extra.len() >= 4 {
        let (kind, length) = (number(extra, 0, 2)?, length_at(extra, 2)?);
        let content = extra.get(4..4 + length).ok_or_else(|| damaged("an entry of the list is cut", at))?;
        if kind == WIDE {
            let mut numbers = content.as_chunks::<8>().0.iter();
            for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
                let wide = numbers.next().ok_or_else(|| damaged("an entry of the list is cut", at))?;
                *size = u64::from_le_bytes(*wide);
            }
            return Ok(());
        }
        extra = &extra[4 + length..];
    }
    Ok(())
}

/// What is wrong with something else than an archive, or one that was cut off.
fn no_archive(missing: &str) -> String {
    format!("truncated, or no zip archive as torch.save writes it: {missing} is missing; fetch the file again")
}

/// What is wrong with an archive whose list contradicts itself or the file.
fn damaged(what: &str, at: usize) -> String {
    format!("damaged zip archive: {what} at byte {at}; fetch the file again")
}

/// A place or a length as an index.
fn index(value: u64, at: usize) -> Result<usize, String> {
    usize::try_from(value).map_err(|_| damaged("a place beyond the file", at))
}

fn part(file: &[u8], at: usize, length: usize) -> Result<&[u8], String> {
    let end = at.checked_add(length);
    end.and_then(|end| file.get(at..end)).ok_or_else(|| damaged("a place beyond the file", at))
}

/// A little-endian number of so many bytes, at most eight.
fn number(file: &[u8], at: usize, bytes: usize) -> Result<u64, String> {
    part(file, at, bytes).map(|bytes| bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// A length, which is a [`number`] of two bytes.
fn length_at(file: &[u8], at: usize) -> Result<usize, String> {
    number(file, at, 2).map(|length| length as usize)
}
