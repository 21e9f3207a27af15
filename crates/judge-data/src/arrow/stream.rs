//! Streams of record batches, as Arrow's IPC format has them: one side writes a batch and waits, the other answers with a batch.
//!
//! ```text
//! schema, batch, batch, …, end mark     each message: 4 bytes FF, its length, what it says, its body
//! ```
//!
//! Two things are stricter here than in readers that serve files. A stream that ends without its end mark is an error, since it may
//! have been cut between two batches, where nothing else would show it. And a message's length is not believed: memory grows with
//! the bytes that arrive, so that garbage asks for none.

use std::collections::HashMap;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::read_record_batch;
use arrow_ipc::writer::StreamWriter;
use arrow_ipc::{Message, MessageHeader, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};

use super::guarded;
use crate::Error;

/// What a message begins with, but in streams of before 2019.
const CONTINUES: [u8; 4] = [0xff; 4];

/// Record batches from a stream, one at a time.
///
/// The stream is read as batches are asked for and not a byte beyond; it should be buffered. After the end, or an error, there is nothing
/// more. Compressed bodies are refused, and dictionaries passed over: columns that need one cannot be [selected](Self::select).
///
/// ```
/// use judge_data::{BatchReader, BatchWriter, ResultColumns};
///
/// let columns = ResultColumns::default();
/// let mut bytes = Vec::new();
/// let mut writer = BatchWriter::new(&mut bytes, "memory", &columns.schema())?;
/// writer.write(&columns.batch(&[])?)?;
/// writer.finish()?;
///
/// let reader = BatchReader::new(&bytes[..], "memory")?;
/// assert_eq!(*reader.schema(), columns.schema());
/// assert_eq!(reader.count(), 1);
/// // Without the end mark's last byte it was cut.
/// let cut = BatchReader::new(&bytes[..bytes.len() - 1], "memory")?;
/// assert!(cut.last().is_some_and(|batch| batch.is_err()));
/// # Ok::<(), judge_data::Error>(())
/// ```
#[derive(Debug)]
pub struct BatchReader<R> {
    source: R,
    name: PathBuf,
    schema: SchemaRef,
    /// Indices of the columns that are read; `None` for all.
    selected: Option<Vec<usize>>,
    batches: usize,
    is_done: bool,
}

/// A message of a stream.
struct Encapsulated {
    head: Vec<u8>,
    body: Vec<u8>,
}

/// What a stream is instead, as far as its first bytes tell.
fn something_else(head: &[u8]) -> Option<&'static str> {
    match head {
        [] => Some("it is empty, expected a schema and batches of rows"),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(
            "it is the file form of Arrow (Feather); write a stream: pyarrow.ipc.new_stream, or polars' write_ipc_stream",
        ),
        [b'P', b'A', b'R', b'1', ..] => Some("it is Parquet, which is read as a file and not as a stream"),
        head if matches!(head.trim_ascii_start(), [b'{' | b'[', ..]) => {
            Some("it is JSON, which is read as a file of rows and not as a stream")
        }
        _ => None,
    }
}

impl<R: Read> BatchReader<R> {
    /// Reads the schema, with which a stream begins. `name` is what errors call the stream.
    ///
    /// # Errors
    /// [`Error::NoStream`] for what does not begin with a schema, [`Error::StreamCut`], [`Error::Io`].
    pub fn new(mut source: R, name: impl AsRef<Path>) -> Result<Self, Error> {
        let name = name.as_ref();
        let wrong = |problem: String| Error::NoStream { path: name.to_path_buf(), batches: 0, problem };
        // No message is as short as these bytes, so none of them is left.
        let mut head = Vec::new();
        source.by_ref().take(8).read_to_end(&mut head).map_err(Error::reading(name))?;
        if let Some(problem) = something_else(&head) {
            return Err(wrong(problem.to_owned()));
        }
        let message = next_message(&mut head.chain(&mut source), name, 0)?;
        let message = message.ok_or_else(|| wrong("it ends before a schema".to_owned()))?;
        let schema = guarded(|| {
            let head = root_as_message(&message.head).map_err(|error| error.to_string())?;
            let schema = head.header_as_schema().ok_or_else(|| format!("it begins with {:?}", head.header_type()))?;
            try_fb_to_schema(schema).map_err(|error| error.to_string())
        });
        let schema = schema.map_err(|problem| wrong(format!("expected a schema at its beginning: {problem}")))?;
        let name = name.to_path_buf();
        Ok(Self { source, name, schema: schema.into(), selected: None, batches: 0, is_done: false })
    }

    /// The columns of the stream, whether they are read or not.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Reads only these columns of the stream, by their indices in its schema, and in this order; the others are not looked at.
    #[must_use]
    pub fn select(mut self, columns: Vec<usize>) -> Self {
        self.selected = Some(columns);
        self
    }

