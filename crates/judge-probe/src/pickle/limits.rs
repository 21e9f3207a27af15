//! How much of a pickle is read at most.

/// How large a pickle and what it says may be. The defaults are far above any linear classifier and far below a machine's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the pickle.
    pub pickle_bytes: usize,
    /// Instructions, which bound every list, dictionary and stack.
    pub opcodes: usize,
    /// Values remembered for later reference.
    pub memo_entries: usize,
    /// Bytes of one text.
    pub text_bytes: usize,
    /// Elements of one array.
    pub array_elements: usize,
    /// How deep values may lie in one another.
    pub depth: usize,
    /// Values of the whole tree, where a value that is referred to twice counts twice.
    pub expanded_values: usize,
}

impl Default for Limits {
    /// 256 MiB, 2¹⁸ opcodes, 2¹⁷ memo entries, 2²⁰ bytes of text, 2²⁵ array elements, depth 64, 2¹⁸ values.
    fn default() -> Self {
        Self {
            pickle_bytes: 1 << 28,
            opcodes: 1 << 18,
            memo_entries: 1 << 17,
            text_bytes: 1 << 20,
            array_elements: 1 << 25,
            depth: 64,
            expanded_values: 1 << 18,
        }
    }
}
