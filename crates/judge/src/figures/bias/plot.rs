//! The statistics of one bias with their intervals, as a picture.

use anyhow::Result;
use judge_metrics::comparison::BiasFinding;

use judge_cli::terminal::svg::{BLUE, Line, Point, VERMILLION, intervals};

/// `None` if nothing of it is defined.
pub(crate) fn svg(finding: &BiasFinding) -> Result<Option<String>> {
    let known = finding.statistics.iter().filter_map(|(name, statistic)| {
        let (estimate, interval) = (statistic.estimate()?, statistic.interval());
        Some(Line { name: (*name).to_owned(), points: vec![Point { estimate, interval, colour: BLUE }] })
    });
    let mut lines: Vec<Line> = known.collect();
    let Some(first) = lines.first_mut() else { return Ok(None) };
    first.points.iter_mut().for_each(|point| point.colour = VERMILLION);
    let title = format!("{}, {} pairs", finding.bias.replace('_', "-"), finding.n);
    let note = "95 % interval over questions; the first row measures the bias, and 0 is none";
    intervals(&title, note, [-1.0, 1.0], &lines).map(Some)
}
