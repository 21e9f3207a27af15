//! The opcodes of pickle protocols 0 to 5.
//!
//! The table is complete, forbidden opcodes included, so that an error can name the opcode it refuses. Which of them are run is decided in
//! `machine`.
//!
//! Protocol 0 is printable text, with arguments that end at a line break. Protocol 1 adds binary arguments of fixed or stated length. Both
//! may still be used by a pickle of a later protocol, which only says what it may need at most. Integers are little-endian; the float of
//! BINFLOAT alone is big-endian.

/// Name of an opcode as `pickletools` has it; `None` for a byte that is none.
///
/// Letters are opcodes of protocols 0, 1 and 3; bytes from 0x80 on are those of protocol 2 and later.
pub(super) fn name(byte: u8) -> Option<&'static str> {
    Some(match byte {
        // Stack and end. MARK remembers the height of the stack; APPENDS, SETITEMS, TUPLE and POP_MARK take what lies above it.
        b'(' => "MARK",
        b'.' => "STOP",
        b'0' => "POP",
        b'1' => "POP_MARK",
        b'2' => "DUP",
        // Numbers and None. FLOAT, INT and LONG are decimal text of protocol 0 and are not run.
        b'F' => "FLOAT",
        b'I' => "INT",
        b'J' => "BININT",
        b'K' => "BININT1",
        b'L' => "LONG",
        b'M' => "BININT2",
        b'N' => "NONE",
        // References to objects outside the pickle, of which only the loading program would know the meaning. Not run.
        b'P' => "PERSID",
        b'Q' => "BINPERSID",
        // Calls a callable on a tuple of arguments: the opcode that makes a pickle dangerous.
        b'R' => "REDUCE",
        // Text. STRING to SHORT_BINSTRING are Python 2's byte strings, UNICODE is escaped text; of these five only BINUNICODE is run.
        b'S' => "STRING",
        b'T' => "BINSTRING",
        b'U' => "SHORT_BINSTRING",
        b'V' => "UNICODE",
        b'X' => "BINUNICODE",
        // Lists, objects, dictionaries and the memo. The text forms GET and PUT, the forms LIST and DICT that need a mark, and INST and
        // OBJ of Python 2 are not run.
        b'a' => "APPEND",
        b'b' => "BUILD",
        b'c' => "GLOBAL",
        b'd' => "DICT",
        b'}' => "EMPTY_DICT",
        b'e' => "APPENDS",
        b'g' => "GET",
        b'h' => "BINGET",
        b'i' => "INST",
        b'j' => "LONG_BINGET",
        b'l' => "LIST",
        b']' => "EMPTY_LIST",
        b'o' => "OBJ",
        b'p' => "PUT",
        b'q' => "BINPUT",
        b'r' => "LONG_BINPUT",
        b's' => "SETITEM",
        b't' => "TUPLE",
        b')' => "EMPTY_TUPLE",
        b'u' => "SETITEMS",
        b'G' => "BINFLOAT",
        // Protocol 2. EXT1, EXT2 and EXT4 look a class up in a registry of the loading process, and are not run.
        0x80 => "PROTO",
        0x81 => "NEWOBJ",
        0x82 => "EXT1",
        0x83 => "EXT2",
        0x84 => "EXT4",
        0x85 => "TUPLE1",
        0x86 => "TUPLE2",
        0x87 => "TUPLE3",
        0x88 => "NEWTRUE",
        0x89 => "NEWFALSE",
        0x8a => "LONG1",
        0x8b => "LONG4",
        // Protocol 3: bytes of their own.
        b'B' => "BINBYTES",
        b'C' => "SHORT_BINBYTES",
        // Protocol 4: 64-bit lengths, names from the stack, implicit memo numbers and frames, which are run; sets and NEWOBJ_EX, which
        // are not.
        0x8c => "SHORT_BINUNICODE",
        0x8d => "BINUNICODE8",
        0x8e => "BINBYTES8",
        0x8f => "EMPTY_SET",
        0x90 => "ADDITEMS",
        0x91 => "FROZENSET",
        0x92 => "NEWOBJ_EX",
        0x93 => "STACK_GLOBAL",
        0x94 => "MEMOIZE",
        0x95 => "FRAME",
        // Protocol 5. The two buffer opcodes refer to data outside the pickle and are not run.
        0x96 => "BYTEARRAY8",
        0x97 => "NEXT_BUFFER",
        0x98 => "READONLY_BUFFER",
        _ => return None,
    })
}
