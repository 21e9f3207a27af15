//! How well scores agree with people: numbers for machines and rows for people, of what `judge_metrics::comparison` computes.

use std::path::Path;

use anyhow::{Context, Result};
use judge_data::{report_mark, write_atomic};
use judge_metrics::comparison::{RankAgreement, Reported, Statistic, rank_agreement};
use judge_metrics::means::{clustered_mean, clustered_share};
use judge_metrics::prediction::bias_in_words;
use judge_metrics::resampling::{Bootstrap, BootstrapMethod};
use judge_metrics::{Proportion, decimals};
use serde::Serialize;

use crate::args::files;
use crate::terminal::console::{plain, say, say_table};
use crate::terminal::tables::{self, TableFormat};

/// Enough for two digits of an interval's ends, and done in a moment.
pub const BOOTSTRAP: Bootstrap =
    Bootstrap { resamples: 1_000, level: 0.95, seed: 0, method: BootstrapMethod::Percentile };

/// Those of agreement with people, of which more is asked: what it says of the same rows is the same wherever it is said.
pub const OF_AGREEMENT: Bootstrap = Bootstrap { resamples: 2_000, ..BOOTSTRAP };

/// Writes figures as JSON: an object, to which `program` is added where it lacks it, so that the program knows its own figures again. Names
/// are checked before any work, by [`Outputs::reports`](judge_data::Outputs::reports).
///
/// # Errors
/// If the file cannot be written, or the figures are no JSON object.
pub fn write_json(path: &Path, program: &str, figures: &impl Serialize) -> Result<()> {
    let mut value = serde_json::to_value(figures)?;
    let object = value.as_object_mut().context("figures are a JSON object")?;
    let mut text = if object.contains_key("program") {
        serde_json::to_vec_pretty(figures)? // in the order of its own fields
    } else {
        object.insert("program".to_owned(), serde_json::to_value(files::program(program))?);
        serde_json::to_vec_pretty(&value)?
    };
    text.push(b'\n');
    Ok(write_atomic(path, &text)?)
}

/// The same where a file is asked for; else the figures are not made.
///
/// # Errors
/// As [`write_json`], and those of `figures`.
pub fn write_json_if<T: Serialize>(
    path: Option<&Path>,
    program: &str,
    figures: impl FnOnce() -> Result<T>,
) -> Result<()> {
    path.map_or(Ok(()), |path| write_json(path, program, &figures()?))
}

/// Writes a page or a picture, with the mark by which the program knows its own again. What is no character of a text, as XML has it, is
/// replaced by U+FFFD.
///
/// # Errors
/// If the file cannot be written.
pub fn write_marked(path: &Path, program: &str, text: &str) -> Result<()> {
    let text = plain(text.trim_end());
    Ok(write_atomic(path, format!("{text}\n{}", report_mark(program)).as_bytes())?)
}

/// The range of shares, probabilities and figures of rankings.
pub const SHARE: [f64; 2] = [0.0, 1.0];

/// A share with Wilson's 95 % interval; undefined of nothing, with this reason.
#[must_use]
pub fn share(share: Proportion, of_nothing: &str) -> Statistic {
    match (share.estimate(), share.wilson(BOOTSTRAP.level)) {
        (Ok(estimate), Ok(interval)) => {
            Statistic::Defined(Reported { interval: Some(interval), ..Reported::alone(estimate, "Wilson".to_owned()) })
        }
        _ => Statistic::Undefined { reason: of_nothing.to_owned() },
    }
}

