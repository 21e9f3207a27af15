//! Rankings of documents against people's relevance: nDCG, reciprocal rank, recall and average precision.
//!
//! Several queries are averaged, by [`means::clustered_mean`](crate::means::clustered_mean) or a bootstrap of queries.
//!
//! ```
//! use judge_metrics::retrieval::Ranking;
//!
//! let ranking = Ranking::new(&[0.0, 2.0, 0.0, 1.0], &[])?;
//! assert_eq!(ranking.reciprocal_rank(None), 0.5);
//! assert_eq!(ranking.recall(3), 0.5);
//! assert!((ranking.ndcg(Some(10))? - 0.643_322_4).abs() < 1e-7);
//! // Another document is relevant, and the ranking leaves it out.
//! assert_eq!(Ranking::new(&[0.0, 2.0], &[1.0])?.recall(10), 0.5);
//! # Ok::<(), judge_metrics::Error>(())
//! ```

use crate::Error;
use crate::input::check_amount;

/// The relevance of a query's documents: at least 0, and 0 for one that is not relevant.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    ranked: Vec<f64>,
    /// All relevance, the largest first.
    best: Vec<f64>,
    relevant: f64,
}

impl Ranking {
    /// The relevance of documents in the order of the ranking, the best first, and of those that the ranking leaves out, which are never
    /// found.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] and [`Error::NonFinite`] for a relevance; [`Error::Undefined`] where no document is relevant, since every
    /// order is then as good.
    pub fn new(ranked: &[f64], missed: &[f64]) -> Result<Self, Error> {
        let mut best = [ranked, missed].concat();
        for (index, &relevance) in best.iter().enumerate() {
            check_amount("relevance", index, relevance, f64::MAX)?;
        }
        let relevant = count(&best);
        if relevant == 0.0 {
            return Err(Error::Undefined { statistic: "a ranking", reason: "no document of the query is relevant" });
        }
        best.sort_by(|a, b| b.total_cmp(a));
        Ok(Self { ranked: ranked.to_vec(), best, relevant })
    }

    /// Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002) of the first `k` documents, from 0 to 1: the gain is the
    /// relevance itself, as in trec_eval and scikit-learn, and the norm is that of the best order.
    ///
    /// # Errors
    /// [`Error::Undefined`] for a cutoff of 0.
    pub fn ndcg(&self, k: Option<usize>) -> Result<f64, Error> {
        // A power of 2, which rounds nothing: sums of large relevance would overflow.
        let unit = self.best.first().map_or(1.0, |most| most.log2().floor().min(1023.0).exp2());
        match dcg(first(&self.best, k), unit) {
            most if most > 0.0 => Ok(dcg(first(&self.ranked, k), unit) / most),
            _ => Err(Error::Undefined { statistic: "nDCG", reason: "the cutoff leaves no document" }),
        }
    }

    /// One divided by the rank of the first relevant document, 0 where none is among the first `k`. Its mean over queries is the MRR.
    #[must_use]
    pub fn reciprocal_rank(&self, k: Option<usize>) -> f64 {
        let place = first(&self.ranked, k).iter().position(|&relevance| relevance > 0.0);
        place.map_or(0.0, |place| 1.0 / (place + 1) as f64)
    }

    /// The share of the relevant documents that are among the first `k`.
    #[must_use]
    pub fn recall(&self, k: usize) -> f64 {
        count(first(&self.ranked, Some(k))) / self.relevant
    }

    /// Average precision: the mean over relevant documents of the share of relevant ones up to each, 0 for one that the ranking leaves out.
    /// Its mean over queries is MAP.
    #[must_use]
    pub fn average_precision(&self) -> f64 {
        let (mut found, mut sum) = (0.0, 0.0);
        for (&relevance, rank) in self.ranked.iter().zip(1_u32..) {
            if relevance > 0.0 {
                found += 1.0;
                sum += found / f64::from(rank);
            }
        }
        sum / self.relevant
    }
}

/// How many documents are relevant.
fn count(relevance: &[f64]) -> f64 {
    relevance.iter().filter(|&&relevance| relevance > 0.0).count() as f64
}

/// The documents up to a cutoff.
fn first(relevance: &[f64], k: Option<usize>) -> &[f64] {
    &relevance[..k.unwrap_or(relevance.len()).min(relevance.len())]
}

/// The sum of relevances in units, each divided by `log2(1 + rank)`.
fn dcg(relevance: &[f64], unit: f64) -> f64 {
    relevance.iter().zip(1_u32..).map(|(relevance, rank)| relevance / unit / f64::from(rank + 1).log2()).sum()
}