    fn read(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            let Some(message) = next_message(&mut self.source, &self.name, self.batches)? else { return Ok(None) };
            let batch = guarded(|| self.batch_of(message));
            if let Some(batch) = batch.map_err(|problem| self.wrong(problem))? {
                self.batches += 1;
                return Ok(Some(batch));
            }
        }
    }

    /// The batch of a message; `None` for one that holds something else that may be passed over.
    fn batch_of(&self, Encapsulated { head, body }: Encapsulated) -> Result<Option<RecordBatch>, String> {
        let message = root_as_message(&head).map_err(|error| error.to_string())?;
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => message.header_as_record_batch().ok_or("a batch without content")?,
            MessageHeader::DictionaryBatch | MessageHeader::NONE => return Ok(None),
            other => return Err(format!("expected a batch, found {other:?}")),
        };
        if batch.compression().is_some() {
            return Err(
                "expected batches as they are, found a compressed one; write the stream without compression".to_owned()
            );
        }
        let body = Buffer::from_vec(body);
        let (columns, none) = (self.selected.as_deref(), HashMap::new());
        let read = read_record_batch(&body, batch, self.schema.clone(), &none, columns, &message.version());
        read.map(Some).map_err(|error| error.to_string())
    }

    fn wrong(&self, problem: String) -> Error {
        Error::NoStream { path: self.name.clone(), batches: self.batches, problem }
    }
}

impl<R: Read> Iterator for BatchReader<R> {
    type Item = Result<RecordBatch, Error>;

    /// [`Error::StreamCut`] if the stream ends without its end mark, [`Error::NoStream`] for what is no batch of its schema, [`Error::Io`].
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let batch = self.read().transpose();
        self.is_done = !matches!(batch, Some(Ok(_)));
        batch
    }
}

/// The next message; `None` at the end mark. `batches` were read before.
fn next_message(source: &mut impl Read, name: &Path, batches: usize) -> Result<Option<Encapsulated>, Error> {
    let wrong = |problem: String| Error::NoStream { path: name.to_path_buf(), batches, problem };
    let mut bytes = |length: u64| -> Result<Vec<u8>, Error> {
        // Grows as bytes arrive, whatever length was announced.
        let mut bytes = Vec::new();
        source.by_ref().take(length).read_to_end(&mut bytes).map_err(Error::io("read", name))?;
        match bytes.len() as u64 == length {
            true => Ok(bytes),
            false => Err(Error::StreamCut { path: name.to_path_buf(), batches }),
        }
    };
    let mut length = bytes(4)?;
    if length == CONTINUES {
        length = bytes(4)?;
    }
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]);
    if length == 0 {
        return Ok(None);
    }
    if i32::try_from(length).is_err() {
        return Err(wrong(format!("a message announces {length} bytes of description")));
    }
    let head = bytes(length.into())?;
    let body_length = guarded(|| {
        root_as_message(&head).map(|message: Message<'_>| message.bodyLength()).map_err(|error| error.to_string())
    });
    let body_length = body_length.map_err(wrong)?;
    let body_length =
        u64::try_from(body_length).map_err(|_| wrong(format!("a message announces {body_length} bytes")))?;
    let body = bytes(body_length)?;
    Ok(Some(Encapsulated { head, body }))
}

/// Writes record batches to a stream. Each is in the hands of the operating system when [`write`](Self::write) returns, so that whoever
/// waits for it gets it.
///
/// A writer that is dropped leaves a stream without its end mark, which readers take for cut.
pub struct BatchWriter<W: Write> {
    writer: StreamWriter<BufWriter<W>>,
    schema: SchemaRef,
    name: PathBuf,
}

impl<W: Write> BatchWriter<W> {
    /// Writes the schema. `name` is what errors call the stream.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn new(sink: W, name: impl AsRef<Path>, schema: &SchemaRef) -> Result<Self, Error> {
        let name = name.as_ref().to_path_buf();
        let writer = StreamWriter::try_new(BufWriter::new(sink), schema);
        let mut writer = writer.map_err(|error| written(error, &name))?;
        writer.flush().map_err(|error| written(error, &name))?;
        Ok(Self { writer, schema: schema.clone(), name })
    }

    /// Writes a batch, and nothing of it stays behind.
    ///
    /// # Errors
    /// [`Error::NoStream`] for a batch of another schema, [`Error::Io`].
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        if *batch.schema_ref() != self.schema {
            let problem = format!("expected a batch of the columns {}, found {}", self.schema, batch.schema_ref());
            return Err(Error::NoStream { path: self.name.clone(), batches: 0, problem });
        }
        self.writer.write(batch).and_then(|()| self.writer.flush()).map_err(|error| written(error, &self.name))
    }

    /// Writes the end mark: the stream is whole.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn finish(mut self) -> Result<(), Error> {
        self.writer.finish().and_then(|()| self.writer.flush()).map_err(|error| written(error, &self.name))
    }
}

