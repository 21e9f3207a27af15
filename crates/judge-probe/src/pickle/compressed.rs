//! Pickles that were compressed as a whole, as `joblib.dump` with `compress` and `gzip` do.

use std::borrow::Cow;
use std::io::Read;

use flate2::bufread::{MultiGzDecoder, ZlibDecoder};

use super::{Limits, Problem, ReadError};

/// The pickle in a file that gzip or zlib compressed; other bytes are given back as they are.
///
/// No more is decompressed than [`Limits::pickle_bytes`] allows.
///
/// # Errors
///
/// [`Problem::TooLarge`]; [`Problem::Refused`] for formats that are not read, for damage, and for what follows a stream of zlib's.
pub fn decompress<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Cow<'a, [u8]>, ReadError> {
    let error = |problem| ReadError { offset: 0, opcode: "PROTO", problem };
    let refused = |why| error(Problem::Refused(why));
    let most = limits.pickle_bytes;
    let mut found = Vec::new();
    let mut read = |format: &str, decoder: &mut dyn Read| match decoder.take(most as u64 + 1).read_to_end(&mut found) {
        Err(source) => Err(refused(format!("the compressed file ({format}) is damaged: {source}"))),
        Ok(length) if length > most => {
            Err(error(Problem::TooLarge { limit: "bytes of the pickle", most, found: length }))
        }
        Ok(_) => Ok(()),
    };
    match compression(bytes) {
        None => return Ok(Cow::Borrowed(bytes)),
        Some("gzip") => read("gzip", &mut MultiGzDecoder::new(bytes))?,
        Some("zlib") => {
            let mut decoder = ZlibDecoder::new(bytes);
            read("zlib", &mut decoder)?;
            let count = decoder.into_inner().len();
            if count > 0 {
                return Err(refused(trailing(count)));
            }
        }
        Some(format) => return Err(refused(is_compressed(format))),
    }
    Ok(Cow::Owned(found))
}

/// What is wrong with a file in a format that [`decompress`] does not undo, or that was not given to it.
pub(super) fn is_compressed(format: &str) -> String {
    format!("the file is compressed ({format}): decompress it first, or save the object anew with Python's pickle.dump")
}

/// What is wrong with bytes behind the last that belongs to a pickle.
pub(super) fn trailing(count: usize) -> String {
    format!("{count} bytes follow the end of the pickle")
}

/// The format of a compressed file, by its first bytes.
///
/// zlib has no magic number; the four pairs are those of its usual compression levels. None of these
/// can begin a pickle of protocols 2 to 5, whose first byte is 0x80.
pub(super) fn compression(bytes: &[u8]) -> Option<&'static str> {
    const FORMATS: [(&[u8], &str); 9] = [
        (b"\x1f\x8b", "gzip"),
        (b"\x78\x01", "zlib"),
        (b"\x78\x5e", "zlib"),
        (b"\x78\x9c", "zlib"),
        (b"\x78\xda", "zlib"),
        (b"BZh", "bzip2"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"\x5d\0\0", "lzma"), // with the dictionary sizes that are used; no pickle has two bytes of zero there
    ];
    FORMATS.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|&(_, format)| format)
}
