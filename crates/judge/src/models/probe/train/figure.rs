//! Cross-validated score by layer, as a picture.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_probe::training::{Selection, View};
use plotters::prelude::*;

use judge_cli::terminal::svg::{self, Area, BLUE, FONT, MORE, VERMILLION};

/// Layer, mean and standard deviation over folds of each point of a line.
type Line = Vec<(f64, f64, f64)>;

const SIZE: (u32, u32) = (860, 460);
/// Right of the chart, so that the legend covers nothing of it.
const LEGEND_WIDTH: u32 = 170;

/// A line for each pooling over the layers, `score` up, with bars of one standard deviation over folds; a ring marks what was chosen.
/// `None` if nothing could be scored.
pub fn svg(title: &str, score: &str, selection: &Selection) -> Result<Option<String>> {
    let mut lines: BTreeMap<View, Line> = BTreeMap::new();
    let mut rings = Vec::new();
    for (index, view) in selection.scan.iter().enumerate() {
        let Some(scores) = &view.scores else { continue };
        let (layer, mean) = (view.view.layer.0 as f64, scores.best_mean);
        lines.entry(view.view.reading).or_default().push((layer, mean, scores.best_deviation));
        if selection.chosen().contains(&index) {
            rings.push((layer, mean, view.view.reading));
        }
    }
    if lines.is_empty() {
        return Ok(None);
    }
    svg::svg(SIZE, |area| draw(area, title, score, &lines, &rings)).map(Some)
}

fn draw(
    area: &Area<'_>,
    title: &str,
    score: &str,
    lines: &BTreeMap<View, Line>,
    rings: &[(f64, f64, View)],
) -> Result<(), Box<dyn std::error::Error>> {
    let all = || lines.values().flatten();
    let first = all().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let last = all().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
    let low = all().map(|point| point.1 - point.2).fold(f64::INFINITY, f64::min) - 0.02;
    let high = all().map(|point| point.1 + point.2).fold(f64::NEG_INFINITY, f64::max) + 0.02;
    let (left, right) = area.split_horizontally(SIZE.0 - LEGEND_WIDTH);
    let numbers = (first - 0.3..last + 0.3, "layer (0: embeddings)");
    let mut chart = svg::chart(&left, title, numbers, (low..high, score), true)?;
    // Beside each other, so that no bar covers another's.
    let shift = |index: usize| 0.12 * (index as f64 - (lines.len() as f64 - 1.0) / 2.0);
    let colours: Vec<RGBColor> = [BLUE, VERMILLION].into_iter().chain(MORE.map(|(colour, _)| colour)).collect();
    for (index, (view, points)) in lines.iter().enumerate() {
        let colour = colours[index % colours.len()];
        let place = |x: f64| x + shift(index);
        chart.draw_series(LineSeries::new(
            points.iter().map(|&(x, mean, _)| (place(x), mean)),
            colour.stroke_width(2),
        ))?;
        for &(x, mean, sd) in points {
            let cap = |y: f64| [(place(x) - 0.05, y), (place(x) + 0.05, y)];
            let bar = [[(place(x), mean - sd), (place(x), mean + sd)], cap(mean - sd), cap(mean + sd)];
            chart.draw_series(bar.into_iter().map(|line| PathElement::new(line, colour.stroke_width(1))))?;
        }
        let ring = rings.iter().filter(|ring| ring.2 == *view);
        chart.draw_series(ring.map(|ring| Circle::new((place(ring.0), ring.1), 8, BLACK.stroke_width(2))))?;
        let y = 60 + 24 * index as i32;
        right.draw(&PathElement::new([(6, y), (30, y)], colour.stroke_width(2)))?;
        right.draw(&Text::new(view.as_str(), (38, y - 7), FONT))?;
    }
    let y = 60 + 24 * lines.len() as i32;
    right.draw(&Circle::new((18, y), 8, BLACK.stroke_width(2)))?;
    right.draw(&Text::new("chosen", (38, y - 7), FONT))?;
    right.draw(&Text::new("bars: ± 1 SD over folds", (6, y + 18), FONT))?;
    Ok(())
}
