//! What rows are read from: a file, standard input or a pipe, plain or compressed, as often as wanted.

mod behind;
mod compression;
mod csv;
mod decoder;
mod opened;
mod part;
pub(crate) mod read_text;
mod spool;
#[cfg(feature = "parquet")]
mod table;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use crate::{Error, InputFile};

use decoder::Decoder;
use opened::{Notes, Opened, Raw, explain};
use spool::BUFFER;

pub(crate) use opened::Changed;
pub use part::{PART, Part};
#[cfg(feature = "parquet")]
pub(crate) use table::Text as CellText;

/// An opened input that can be read several times, each time from its beginning and to the same end.
///
/// A regular file is held open, so that a file that takes its name later does not matter. What can be read only once
/// (standard input, a FIFO, a process substitution) is first copied into a temporary file without a name, of the input's
/// size. gzip (of any number of members) and zstd (of any number of frames) are told by their first bytes, not by the
/// file's name. So is Parquet, with the feature `parquet`, and a table whose first line has names separated by commas, semicolons or tabs
/// (CSV, TSV): their rows are given as JSON lines. Clones share the file.
///
/// ```no_run
/// use judge_data::{Dataset, DatasetOptions, Input};
///
/// let input = Input::open("-")?; // standard input, perhaps compressed
/// let rows = Dataset::open(&input, &DatasetOptions::default())?.count();
/// for record in Dataset::open(&input, &DatasetOptions::default())? {
///     println!("{} of {rows}", record?.id());
/// }
/// println!("{}", input.identity()?.blake3);
/// # Ok::<(), judge_data::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Input {
    opened: Arc<Opened>,
    part: Option<Part>,
}

impl Input {
    /// What standard input is called in errors and run records.
    pub const STDIN: &str = "stdin";

