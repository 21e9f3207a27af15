//! Items out of record batches: which column holds which field of a template, and the texts of a row.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field as Column, Schema};
use judge_core::{Fields, ItemId, Message, PromptTemplate};
use serde::{Deserialize, Serialize};

use super::{IdKind, ids, integers, required, texts, wrong};
use crate::rows::columns::INPUT;
use crate::rows::messages::{UNREAD, is_blank};
use crate::{Columns, Error, Extra, Field, PromptInput, PromptRecord, RowColumns, RowHash, RowHasher, with_input};

/// What a column of a template's field may hold.
const TEXT: &str = "text (utf8, large_utf8 or utf8_view), whole numbers or booleans";
/// What a column of conversations may hold.
const MESSAGES: &str = "lists of structs with the texts \"role\" and \"content\"";
/// The fields that a conversation whose last turn is an answer has.
const OF_A_CONVERSATION: [&str; 3] = ["instruction", "response", "conversation"];

/// Which columns items are read from, before any schema is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ItemSpec {
    /// What is filled with an item's texts.
    pub template: PromptTemplate,
    /// Which columns hold which of its fields.
    #[serde(with = "columns_as_text")]
    pub columns: Columns,
    /// The column of the ids; `id` stands for each of the field's usual names, unless `columns` has another for it.
    pub id: String,
    /// What ids are.
    pub ids: IdKind,
}

/// Columns as they are written on a command line.
mod columns_as_text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::Columns;

    pub(super) fn serialize<S: Serializer>(columns: &Columns, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(columns)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Columns, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Where the items of a stream or file of record batches come from: the column of their ids, and one for each field of a template.
///
/// It is found once, in the schema. So a field comes from the same column in all rows, and a null there is a value that is missing, even
/// where another column could stand in for it.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow_array::{RecordBatch, StringArray};
/// use judge_core::{Fields, Prompt, PromptTemplate};
/// use judge_data::{IdKind, ItemColumns, ItemSpec};
///
/// let column = |texts: Vec<Option<&str>>| Arc::new(StringArray::from(texts)) as _;
/// let batch = RecordBatch::try_from_iter([
///     ("id", column(vec![Some("a"), Some("b")])),
///     ("completion", column(vec![Some("four"), None])),
/// ])?;
/// let template = PromptTemplate::new(Prompt::user("Rate this: {response}"))?;
/// let columns = "response=completion".parse()?;
/// let spec = ItemSpec { template, columns, id: "id".to_owned(), ids: IdKind::Text };
/// let columns = ItemColumns::find(&batch.schema(), &spec)?;
/// let items = columns.items(&batch)?;
/// assert_eq!(items[0].field("response").as_deref(), Some("four"));
/// assert_eq!(items[1].field("response"), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ItemColumns {
    id: String,
    kind: IdKind,
    fields: Arc<[String]>,
    /// In the order of `fields`.
    sources: Vec<Source>,
}

/// What a field of a template is read from.
#[derive(Clone, Debug)]
enum Source {
    /// A column of texts, numbers or booleans.
    Column(String),
    /// Such a column of instructions, with that of what they are about, `input`.
    WithInput(String),
    /// The conversations of this column.
    Messages(String),
    /// Nothing: the template's default.
    Default,
}

