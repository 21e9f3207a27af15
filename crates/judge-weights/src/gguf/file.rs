//! A GGUF file on disk, in one part or in several, mapped.
//!
//! A split file has its keys in the first part, `NAME-00001-of-0000N.gguf`, and tensors in all of
//! them, as `gguf-split` of llama.cpp writes it. Each part is a GGUF file with a header of its own.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::header::{self, Entry, Header};
use super::problem::GgufProblem;
use crate::Error;
use crate::map::map_file;

/// A mapped GGUF file. It must not change while it is mapped: a file that is shortened meanwhile
/// ends the process with SIGBUS.
pub struct GgufFile {
    /// The file, or its first part.
    path: PathBuf,
    /// All parts, in their order.
    maps: Vec<Mmap>,
    /// The keys of the first part, and the tensors of all.
    pub header: Header,
}

impl GgufFile {
    /// Maps a file, with the other parts where this is the first of several, and checks the headers: every
    /// count and offset before anything is made for it.
    ///
    /// # Errors
    /// [`Error::Read`] and [`Error::Gguf`] for a part that cannot be read, is damaged, or is not of the same file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (map, mut header) = part(path)?;
        let fault = |path: &Path, problem| Error::Gguf { path: path.to_owned(), problem };
        let mut maps = vec![map];
        let count = header.whole("split.count").unwrap_or(1).max(1);
        if count > 1 {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some(split) = SplitName::of(name).filter(|split| split.number == 1 && split.count == count) else {
                let expected = format!("the number of parts that the name of the file ends with, and part 1: {name}");
                return Err(fault(path, GgufProblem::value("split.count", count.to_string(), expected)));
            };
            for number in 2..=count {
                let path = path.with_file_name(split.part(number));
                let (map, other) = part(&path)?;
                for (key, expected) in [("split.no", number - 1), ("split.count", count)] {
                    let found = other.whole(key);
                    if found != Some(expected) {
                        let found = found.map_or("absent".to_owned(), |found| found.to_string());
                        return Err(fault(&path, GgufProblem::value(key, found, expected.to_string())));
                    }
                }
                for (name, entry) in other.tensors {
                    let entry = Entry { part: maps.len(), ..entry };
                    if header.tensors.insert(name.clone(), entry).is_some() {
                        return Err(fault(&path, GgufProblem::Twice { tensor: name }));
                    }
                }
                maps.push(map);
            }
        }
        let found = header.tensors.len() as u64;
        if let Some(stated) = header.whole("split.tensors.count").filter(|&stated| stated != found) {
            let expected = format!("{found}, as many as the parts have");
            return Err(fault(path, GgufProblem::value("split.tensors.count", stated.to_string(), expected)));
        }
        Ok(Self { path: path.to_owned(), maps, header })
    }

    /// The file, or its first part.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first part as a whole, which all keys are in.
    pub fn bytes(&self) -> &[u8] {
        &self.maps[0]
    }

    /// The bytes of a tensor of the header.
    pub fn of(&self, entry: &Entry) -> &[u8] {
        &self.maps[entry.part][entry.range.clone()]
    }

    /// The maps of all parts.
    pub fn maps(&self) -> &[Mmap] {
        &self.maps
    }
}

/// Maps one part and reads its header.
fn part(path: &Path) -> Result<(Mmap, Header), Error> {
    let read = |source| Error::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(read)?;
    let map = map_file(&file).map_err(read)?;
    let header = header::read(&map).map_err(|problem| Error::Gguf { path: path.to_owned(), problem })?;
    Ok((map, header))
}

impl fmt::Debug for GgufFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GgufFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The name of one of several parts of a file: `NAME-00001-of-00002.gguf`, as llama.cpp's `gguf-split`
/// writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitName {
    /// What is before the numbers.
    stem: String,
    /// Which part it is, from 1 on.
    pub number: u64,
    /// How many there are.
    pub count: u64,
}

impl SplitName {
    /// What the name of a file says; `None` if it is not that of a part.
    pub fn of(name: &str) -> Option<Self> {
        let digits = |text: &str| {
            let all = text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
            all.then(|| text.parse().ok()).flatten()
        };
        let path = Path::new(name);
        path.extension().filter(|extension| extension.eq_ignore_ascii_case("gguf"))?;
        let (rest, count) = path.file_stem()?.to_str()?.rsplit_once("-of-")?;
        let (stem, number) = rest.rsplit_once('-')?;
        let (number, count): (u64, u64) = (digits(number)?, digits(count)?);
        (1..=count).contains(&number).then(|| Self { stem: stem.to_owned(), number, count })
    }

    /// The name of another part.
    pub fn part(&self, number: u64) -> String {
        format!("{}-{number:05}-of-{:05}.gguf", self.stem, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_split_file_are_known_by_their_names() {
        let split = SplitName::of("model-00001-of-00002.gguf").unwrap();
        assert_eq!((split.number, split.count), (1, 2));
        assert_eq!(split.part(2), "model-00002-of-00002.gguf");
        for name in ["model.gguf", "model-1-of-2.gguf", "a-of-b.gguf", "00001-of-00002.gguf", "x-00001-of-0000é.gguf"]
        {
            assert_eq!(SplitName::of(name), None, "{name}");
        }
        for name in ["x-00001-of-00000.gguf", "x-00000-of-00002.gguf", "x-00003-of-00002.gguf"] {
            assert_eq!(SplitName::of(name), None, "{name}");
        }
    }
}