    /// Opens a file, a FIFO or, as `-`, standard input. What cannot be read twice is read to its end here.
    ///
    /// # Errors
    /// [`Error::Content`] for a folder; [`Error::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        if path == Path::new("-") {
            return Self::of_stdin();
        }
        let file = File::open(path).map_err(Error::io("open", path))?;
        let metadata = file.metadata().map_err(Error::io("read", path))?;
        if metadata.is_dir() {
            return Err(Error::content(path, "the input", "a file of rows", "a folder"));
        }
        // A file without length may be one that the system writes while it is read.
        if !metadata.is_file() || metadata.len() == 0 {
            return Self::from_reader(file, path);
        }
        Ok(Self::of(file, path, metadata.len(), metadata.modified().ok(), OnceLock::new()))
    }

    /// Standard input, which is read once, however often it is opened.
    fn of_stdin() -> Result<Self, Error> {
        static READ: Mutex<Option<Arc<Opened>>> = Mutex::new(None);
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = &*read {
            return Ok(Self { opened: opened.clone(), part: None });
        }
        let input = Self::from_reader(io::stdin().lock(), Self::STDIN)?;
        *read = Some(input.opened.clone());
        Ok(input)
    }

    fn of(file: File, path: &Path, bytes: u64, modified: Option<SystemTime>, blake3: OnceLock<String>) -> Self {
        let opened = Opened { file, path: path.to_path_buf(), bytes, modified, blake3, notes: Notes::default() };
        Self { opened: Arc::new(opened), part: None }
    }

    /// The same input, of which only some rows are given. What a data set tells from its head is still told from the head of the whole
    /// file, and rows without an id keep the number that they have in it: a row is read the same in whichever part it comes.
    #[must_use]
    pub fn with_part(self, part: Option<Part>) -> Self {
        Self { part, ..self }
    }

    /// Which of its rows are given; `None` for all.
    pub fn part(&self) -> Option<&Part> {
        self.part.as_ref()
    }

    /// The same input with all its rows.
    #[must_use]
    pub fn whole(&self) -> Self {
        Self { opened: self.opened.clone(), part: None }
    }

    /// Copies what `reader` gives into a temporary file. `name` is what errors call it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn from_reader(reader: impl Read, name: impl AsRef<Path>) -> Result<Self, Error> {
        let path = name.as_ref();
        let (file, bytes, hash) = spool::copy(reader, path)?;
        Ok(Self::of(file, path, bytes, None, OnceLock::from(hash)))
    }

    /// The name in errors: the path as it was given, [`STDIN`](Self::STDIN) for `-`.
    pub fn path(&self) -> &Path {
        &self.opened.path
    }

    /// What was odd about the file, as far as it was read, and cost nothing but what it is about: bytes behind compressed data, a column
    /// of Parquet that JSON has no form for, rows without ids that go by their numbers. In alphabetical order.
    pub fn notes(&self) -> Vec<String> {
        self.opened.notes.all()
    }

    /// Adds to the [`notes`](Self::notes).
    pub(crate) fn note(&self, note: String) {
        self.opened.notes.say(note);
    }

    /// The same input, whose [`notes`](Self::notes) are said to `listener` when they are found, each once.
    #[must_use]
    pub fn on_note(self, listener: fn(&str)) -> Self {
        self.opened.notes.tell(listener);
        self
    }

    /// The decompressed bytes, from the first.
    ///
    /// # Errors
    /// [`Error::InputChanged`], [`Error::Io`].
    pub fn reader(&self) -> Result<InputReader, Error> {
        let mut reader = self.text()?.reader;
        let head = reader.fill_buf().map_err(|source| explain(&self.opened, source));
        let separator = csv::separator(head.map_err(Error::reading(self.path()))?, self.path());
        if let Some(separator) = separator {
            reader.get_mut().of_table();
            let lines = csv::Lines::open(reader, separator).map_err(|source| explain(&self.opened, source));
            let lines = Decoder::Csv(Box::new(lines.map_err(Error::reading(self.path()))?));
            reader = BufReader::with_capacity(BUFFER, lines);
        }
        Ok(InputReader { reader, opened: self.opened.clone() })
    }

    /// The decompressed bytes as they are, also where a table's rows would be given.
    ///
    /// # Errors
    /// As for [`reader`](Self::reader).
    pub(crate) fn text(&self) -> Result<InputReader, Error> {
        if let Some(changed) = self.opened.changed() {
            return Err(Error::reading(self.path())(io::Error::other(changed)));
        }
        #[cfg_attr(not(feature = "parquet"), expect(unused_mut, reason = "it is looked at for Parquet alone"))]
        let mut raw = BufReader::with_capacity(BUFFER, Raw { opened: self.opened.clone(), position: 0 });
        #[cfg(feature = "parquet")]
        let decoder = match raw.fill_buf().map_err(Error::reading(self.path()))?.starts_with(table::MAGIC) {
            true => table::Lines::open(self.opened.clone()).map(|lines| Decoder::Table(Box::new(lines))),
            false => Decoder::new(raw, &self.opened),
        };
        #[cfg(not(feature = "parquet"))]
        let decoder = Decoder::new(raw, &self.opened);
        let decoder = decoder.map_err(Error::reading(self.path()))?;
        Ok(InputReader { reader: BufReader::with_capacity(BUFFER, decoder), opened: self.opened.clone() })
    }

    /// The identity of a file; `-` is standard input.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`identity`](Self::identity).
    pub fn identify(path: impl AsRef<Path>) -> Result<InputFile, Error> {
        let path = path.as_ref();
        if path == Path::new("-") { Self::open(path)?.identity() } else { InputFile::of(path) }
    }

    /// Name, length and hash of the bytes as they are stored (compressed ones of a compressed file), for a run record. The
    /// file is read once for it.
    ///
    /// # Errors
    /// [`Error::InputChanged`], [`Error::Io`].
    pub fn identity(&self) -> Result<InputFile, Error> {
        let blake3 = match self.opened.blake3.get() {
            Some(hash) => hash.clone(),
            None => {
                let mut hasher = blake3::Hasher::new();
                let raw = Raw { opened: self.opened.clone(), position: 0 };
                let read = hasher.update_reader(raw).map(|_| ());
                let read = self.opened.changed().map_or(read, |changed| Err(io::Error::other(changed)));
                read.map_err(Error::reading(self.path()))?;
                let hash = hasher.finalize().to_hex().to_string();
                self.opened.blake3.get_or_init(|| hash).clone()
            }
        };
        Ok(InputFile { path: self.path().to_path_buf(), bytes: self.opened.bytes, blake3, rows: None })
    }
}

/// The decompressed bytes of an [`Input`].
#[derive(Debug)]
pub struct InputReader {
    reader: BufReader<Decoder<BufReader<Raw>>>,
    opened: Arc<Opened>,
}

impl InputReader {
    /// Whether they are JSON lines that stand for the rows of a table.
    pub(crate) fn is_of_table(&self) -> bool {
        match self.reader.get_ref() {
            Decoder::Csv(_) => true,
            #[cfg(feature = "parquet")]
            Decoder::Table(_) => true,
            _ => false,
        }
    }
}

impl Read for InputReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let opened = &self.opened;
        self.reader.read(buffer).map_err(|source| explain(opened, source))
    }
}

impl BufRead for InputReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let opened = &self.opened;
        self.reader.fill_buf().map_err(|source| explain(opened, source))
    }

    fn consume(&mut self, amount: usize) {
        self.reader.consume(amount);
    }
}

/// What [`Rows::open`](crate::Rows::open) and [`Dataset::open`](crate::Dataset::open) read: a path, `-` for standard input, or
/// an [`Input`].
pub trait IntoInput {
    /// Opens it, unless it is open.
    ///
    /// # Errors
    /// As [`Input::open`].
    fn into_input(self) -> Result<Input, Error>;
}

impl<P: AsRef<Path>> IntoInput for P {
    fn into_input(self) -> Result<Input, Error> {
        Input::open(self)
    }
}

impl IntoInput for Input {
    fn into_input(self) -> Result<Input, Error> {
        Ok(self)
    }
}

impl IntoInput for &Input {
    fn into_input(self) -> Result<Input, Error> {
        Ok(self.clone())
    }
}