impl ItemColumns {
    /// Finds the columns of a template's fields in a schema. Their names are those of [`Columns`], or the field's own. `instruction`,
    /// `response` and `conversation` are also found in a column of `messages` whose last turn is an answer.
    /// A column `input` beside `instruction` is part of it, as of a [`GradedRecord`](crate::GradedRecord), unless the template names it.
    ///
    /// # Errors
    /// [`Error::NoIdColumn`]; [`Error::NoItemColumn`] for a field without a column and without a default;
    /// [`Error::AmbiguousItemColumn`] if two columns that nobody chose may hold it, or have its name; [`Error::IdColumn`] and
    /// [`Error::BatchColumn`] for one of a type that is not read.
    pub fn find(schema: &Schema, spec: &ItemSpec) -> Result<Self, Error> {
        let ItemSpec { template, columns, id, ids: kind } = spec;
        let kind = *kind;
        let found = || schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let names: Vec<&str> = match columns.is_chosen(Field::Id) || id == Field::Id.as_str() {
            true => columns.names(Field::Id).collect(),
            false => vec![id.as_str()],
        };
        let Some(held) = find(schema, Field::Id.as_str(), &names, true)? else {
            return Err(Error::NoIdColumn { looked_for: owned(names), found: found() });
        };
        let (id, held) = (held.name().as_str(), held.data_type());
        let (expected, fits) = match kind {
            IdKind::Text => ("texts", is_text(held)),
            IdKind::Integer => ("whole numbers", held.is_integer()),
        };
        if !fits {
            return Err(Error::IdColumn { column: id.to_owned(), expected, found: in_words(held) });
        }
        let fields: Arc<[String]> = template.field_names().into_iter().map(str::to_owned).collect();
        let is_shown = |held: &DataType| is_text(held) || held.is_integer() || *held == DataType::Boolean;
        let input = schema.field_with_name(INPUT).ok().filter(|column| is_shown(column.data_type()));
        let joins_input =
            input.is_some() && id != INPUT && columns.joins_input() && !fields.iter().any(|field| field == INPUT);
        let sources = fields.iter().map(|field| {
            let known = Field::from_name(field);
            let names: Vec<&str> = match known {
                Some(known) => columns.names(known).collect(),
                None => vec![field],
            };
            let is_clear = known.is_some_and(|known| columns.is_chosen(known));
            if let Some(held) = find(schema, field, &names, is_clear)? {
                let name = held.name().clone();
                let is_joined = joins_input && known == Some(Field::Instruction) && name == Field::Instruction.as_str();
                return match is_shown(held.data_type()) {
                    true if is_joined => Ok(Source::WithInput(name)),
                    true => Ok(Source::Column(name)),
                    false => Err(wrong(&name, TEXT, in_words(held.data_type()))),
                };
            }
            let messages: Vec<&str> = columns.names(Field::Messages).collect();
            if OF_A_CONVERSATION.contains(&field.as_str())
                && let Some(held) = find(schema, "messages", &messages, true)?
            {
                return match is_conversation(held.data_type()) {
                    true => Ok(Source::Messages(held.name().clone())),
                    false => Err(wrong(held.name(), MESSAGES, held.data_type().to_string())),
                };
            }
            match template.defaults().contains_key(field) {
                true => Ok(Source::Default),
                false => Err(Error::NoItemColumn { field: field.clone(), looked_for: owned(names), found: found() }),
            }
        });
        let sources = sources.collect::<Result<Vec<_>, Error>>()?;
        Ok(Self { id: id.to_owned(), kind, fields, sources })
    }

    /// The indices of the columns that are read, in a schema in which they were found; each once.
    pub fn indices(&self, schema: &Schema) -> Vec<usize> {
        let names = self.sources.iter().flat_map(|source| match source {
            Source::Column(name) | Source::Messages(name) => [Some(name.as_str()), None],
            Source::WithInput(name) => [Some(name.as_str()), Some(INPUT)],
            Source::Default => [None, None],
        });
        let names = [self.id.as_str()].into_iter().chain(names.flatten());
        let mut indices: Vec<usize> = names.filter_map(|name| schema.index_of(name).ok()).collect();
        indices.sort_unstable();
        indices.dedup();
        indices
    }

    /// What ids are.
    pub fn ids(&self) -> IdKind {
        self.kind
    }

