//! A fingerprint of labelled rows for a probe's provenance. What a row's bytes are is the caller's choice, and part of what is compared.

/// A hash of labelled data, for [`ProbeOrigin::data_hash`](crate::ProbeOrigin::data_hash): BLAKE3 over rows, each with its length before
/// it, so that rows cut otherwise hash otherwise.
///
/// The order of rows counts. Memory does not grow with the rows.
///
/// ```
/// use judge_probe::DataHash;
///
/// let hash_of = |rows: &[&[u8]]| {
///     let mut hash = DataHash::new();
///     rows.iter().for_each(|row| hash.add(row));
///     hash.finish()
/// };
/// assert_ne!(hash_of(&[b"ab", b"c"]), hash_of(&[b"a", b"bc"]));
/// ```
#[derive(Debug, Clone, Default)]
pub struct DataHash(blake3::Hasher);

impl DataHash {
    /// Of no rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more row.
    pub fn add(&mut self, row: &[u8]) {
        self.0.update(&(row.len() as u64).to_le_bytes());
        self.0.update(row);
    }

    /// 64 hexadecimal digits.
    pub fn finish(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }

    /// The hash itself.
    pub(crate) fn bytes(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}
