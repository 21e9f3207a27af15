//! What people say by what the judge says, as a picture.

use anyhow::{Result, anyhow, bail};
use judge_metrics::prediction::SampleMean;
use judge_metrics::preference::Proportion;
use plotters::prelude::*;

use crate::pairs::Pairs;

/// Bins of equally many rows.
const BINS: usize = 10;

/// Rows whose predictions are alike.
pub struct Bin {
    /// Mean prediction.
    pub predicted: f64,
    /// Mean human score, with its interval where there is one.
    pub human: f64,
    pub interval: Option<(f64, f64)>,
    pub count: usize,
}

/// Bins of equally many rows; rows of one prediction stay together. Where people say 0 or 1 the interval is Wilson's, otherwise
/// Student's.
pub fn bins(pairs: &Pairs, level: f64) -> Result<Vec<Bin>> {
    if !pairs.numeric {
        bail!("a reliability plot needs scores that are numbers");
    }
    let mut rows: Vec<(f64, f64)> = pairs
        .rows
        .iter()
        .filter_map(|row| {
            let human = row.human.iter().filter_map(|score| score.number()).sum::<f64>() / row.human.len() as f64;
            Some((row.predicted.number()?, human))
        })
        .collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let binary = rows.iter().all(|&(_, human)| human == 0.0 || human == 1.0);
    let size = rows.len().div_ceil(BINS);
    let mut bins: Vec<Vec<(f64, f64)>> = Vec::new();
    for alike in rows.chunk_by(|a, b| a.0 == b.0) {
        match bins.last_mut() {
            Some(bin) if bin.len() + alike.len() / 2 < size => bin.extend(alike),
            _ => bins.push(alike.to_vec()),
        }
    }
    bins.into_iter()
        .map(|bin| {
            let mean = |of: fn(&(f64, f64)) -> f64| bin.iter().map(of).sum::<f64>() / bin.len() as f64;
            let humans: Vec<f64> = bin.iter().map(|&(_, human)| human).collect();
            let interval = if binary {
                let count = humans.iter().filter(|&&human| human == 1.0).count();
                Some(Proportion { count, n: bin.len() }.wilson(level)?)
            } else {
                SampleMean::new(&humans)?.interval(level).ok()
            };
            let interval = interval.map(|interval| (interval.low, interval.high));
            Ok(Bin { predicted: mean(|row| row.0), human: mean(|row| row.1), interval, count: bin.len() })
        })
        .collect()
}

/// The picture as SVG.
pub fn svg(bins: &[Bin], predicted: &str, human: &str, n: usize, level: f64) -> Result<String> {
    let mut text = String::new();
    draw(&mut text, bins, predicted, human, n, level).map_err(|error| anyhow!("cannot draw the plot: {error}"))?;
    Ok(text)
}

fn draw(
    text: &mut String,
    bins: &[Bin],
    predicted: &str,
    human: &str,
    n: usize,
    level: f64,
) -> Result<(), Box<dyn std::error::Error>> {
    let ends = bins.iter().flat_map(|bin| {
        let (low, high) = bin.interval.unwrap_or((bin.human, bin.human));
        [bin.predicted, low, high]
    });
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let margin = 0.05 * (high - low).max(1e-9);
    let (low, high) = (low - margin, high + margin);
    let area = SVGBackend::with_string(text, (640, 640)).into_drawing_area();
    area.fill(&WHITE)?;
    let (upper, lower) = area.split_vertically(500);
    let mut chart = ChartBuilder::on(&upper)
        .caption(format!("{human} by {predicted}, n = {n}"), ("sans-serif", 22))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(60)
        .build_cartesian_2d(low..high, low..high)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(format!("mean {predicted} of a bin"))
        .y_desc(format!("mean {human}, {:.0} % interval", 100.0 * level))
        .label_style(("sans-serif", 14))
        .draw()?;
    chart.draw_series(LineSeries::new([(low, low), (high, high)], BLACK.mix(0.4).stroke_width(1)))?;
    chart.draw_series(bins.iter().filter_map(|bin| {
        let (low, high) = bin.interval?;
        Some(PathElement::new([(bin.predicted, low), (bin.predicted, high)], BLUE.stroke_width(2)))
    }))?;
    chart.draw_series(LineSeries::new(bins.iter().map(|bin| (bin.predicted, bin.human)), BLUE.stroke_width(1)))?;
    chart.draw_series(bins.iter().map(|bin| Circle::new((bin.predicted, bin.human), 4, BLUE.filled())))?;

    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(1) as f64;
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
        .y_desc("rows")
        .label_style(("sans-serif", 14))
        .draw()?;
    let half = 0.01 * (high - low);
    counts.draw_series(bins.iter().map(|bin| {
        Rectangle::new([(bin.predicted - half, 0.0), (bin.predicted + half, bin.count as f64)], BLUE.mix(0.5).filled())
    }))?;
    area.present()?;
    Ok(())
}