    /// The items of a batch, in its order.
    ///
    /// # Errors
    /// [`Error::BatchColumn`] for an id that is null or a number beyond int64, and for a batch of another schema than that in which the
    /// columns were found.
    pub fn items(&self, batch: &RecordBatch) -> Result<Vec<BatchItem>, Error> {
        let ids = ids(&self.id, required(batch, &self.id, "a column of ids")?)?;
        for (row, id) in ids.iter().enumerate() {
            if let ItemId::Integer(number) = id
                && i64::try_from(*number).is_err()
            {
                let found = format!("{number} in row {row} of the batch");
                return Err(wrong(&self.id, "whole numbers from -2^63 to 2^63 - 1", found));
            }
        }
        let columns = self.fields.iter().zip(&self.sources).map(|(field, source)| match source {
            Source::Column(name) => rendered(name, required(batch, name, TEXT)?),
            Source::WithInput(name) => {
                let inputs = rendered(INPUT, required(batch, INPUT, TEXT)?)?;
                let texts = rendered(name, required(batch, name, TEXT)?)?.into_iter().zip(inputs);
                let joined = |(text, input): (Option<String>, Option<String>)| {
                    Some(with_input(&text?, input.as_deref().unwrap_or_default()).into_owned())
                };
                Ok(texts.map(joined).collect())
            }
            Source::Messages(name) => of_conversations(field, &conversations(name, required(batch, name, MESSAGES)?)?),
            Source::Default => Ok(vec![None; batch.num_rows()]),
        });
        let mut columns = columns.collect::<Result<Vec<_>, Error>>()?;
        let items = ids.into_iter().enumerate().map(|(row, id)| {
            let texts = columns.iter_mut().map(|column| column[row].take()).collect();
            BatchItem { id, fields: self.fields.clone(), texts }
        });
        Ok(items.collect())
    }
}

/// The first of these columns that is there. Several of them are an error unless the choice `is_clear`, or the first is called
/// like the field.
fn find<'s>(schema: &'s Schema, field: &str, names: &[&str], is_clear: bool) -> Result<Option<&'s Column>, Error> {
    let mut present = names.iter().flat_map(|name| schema.fields().iter().filter(move |column| column.name() == name));
    let Some(first) = present.next() else { return Ok(None) };
    let is_clear = is_clear || first.name() == field;
    match present.find(|other| !is_clear || other.name() == first.name()) {
        None => Ok(Some(&**first)),
        Some(second) => {
            let (first, second) = (first.name().clone(), second.name().clone());
            Err(Error::AmbiguousItemColumn { field: field.to_owned(), first, second })
        }
    }
}

