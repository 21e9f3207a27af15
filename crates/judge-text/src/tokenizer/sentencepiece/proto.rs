//! A reader of SentencePiece's own file: a message of Protocol Buffers, `ModelProto`.
//!
//! A message is a list of fields, each with a number and one of four wire types. Only the fields that decide about
//! tokens are read, and all others are skipped. Where a field is absent it has the default of SentencePiece's schema.

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It stands for its text.
    Normal,
    /// It stands for what has no piece.
    Unknown,
    /// It has no text, such as the beginning of a text.
    Control,
    /// It is matched whole.
    UserDefined,
    /// It is there and never made.
    Unused,
    /// It stands for a byte.
    Byte,
}

/// An entry of the vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    /// Its text, with `▁` for spaces.
    pub(super) text: String,
    /// What the best way to cut a text is chosen by; finite.
    pub(super) score: f32,
    /// What it is.
    pub(super) kind: Kind,
}

/// What the file says, as far as it decides about tokens. Names are those of the schema.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModelProto {
    pub(super) pieces: Vec<Piece>,
    /// 1: unigram, 2: BPE, 3: words, 4: characters.
    pub(super) model_type: u64,
    pub(super) byte_fallback: bool,
    pub(super) treat_whitespace_as_suffix: bool,
    /// Negative where there is no such piece.
    pub(super) unk_id: i32,
    pub(super) bos_id: i32,
    pub(super) eos_id: i32,
    pub(super) unk_piece: String,
    pub(super) bos_piece: String,
    pub(super) eos_piece: String,
    pub(super) precompiled_charsmap: Vec<u8>,
    pub(super) add_dummy_prefix: bool,
    pub(super) remove_extra_whitespaces: bool,
    pub(super) escape_whitespaces: bool,
}

