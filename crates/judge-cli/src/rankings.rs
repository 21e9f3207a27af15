//! The figures of rankings that people's relevance is known for.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_metrics::comparison::Statistic;
use judge_metrics::retrieval::Ranking;
use serde::Serialize;
use serde_json::json;

use crate::args::bars::{Lost, Measured, first_names, rows_used};
use crate::report::{SHARE, mean_of_clusters};
use crate::terminal::console::{counted, counted_that, say, say_table};

/// The cutoff of nDCG, which is that of its publications.
const NDCG: usize = 10;

/// Names of the statistics of rankings.
pub const NAMES: [&str; 4] = ["ndcg_10", "mrr", "recall_k", "map"];

/// Queries with a relevant document, each with its statistics in the order of `NAMES`.
#[derive(Default)]
pub struct Queries {
    measured: Vec<MeasuredQuery>,
    /// Queries of which no document is relevant, so that no order is better than another.
    without_relevant: usize,
    /// Queries with a relevant document and without any ranking, by name.
    unranked: Vec<String>,
}

struct MeasuredQuery {
    name: String,
    /// What queries share that are no independent draws.
    cluster: String,
    values: [f64; 4],
}

impl Queries {
    /// A query with the relevance of its documents in their order, the best first, and of those that have no place in it; without any order,
    /// it is no ranking.
    pub fn push(
        &mut self,
        name: String,
        cluster: String,
        order: Option<&[f64]>,
        missed: &[f64],
        k: usize,
    ) -> Result<()> {
        let ranking = match Ranking::new(order.unwrap_or_default(), missed) {
            Ok(ranking) => ranking,
            Err(judge_metrics::Error::Undefined { .. }) => {
                self.without_relevant += 1;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        if order.is_none() {
            self.unranked.push(name);
            return Ok(());
        }
        let (ndcg, mrr) = (ranking.ndcg(Some(NDCG))?, ranking.reciprocal_rank(None));
        let values = [ndcg, mrr, ranking.recall(k), ranking.average_precision()];
        self.measured.push(MeasuredQuery { name, cluster, values });
        Ok(())
    }

    /// The figures; `k` is the cutoff of `recall_k`.
    pub fn figures(&self, k: usize) -> Figures {
        let clusters: Vec<&str> = self.measured.iter().map(|query| query.cluster.as_str()).collect();
        let of = |place: usize| self.measured.iter().map(|query| query.values[place]).collect::<Vec<f64>>();
        let mut statistics = statistics(of, &clusters, SHARE);
        let n = clusters.len();
        // A query without a relevant document has nothing to be measured, and is no gap.
        let unranked = self.unranked.len();
        statistics.extend(rows_used(n, n + unranked).map(|(name, known)| (name.to_owned(), known)));
        let mut least: Vec<(f64, &str)> =
            self.measured.iter().map(|query| (query.values[0], query.name.as_str())).collect();
        least.sort_by(|a, b| a.0.total_cmp(&b.0));
        let names = least.iter().map(|(value, id)| format!("{id} ({value:.3})"));
        let worst = first_names(&format!("least nDCG@{NDCG}"), names);
        let mut lost = Lost::default();
        lost.extend(&self.unranked);
        Figures { n, without_relevant: self.without_relevant, unranked, k, statistics, worst, lost }
    }

    /// Whether no query counts.
    pub fn is_empty(&self) -> bool {
        self.measured.is_empty()
    }

    /// Queries with a relevant document and without any ranking, by name.
    pub fn unranked(&self) -> &[String] {
        &self.unranked
    }

    /// How much better these rankings are than others of the same queries: of those that both have, by name.
    pub fn less(&self, others: &Self) -> Difference {
        let others: BTreeMap<&str, &[f64; 4]> =
            others.measured.iter().map(|query| (query.name.as_str(), &query.values)).collect();
        let both = self.measured.iter().filter_map(|query| Some((query, *others.get(query.name.as_str())?)));
        let both: Vec<(&MeasuredQuery, &[f64; 4])> = both.collect();
        let clusters: Vec<&str> = both.iter().map(|(query, _)| query.cluster.as_str()).collect();
        let differences = |place| both.iter().map(|(query, other)| query.values[place] - other[place]).collect();
        Difference { n: both.len(), statistics: statistics(differences, &clusters, [-1.0, 1.0]) }
    }
}

/// How much better rankings are than others.
#[derive(Serialize)]
pub struct Difference {
    /// Queries that count in both.
    pub n: usize,
    /// By their names.
    #[serde(flatten)]
    pub statistics: BTreeMap<String, Statistic>,
}

/// The mean of each statistic, whose values for all queries, in this range, `of` gives by its place.
fn statistics(of: impl Fn(usize) -> Vec<f64>, clusters: &[&str], range: [f64; 2]) -> BTreeMap<String, Statistic> {
    let of_nothing = "no query has a relevant document and a ranking";
    let mean =
        |(place, name): (usize, &&str)| ((*name).to_owned(), mean_of_clusters(&of(place), clusters, range, of_nothing));
    NAMES.iter().enumerate().map(mean).collect()
}

/// The figures of rankings.
#[derive(Serialize)]
pub struct Figures {
    /// Queries that count: with a ranking, and a document that is relevant.
    pub n: usize,
    /// Queries with relevance of which no document is relevant.
    without_relevant: usize,
    /// Queries with a relevant document and no ranking.
    unranked: usize,
    /// The cutoff of `recall_k`.
    k: usize,
    /// By their names.
    pub statistics: BTreeMap<String, Statistic>,
    /// The queries with the worst order, in words.
    #[serde(skip)]
    pub worst: String,
    /// The queries without a ranking.
    #[serde(skip)]
    pub lost: Lost,
}

impl From<Figures> for Measured {
    fn from(Figures { statistics, worst, lost, .. }: Figures) -> Self {
        Self { statistics: json!(statistics), worst, lost, apart: Vec::new() }
    }
}

impl Figures {
    /// The table for people, with how much better others are; nothing where no query has relevance.
    pub fn print(&self, difference: Option<&Difference>) -> Result<()> {
        if self.n + self.without_relevant + self.unranked == 0 {
            return Ok(());
        }
        let names = [format!("nDCG@{NDCG}"), "MRR".to_owned(), format!("recall@{}", self.k), "MAP".to_owned()];
        let found = |of: &BTreeMap<String, Statistic>, name: &str| {
            of.get(name).map_or_else(String::new, |found| format!("{found:#}"))
        };
        let head = ["statistic", "mean [95 %]"].into_iter().chain(difference.map(|_| "minus the other"));
        let rows = NAMES.iter().zip(names).map(|(name, shown)| {
            let own = [shown, found(&self.statistics, name)].into_iter();
            own.chain(difference.map(|of| found(&of.statistics, name))).collect()
        });
        say(format_args!("\n{} with a relevant document and a ranking", counted(self.n, "query")))?;
        say_table(head, rows)?;
        if let Some(Difference { n, .. }) = difference.filter(|of| of.n < self.n) {
            say(format_args!("minus the other: of {} with a ranking in both", counted(*n, "query")))?;
        }
        if self.without_relevant > 0 {
            let without = counted_that(self.without_relevant, "query", ["without one is", "without one are"]);
            say(format_args!("{without} left out"))?;
        }
        if self.unranked > 0 {
            let unranked = ["with one has no ranking, and is", "with one have no ranking, and are"];
            say(format_args!("{} left out", counted_that(self.unranked, "query", unranked)))?;
        }
        Ok(())
    }
}
