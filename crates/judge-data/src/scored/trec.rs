//! What people say of documents, and rankings of them, in the forms of trec_eval.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::BufRead as _;
use std::path::Path;

use serde::Deserialize;

use crate::rows::ids::plain;
use crate::{Error, Input, Place, WrittenResult};

/// Relevance of documents for queries, by their names: lines `QUERY ITERATION DOCUMENT RELEVANCE` as trec_eval reads them, or BEIR's table
/// with the columns `query-id`, `corpus-id` and `score`. A line with tabs is cut at tabs alone, so that names may have spaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Qrels(BTreeMap<String, HashMap<String, f64>>);

/// Documents in order for queries, by their names: lines `QUERY Q0 DOCUMENT RANK SCORE NAME` as trec_eval reads them, or rows of
/// [`RerankRow`](crate::RerankRow) whose documents have an id. A line with tabs is cut at tabs alone.
///
/// As in trec_eval the score decides, as f32, not the rank or the place in a row, and of equal scores the later name comes first. Documents
/// of rows without a score have no place in the order, and a row of which none has one is no ranking.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrecRun(BTreeMap<String, Vec<String>>);

/// A row of a reranker, as far as it is a ranking.
#[derive(Deserialize)]
struct RankedRow {
    id: judge_core::ItemId,
    #[serde(default)]
    results: Vec<WrittenResult>,
}

const QREL: &str = "QUERY ITERATION DOCUMENT RELEVANCE, or QUERY DOCUMENT RELEVANCE, with a number at the end, all between spaces or all \
                    between tabs";
const RANKED: &str = "QUERY Q0 DOCUMENT RANK SCORE NAME with a number for the score, all between spaces or all between tabs, or a row of \
                      `judge rerank` whose documents have an id";

impl Qrels {
    /// Reads a file, compressed or not. Relevance below 0 counts as 0, as in trec_eval.
    ///
    /// # Errors
    /// [`Error::At`] for a line of another form and for a document that a query has twice; [`Error::Io`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let mut found = Self::default();
        for_lines(path.as_ref(), |place, line| {
            let cells = cells(line);
            let (query, document, relevance) = match cells[..] {
                [query, _, document, relevance] | [query, document, relevance] => (query, document, relevance),
                _ => return Err(wrong(place, QREL, line)),
            };
            match number(relevance) {
                // The names of the columns; NaN is none.
                None if place.line == 1 && cells.len() == 3 && relevance.parse::<f64>().is_err() => Ok(()),
                None => Err(wrong(place, QREL, line)),
                Some(relevance) => {
                    let documents = found.0.entry(query.to_owned()).or_default();
                    match documents.insert(document.to_owned(), relevance.max(0.0)) {
                        None => Ok(()),
                        Some(_) => Err(twice(place, &line_of(query, document))),
                    }
                }
            }
        })?;
        Ok(found)
    }

    /// The queries, in the order of their names.
    pub fn queries(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Whether somebody judged a document of a query.
    #[must_use]
    pub fn has(&self, query: &str) -> bool {
        self.0.contains_key(query)
    }

    /// Relevance in the order of a ranking of a query, 0 of documents that nobody judged, and that of judged documents which the ranking
    /// leaves out: what judge-metrics' `Ranking` takes.
    #[must_use]
    pub fn along(&self, query: &str, ranking: &[String]) -> (Vec<f64>, Vec<f64>) {
        let judged = self.0.get(query).into_iter().flatten();
        let mut left: BTreeMap<&str, f64> = judged.map(|(document, of)| (document.as_str(), *of)).collect();
        let order = ranking.iter().map(|document| left.remove(document.as_str()).unwrap_or(0.0)).collect();
        (order, left.into_values().collect())
    }
}

