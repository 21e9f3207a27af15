//! The key that requests must have.

use std::path::Path;

use anyhow::{Context, Result};
use hyper::header::{AUTHORIZATION, HeaderMap};
use judge_cli::terminal::console::usage;
use judge_data::read_text;

/// A key, of which only the digest is kept.
pub(super) struct Key(blake3::Hash);

impl Key {
    /// The text of a file without the white space around it.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = read_text(path).with_context(|| format!("cannot read the key in {}", path.display()))?;
        let key = text.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(usage(format!(
                "--key-file {}: expected one key of visible ASCII characters, without spaces",
                path.display()
            )));
        }
        Ok(Self(blake3::hash(key.as_bytes())))
    }

    /// Whether these headers have it. Digests are compared, in a time that does not depend on where they differ.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
        });
        given.is_some_and(|given| blake3::hash(given.as_bytes()) == self.0)
    }
}
