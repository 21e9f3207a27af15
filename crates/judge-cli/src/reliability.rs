//! What people say by what the judge says, as a picture.

use std::ops::Range;

use anyhow::Result;
use judge_metrics::Proportion;
use judge_metrics::comparison::ComparedItem;
use judge_metrics::means::{clustered_mean, clustered_share, sample_mean};
use plotters::prelude::*;
use serde::Serialize;

use crate::report::percent;
use crate::terminal::svg::{self, Area, BLUE};

/// Bins of equally many rows.
const BINS: usize = 10;

/// Bars of the histogram of predictions.
const BARS: usize = 50;

/// Rows whose predictions are alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Number of rows.
    pub n: usize,
    /// Mean prediction.
    pub predicted: f64,
    /// Mean human score.
    pub human: f64,
    /// Its interval; `None` where the rows define none.
    pub interval: Option<(f64, f64)>,
}

/// Prediction, mean human score and cluster of a row.
type Point<'a> = (f64, f64, Option<&'a str>);

/// Bins of equally many rows; rows of one prediction stay together. Where people say 0 or 1 the interval is Wilson's, otherwise
/// Student's; where rows come in clusters it is Student's of clusters.
pub fn bins(items: &[ComparedItem], level: f64) -> Vec<Bin> {
    let mut rows: Vec<Point<'_>> = items
        .iter()
        .filter_map(|item| Some((item.predicted.number()?, item.mean_human()?, item.cluster.as_deref())))
        .collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let binary = rows.iter().all(|&(_, human, _)| human == 0.0 || human == 1.0);
    let size = rows.len().div_ceil(BINS);
    let mut bins: Vec<Vec<Point<'_>>> = Vec::new();
    for alike in rows.chunk_by(|a, b| a.0 == b.0) {
        match bins.last_mut() {
            Some(bin) if bin.len() + alike.len() / 2 < size => bin.extend(alike),
            _ => bins.push(alike.to_vec()),
        }
    }
    bins.into_iter()
        .map(|bin| {
            let mean = |of: fn(&Point<'_>) -> f64| bin.iter().map(of).sum::<f64>() / bin.len() as f64;
            let humans: Vec<f64> = bin.iter().map(|&(_, human, _)| human).collect();
            let clusters: Option<Vec<&str>> = bin.iter().map(|&(.., cluster)| cluster).collect();
            let passed = || humans.iter().map(|&human| human == 1.0).collect::<Vec<_>>();
            let found = match &clusters {
                Some(clusters) if binary => clustered_share(&passed(), clusters),
                Some(clusters) => clustered_mean(&humans, clusters),
                None if binary => Proportion::of(&passed()).try_into(),
                None => sample_mean(&humans),
            };
            // A bin of one row or of one cluster has none, nor has one of equal rows.
            let interval = found.and_then(|found| found.interval(level)).ok();
            let interval = interval.map(|interval| (interval.low, interval.high));
            Bin { n: bin.len(), predicted: mean(|row| row.0), human: mean(|row| row.1), interval }
        })
        .collect()
}

/// The picture as SVG: [`bins`], and below them how many `items` have which prediction.
///
/// # Errors
/// If it cannot be drawn.
pub fn svg(items: &[ComparedItem], bins: &[Bin], predicted: &str, human: &str, level: f64) -> Result<String> {
    let predictions: Vec<f64> = items.iter().filter_map(|item| item.predicted.number()).collect();
    // Intervals of few rows may be wider than all that anybody said: they are cut at the frame.
    let axis = svg::axis(bins.iter().flat_map(|bin| [bin.predicted, bin.human]).chain(predictions.iter().copied()))?;
    svg::svg((640, 640), |area| draw(area, bins, &predictions, &axis, [predicted, human], level))
}

/// Bars of equal width from `low` to `high`, which is above it: left, right, rows.
#[must_use]
pub fn histogram(values: &[f64], low: f64, high: f64, bars: usize) -> Vec<(f64, f64, usize)> {
    let width = (high - low) / bars as f64;
    let mut counts = vec![0; bars];
    for &value in values {
        counts[(((value - low) / width) as usize).min(bars - 1)] += 1;
    }
    let left = |bar: usize| low + bar as f64 * width;
    counts.into_iter().enumerate().map(|(bar, count)| (left(bar), left(bar + 1), count)).collect()
}

fn draw(
    area: &Area<'_>,
    bins: &[Bin],
    predictions: &[f64],
    axis: &Range<f64>,
    [predicted, human]: [&str; 2],
    level: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let n = predictions.len();
    let Range { start: low, end: high } = *axis;
    let (upper, lower) = area.split_vertically(500);
    let [predicted, human] = [predicted, human].map(|name| svg::short(name, 24));
    let title = format!("{human} by {predicted}, n = {n}");
    let below = format!("mean {predicted} of a bin");
    let beside = format!("mean {human}, {} interval", percent(level));
    let mut chart = svg::chart(&upper, &title, (low..high, &below), (low..high, &beside), false)?;
    chart.draw_series(LineSeries::new([(low, low), (high, high)], BLACK.mix(0.4).stroke_width(1)))?;
    chart.draw_series(bins.iter().filter_map(|bin| {
        let ends = [bin.interval?.0, bin.interval?.1].map(|end| (bin.predicted, end.clamp(low, high)));
        Some(PathElement::new(ends, BLUE.stroke_width(2)))
    }))?;
    chart.draw_series(LineSeries::new(bins.iter().map(|bin| (bin.predicted, bin.human)), BLUE.stroke_width(1)))?;
    chart.draw_series(bins.iter().map(|bin| Circle::new((bin.predicted, bin.human), 4, BLUE.filled())))?;

    let histogram = histogram(predictions, low, high, BARS);
    let most = histogram.iter().map(|bar| bar.2).max().unwrap_or(1) as f64;
    let mut counts = ChartBuilder::on(&lower)
        .margin(12)
        .x_label_area_size(8)
        .y_label_area_size(60)
        .build_cartesian_2d(low..high, 0.0..1.1 * most)?;
    counts
        .configure_mesh()
        .disable_mesh()
        .disable_x_axis()
        .y_labels(3)
        .y_label_formatter(&svg::whole_number)
        .y_desc("rows")
        .label_style(("sans-serif", 14))
        .draw()?;
    counts.draw_series(
        histogram
            .iter()
            .map(|&(left, right, count)| Rectangle::new([(left, 0.0), (right, count as f64)], BLUE.mix(0.5).filled())),
    )?;
    Ok(())
}
