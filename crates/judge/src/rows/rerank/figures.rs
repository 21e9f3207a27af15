//! What labelled rows say of the order, and what is learned from them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use judge_core::decision::{Labelled, QuestionKind};
use judge_core::lager::LayerTable;
use judge_data::{Finished, RerankRecord, RerankRecords, Row, WrittenResult};
use serde::Deserialize;

use judge_cli::rankings::Queries;
use judge_cli::terminal::console::usage;

#[derive(Deserialize)]
struct WrittenTable {
    index: usize,
    #[serde(flatten)]
    table: LayerTable,
}

/// A query whose documents people have found relevant or not.
#[derive(Default)]
struct Query {
    name: String,
    text: String,
    /// The score of each document, and its relevance.
    documents: Vec<(Option<f64>, f64)>,
}

/// Reads the finished rows, beside what they were made of. Pairs of one query are one query. A document that nobody judged counts as not
/// relevant, as in trec_eval.
pub(super) fn queries(finished: &Finished<'_, RerankRecords>, k: usize) -> Result<Queries> {
    let (mut queries, mut of_pairs): (Vec<Query>, BTreeMap<String, usize>) = Default::default();
    for row in finished.rows()? {
        let (record, row) = row?;
        if record.relevance.iter().all(Option::is_none) {
            continue;
        }
        let place = match record.is_pair {
            true => *of_pairs.entry(record.item.query.clone()).or_insert(queries.len()),
            false => queries.len(),
        };
        if place == queries.len() {
            let (name, text) = (record.id.to_string(), record.item.query.clone());
            queries.push(Query { name, text, documents: Vec::new() });
        }
        queries[place].documents.extend(documents(&record, &row)?);
    }
    let mut measured = Queries::default();
    for Query { name, text, documents } in queries {
        let (mut ranked, mut missed) = (Vec::new(), Vec::new());
        for (score, relevance) in documents {
            match score {
                Some(score) => ranked.push((score, relevance)),
                None => missed.push(relevance),
            }
        }
        // Of equal scores the one that the output has first.
        ranked.sort_by(|(a, _), (b, _)| (b + 0.0).total_cmp(&(a + 0.0)));
        let order: Vec<f64> = ranked.into_iter().map(|(_, relevance)| relevance).collect();
        // Without any score there is no order.
        measured.push(name, text, Some(&order[..]).filter(|order| !order.is_empty()), &missed, k)?;
    }
    Ok(measured)
}

/// The score and the relevance of each document of a row, in the order of its results; behind them those that it leaves out, without a
/// score.
fn documents(record: &RerankRecord, row: &Row) -> Result<Vec<(Option<f64>, f64)>> {
    let results: Vec<WrittenResult> = row.optional("results", "a list of results")?.unwrap_or_default();
    let known = record.relevance.len();
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