fn is_text(kind: &DataType) -> bool {
    matches!(kind, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// A type that is not read, and what to do about it where its values may be.
fn in_words(kind: &DataType) -> String {
    match kind {
        DataType::Dictionary(_, values) => {
            format!("a dictionary of {values}; send its values, in pyarrow column.cast(column.type.value_type)")
        }
        other => other.to_string(),
    }
}

fn is_conversation(kind: &DataType) -> bool {
    let (DataType::List(item) | DataType::LargeList(item)) = kind else { return false };
    let DataType::Struct(fields) = item.data_type() else { return false };
    ["role", "content"].iter().all(|name| fields.iter().any(|field| field.name() == name && is_text(field.data_type())))
}

/// The values of a column as a template shows them: as in a JSON file, the digits of a number, `true` and `false`.
fn rendered(name: &str, array: &dyn Array) -> Result<Vec<Option<String>>, Error> {
    match array.data_type() {
        DataType::Boolean => Ok(array.as_boolean().iter().map(|value| value.map(|value| value.to_string())).collect()),
        kind if kind.is_integer() => {
            Ok(integers(name, array)?.into_iter().map(|value| value.map(|value| value.to_string())).collect())
        }
        _ => Ok(texts(name, array)?.into_iter().map(|value| value.map(str::to_owned)).collect()),
    }
}

/// Whether a value is null, false, empty, or holds nothing but such values.
fn says_nothing(array: &dyn Array, row: usize) -> bool {
    let all = |items: Arc<dyn Array>| (0..items.len()).all(|item| says_nothing(&*items, item));
    match array.data_type() {
        _ if array.is_null(row) => true,
        DataType::Null => true,
        DataType::Boolean => !array.as_boolean().value(row),
        DataType::Struct(_) => array.as_struct().columns().iter().all(|part| says_nothing(&**part, row)),
        DataType::List(_) => all(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => all(array.as_list::<i64>().value(row)),
        DataType::ListView(_) => all(array.as_list_view::<i32>().value(row)),
        DataType::LargeListView(_) => all(array.as_list_view::<i64>().value(row)),
        DataType::FixedSizeList(..) => all(array.as_fixed_size_list().value(row)),
        DataType::Map(..) => all(array.as_map().value(row).column(1).clone()),
        _ => texts("", &*array.slice(row, 1)).is_ok_and(|texts| texts.into_iter().flatten().all(is_blank)),
    }
}

/// The conversations of a column; `None` where one is null, or a turn of it without a role or a content, or with something in one of
/// [`UNREAD`].
fn conversations(name: &str, array: &dyn Array) -> Result<Vec<Option<Vec<Message>>>, Error> {
    let turns = |list: Option<Arc<dyn Array>>| {
        let Some(list) = list else { return Ok(None) };
        let turns = list.as_struct_opt().ok_or_else(|| wrong(name, MESSAGES, list.data_type().to_string()))?;
        let part = |part: &str| {
            let column =
                turns.column_by_name(part).ok_or_else(|| wrong(name, MESSAGES, format!("none called {part:?}")))?;
            texts(name, &**column)
        };
        let unread: Vec<&dyn Array> =
            UNREAD.iter().filter_map(|(name, _)| turns.column_by_name(name)).map(|column| &**column).collect();
        let is_read = |turn| !turns.is_null(turn) && unread.iter().all(|&column| says_nothing(column, turn));
        let pairs = part("role")?.into_iter().zip(part("content")?).enumerate();
        let message = |(turn, (role, content)): (usize, (Option<&str>, Option<&str>))| match is_read(turn) {
            true => Some(Message::new(role?, content?)),
            false => None,
        };
        Ok(pairs.map(message).collect::<Option<Vec<Message>>>())
    };
    match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().iter().map(turns).collect(),
        DataType::LargeList(_) => array.as_list::<i64>().iter().map(turns).collect(),
        other => Err(wrong(name, MESSAGES, other.to_string())),
    }
}

/// What a field is in each conversation, as a [`PromptRecord`] has it.
fn of_conversations(field: &str, conversations: &[Option<Vec<Message>>]) -> Result<Vec<Option<String>>, Error> {
    let text = |conversation: &Option<Vec<Message>>| {
        let input = PromptInput::Messages(conversation.clone()?);
        let (columns, extra) = (RowColumns::default(), Extra::new());
        let record = PromptRecord { id: ItemId::Integer(0), input, scores: Vec::new(), columns, extra };
        record.field(field).map(Cow::into_owned)
    };
    Ok(conversations.iter().map(text).collect())
}

/// An item of a record batch: its id, and the texts that a template uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchItem {
    /// Its id.
    pub id: ItemId,
    fields: Arc<[String]>,
    /// In the order of `fields`; `None` where there is none.
    texts: Vec<Option<String>>,
}

impl BatchItem {
    /// What proves from which texts an item was scored: the first 16 bytes of BLAKE3 over the id and what the template uses, by
    /// names, kinds and lengths ([`RowHasher`]). It is the same whatever types the columns have.
    #[must_use]
    pub fn input(&self) -> [u8; 16] {
        let hasher = RowHasher::new("input").id("id", &self.id);
        let values = self.fields.iter().zip(&self.texts);
        let hasher = values.fold(hasher, |hasher, (field, text)| match text {
            Some(text) => hasher.text(field, text),
            None => hasher.null(field),
        });
        hasher.finish().short()
    }

    /// The hash of [`input`](Self::input), as the digests of results have it.
    #[must_use]
    pub fn input_hash(&self) -> RowHash {
        RowHasher::new("input").id("id", &self.id).bytes("input", &self.input()).finish()
    }
}

impl Fields for BatchItem {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        let index = self.fields.iter().position(|field| field == name)?;
        self.texts[index].as_deref().map(Cow::Borrowed)
    }

    fn names(&self) -> Vec<String> {
        let there = self.fields.iter().zip(&self.texts).filter(|(_, text)| text.is_some());
        there.map(|(field, _)| field.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder};
    use arrow_array::{
        ArrayRef, BooleanArray, Int64Array, LargeStringArray, StringArray, StringViewArray, UInt64Array,
    };
    use judge_core::Prompt;

    use super::*;

    fn template(text: &str) -> PromptTemplate {
        PromptTemplate::new(Prompt::user(text)).unwrap()
    }

    fn spec(template: PromptTemplate, columns: &str, ids: IdKind) -> ItemSpec {
        ItemSpec { template, columns: columns.parse().unwrap(), id: "id".to_owned(), ids }
    }

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    fn find(batch: &RecordBatch, text: &str, columns: &str) -> Result<ItemColumns, Error> {
        ItemColumns::find(&batch.schema(), &spec(template(text), columns, IdKind::Text))
    }

    fn strings(texts: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(texts.to_vec()))
    }

    /// A turn of a conversation, either of whose parts may be null.
    type Turn<'a> = (Option<&'a str>, Option<&'a str>);

    fn messages(conversations: &[Option<&[Turn<'_>]>]) -> ArrayRef {
        let fields = [Column::new("role", DataType::Utf8, true), Column::new("content", DataType::Utf8, true)];
        let turns = StructBuilder::from_fields(fields.to_vec(), 0);
        let mut lists = ListBuilder::new(turns);
        for conversation in conversations {
            for &(role, content) in conversation.unwrap_or_default() {
                for (index, text) in [role, content].into_iter().enumerate() {
                    lists.values().field_builder::<StringBuilder>(index).unwrap().append_option(text);
                }
                lists.values().append(true);
            }
            lists.append(conversation.is_some());
        }
        Arc::new(lists.finish())
    }

    #[test]
    fn all_types_of_text_make_the_same_items() {
        let texts = [Some("größer"), None, Some("")];
        let ids = [Some("a"), Some("b"), Some("a")];
        let of = |id: ArrayRef, text: ArrayRef| {
            let batch = batch(vec![("other", strings(&texts)), ("id", id), ("output", text)]);
            let columns = find(&batch, "{response}", "").unwrap();
            assert_eq!(columns.indices(&batch.schema()), [1, 2]);
            let selected = batch.project(&[1, 2]).unwrap();
            assert_eq!(columns.items(&selected).unwrap(), columns.items(&batch).unwrap());
            columns.items(&batch).unwrap()
        };
        let items = of(strings(&ids), strings(&texts));
        let large =
            of(Arc::new(LargeStringArray::from(ids.to_vec())), Arc::new(LargeStringArray::from(texts.to_vec())));
        let views = of(Arc::new(StringViewArray::from(ids.to_vec())), Arc::new(StringViewArray::from(texts.to_vec())));
        assert_eq!((&items, &items), (&large, &views));
        assert_eq!(
            items.iter().map(|item| item.field("response")).collect::<Vec<_>>(),
            texts.map(|text| text.map(Cow::from))
        );
        assert_eq!((items[0].names(), items[1].names()), (vec!["response".to_owned()], vec![]));
        // The id counts, and an empty text is not a missing one.
        assert!(items[0].input() != items[2].input() && items[1].input() != items[2].input());
        assert_eq!(items[0].input(), large[0].input());
    }

    #[test]
    fn what_an_instruction_is_about_stands_below_it() {
        let batch = batch(vec![
            ("id", strings(&[Some("a"), Some("b"), Some("c"), Some("d")])),
            ("instruction", strings(&[Some("Add."), Some("Add."), Some("Add."), None])),
            ("input", strings(&[Some("7 + 5"), Some(""), None, Some("7 + 5")])),
        ]);
        let of = |text: &str, columns: &str| {
            let columns = find(&batch, text, columns).unwrap();
            let items = columns.items(&batch).unwrap();
            let texts = items.iter().map(|item| item.field("instruction").map(Cow::into_owned));
            (columns.indices(&batch.schema()), texts.collect::<Vec<_>>())
        };
        let some = |text: &str| Some(text.to_owned());
        let plain = vec![some("Add."), some("Add."), some("Add."), None];
        let joined = [vec![some("Add.\n\n7 + 5")], plain[1..].to_vec()].concat();
        assert_eq!(of("{instruction}", ""), (vec![0, 1, 2], joined));
        // A template that names it shows it once, and a column that is chosen stands as it is.
        assert_eq!(of("{instruction} {input}", ""), (vec![0, 1, 2], plain.clone()));
        assert_eq!(of("{instruction}", "instruction=instruction"), (vec![0, 1], plain.clone()));
        assert_eq!(of("{instruction}", "rubric=input"), (vec![0, 1], plain));
    }

    #[test]
    fn numbers_and_booleans_are_shown_as_in_a_json_file() {
        let batch = batch(vec![
            ("id", strings(&[Some("a"), Some("b")])),
            ("n", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None]))),
            ("b", Arc::new(BooleanArray::from(vec![true, false]))),
        ]);
        let items = find(&batch, "{n} {b}", "").unwrap().items(&batch).unwrap();
        assert_eq!(items[0].field("n").as_deref(), Some("18446744073709551615"));
        assert_eq!((items[0].field("b").as_deref(), items[1].field("b").as_deref()), (Some("true"), Some("false")));
        assert_eq!((items[1].field("n"), items[1].field("x")), (None, None));
    }

    #[test]
    fn a_conversation_has_the_fields_of_its_last_turn() {
        let turns = [
            (Some("user"), Some("hi")),
            (Some("assistant"), Some("yes?")),
            (Some("user"), Some("1 + 1?")),
            (Some("assistant"), Some("2")),
        ];
        let nameless = [(Some("user"), None), (Some("assistant"), Some("2"))];
        let batch = batch(vec![
            ("id", strings(&[Some("a"), Some("b"), Some("c"), Some("d")])),
            ("turns", messages(&[Some(&turns), None, Some(&nameless), Some(&[])])),
        ]);
        let text = "{instruction} {response} {conversation}";
        let items = find(&batch, text, "messages=turns").unwrap().items(&batch).unwrap();
        let field = |name: &str| items[0].field(name).unwrap().into_owned();
        assert_eq!((field("instruction"), field("response")), ("1 + 1?".to_owned(), "2".to_owned()));
        assert_eq!(field("conversation"), "User: hi\n\nAssistant: yes?");
        assert!(items[1..].iter().all(|item| item.names().is_empty()));
        // Columns of their own go first.
        let wider = super::tests::batch(vec![
            ("id", strings(&[Some("a")])),
            ("messages", messages(&[Some(&turns)])),
            ("response", strings(&[Some("3")])),
        ]);
        let items = find(&wider, text, "").unwrap().items(&wider).unwrap();
        assert_eq!(
            (items[0].field("response").as_deref(), items[0].field("instruction").as_deref()),
            (Some("3"), Some("1 + 1?"))
        );
    }

    #[test]
    fn a_conversation_with_calls_or_reasoning_beside_its_texts_is_none() {
        let text = |name: &str| Column::new(name, DataType::Utf8, true);
        let call = Column::new("function_call", DataType::Struct(vec![text("name")].into()), true);
        let fields = vec![text("role"), text("content"), text("thinking"), call];
        let mut lists = ListBuilder::new(StructBuilder::from_fields(fields, 0));
        for (thinking, called) in [(None, None), (Some(" "), Some("null")), (Some("hm"), None), (None, Some("f"))] {
            for turn in [[Some("user"), Some("1 + 1?"), None, None], [Some("assistant"), Some("2"), thinking, called]] {
                let turns = lists.values();
                for (index, text) in turn[..3].iter().enumerate() {
                    turns.field_builder::<StringBuilder>(index).unwrap().append_option(*text);
                }
                let call = turns.field_builder::<StructBuilder>(3).unwrap();
                call.field_builder::<StringBuilder>(0).unwrap().append_option(turn[3]);
                call.append(true);
                turns.append(true);
            }
            lists.append(true);
        }
        let ids = strings(&[Some("a"), Some("b"), Some("c"), Some("d")]);
        let batch = batch(vec![("id", ids), ("messages", Arc::new(lists.finish()))]);
        let items = find(&batch, "{response}", "").unwrap().items(&batch).unwrap();
        let texts: Vec<_> = items.iter().map(|item| item.field("response").map(Cow::into_owned)).collect();
        assert_eq!(texts, [Some("2".to_owned()), Some("2".to_owned()), None, None]);
    }

    #[test]
    fn what_is_wrong_with_columns_is_said_of_the_schema() {
        let text = || strings(&[Some("t")]);
        let numbers = || -> ArrayRef { Arc::new(Int64Array::from(vec![1])) };
        let error = |columns: Vec<(&str, ArrayRef)>, template: &str, chosen: &str| {
            find(&batch(columns), template, chosen).unwrap_err().to_string()
        };
        let said = error(vec![("id", text()), ("prompt", text())], "{instruction} {response}", "");
        assert!(said.contains("{response}") && said.contains("completion"), "{said}");
        let said = error(vec![("key", text())], "{x}", "");
        assert_eq!(said, r#"no column of ids: looked for ["id", "idx"], found ["key"]"#);
        let said = error(vec![("id", text()), ("answer", text()), ("output", text())], "{response}", "");
        assert!(said.contains("\"output\" and \"answer\""), "{said}");
        assert!(
            find(&batch(vec![("id", text()), ("answer", text()), ("output", text())]), "{response}", "response=answer")
                .is_ok()
        );
        let twice = Schema::new(vec![
            Column::new("id", DataType::Utf8, true),
            Column::new("x", DataType::Utf8, true),
            Column::new("x", DataType::Utf8, true),
        ]);
        let said = ItemColumns::find(&twice, &spec(template("{x}"), "", IdKind::Text)).unwrap_err();
        assert_eq!(said.to_string(), "two columns are called \"x\"; give each a name of its own");
        let lists = || messages(&[Some(&[])]);
        let said = error(vec![("id", text()), ("x", lists())], "{x}", "");
        assert!(said.starts_with("column \"x\": expected text"), "{said}");
        let categories = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        let schema = Schema::new(vec![Column::new("id", DataType::Utf8, true), Column::new("x", categories, true)]);
        let said = ItemColumns::find(&schema, &spec(template("{x}"), "", IdKind::Text)).unwrap_err();
        assert!(said.to_string().contains("found a dictionary of Utf8; send its values"), "{said}");
        let said = error(vec![("id", text()), ("messages", text())], "{response}", "");
        assert!(said.starts_with("column \"messages\": expected lists of structs"), "{said}");
        let said = error(vec![("id", numbers()), ("x", text())], "{x}", "");
        assert!(said.contains("expected texts as ids"), "{said}");
        let schema = batch(vec![("id", text()), ("x", text())]).schema();
        let said = ItemColumns::find(&schema, &spec(template("{x}"), "", IdKind::Integer)).unwrap_err();
        assert!(said.to_string().contains("expected whole numbers as ids"), "{said}");
        // A default stands in for a column.
        let template = template("{x} {y}").with_default("y", "none").unwrap();
        let columns = ItemColumns::find(&schema, &spec(template, "", IdKind::Text)).unwrap();
        assert_eq!(columns.items(&batch(vec![("id", text()), ("x", text())])).unwrap()[0].field("y"), None);
        let spec = spec(super::tests::template("{x}"), "response=a|b", IdKind::Integer);
        assert_eq!(serde_json::from_value::<ItemSpec>(serde_json::to_value(&spec).unwrap()).unwrap(), spec);
        // Ids are found under their usual names, unless another is chosen.
        let schema = batch(vec![("idx", text()), ("key", text()), ("x", text())]).schema();
        for (columns, id, found) in [("", "id", "idx"), ("id=key", "id", "key"), ("", "key", "key")] {
            let spec = ItemSpec {
                id: id.to_owned(),
                ..super::tests::spec(super::tests::template("{x}"), columns, IdKind::Text)
            };
            assert_eq!(ItemColumns::find(&schema, &spec).unwrap().id, found, "{columns:?} {id}");
        }
        // An id must be there in every row.
        let nameless = batch(vec![("id", strings(&[None])), ("x", text())]);
        let said = columns.items(&nameless).unwrap_err().to_string();
        assert!(said.contains("null in row 0"), "{said}");
    }
}
