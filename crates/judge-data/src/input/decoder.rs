//! Compression, told by the first bytes.

use std::fmt;
use std::io::{self, BufRead, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

#[derive(Debug)]
pub(super) enum Decoder<R> {
    Plain(R),
    Gzip(MultiGzDecoder<R>),
    Zstd(Box<ZstdFrames<R>>),
    /// Parquet, which is no stream of bytes that another reader gives.
    #[cfg(feature = "parquet")]
    Table(Box<super::table::Lines>),
}

impl<R: BufRead> Decoder<R> {
    pub(super) fn new(mut reader: R) -> io::Result<Self> {
        let head = reader.fill_buf()?;
        Ok(if head.starts_with(GZIP) {
            Self::Gzip(MultiGzDecoder::new(reader))
        } else if head.starts_with(ZSTD) || is_skippable(head) {
            Self::Zstd(Box::new(ZstdFrames { reader, decoder: FrameDecoder::new(), in_frame: false }))
        } else {
            Self::Plain(reader)
        })
    }
}

/// A zstd file may begin with a frame of something else, 0x184D2A50 to 0x184D2A5F.
fn is_skippable(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(buffer),
            Self::Gzip(reader) => reader.read(buffer).map_err(|source| corrupt("gzip", source)),
            Self::Zstd(reader) => reader.read(buffer),
            #[cfg(feature = "parquet")]
            Self::Table(lines) => lines.read(buffer),
        }
    }
}

fn corrupt(format: &str, source: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{format} data that are corrupt or cut off: {source}"))
}

/// The content of all frames, checksums compared.
pub(super) struct ZstdFrames<R> {
    reader: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: fmt::Debug> fmt::Debug for ZstdFrames<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZstdFrames").field("reader", &self.reader).finish_non_exhaustive()
    }
}

impl<R: BufRead> ZstdFrames<R> {
    /// False at the end of the file. Skips frames that hold no data.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.reader.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.reader) {
                Ok(()) => {
                    self.in_frame = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    let length = u64::from(length);
                    if io::copy(&mut self.reader.by_ref().take(length), &mut io::sink())? < length {
                        return Err(corrupt("zstd", "a skippable frame is not whole"));
                    }
                }
                Err(source) => return Err(corrupt("zstd", source)),
            }
        }
        Ok(false)
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.in_frame = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(expected), Some(found)) if expected != found => Err(corrupt("zstd", "the checksum does not match")),
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && !self.begin_frame()? {
                return Ok(0);
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.reader, one).map_err(|source| corrupt("zstd", source))?;
            }
            match self.decoder.read(buffer)? {
                0 => self.end_frame()?,
                read => return Ok(read),
            }
        }
    }
}
