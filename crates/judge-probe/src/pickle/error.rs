//! Why a pickle was not read, and where in it. Every error names the opcode and its offset, so that a file can be looked into with
//! `pickletools`.

/// Why a pickle was refused, and where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("byte {offset}, {opcode}: {problem}")]
pub struct ReadError {
    /// Where in the pickle the opcode stands; of a value that is refused once the tree is made, the opcode that began it.
    pub offset: usize,
    /// Name of the opcode, as Python's `pickletools` has it.
    pub opcode: &'static str,
    /// What was wrong.
    pub problem: Problem,
}

/// What was wrong with a pickle.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The first two bytes do not announce a protocol that is read.
    #[error("expected the announcement of protocol 2, 3, 4 or 5, found {found:02x?}")]
    Protocol {
        /// The first bytes, at most two.
        found: Vec<u8>,
    },

    /// A compressed file. [`decompress`](super::decompress) undoes gzip and zlib.
    #[error(
        "the file is compressed ({format}): decompress it first, or save the object anew with Python's pickle.dump"
    )]
    Compressed {
        /// Name of the format.
        format: &'static str,
    },

    /// A compressed file that was cut or changed.
    #[error("the compressed file ({format}) is damaged: {said}")]
    Damaged {
        /// Name of the format.
        format: &'static str,
        /// What is wrong.
        said: String,
    },

    /// A pickle of protocol 0 or 1, which announces none.
    #[error(
        "protocol 0 or 1 is not read: load the object in Python and save it anew with pickle.dump(model, file, protocol=4)"
    )]
    OldProtocol,

    /// A name that scikit-learn moved in release 0.22, of a class whose attributes have changed since.
    #[error(
        "{module}.{name} is of scikit-learn before 0.22, which is not read: load the object with that release, fit it with a newer one, and save it anew"
    )]
    OldRelease {
        /// Its module, cut at 100 characters.
        module: String,
        /// Its name, cut at 100 characters.
        name: String,
    },

    /// What joblib 0.9 and older write, whose arrays lie in other files.
    #[error(
        "written by joblib 0.9 or older, which is not read: load the object in Python and save it with pickle.dump"
    )]
    Joblib,

    /// An array of text.
    #[error(
        "text (dtype {code:?}) is not read: fit with whole numbers as classes, e.g. by sklearn.preprocessing.LabelEncoder"
    )]
    TextArray {
        /// NumPy's code, cut at 100 characters.
        code: String,
    },

    /// A byte that is no opcode.
    #[error("0x{byte:02x} is no opcode")]
    UnknownOpcode {
        /// The byte.
        byte: u8,
    },

    /// An opcode that no pickle of the protocols read needs here.
    #[error("the opcode is not allowed")]
    ForbiddenOpcode,

    /// The pickle ends within an opcode, or without STOP.
    #[error("{needed} more bytes needed, {left} left")]
    Truncated {
        /// Bytes needed.
        needed: u64,
        /// Bytes left.
        left: usize,
    },

    /// Bytes after STOP.
    #[error("{count} bytes follow the end of the pickle")]
    TrailingBytes {
        /// How many.
        count: usize,
    },

    /// A frame that opens within another, is longer than the pickle, or ends within an opcode.
    #[error("the frame does not fit: it ends at byte {end}, expected {expected}")]
    Frame {
        /// Where the frame ends.
        end: u64,
        /// What would have been right.
        expected: &'static str,
    },

    /// An opcode takes more from the stack than there is above the last mark.
    #[error("nothing left to take from the stack")]
    EmptyStack,

    /// An opcode looks for a mark and there is none.
    #[error("no mark on the stack")]
    NoMark,

    /// STOP leaves more than its one value.
    #[error("{count} values and marks are left below the result")]
    LeftOver {
        /// How many.
        count: usize,
    },

    /// A reference to something that was not remembered.
    #[error("the memo has no entry {index}")]
    NoMemo {
        /// The number referred to.
        index: u32,
    },

    /// A global that is not on the list of those allowed.
    #[error("the global {module}.{name} is not allowed")]
    ForeignGlobal {
        /// Its module, cut at 100 characters.
        module: String,
        /// Its name, cut at 100 characters.
        name: String,
    },

    /// An allowed global in a role that it does not have.
    #[error("{global} may not be {role} here")]
    Role {
        /// The global.
        global: &'static str,
        /// What was tried.
        role: &'static str,
    },

    /// A value of another type, or another value, than stands in this place in what NumPy and scikit-learn write.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What should stand here.
        expected: &'static str,
        /// What does.
        found: &'static str,
    },

    /// Text that is not UTF-8.
    #[error("text is not UTF-8 from its byte {valid_up_to}")]
    NotUtf8 {
        /// Bytes that are.
        valid_up_to: usize,
    },

    /// An integer of more than 64 bits.
    #[error("an integer of {n_bytes} bytes, at most 8 expected")]
    LongInteger {
        /// Its length.
        n_bytes: u64,
    },

    /// An array of elements that are not read.
    #[error("elements of dtype {code:?} in byte order {order:?} are not read")]
    ElementType {
        /// NumPy's code, cut at 100 characters.
        code: String,
        /// NumPy's byte order, cut at 100 characters.
        order: String,
    },

    /// Another amount of data than the array's shape needs.
    #[error("an array needs {expected} bytes (of objects: items) for its shape, found {found}")]
    ArrayLength {
        /// Elements of the shape times the size of one.
        expected: usize,
        /// Data there are.
        found: usize,
    },

    /// An array that was begun and never filled.
    #[error("the array was never given its content")]
    Unfinished,

    /// A list or dictionary that changes after it was used, or an object that is given its content twice.
    #[error("{what} is changed after it was complete")]
    Changed {
        /// What kind of value.
        what: &'static str,
    },

    /// A key that stands twice in one dictionary.
    #[error("the key {key} stands twice in one dictionary")]
    DuplicateKey {
        /// The key, cut at 100 characters.
        key: String,
    },

    /// A value that contains itself.
    #[error("the value contains itself")]
    Cycle,

    /// Larger than the [limits](super::Limits) allow.
    #[error("{limit}: at most {most} allowed, found {found} or more")]
    TooLarge {
        /// What is limited.
        limit: &'static str,
        /// The limit.
        most: usize,
        /// What there is, or the count at which reading stopped.
        found: usize,
    },
}

/// Foreign text for an error message.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(100).collect()
}
