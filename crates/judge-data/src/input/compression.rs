//! Kinds of compression, told by the first bytes.

use std::{fmt, io};

/// A kind of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    /// Told by what a member or a frame begins with.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            // A zstd file may also begin with a frame of something else, 0x184D2A50 to 0x184D2A5F.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Whether these bytes, the last of a file, are the beginning of what it was to go on with.
    pub(super) fn is_cut(self, rest: &[u8]) -> bool {
        match self {
            Self::Gzip => rest == [0x1f],
            Self::Zstd => matches!(rest, [0x28] | [0x28, 0xb5] | [0x28, 0xb5, 0x2f]),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    pub(super) fn corrupt(self, source: impl fmt::Display) -> io::Error {
        let name = self.name();
        io::Error::new(io::ErrorKind::InvalidData, format!("{name} data that are corrupt or cut off: {source}"))
    }
}
