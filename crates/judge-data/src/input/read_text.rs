use std::fs;
use std::io::Read;
use std::path::Path;

use crate::files::document::decoded;
use crate::{Error, Input};

/// Reads a whole small file as text, such as one of settings; `-` is standard input. A byte-order mark, which Windows editors write, is
/// left out.
///
/// # Errors
/// [`Error::Io`], [`Error::Utf8`].
pub fn read_text(path: impl AsRef<Path>) -> Result<String, Error> {
    let path = path.as_ref();
    let failed = Error::io("read", path);
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        Input::open(path)?.text()?.read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    decoded(path, bytes.map_err(failed)?)
}