/// What kept a batch from being written.
fn written(error: ArrowError, name: &Path) -> Error {
    let source = match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other.to_string()),
    };
    Error::io("write", name)(source)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;

    fn batch(texts: &[Option<&str>]) -> RecordBatch {
        let ids: Vec<i64> = (0..texts.len() as i64).collect();
        let columns: [(&str, ArrayRef); 2] =
            [("id", Arc::new(Int64Array::from(ids))), ("text", Arc::new(StringArray::from(texts.to_vec())))];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    }

    fn stream(batches: &[RecordBatch]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = BatchWriter::new(&mut bytes, "test", batches[0].schema_ref()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<RecordBatch>, Error> {
        BatchReader::new(bytes, "test")?.collect()
    }

    #[test]
    fn batches_come_back_one_for_one() {
        let batches = [batch(&[Some("a"), None]), batch(&[]), batch(&[Some("")])];
        assert_eq!(read(&stream(&batches)).unwrap(), batches);
        let bytes = stream(&batches);
        let reader = BatchReader::new(&bytes[..], "test").unwrap().select(vec![1]);
        let texts: Vec<RecordBatch> = reader.collect::<Result<_, _>>().unwrap();
        assert_eq!(texts, batches.map(|batch| batch.project(&[1]).unwrap()));
    }

    #[test]
    fn a_batch_is_out_before_the_next_one_is_there() {
        let mut bytes = Vec::new();
        let batch = batch(&[Some("a")]);
        let mut writer = BatchWriter::new(&mut bytes, "test", batch.schema_ref()).unwrap();
        writer.write(&batch).unwrap();
        std::mem::forget(writer); // a process that is killed here has no time to write what it still holds
        let mut reader = BatchReader::new(&bytes[..], "test").unwrap();
        assert_eq!(reader.next().unwrap().unwrap(), batch);
        assert!(matches!(reader.next(), Some(Err(Error::StreamCut { batches: 1, .. }))));
        assert!(reader.next().is_none());
    }

    #[test]
    fn a_stream_cut_anywhere_is_never_whole() {
        let batches = [batch(&[Some("a"), None]), batch(&[Some("b")])];
        let bytes = stream(&batches);
        for end in 1..bytes.len() {
            let mut whole = 0;
            let error = match BatchReader::new(&bytes[..end], "test") {
                Err(error) => error,
                Ok(reader) => {
                    let mut last = None;
                    for found in reader {
                        match found {
                            Ok(found) => {
                                assert_eq!(found, batches[whole]);
                                whole += 1;
                            }
                            Err(error) => last = Some(error),
                        }
                    }
                    last.unwrap_or_else(|| panic!("cut at byte {end}, and nothing said so"))
                }
            };
            assert!(matches!(error, Error::StreamCut { batches, .. } if batches == whole), "byte {end}: {error}");
        }
    }

    #[test]
    fn an_announced_length_is_not_believed() {
        let head = &stream(&[batch(&[])])[..];
        for bytes in [&[0xff, 0xff, 0xff, 0x7f, 1][..], &[255, 255, 255, 255, 255, 255, 255, 127, 1], &head[..40]] {
            assert!(matches!(read(bytes), Err(Error::StreamCut { .. })), "{bytes:?}");
        }
        // Nobody asks the source for so many bytes at once.
        struct Asked<'b>(&'b [u8], usize);
        impl Read for Asked<'_> {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                self.1 = self.1.max(into.len());
                assert!(self.1 < 1 << 20, "{} bytes asked for at once", self.1);
                self.0.read(into)
            }
        }
        let bytes = [&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], &[1; 100_000]].concat();
        let mut source = Asked(&bytes, 0);
        assert!(matches!(BatchReader::new(&mut source, "test"), Err(Error::StreamCut { .. })));
        assert!(source.1 > 0 && source.0.is_empty());
        let negative = [255, 255, 255, 255, 0, 0, 0, 128, 1];
        assert!(matches!(read(&negative), Err(Error::NoStream { .. })));
    }

    #[test]
    fn other_bytes_are_no_stream() {
        let text = b"{\"id\": 1, \"text\": \"a\"}\n".repeat(1 << 20);
        for (bytes, found) in [
            (&text[..], "it is JSON"),
            (b"ARROW1\0\0", "the file form of Arrow (Feather)"),
            (b"PAR1", "it is Parquet"),
            (b"", "it is empty"),
        ] {
            let problem = read(bytes).unwrap_err().to_string();
            assert!(problem.contains("not an Arrow IPC stream") && problem.contains(found), "{problem}");
        }
        assert!(matches!(read(&[0; 8]), Err(Error::NoStream { .. })));
        let other = batch(&[]).project(&[0]).unwrap();
        let mut writer = BatchWriter::new(Vec::new(), "test", other.schema_ref()).unwrap();
        assert!(matches!(writer.write(&batch(&[])), Err(Error::NoStream { .. })));
    }

    proptest! {
        #[test]
        fn bytes_that_nobody_made_are_an_error_or_batches(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_damaged_stream_is_an_error_or_batches(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = stream(&[batch(&[Some("a"), None]), batch(&[Some("b")])]);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = read(&bytes);
        }
    }
}