/// The mean of numbers in a range, of which those of one cluster are no independent draws, with its 95 % interval, which ends where the
/// range does; undefined of nothing, with this reason.
#[must_use]
pub fn mean_of_clusters<G: Ord>(values: &[f64], clusters: &[G], range: [f64; 2], of_nothing: &str) -> Statistic {
    if values.is_empty() {
        return Statistic::Undefined { reason: of_nothing.to_owned() };
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let found = clustered_mean(values, clusters).map(|found| found.within(range));
    Statistic::of_clusters(found, mean, BOOTSTRAP.level)
}

/// The share of rows that count, of which those of one cluster are no independent draws; undefined of none, with this reason.
#[must_use]
pub fn share_of_clusters<G: Ord>(counts: &[bool], clusters: &[G], of_nothing: &str) -> Statistic {
    match Proportion::of(counts).estimate() {
        Ok(share) => Statistic::of_clusters(clustered_share(counts, clusters), share, BOOTSTRAP.level),
        Err(_) => Statistic::Undefined { reason: of_nothing.to_owned() },
    }
}

/// Agreement of `scores` with `human`, one row of each or more, as [`OF_AGREEMENT`] has it, and under these names.
///
/// # Errors
/// If the two are not of one length, hold NaN or have no row; what the data do not define is [`Statistic::Undefined`].
pub fn agreement(scores: &[f64], human: &[f64]) -> Result<RankAgreement> {
    let mut found = rank_agreement(scores, human, &OF_AGREEMENT)?;
    name_columns([&mut found.spearman, &mut found.pearson], "score", "human");
    Ok(found)
}

/// Scores beside people's.
#[derive(Serialize)]
pub struct Compared {
    /// How well they agree.
    #[serde(flatten)]
    pub agreement: RankAgreement,
    /// Mean score minus mean human score.
    pub bias: f64,
}

impl Compared {
    /// As [`agreement`], and how far scores are off on average.
    ///
    /// # Errors
    /// As [`agreement`].
    pub fn new(scores: &[f64], human: &[f64]) -> Result<Self> {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        Ok(Self { agreement: agreement(scores, human)?, bias: mean(scores) - mean(human) })
    }
}

/// A table for people of what was compared, by name, in a column of its own of how many items where that is given; below it why statistics
/// are undefined, each reason once with the names that it is of.
///
/// # Errors
/// If stdout takes nothing.
pub fn say_compared(title: &str, entries: &[(&str, Option<usize>, &Compared)]) -> Result<()> {
    let items = entries.iter().any(|(_, n, _)| n.is_some()).then_some("items");
    let head = [title, "Spearman [95 %]", "Pearson [95 %]"].into_iter().chain(items).chain(["bias"]);
    // A column of a paper is of numbers.
    let bias = |bias| if tables::format() == TableFormat::Plain { bias_in_words(bias) } else { decimals(bias, 3) };
    let row = |(name, n, found): &(&str, Option<usize>, &Compared)| {
        let RankAgreement { spearman, pearson, .. } = &found.agreement;
        let cells = [(*name).to_owned(), format!("{spearman:#}"), format!("{pearson:#}")];
        cells.into_iter().chain(n.map(|n| n.to_string())).chain([bias(found.bias)]).collect()
    };
    say("")?;
    say_table(head, entries.iter().map(row))?;
    reasons(entries.iter().map(|(name, _, found)| (*name, &found.agreement))).into_iter().try_for_each(say)
}

/// A level, as `97.5 %`.
#[must_use]
pub fn percent(level: f64) -> String {
    format!("{} %", (level * 1e4).round() / 1e2)
}

/// A p-value, or the least that the random permutations of its test can show.
#[must_use]
pub fn p_in_words(p: f64, at_most: bool) -> String {
    let sign = if at_most { "<=" } else { "" };
    match p {
        0.0 => "<1e-300".to_owned(),
        p if p < 1e-4 => format!("{sign}{p:.1e}"),
        p => format!("{sign}{p:.4}"),
    }
}

/// Says whose values do not vary: a statistic of two columns knows them as x and y.
pub fn name_columns<'s>(found: impl IntoIterator<Item = &'s mut Statistic>, predicted: &str, human: &str) {
    for known in found {
        let Statistic::Undefined { reason } = known else { continue };
        for (column, name) in [("x", predicted), ("y", human)] {
            *reason = reason.replace(&format!("every value of {column} is"), &format!("every value of {name:?} is"));
        }
    }
}

