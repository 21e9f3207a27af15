use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde::Deserialize;

use super::{PairVerdicts, mtbench};
use crate::{Error, Row, Rows};

/// One vote of MT-bench's files: whose answer to one turn of a question somebody prefers.
///
/// A vote is read from `{"question_id", "model_a", "model_b", "winner", "judge", "turn"}`, where `winner` is `model_a`, `model_b`, `tie` or
/// `tie (inconsistent)`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PairVote {
    /// The question. A number and its text are one question.
    pub question: String,
    /// The models that are compared, in the order of the file.
    pub models: [String; 2],
    /// The turn of the conversation, 1 or 2.
    pub turn: u32,
    /// Who voted: `expert_3`, `author_0`, or a judge. A list, as FastChat writes for a judge and its prompt, is joined by `/`.
    pub annotator: String,
    /// `Greater`: the first model's answer is better; `Equal`: a tie.
    pub verdict: Ordering,
    /// Whether the tie stands for two orders that disagreed, which MT-bench writes as `tie (inconsistent)`.
    pub inconsistent: bool,
}

/// What votes that can be compared share: the question, the models in ascending order, and the turn.
type Key = (String, [String; 2], u32);

/// The name of the experts in tables.
const EXPERTS: &str = "human";
/// The name of the authors in tables.
const AUTHORS: &str = "author";

impl PairVote {
    /// Reads a file of votes, one row for each.
    ///
    /// A person may vote on a pair more than once, as some of the published experts do. A judge may not.
    ///
    /// # Errors
    /// [`Error::NoRows`]; for a row that is not as published [`Error::MissingField`] or [`Error::WrongType`], and [`Error::At`] for
    /// a second vote of a judge on the same question, models and turn, each with its line; [`Error::Io`] and what [`Rows`] refuses.
    pub fn read(path: impl AsRef<Path>) -> Result<Vec<Self>, Error> {
        let path = path.as_ref();
        let mut votes = Vec::new();
        let mut seen = HashMap::new();
        for row in Rows::open(path)? {
            let row = row?;
            let vote = Self::from_row(&row)?;
            let (place, annotator) = (row.place().clone(), vote.annotator.clone());
            if !vote.is_persons()
                && let Some(first) = seen.insert((annotator.clone(), vote.key()), place.line)
            {
                let of = "on each question, pair of models and turn";
                let first = format!("the first is on line {first}");
                return Err(Error::at(
                    &place,
                    format!("expected one vote of {annotator} {of} ({first}), found a second one"),
                ));
            }
            votes.push(vote);
        }
        if votes.is_empty() { Err(Error::NoRows { path: path.to_path_buf() }) } else { Ok(votes) }
    }

    /// A judge's votes from its verdicts on the pairs that people voted on, each pair once.
    ///
    /// Where both orders were judged, the vote is their common verdict, and `tie (inconsistent)` if they disagree (FastChat). Several
    /// people's votes on a pair are several rows of the benchmark: the verdict on the first of them is the vote. `unparsed` is the verdict
    /// that a text without one counts as; `None` drops the vote. Also returned is the number of pairs without a verdict in some order.
    ///
    /// `votes` are the rows of the file whose pairs were judged, in its order.
    pub fn of_verdicts(
        annotator: &str,
        votes: &[Self],
        verdicts: &PairVerdicts,
        unparsed: Option<Ordering>,
    ) -> (Vec<Self>, usize) {
        let mut seen = HashSet::new();
        let (mut found, mut missing) = (Vec::new(), 0);
        for (vote, [given, swapped]) in votes.iter().zip(&verdicts.orders) {
            if !seen.insert(vote.key()) {
                continue;
            }
            let orders = if verdicts.both_orders { vec![*given, *swapped] } else { vec![*given] };
            missing += usize::from(orders.contains(&None));
            let Some(orders) = orders.iter().map(|order| order.or(unparsed)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let inconsistent = orders.iter().any(|order| *order != orders[0]);
            let verdict = if inconsistent { Ordering::Equal } else { orders[0] };
            found.push(Self { annotator: annotator.to_owned(), verdict, inconsistent, ..vote.clone() });
        }
        (found, missing)
    }

    /// The kind of annotator that MT-bench's tables count this one as:
    /// `human` for the experts, `author` for the authors of the benchmark, and each judge by its own name.
    pub fn kind(&self) -> &str {
        match self.annotator.as_str() {
            name if name.starts_with("expert") => EXPERTS,
            name if name.starts_with("author") => AUTHORS,
            name => name,
        }
    }

    /// Whether a person voted, and not a judge.
    pub fn is_persons(&self) -> bool {
        [EXPERTS, AUTHORS].contains(&self.kind())
    }

    pub(super) fn from_row(row: &Row) -> Result<Self, Error> {
        const ANNOTATOR: &str = "a string, or a list of strings";
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Annotator {
            One(String),
            Joined(Vec<String>),
        }
        let annotator = match row.required("judge", ANNOTATOR)? {
            Annotator::One(name) => name,
            Annotator::Joined(names) => names.join("/"),
        };
        if annotator.is_empty() {
            return Err(row.wrong("judge", "the name of who voted"));
        }
        let models = [row.string("model_a")?, row.string("model_b")?];
        if models[0] == models[1] {
            return Err(row.wrong("model_b", "another model than model_a"));
        }
        let (verdict, inconsistent) = mtbench::winner(row)?;
        let (question, turn) = (mtbench::question(row)?, mtbench::turn(row)?);
        Ok(Self { question, models, turn, annotator, verdict, inconsistent })
    }

    fn key(&self) -> Key {
        let mut models = self.models.clone();
        models.sort();
        (self.question.clone(), models, self.turn)
    }
}
