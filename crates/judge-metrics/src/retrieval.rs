//! Rankings of documents against people's relevance: nDCG, reciprocal rank, recall and precision at a cutoff, average precision.
//!
//! Each function takes the relevance of one query's documents *in the order of the ranking*, the best first: at least 0, and 0 for a document
//! that is not relevant. A document that the ranking leaves out belongs at the end, so that it counts as missed. Several queries are
//! averaged, by [`means::clustered_mean`](crate::means::clustered_mean) or a bootstrap of queries.
//!
//! ```
//! use judge_metrics::retrieval::{ndcg, recall, reciprocal_rank};
//!
//! let ranked = [0.0, 2.0, 0.0, 1.0];
//! assert_eq!(reciprocal_rank(&ranked, None)?, 0.5);
//! assert_eq!(recall(&ranked, 3)?, 0.5);
//! assert!((ndcg(&ranked, Some(10))? - 0.643_322_4).abs() < 1e-7);
//! # Ok::<(), judge_metrics::Error>(())
//! ```

use crate::Error;
use crate::input::check_amount;

/// That every relevance is a number from 0 on, and that one is above.
fn check(statistic: &'static str, ranked: &[f64]) -> Result<(), Error> {
    for (index, &relevance) in ranked.iter().enumerate() {
        check_amount("relevance", index, relevance, f64::MAX)?;
    }
    match ranked.iter().any(|&relevance| relevance > 0.0) {
        true => Ok(()),
        false => Err(Error::Undefined { statistic, reason: "no document of the query is relevant" }),
    }
}

/// The documents up to a cutoff.
fn first(ranked: &[f64], k: Option<usize>) -> &[f64] {
    &ranked[..k.unwrap_or(ranked.len()).min(ranked.len())]
}

/// The sum of relevances, each divided by `log2(1 + rank)`.
fn dcg(ranked: &[f64]) -> f64 {
    ranked.iter().zip(1_u32..).map(|(relevance, rank)| relevance / f64::from(rank + 1).log2()).sum()
}

/// Normalised discounted cumulative gain (Järvelin and Kekäläinen, 2002) of the first `k` documents, from 0 to 1: the gain is the relevance
/// itself, as in trec_eval and scikit-learn, and the norm is that of the best order.
///
/// # Errors
/// [`Error::Undefined`] where no document is relevant; [`Error::OutOfRange`] and [`Error::NonFinite`] for a relevance.
pub fn ndcg(ranked: &[f64], k: Option<usize>) -> Result<f64, Error> {
    check("nDCG", ranked)?;
    let mut best = ranked.to_vec();
    best.sort_by(|a, b| b.total_cmp(a));
    let most = dcg(first(&best, k));
    match most > 0.0 {
        true => Ok(dcg(first(ranked, k)) / most),
        false => Err(Error::Undefined { statistic: "nDCG", reason: "the cutoff leaves no document" }),
    }
}

/// One divided by the rank of the first relevant document, 0 where none is among the first `k`. Its mean over queries is the MRR.
///
/// # Errors
/// As [`ndcg`].
pub fn reciprocal_rank(ranked: &[f64], k: Option<usize>) -> Result<f64, Error> {
    check("the reciprocal rank", ranked)?;
    let place = first(ranked, k).iter().position(|&relevance| relevance > 0.0);
    Ok(place.map_or(0.0, |place| 1.0 / (place + 1) as f64))
}

/// The share of the relevant documents that are among the first `k`.
///
/// # Errors
/// As [`ndcg`].
pub fn recall(ranked: &[f64], k: usize) -> Result<f64, Error> {
    check("recall", ranked)?;
    let relevant = |ranked: &[f64]| ranked.iter().filter(|&&relevance| relevance > 0.0).count() as f64;
    Ok(relevant(first(ranked, Some(k))) / relevant(ranked))
}

/// Average precision: the mean over relevant documents of the share of relevant ones up to each. Its mean over queries is MAP.
///
/// # Errors
/// As [`ndcg`].
pub fn average_precision(ranked: &[f64]) -> Result<f64, Error> {
    check("average precision", ranked)?;
    let (mut found, mut sum) = (0.0, 0.0);
    for (&relevance, rank) in ranked.iter().zip(1_u32..) {
        if relevance > 0.0 {
            found += 1.0;
            sum += found / f64::from(rank);
        }
    }
    Ok(sum / found)
}
