//! What compressed data hold.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use flate2::bufread::GzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, FrameHeaderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::behind::Behind;
use super::compression::Compression;
use super::opened::Opened;

/// The largest window of zstd that is read: what `zstd --long=31` writes, its own maximum.
const WINDOW: u64 = 1 << 31;
/// Bytes of the longest header of a frame.
const LONGEST_HEADER: usize = 18;
/// Windows up to this are had without asking, as in zstd's own program.
const USUAL_WINDOW: u64 = 1 << 27;

#[derive(Debug)]
pub(super) enum Decoder<R> {
    Plain(R),
    Gzip(GzipMembers<R>),
    Zstd(Box<ZstdFrames<R>>),
    /// A table separated by commas or the like, of what another decoder gives.
    Csv(Box<super::csv::Lines<BufReader<Self>>>),
    /// Parquet, which is no stream of bytes that another reader gives.
    #[cfg(feature = "parquet")]
    Table(Box<super::table::Lines>),
}

impl<R: BufRead> Decoder<R> {
    pub(super) fn new(mut reader: R, opened: &Arc<Opened>) -> io::Result<Self> {
        let head = reader.fill_buf()?;
        Ok(match Compression::of(head) {
            Some(Compression::Gzip) => {
                let behind = Behind::new(reader, Compression::Gzip, opened.clone());
                Self::Gzip(GzipMembers { decoder: Some(GzDecoder::new(behind)) })
            }
            Some(Compression::Zstd) => {
                let mut decoder = FrameDecoder::new();
                decoder.set_max_window_size(WINDOW);
                let reader = Behind::new(reader, Compression::Zstd, opened.clone());
                Self::Zstd(Box::new(ZstdFrames { reader, decoder, state: State::Start }))
            }
            None => Self::Plain(reader),
        })
    }

    /// Notes that a table is read, behind whose compressed data no other text may stand: it may be more of its rows.
    pub(super) fn of_table(&mut self) {
        match self {
            Self::Gzip(members) => members.decoder.iter_mut().for_each(|decoder| decoder.get_mut().of_table()),
            Self::Zstd(frames) => frames.reader.of_table(),
            _ => {}
        }
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(buffer),
            Self::Gzip(reader) => reader.read(buffer),
            Self::Zstd(reader) => reader.read(buffer),
            Self::Csv(lines) => lines.read(buffer),
            #[cfg(feature = "parquet")]
            Self::Table(lines) => lines.read(buffer),
        }
    }
}

/// The content of all members, checksums compared.
#[derive(Debug)]
pub(super) struct GzipMembers<R> {
    /// `None` behind the last.
    decoder: Option<GzDecoder<Behind<R>>>,
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = self.decoder.as_mut().filter(|_| !buffer.is_empty()) {
            let read = decoder.read(buffer).map_err(|source| Compression::Gzip.corrupt(source))?;
            if read > 0 {
                return Ok(read);
            }
            let behind = self.decoder.take().map(GzDecoder::into_inner);
            if let Some(mut behind) = behind
                && behind.goes_on()?
            {
                self.decoder = Some(GzDecoder::new(behind));
            }
        }
        Ok(0)
    }
}

/// The content of all frames, checksums compared.
pub(super) struct ZstdFrames<R> {
    reader: Behind<R>,
    decoder: FrameDecoder,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first frame.
    Start,
    InFrame,
    /// Behind a frame.
    Between,
    End,
}

impl<R: fmt::Debug> fmt::Debug for ZstdFrames<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZstdFrames").field("reader", &self.reader).finish_non_exhaustive()
    }
}

impl<R: BufRead> ZstdFrames<R> {
    /// Skips frames that hold no data; there may be none that does.
    fn begin_frame(&mut self) -> io::Result<()> {
        while self.state == State::Start || self.reader.goes_on()? {
            self.state = State::Between;
            self.check_memory()?;
            match self.decoder.init(&mut self.reader) {
                Ok(()) => {
                    self.state = State::InFrame;
                    return Ok(());
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    if io::copy(&mut self.reader.by_ref().take(length), &mut io::sink())? < length {
                        return Err(Compression::Zstd.corrupt("a skippable frame is not whole"));
                    }
                }
                Err(source) => return Err(refused(&source)),
            }
        }
        self.state = State::End;
        Ok(())
    }

    /// The decoder takes the memory of a whole window at once, and a process that cannot have it would end.
    fn check_memory(&mut self) -> io::Result<()> {
        let Some(size) = window(self.reader.peek(LONGEST_HEADER)?) else { return Ok(()) };
        let fits = |size: u64| {
            let room = usize::try_from(size.next_power_of_two() + (1 << 20));
            room.is_ok_and(|room| Vec::<u8>::new().try_reserve_exact(room).is_ok())
        };
        match size {
            USUAL_WINDOW..=WINDOW if !fits(size) => Err(too_large(size, "this process cannot have so much memory")),
            _ => Ok(()),
        }
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.state = State::Between;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(expected), Some(found)) if expected != found => {
                Err(Compression::Zstd.corrupt("the checksum does not match"))
            }
            _ => Ok(()),
        }
    }
}

/// The window of a frame by its header, of a frame of one segment its content: RFC 8878, 3.1.1.1.
fn window(header: &[u8]) -> Option<u64> {
    let descriptor = *header.get(4)?;
    if descriptor & 0b10_0000 == 0 {
        let window = *header.get(5)?;
        let base = 1_u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    let start = 5 + [0, 1, 2, 4][usize::from(descriptor & 3)];
    let length = 1 << (descriptor >> 6);
    let size = header.get(start..start + length)?.iter().rev().fold(0, |size, &byte| size << 8 | u64::from(byte));
    Some(if length == 2 { size + 256 } else { size })
}

/// Frames that are not corrupt, and not read either.
fn refused(source: &FrameDecoderError) -> io::Error {
    match source {
        FrameDecoderError::WindowSizeTooBig { requested: size, .. }
        | FrameDecoderError::FrameHeaderError(FrameHeaderError::WindowTooBig { got: size })
        | FrameDecoderError::FailedToInitialize(FrameHeaderError::WindowTooBig { got: size }) => {
            too_large(*size, &format!("windows of up to {} MiB are read", WINDOW >> 20))
        }
        FrameDecoderError::DictNotProvided { dict_id } => io::Error::new(
            io::ErrorKind::Unsupported,
            format!(
                "zstd data that take the dictionary {dict_id}; the file is sound: decompress it with `zstd -d -D DICTIONARY`"
            ),
        ),
        source => Compression::Zstd.corrupt(source),
    }
}

fn too_large(size: u64, why: &str) -> io::Error {
    let size = size >> 20;
    let words = format!(
        "zstd data with a window of {size} MiB: {why}; the file is sound: decompress it elsewhere and compress it again with a smaller window"
    );
    io::Error::new(io::ErrorKind::Unsupported, words)
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            match self.state {
                State::Start | State::Between => self.begin_frame()?,
                State::End => break,
                State::InFrame => {
                    while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                        let one = BlockDecodingStrategy::UptoBlocks(1);
                        let decoded = self.decoder.decode_blocks(&mut self.reader, one);
                        decoded.map_err(|source| Compression::Zstd.corrupt(source))?;
                    }
                    match self.decoder.read(buffer)? {
                        0 => self.end_frame()?,
                        read => return Ok(read),
                    }
                }
            }
        }
        Ok(0)
    }
}
