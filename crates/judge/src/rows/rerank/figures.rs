//! What labelled rows say of the order, and what is learned from them.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_core::decision::{Labelled, QuestionKind};
use judge_core::lager::LayerTable;
use judge_data::{Finished, RerankRecord, RerankRecords, Row, WrittenResult};
use judge_metrics::comparison::Statistic;
use judge_metrics::retrieval::{average_precision, ndcg, recall, reciprocal_rank};
use serde::{Deserialize, Serialize};

use crate::args::bars::{first_names, rows_used};
use crate::report::mean_of_clusters;
use crate::terminal::console::{say, table, usage};

/// The cutoff of nDCG, which is that of its publications.
const NDCG: usize = 10;

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
    /// The score of each document, and its relevance; those without a score are last.
    documents: Vec<(Option<f64>, f64)>,
}

/// The figures of queries with relevance.
#[derive(Serialize)]
pub(super) struct Figures {
    /// Queries that count: with a document that is relevant.
    n: usize,
    /// Queries with relevance of which no document is relevant, so that no order is better than another.
    without_relevant: usize,
    /// The cutoff of `recall_k`.
    k: usize,
    pub(super) statistics: BTreeMap<String, Statistic>,
    #[serde(skip)]
    least: Vec<(f64, String)>,
}

/// The statistics of one query by their names.
fn of_query(ranked: &[f64], k: usize) -> Result<[(&'static str, f64); 4], judge_metrics::Error> {
    Ok([
        ("ndcg_10", ndcg(ranked, Some(NDCG))?),
        ("mrr", reciprocal_rank(ranked, None)?),
        ("recall_k", recall(ranked, k)?),
        ("map", average_precision(ranked)?),
    ])
}

const NAMES: [&str; 4] = ["ndcg_10", "mrr", "recall_k", "map"];

impl Figures {
    /// Reads the finished rows, beside what they were made of. Pairs of one query are one query. A document without a number counts as not
    /// relevant, as in trec_eval.
    pub(super) fn of(finished: &Finished<'_, RerankRecords>, k: usize) -> Result<Self> {
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
        let (labelled, mut without_relevant) = (queries.len(), 0);
        let (mut values, mut clusters, mut least) = (BTreeMap::<&str, Vec<f64>>::new(), Vec::new(), Vec::new());
        for Query { name, text, mut documents } in queries {
            // Of equal scores the earlier document first, as in the output.
            documents.sort_by(|(a, _), (b, _)| {
                b.is_some().cmp(&a.is_some()).then(b.unwrap_or(0.0).total_cmp(&a.unwrap_or(0.0)))
            });
            let ranked: Vec<f64> = documents.iter().map(|&(_, relevance)| relevance).collect();
            if ranked.iter().all(|&relevance| relevance == 0.0) {
                without_relevant += 1;
                continue;
            }
            // Without any score there is no order.
            if documents.iter().all(|(score, _)| score.is_none()) {
                continue;
            }
            for (name, value) in of_query(&ranked, k)? {
                values.entry(name).or_default().push(value);
            }
            least.push((values["ndcg_10"].last().copied().unwrap_or_default(), name));
            clusters.push(text);
        }
        let clusters: Vec<&str> = clusters.iter().map(String::as_str).collect();
        let statistic = |name: &&str| {
            let found = values.get(name).map_or(&[][..], Vec::as_slice);
            ((*name).to_owned(), mean_of_clusters(found, &clusters, "no query has a relevant document"))
        };
        let mut statistics: BTreeMap<String, Statistic> = NAMES.iter().map(statistic).collect();
        let n = clusters.len();
        // A query without a relevant document has nothing to be measured, and is no gap.
        statistics.extend(rows_used(n, labelled - without_relevant).map(|(name, known)| (name.to_owned(), known)));
        least.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Self { n, without_relevant, k, statistics, least })
    }

    /// The queries with the worst order.
    pub(super) fn worst(&self) -> String {
        match self.least.is_empty() {
            true => String::new(),
            false => {
                let names = self.least.iter().map(|(value, id)| format!("{id} ({value:.3})"));
                format!("least nDCG@{NDCG}: {}", first_names(names))
            }
        }
    }

    /// The table for people; nothing where no row has relevance.
    pub(super) fn print(&self) -> Result<()> {
        if self.n + self.without_relevant == 0 {
            return Ok(());
        }
        let mut rows = vec![["statistic", "mean [95 %]"].map(str::to_owned).to_vec()];
        let names = [format!("nDCG@{NDCG}"), "MRR".to_owned(), format!("recall@{}", self.k), "MAP".to_owned()];
        let found = |name: &str| self.statistics.get(name).map_or_else(String::new, |found| format!("{found:#}"));
        rows.extend(NAMES.iter().zip(names).map(|(name, shown)| vec![shown, found(name)]));
        say(format!("\n{} queries with a relevant document\n{}", self.n, table(&rows)).trim_end())?;
        if self.without_relevant > 0 {
            say(format_args!("{} queries without one are left out", self.without_relevant))?;
        }
        Ok(())
    }
}

/// The score and the relevance of each document of a row, those that it leaves out last.
fn documents(record: &RerankRecord, row: &Row) -> Result<Vec<(Option<f64>, f64)>> {
    let results: Vec<WrittenResult> = row.optional("results", "a list of results")?.unwrap_or_default();
    let relevance = |index: usize| record.relevance.get(index).copied().flatten().unwrap_or(0.0);
    let scores: BTreeMap<usize, Option<f64>> =
        results.iter().map(|result| (result.index, result.relevance_score)).collect();
    Ok((0..record.relevance.len()).map(|index| (scores.get(&index).copied().flatten(), relevance(index))).collect())
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
