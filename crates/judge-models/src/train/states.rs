//! States of sequences in a file, so that blocks that nothing changes run once for each sequence.
//!
//! The file is a cache: what it holds follows from the model and the sequence, so it changes no bit, and it may be
//! deleted between runs.
//!
//! ```text
//! MAGIC │ identity, 32 bytes │ record │ record │ …
//! record: key, 32 bytes │ rows, u64 │ hash of the states, 32 bytes │ states, rows · d_model f32
//! ```
//!
//! All numbers are little-endian. Records are appended; one that a killed run left half written is cut off when the
//! file is opened. One process at a time holds the file.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use judge_core::request::TokenId;

use super::error::{StatesProblem, TrainError};
use crate::Error;

/// The first bytes of a file.
const MAGIC: &[u8; 16] = b"judge states 1\n\n";

/// Bytes before the first record.
const START: u64 = (MAGIC.len() + 32) as u64;

/// Bytes of a record before its states.
const HEADER: usize = 32 + 8 + 32;

/// What a sequence is found by.
pub(super) type Key = [u8; 32];

/// A file of states.
pub(super) struct States {
    path: PathBuf,
    file: File,
    /// Numbers of a state.
    d_model: usize,
    /// Where each sequence's states begin, how many rows they have, and their hash.
    records: HashMap<Key, (u64, usize, [u8; 32])>,
    /// Where the next record begins.
    end: u64,
}

/// The key of the first `rows` positions of a sequence. All of its tokens count, as rotations may depend on its length,
/// and their types, which are none where all are 0.
pub(super) fn key(tokens: &[TokenId], types: &[u32], rows: usize) -> Key {
    let mut hasher = blake3::Hasher::new();
    [rows, tokens.len()].iter().for_each(|&count| _ = hasher.update(&(count as u64).to_le_bytes()));
    tokens.iter().chain(types).for_each(|number| _ = hasher.update(&number.to_le_bytes()));
    *hasher.finalize().as_bytes()
}

/// Whether a file is one of states, or the beginning of one that was cut short.
#[must_use]
pub fn is_states(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut start));
    read.is_ok() && !start.is_empty() && MAGIC.starts_with(&start)
}