impl ModelProto {
    /// Reads a whole file.
    ///
    /// # Errors
    /// What is wrong with bytes that are no such message, and with a vocabulary that SentencePiece would not load: without
    /// pieces, with an empty one or two of one text, or with a score that is not finite.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut model = Self {
            pieces: Vec::new(),
            model_type: 1,
            byte_fallback: false,
            treat_whitespace_as_suffix: false,
            unk_id: 0,
            bos_id: 1,
            eos_id: 2,
            unk_piece: "<unk>".to_owned(),
            bos_piece: "<s>".to_owned(),
            eos_piece: "</s>".to_owned(),
            precompiled_charsmap: Vec::new(),
            add_dummy_prefix: true,
            remove_extra_whitespaces: true,
            escape_whitespaces: true,
        };
        let mut fields = Fields::new(bytes, 0);
        while let Some(field) = fields.next()? {
            match field.number {
                1 => model.pieces.push(piece(&field)?),
                2 => model.trainer(&field)?,
                3 => model.normalizer(&field)?,
                _ => {}
            }
        }
        let mut seen = std::collections::HashSet::new();
        for (id, piece) in model.pieces.iter().enumerate() {
            let text = piece.text.as_str();
            if text.is_empty() || !seen.insert(text) {
                return Err(format!("piece {id} is {text:?}, expected a text that no other piece has"));
            }
            if !piece.score.is_finite() {
                return Err(format!("piece {id} is {text:?}, expected a finite score"));
            }
        }
        if model.pieces.is_empty() { Err(no_model("it has no pieces")) } else { Ok(model) }
    }

    /// Takes in fields of `trainer_spec`.
    fn trainer(&mut self, message: &Field<'_>) -> Result<(), String> {
        let mut fields = message.fields()?;
        while let Some(field) = fields.next()? {
            match field.number {
                3 => self.model_type = field.integer()?,
                24 => self.treat_whitespace_as_suffix = field.integer()? != 0,
                35 => self.byte_fallback = field.integer()? != 0,
                // A negative `int32` is written with the bits of 64.
                40 => self.unk_id = field.integer()? as i32,
                41 => self.bos_id = field.integer()? as i32,
                42 => self.eos_id = field.integer()? as i32,
                45 => self.unk_piece = field.text()?.to_owned(),
                46 => self.bos_piece = field.text()?.to_owned(),
                47 => self.eos_piece = field.text()?.to_owned(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes in fields of `normalizer_spec`.
    fn normalizer(&mut self, message: &Field<'_>) -> Result<(), String> {
        let mut fields = message.fields()?;
        while let Some(field) = fields.next()? {
            match field.number {
                2 => self.precompiled_charsmap = field.bytes()?.to_vec(),
                3 => self.add_dummy_prefix = field.integer()? != 0,
                4 => self.remove_extra_whitespaces = field.integer()? != 0,
                5 => self.escape_whitespaces = field.integer()? != 0,
                _ => {}
            }
        }
        Ok(())
    }
}

/// What is wrong with bytes that SentencePiece did not write.
fn no_model(what: &str) -> String {
    format!("no SentencePiece model: {what}")
}

/// A message `SentencePiece`.
fn piece(message: &Field<'_>) -> Result<Piece, String> {
    let mut piece = Piece { text: String::new(), score: 0.0, kind: Kind::Normal };
    let mut fields = message.fields()?;
    while let Some(field) = fields.next()? {
        match field.number {
            1 => piece.text = field.text()?.to_owned(),
            2 => piece.score = field.float()?,
            3 => {
                piece.kind = match field.integer()? {
                    1 => Kind::Normal,
                    2 => Kind::Unknown,
                    3 => Kind::Control,
                    4 => Kind::UserDefined,
                    5 => Kind::Unused,
                    6 => Kind::Byte,
                    _ => return field.wrong("a type of pieces, 1 to 6"),
                }
            }
            _ => {}
        }
    }
    Ok(piece)
}

/// What a field holds, by its wire type.
#[derive(Clone, Copy)]
enum Content<'a> {
    Integer(u64),
    Four([u8; 4]),
    Eight,
    Bytes(&'a [u8]),
}

/// A field, and where in the file its content ends or, of bytes, begins.
struct Field<'a> {
    number: u64,
    at: usize,
    content: Content<'a>,
}

impl<'a> Field<'a> {
    fn wrong<T>(&self, expected: &str) -> Result<T, String> {
        let Self { number, at, .. } = self;
        Err(no_model(&format!("field {number}, which holds its content at byte {at}, is not {expected}")))
    }

    fn integer(&self) -> Result<u64, String> {
        if let Content::Integer(value) = self.content { Ok(value) } else { self.wrong("an integer") }
    }

    fn float(&self) -> Result<f32, String> {
        if let Content::Four(bytes) = self.content { Ok(f32::from_le_bytes(bytes)) } else { self.wrong("a float") }
    }

    fn bytes(&self) -> Result<&'a [u8], String> {
        if let Content::Bytes(bytes) = self.content { Ok(bytes) } else { self.wrong("bytes with their length") }
    }

    fn text(&self) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes()?).or_else(|_| self.wrong("UTF-8"))
    }

    /// The fields of a message within.
    fn fields(&self) -> Result<Fields<'a>, String> {
        Ok(Fields::new(self.bytes()?, self.at))
    }
}

/// The fields of a message, one after another.
struct Fields<'a> {
    rest: &'a [u8],
    /// Where in the file `rest` begins.
    at: usize,
}

impl<'a> Fields<'a> {
    fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { rest: bytes, at }
    }

    /// The next field, `None` at the end of the message.
    fn next(&mut self) -> Result<Option<Field<'a>>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (begin, tag) = (self.at, self.varint()?);
        let content = match tag & 7 {
            0 => Content::Integer(self.varint()?),
            1 => self.take(8).map(|_| Content::Eight)?,
            2 => {
                let length = self.varint()?;
                Content::Bytes(self.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => {
                let mut four = [0; 4];
                four.copy_from_slice(self.take(4)?);
                Content::Four(four)
            }
            found => {
                let wrong = format!("the field at byte {begin} has the wire type {found}, expected 0, 1, 2 or 5");
                return Err(no_model(&wrong));
            }
        };
        let within = if let Content::Bytes(bytes) = content { bytes.len() } else { 0 };
        Ok(Some(Field { number: tag >> 3, at: self.at - within, content }))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (at, found) = (self.at, self.rest.len());
        let truncated =
            || format!("truncated, or no SentencePiece model: at byte {at} {length} bytes are expected, found {found}");
        let taken = self.rest.split_at_checked(length).ok_or_else(truncated)?;
        (self.rest, self.at) = (taken.1, at + length);
        Ok(taken.0)
    }

    /// An integer in seven bits a byte, the lowest first. What is beyond 64 bits is dropped, as everywhere.
    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0_u64;
        for place in 0..10 {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(no_model(&format!("the integer before byte {} does not end within ten bytes", self.at)))
    }
}
