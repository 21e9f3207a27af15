//! Features that anyone can count without reading a model: what a probe has to beat before its states can be said to matter.
//!
//! It owns the eight features. What they are compared with, and on which rows, is up to `artefacts` and `training`.

use std::collections::BTreeSet;

use crate::estimators::parameters::check_rows;
use crate::preprocessing::tfidf::words;
use crate::{Error, Matrix};

/// What the eight columns of [`surface_features`] are.
/// In the order of the columns. "Characters" are Unicode scalar values, "digits" the ASCII ones.
pub const SURFACE_FEATURES: [&str; 8] = [
    "characters of the question",
    "characters of the response",
    "words of the response",
    "lines of the response",
    "digits of the response",
    "equals signs of the response",
    "share of the response's words that the question has",
    "share of the question's words that the response has",
];

/// Eight numbers of each response that see no meaning, `[n_rows, 8]` in the order of [`SURFACE_FEATURES`]: the logarithms ln(1 + count) of
/// six counts, and two overlaps of distinct words in [0, 1], 0 where there are no words to share. A probe that does no better than these
/// has not been shown to read more.
///
/// Counts are taken as logarithms since lengths of texts spread over orders of magnitude. Words are as for
/// [`TfidfVectorizer`](crate::TfidfVectorizer): runs of two letters, digits or underscores or more, in lower case. The scaling
/// is left to the caller.
///
/// # Errors
///
/// [`Error::RowCount`] for other numbers of questions than of responses; [`Error::Empty`] for none.
pub fn surface_features<S: AsRef<str>>(questions: &[S], responses: &[S]) -> Result<Matrix, Error> {
    check_rows(questions.len(), "texts", responses.len())?;
    let rows = questions.iter().zip(responses).map(|(question, response)| of_one(question.as_ref(), response.as_ref()));
    Matrix::from_rows(rows)
}

/// One row: linear in the two texts, but for the sorting of words. The words of the response count each time, those shared
/// once.
fn of_one(question: &str, response: &str) -> [f64; 8] {
    let count = |n: usize| (n as f64).ln_1p();
    let words_of_response = words(response);
    let (asked, said): (BTreeSet<String>, BTreeSet<String>) =
        (words(question).into_iter().collect(), words_of_response.iter().cloned().collect());
    let shared = asked.intersection(&said).count() as f64;
    let share = |of: usize| if of == 0 { 0.0 } else { shared / of as f64 };
    [
        count(question.chars().count()),
        count(response.chars().count()),
        count(words_of_response.len()),
        count(response.lines().count()),
        count(response.chars().filter(char::is_ascii_digit).count()),
        count(response.matches('=').count()),
        share(said.len()),
        share(asked.len()),
    ]
}