impl States {
    /// Opens a file, or makes one. `identity` says what states depend on besides the sequence.
    ///
    /// # Errors
    /// [`TrainError::States`] for a file that is none, is of another identity or is held by another process, and
    /// [`Error::Write`] if the system refuses.
    pub(super) fn open(path: &Path, identity: &str, d_model: usize) -> Result<Self, TrainError> {
        let unwritten = |source| Error::Write { path: path.to_owned(), source };
        let refused = |problem| TrainError::States { path: path.to_owned(), problem };
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let file = options.open(path).map_err(unwritten)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(refused(StatesProblem::Held)),
            Err(std::fs::TryLockError::Error(source)) => return Err(unwritten(source).into()),
        }
        let mut states = Self { path: path.to_owned(), file, d_model, records: HashMap::new(), end: START };
        let expected = [MAGIC.as_slice(), blake3::hash(identity.as_bytes()).as_bytes()].concat();
        let len = states.file.metadata().map_err(unwritten)?.len();
        let mut found = vec![0; expected.len().min(len as usize)];
        states.file.read_exact(&mut found).map_err(unwritten)?;
        if !expected.starts_with(&found) {
            return Err(refused(if MAGIC.starts_with(&found[..MAGIC.len().min(found.len())]) {
                StatesProblem::Other
            } else {
                StatesProblem::NoStates
            }));
        }
        if found.len() < expected.len() {
            states.write_at(0, &expected).map_err(unwritten)?;
        }
        states.scan(len).map_err(unwritten)?;
        Ok(states)
    }

    /// Finds the records of a file of so many bytes, and cuts off what is behind the last whole one.
    fn scan(&mut self, len: u64) -> io::Result<()> {
        let mut header = [0; HEADER];
        while self.end + HEADER as u64 <= len {
            self.file.seek(SeekFrom::Start(self.end))?;
            self.file.read_exact(&mut header)?;
            let (key, rest) = header.split_at(32);
            let (rows, hash) = rest.split_at(8);
            let rows = u64::from_le_bytes(std::array::from_fn(|i| rows[i]));
            let begin = self.end + HEADER as u64;
            let bytes = rows.checked_mul(4 * self.d_model as u64).and_then(|bytes| begin.checked_add(bytes));
            let Some(end) = bytes.filter(|end| *end <= len) else { break };
            let hash = std::array::from_fn(|i| hash[i]);
            self.records.insert(std::array::from_fn(|i| key[i]), (begin, rows as usize, hash));
            self.end = end;
        }
        self.file.set_len(self.end)
    }

    /// The states of a sequence, `[rows, d_model]`; `None` if they are not there.
    ///
    /// # Errors
    /// [`TrainError::States`] if they are not what was put there, and `WeightsError::Read` if the system refuses.
    pub(super) fn take(&mut self, key: &Key) -> Result<Option<Vec<f32>>, TrainError> {
        let Some(&(begin, rows, hash)) = self.records.get(key) else { return Ok(None) };
        let mut bytes = vec![0; 4 * rows * self.d_model];
        let read = self.file.seek(SeekFrom::Start(begin)).and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(|source| crate::WeightsError::Read { path: self.path.clone(), source })?;
        if *blake3::hash(&bytes).as_bytes() != hash {
            return Err(TrainError::States { path: self.path.clone(), problem: StatesProblem::Damaged });
        }
        let (numbers, _) = bytes.as_chunks::<4>();
        Ok(Some(numbers.iter().map(|&number| f32::from_le_bytes(number)).collect()))
    }

    /// Keeps the states of a sequence, `[rows, d_model]`, unless they are there.
    ///
    /// # Errors
    /// [`Error::Write`] if the system refuses; then nothing is kept of them.
    pub(super) fn put(&mut self, key: Key, states: &[f32]) -> Result<(), TrainError> {
        if self.records.contains_key(&key) {
            return Ok(());
        }
        let rows = states.len() / self.d_model;
        let bytes: Vec<u8> = states.iter().flat_map(|number| number.to_le_bytes()).collect();
        let hash = *blake3::hash(&bytes).as_bytes();
        let record = [&key[..], &(rows as u64).to_le_bytes(), &hash, &bytes].concat();
        self.write_at(self.end, &record).map_err(|source| {
            // A disk that is full must not keep what did not fit; that it cannot be cut off says nothing new.
            let _ = self.file.set_len(self.end);
            Error::Write { path: self.path.clone(), source }
        })?;
        self.records.insert(key, (self.end + HEADER as u64, rows, hash));
        self.end += record.len() as u64;
        Ok(())
    }

    fn write_at(&mut self, place: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(place))?;
        self.file.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(result: Result<States, TrainError>) -> StatesProblem {
        match result {
            Err(TrainError::States { problem, .. }) => problem,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("not refused"),
        }
    }

    #[test]
    fn states_are_kept_and_half_a_record_is_cut_off() {
        let at = tempfile::tempdir().unwrap();
        let path = at.path().join("states");
        let open = || States::open(&path, "a model", 2);
        let (first, second) = (key(&[1, 2], &[], 2), key(&[1, 2], &[], 1));
        assert!(first != second && first != key(&[1, 3], &[], 2) && first != key(&[1, 2], &[0, 1], 2));
        let mut states = open().unwrap();
        states.put(first, &[1.0, f32::MIN_POSITIVE, -0.0, 4.0]).unwrap();
        states.put(second, &[5.0, 6.0]).unwrap();
        states.put(second, &[7.0, 8.0]).unwrap();
        assert_eq!(refused(open()), StatesProblem::Held);
        drop(states);

        let whole = std::fs::read(&path).unwrap();
        for cut in [1, 8, HEADER, HEADER + 7] {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            let mut states = open().unwrap();
            let bits: Vec<u32> = states.take(&first).unwrap().unwrap().iter().map(|x| x.to_bits()).collect();
            assert_eq!(bits, [1.0, f32::MIN_POSITIVE, -0.0, 4.0].map(f32::to_bits));
            assert_eq!(states.take(&second).unwrap(), None);
            states.put(second, &[5.0, 6.0]).unwrap();
            assert_eq!(states.take(&second).unwrap().unwrap(), [5.0, 6.0]);
            drop(states);
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
        // A file whose beginning alone was written is as good as none.
        std::fs::write(&path, &whole[..20]).unwrap();
        assert_eq!(open().unwrap().take(&first).unwrap(), None);
    }

    #[test]
    fn other_files_and_damaged_states_are_refused() {
        let at = tempfile::tempdir().unwrap();
        let path = at.path().join("states");
        States::open(&path, "a model", 1).unwrap().put(key(&[1], &[], 1), &[1.0]).unwrap();
        assert_eq!(refused(States::open(&path, "another", 1)), StatesProblem::Other);
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let found = States::open(&path, "a model", 1).unwrap().take(&key(&[1], &[], 1));
        assert!(matches!(found, Err(TrainError::States { problem: StatesProblem::Damaged, .. })), "{found:?}");
        std::fs::write(&path, "some notes of mine").unwrap();
        assert_eq!(refused(States::open(&path, "a model", 1)), StatesProblem::NoStates);
        assert_eq!(std::fs::read(&path).unwrap(), b"some notes of mine");
        let no_folder = States::open(&at.path().join("no/such"), "a model", 1);
        assert!(matches!(no_folder, Err(TrainError::Model(Error::Write { .. }))));
    }
}
