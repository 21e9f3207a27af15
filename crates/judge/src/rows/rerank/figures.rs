//! What labelled rows say of the order, and what is learned from them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use judge_core::decision::{Labelled, QuestionKind};
use judge_core::lager::LayerTable;
use judge_data::{Finished, RerankRecord, RerankRecords, Row, WrittenResult};
use serde::Deserialize;

use judge_cli::rankings::Queries;
use judge_cli::terminal::console::{counted_that, tell, usage};

#[derive(Deserialize)]
struct WrittenTable {
    index: usize,
    #[serde(flatten)]
    table: LayerTable,
}

/// A query with its documents.
struct Query {
    name: String,
    text: String,
    /// The score of each document, and its relevance.
    documents: Vec<(Option<f64>, f64)>,
}

/// The queries of pairs of which one is judged, each with its place once it has one: of them the other pairs count too.
pub(super) type JudgedPairs = BTreeMap<String, Option<usize>>;

/// The query of a pair that people have judged.
pub(super) fn judged_pair(record: &RerankRecord) -> Option<(String, Option<usize>)> {
    (record.is_pair && is_judged(record)).then(|| (text_of(record), None))
}

fn is_judged(record: &RerankRecord) -> bool {
    record.relevance.iter().any(Option::is_some)
}

/// Reads the finished rows, beside what they were made of. Pairs of one query are one query. Of a query of which people have judged a
/// document, one that nobody judged counts as not relevant, as in trec_eval.
pub(super) fn queries(finished: &Finished<'_, RerankRecords>, mut of_pairs: JudgedPairs, k: usize) -> Result<Queries> {
    let mut queries: Vec<Query> = Vec::new();
    for row in finished.rows()? {
        let (record, row) = row?;
        let text = text_of(&record);
        let next = queries.len();
        let place = match of_pairs.get_mut(&text).filter(|_| record.is_pair) {
            Some(place) => *place.get_or_insert(next),
            None if is_judged(&record) => next,
            None => continue,
        };
        if place == next {
            queries.push(Query { name: record.id.to_string(), text, documents: Vec::new() });
        }
        queries[place].documents.extend(documents(&record, &row)?);
    }
    let (mut measured, mut tied) = (Queries::default(), 0);
    for Query { name, text, documents } in queries {
        let (mut ranked, mut missed) = (Vec::new(), Vec::new());
        for (score, relevance) in documents {
            match score {
                Some(score) => ranked.push((score, relevance)),
                None => missed.push(relevance),
            }
        }
        tied += usize::from(sort(&mut ranked));
        let order: Vec<f64> = ranked.into_iter().map(|(_, relevance)| relevance).collect();
        // Without any score there is no order.
        measured.push(name, text, Some(&order[..]).filter(|order| !order.is_empty()), &missed, k)?;
    }
    if tied > 0 {
        let of_queries = counted_that(tied, "query", ["has", "have"]);
        tell(format_args!(
            "note: {of_queries} documents of different relevance with the same score: the more relevant count as behind the others"
        ));
    }
    Ok(measured)
}

/// Puts documents, each with its score and its relevance, in order: whether documents of different relevance have the same score. The
/// more relevant are behind then, or scores that say nothing would be as good as the order of the file.
fn sort(ranked: &mut [(f64, f64)]) -> bool {
    ranked.sort_by(|(a, of_a), (b, of_b)| (b + 0.0).total_cmp(&(a + 0.0)).then(of_a.total_cmp(of_b)));
    ranked.windows(2).any(|two| two[0].0 == two[1].0 && two[0].1 != two[1].1)
}

/// The query of a row; without one it is that of its row alone.
fn text_of(record: &RerankRecord) -> String {
    match record.item.query.trim().is_empty() {
        true => format!("\u{0}{}", record.id),
        false => record.item.query.clone(),
    }
}

/// The score and the relevance of each document of a row, in the order of its results; behind them those that it leaves out, without a
/// score.
fn documents(record: &RerankRecord, row: &Row) -> Result<Vec<(Option<f64>, f64)>> {
    let results: Vec<WrittenResult> = row.optional("results", "a list of results")?.unwrap_or_default();
    let known = record.relevance.len().max(record.item.documents.len());
    let relevance = |index: usize| record.relevance.get(index).copied().flatten().unwrap_or(0.0);
    let written: BTreeSet<usize> = results.iter().map(|result| result.index).collect();
    let ranked = results.iter().filter(|result| result.index < known);
    let ranked = ranked.map(|result| (result.relevance_score, relevance(result.index)));
    let left_out = (0..known).filter(|index| !written.contains(index)).map(|index| (None, relevance(index)));
    Ok(ranked.chain(left_out).collect())
}

/// What layer weights can be learned from: the documents with relevance, which is divided by the largest of all, so that it is a share.
pub(super) fn labelled(finished: &Finished<'_, RerankRecords>) -> Result<Vec<Labelled>> {
    let (mut tables, mut largest) = (Vec::new(), 0.0_f64);
    for row in finished.rows()? {
        let (record, row) = row?;
        let written: Vec<WrittenTable> = row.optional("tables", "tables of logits")?.unwrap_or_default();
        for WrittenTable { index, table } in written {
            if let Some(relevance) = record.relevance.get(index).copied().flatten() {
                largest = largest.max(relevance);
                tables.push((table, relevance));
            }
        }
    }
    if tables.is_empty() || largest == 0.0 {
        return Err(usage("--fit: expected documents with relevance, some of them above 0, found none"));
    }
    let share = |(table, relevance): (LayerTable, f64)| {
        let share = relevance / largest;
        Labelled { kind: QuestionKind::Noul, table, target: vec![share, 1.0 - share] }
    };
    Ok(tables.into_iter().map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_are_no_order() {
        let mut alike = [(0.5, 1.0), (0.5, 0.0), (0.7, 0.0), (0.5, 2.0)];
        assert!(sort(&mut alike));
        assert_eq!(alike.map(|(_, relevance)| relevance), [0.0, 0.0, 1.0, 2.0]);
        let mut clear = [(0.2, 1.0), (0.9, 0.0), (0.2, 1.0)];
        assert!(!sort(&mut clear));
    }
}