impl TrecRun {
    /// Reads a file, compressed or not.
    ///
    /// # Errors
    /// [`Error::At`] for a line of another form and for a document or a row that is there twice; [`Error::Io`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Error> {
        let mut scored: BTreeMap<String, HashMap<String, f64>> = BTreeMap::new();
        let mut rankings: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
        for_lines(path.as_ref(), |place, line| {
            if line.starts_with('{') {
                let row: RankedRow = serde_json::from_str(line).map_err(|_| wrong(place, RANKED, line))?;
                let query = plain(&row.id);
                let results = row.results.iter();
                let found = results.filter_map(|result| Some((result.id.as_ref(), result.relevance_score?)));
                let ranking = found.map(|(id, score)| Some((plain(id?), score))).collect::<Option<Vec<_>>>();
                let are_named = row.results.is_empty() || row.results.iter().any(|result| result.id.is_some());
                let ranking = ranking.filter(|_| are_named).ok_or_else(|| wrong(place, RANKED, line))?;
                if let Some(document) = repeated(&ranking) {
                    let what = format!("result for the document {document:?} of the query {query:?}");
                    return Err(twice(place, &what));
                }
                return match rankings.insert(query.clone(), ranking) {
                    None => Ok(()),
                    Some(_) => Err(twice(place, &format!("row of the query {query:?}"))),
                };
            }
            let cells = cells(line);
            let [query, _, document, _, score, _] = cells[..] else { return Err(wrong(place, RANKED, line)) };
            let score = number(score).ok_or_else(|| wrong(place, RANKED, line))?;
            match scored.entry(query.to_owned()).or_default().insert(document.to_owned(), score) {
                None => Ok(()),
                Some(_) => Err(twice(place, &line_of(query, document))),
            }
        })?;
        rankings
            .extend(scored.into_iter().map(|(query, documents)| (query, documents.into_iter().collect::<Vec<_>>())));
        rankings.retain(|_, documents| !documents.is_empty());
        let in_order = |mut documents: Vec<(String, f64)>| -> Vec<String> {
            let score = |score: f64| score as f32 + 0.0;
            documents.sort_by(|(a, of_a), (b, of_b)| score(*of_b).total_cmp(&score(*of_a)).then_with(|| b.cmp(a)));
            documents.into_iter().map(|(document, _)| document).collect()
        };
        Ok(Self(rankings.into_iter().map(|(query, documents)| (query, in_order(documents))).collect()))
    }

    /// The documents of a query, the best first.
    #[must_use]
    pub fn ranking(&self, query: &str) -> Option<&[String]> {
        self.0.get(query).map(Vec::as_slice)
    }

    /// The queries, in the order of their names.
    pub fn queries(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Calls `each` with the lines of a file that are not empty.
fn for_lines(path: &Path, mut each: impl FnMut(&Place, &str) -> Result<(), Error>) -> Result<(), Error> {
    let input = Input::open(path)?;
    for (at, line) in input.text()?.split(b'\n').enumerate() {
        let (line, place) = (line.map_err(Error::reading(path))?, Place { path: path.to_owned(), line: at + 1 });
        let line = str::from_utf8(&line)
            .map_err(|problem| Error::Utf8 { place: place.clone(), column: problem.valid_up_to() + 1 })?;
        let line = line.trim_start_matches('\u{feff}').trim();
        if !line.is_empty() {
            each(&place, line)?;
        }
    }
    Ok(())
}

/// The cells of a line: those between its tabs, or without tabs between ASCII white space, as trec_eval cuts it.
fn cells(line: &str) -> Vec<&str> {
    match line.contains('\t') {
        true => line.split('\t').map(str::trim_ascii).filter(|cell| !cell.is_empty()).collect(),
        false => line.split_ascii_whitespace().collect(),
    }
}

fn number(cell: &str) -> Option<f64> {
    cell.parse().ok().filter(|number: &f64| number.is_finite()).map(|number| number + 0.0)
}

/// The first document that a ranking has twice.
fn repeated(ranking: &[(String, f64)]) -> Option<&str> {
    let mut names = HashSet::new();
    ranking.iter().map(|(document, _)| document.as_str()).find(|document| !names.insert(*document))
}

fn wrong(place: &Place, expected: &'static str, line: &str) -> Error {
    let shown: String = line.chars().take(80).collect();
    Error::at(place, format!("expected {expected}, found {shown:?}"))
}

fn twice(place: &Place, what: &str) -> Error {
    Error::at(place, format!("expected one {what}, found a second one"))
}

fn line_of(query: &str, document: &str) -> String {
    format!("line for the document {document:?} of the query {query:?}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::*;

    fn written(text: impl AsRef<[u8]>) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn relevance_is_read_in_both_forms_and_follows_a_ranking() {
        let trec = Qrels::read(written("q1 0 a 2\nq1 0 b -1\nq1\t0\tc\t1\n\nq2 0 a 0\n").path()).unwrap();
        let beir =
            Qrels::read(written("query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\r\nq1\tc\t1\nq2\ta\t0\n").path())
                .unwrap();
        assert_eq!(trec, beir);
        assert_eq!(trec.queries().collect::<Vec<_>>(), ["q1", "q2"]);
        let ranking = ["x", "c", "b"].map(str::to_owned);
        assert_eq!(trec.along("q1", &ranking), (vec![0.0, 1.0, 0.0], vec![2.0]));
        assert_eq!(trec.along("q3", &ranking), (vec![0.0; 3], vec![]));
    }

    /// A document of a name with a space was its last word.
    #[test]
    fn between_tabs_names_have_spaces() {
        let beir =
            Qrels::read(written("query-id\tcorpus-id\tscore\nwho wrote\tannual report.pdf\t1\n").path()).unwrap();
        let trec = Qrels::read(written("who wrote\t0\tannual report.pdf\t1\n").path()).unwrap();
        assert_eq!(beir, trec);
        let run = TrecRun::read(written("who wrote\tQ0\tannual report.pdf\t1\t.5\tbm25\n").path()).unwrap();
        let ranking = run.ranking("who wrote").unwrap();
        assert_eq!(
            (ranking, beir.along("who wrote", ranking)),
            (&["annual report.pdf".to_owned()][..], (vec![1.0], vec![]))
        );
        // A no-break space cuts no name, as in trec_eval.
        assert_eq!(
            Qrels::read(written("q 0 a\u{a0}b 1\n").path()).unwrap().along("q", &["a\u{a0}b".to_owned()]).0,
            [1.0]
        );
    }

    #[test]
    fn the_score_decides_and_of_equal_ones_the_later_name() {
        let run = TrecRun::read(written("q Q0 a 1 0.5 x\nq Q0 c 2 0.5 x\nq Q0 b 3 2e0 x\n").path()).unwrap();
        assert_eq!(run.ranking("q").unwrap(), ["b", "c", "a"]);
        let scored = |index: usize, id: Value, score: f64| json!({"index": index, "id": id, "relevance_score": score});
        let unscored = json!({"reason": "missing", "detail": "x"});
        let all = [scored(1, json!(7), 0.5), scored(0, json!("a"), 0.7), scored(2, json!("c"), 0.5)];
        let some = [scored(0, json!("a"), 0.5), json!({"index": 1, "id": "b", "unscored": unscored})];
        let rows = [
            json!({"id": "q", "results": all, "x": 1}),
            json!({"id": 4, "unscored": unscored}),
            json!({"id": 5, "results": some}),
        ];
        let run = TrecRun::read(written(rows.map(|row| row.to_string()).join("\n")).path()).unwrap();
        assert_eq!(run.ranking("q").unwrap(), ["a", "c", "7"]);
        assert_eq!(run.ranking("4"), None, "it is no ranking");
        assert_eq!(run.ranking("5").unwrap(), ["a"]);
        assert_eq!(run.queries().count(), 2);
        // trec_eval keeps scores as f32, in which these are one.
        let run = TrecRun::read(written("q Q0 a 1 1.00000001 x\nq Q0 b 2 1.0 x\n").path()).unwrap();
        assert_eq!(run.ranking("q").unwrap(), ["b", "a"]);
    }

    #[test]
    fn what_is_no_line_is_named_with_its_place() {
        let qrels = |text: &str| Qrels::read(written(text).path()).unwrap_err().to_string();
        let run = |text: &str| TrecRun::read(written(text).path()).unwrap_err().to_string();
        let scored = |id: &str| json!({"index": 0, "id": id, "relevance_score": 0.5});
        for (message, words) in [
            (qrels("q 0 a 1\nq 0 b\n"), "line 2: expected QUERY ITERATION DOCUMENT RELEVANCE"),
            (qrels("q 0 a yes\n"), "found \"q 0 a yes\""),
            (
                Qrels::read(written(b"q 0 a 1\nq 0 \xff 1\n").path()).unwrap_err().to_string(),
                "line 2, byte 5: not valid UTF-8; save the file as UTF-8",
            ),
            (
                qrels("q 0 a 1\nq 0 a 2\n"),
                "line 2: expected one line for the document \"a\" of the query \"q\", found a second one",
            ),
            (qrels("q\ta\tNaN\n"), "found \"q\\ta\\tNaN\""),
            (qrels("q 0\ta 1\n"), "all between spaces or all between tabs"),
            (run("q\tQ0\ta b\t1\t.5\t\n"), "all between spaces or all between tabs"),
            (run("q 0 a 1\n"), "line 1: expected QUERY Q0 DOCUMENT RANK SCORE NAME"),
            (run("q Q0 a 1 nan x\n"), "a number for the score"),
            (run("{\"id\": 1, \"results\": [{\"index\": 0}]}\n"), "whose documents have an id"),
            (run("{\"id\": 1}\n{\"id\": 1}\n"), "line 2: expected one row of the query \"1\""),
            (
                run(&json!({"id": 1, "results": (["a", "b", "a"].map(scored))}).to_string()),
                "line 1: expected one result for the document \"a\" of the query \"1\", found a second one",
            ),
        ] {
            assert!(message.contains(words), "{message}");
        }
    }
}