/// Why statistics are undefined, each reason once with the names that it is of.
#[must_use]
pub fn undefined<'s, N>(found: impl IntoIterator<Item = (N, &'s Statistic)>) -> Vec<(&'s str, Vec<N>)> {
    let mut reasons: Vec<(&str, Vec<N>)> = Vec::new();
    for (name, known) in found {
        let Statistic::Undefined { reason } = known else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    reasons
}

/// Why correlations are undefined, a line for each reason.
fn reasons<'a>(entries: impl IntoIterator<Item = (&'a str, &'a RankAgreement)>) -> Vec<String> {
    let of_entry = |(name, agreement): (&str, &'a RankAgreement)| {
        [("Spearman", &agreement.spearman), ("Pearson", &agreement.pearson)]
            .map(|(of, statistic)| (format!("{of} of {name}"), statistic))
    };
    let line = |(reason, names): (&str, Vec<String>)| format!("undefined ({}): {reason}", names.join(", "));
    undefined(entries.into_iter().flat_map(of_entry)).into_iter().map(line).collect()
}

/// Every so many points of a curve, `most` of them at most, and the last.
#[must_use]
pub fn thinned<P: Clone>(curve: &[P], most: usize) -> Vec<P> {
    let step = curve.len().div_ceil(most).max(1);
    let last = curve.len().saturating_sub(1);
    let kept = curve.iter().enumerate().filter(|(index, _)| index % step == 0 || *index == last);
    kept.map(|(_, point)| point.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_keeps_its_digits() {
        assert_eq!([0.95, 0.975, 0.999].map(percent), ["95 %", "97.5 %", "99.9 %"]);
    }

    #[test]
    fn constant_scores_are_undefined_and_say_why() {
        let found = agreement(&[3.0; 5], &[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!(
            matches!(&found.spearman, Statistic::Undefined { reason } if reason.contains("every value of \"score\" is 3"))
        );
        let json = serde_json::to_value(&found).unwrap();
        assert!(json["pearson"]["undefined"].is_string());
        assert!(agreement(&[1.0, f64::NAN], &[1.0, 2.0]).is_err());
        let said = reasons([("length", &found)]);
        let Statistic::Undefined { reason } = &found.spearman else { panic!("{found:?}") };
        assert!(said[0].starts_with("undefined (Spearman of length") && said[0].contains(reason.as_str()), "{said:?}");
    }

    /// One of few rows that leaves the range reaches any bar.
    #[test]
    fn an_interval_ends_where_its_range_does() {
        let ends = |found: Statistic| found.interval().map(|interval| [interval.low, interval.high]);
        assert_eq!(ends(mean_of_clusters(&[0.0, 0.63], &["a", "b"], SHARE, "")), Some([0.0, 1.0]));
        assert_eq!(ends(mean_of_clusters(&[-0.9, 0.9], &["a", "b"], [-1.0, 1.0], "")), Some([-1.0, 1.0]));
        let [low, high] = ends(share_of_clusters(&[true, true, false, true], &[1, 1, 2, 2], "")).unwrap();
        assert!(low >= 0.0 && high == 1.0, "{low}, {high}");
        let of_none = share_of_clusters::<&str>(&[], &[], "no row");
        assert_eq!(of_none, Statistic::Undefined { reason: "no row".to_owned() });
    }

    #[test]
    fn agreement_has_the_contracts_fields() {
        let scores = [1.0, 2.0, 3.0, 5.0, 4.0, 2.5, 1.5, 3.5];
        let found = agreement(&scores, &[1.0, 2.0, 4.0, 5.0, 3.0, 2.0, 1.0, 4.0]).unwrap();
        let json = serde_json::to_value(&found).unwrap();
        assert!(json["pearson"]["low"].as_f64().unwrap() < json["pearson"]["high"].as_f64().unwrap());
        // Of four rows there is the statistic, and why it has no interval.
        let few = serde_json::to_value(agreement(&scores[..4], &[1.0, 2.0, 4.0, 5.0]).unwrap()).unwrap();
        assert!(few["spearman"]["estimate"] == 1.0 && few["spearman"]["low"].is_null(), "{few}");
        assert!(few["spearman"]["method"].as_str().is_some_and(|method| method.starts_with("no interval")), "{few}");
    }
}
