use std::cmp::Ordering::{Equal, Greater, Less};

use serde::Deserialize;

use super::pair::{BenchmarkPair, PairTexts, order_of};
use crate::{Error, Row, with_input};

/// Six of the published responses are the JSON value `true`, which was the text `True`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Text(String),
    Truth(bool),
}

impl Text {
    fn into_string(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Truth(true) => "True".to_owned(),
            Self::Truth(false) => "False".to_owned(),
        }
    }
}

pub(super) fn pair(row: &Row) -> Result<BenchmarkPair, Error> {
    let text = |field| Ok::<_, Error>(row.required::<Text>(field, "a string")?.into_string());
    let label = |field| order_of(row, field, "1, 2 or 0", [(1, Greater), (2, Less), (0, Equal)]);
    let [a, b, c] = [label("annotator1")?, label("annotator2")?, label("annotator3")?];
    let gold = match () {
        () if a == b || a == c => a,
        () if b == c => b,
        () => return Err(row.wrong("annotator3", "a label that another annotator gives too")),
    };
    let (task, input) = (text("instruction")?, text("input")?);
    let texts = PairTexts::new(with_input(&task, &input).into_owned(), text("response1")?, text("response2")?);
    Ok(BenchmarkPair::new(row.required("idx", "a string or a whole number")?, Some(gold), texts))
}
