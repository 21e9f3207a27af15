//! Cross-validated score by layer, as a picture.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use judge_probe::ScoredView;
use plotters::prelude::*;

/// A line for each pooling, with the standard deviation over folds; a ring marks what was chosen. `None` if nothing could be scored.
pub fn svg<T>(title: &str, scan: &[ScoredView<String, T>], chosen: &[usize]) -> Result<Option<String>> {
    let mut lines: BTreeMap<&str, Vec<(f64, f64, f64)>> = BTreeMap::new();
    let mut rings = Vec::new();
    for (index, view) in scan.iter().enumerate() {
        let Some(scores) = &view.scores else { continue };
        let (layer, mean) = (view.view.layer.0 as f64, scores.best_mean);
        lines.entry(&view.view.reading).or_default().push((layer, mean, scores.best_deviation));
        if chosen.contains(&index) {
            rings.push((layer, mean));
        }
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let mut text = String::new();
    draw(&mut text, title, &lines, &rings).map_err(|error| anyhow!("cannot draw the figure: {error}"))?;
    Ok(Some(text))
}

fn draw(
    text: &mut String,
    title: &str,
    lines: &BTreeMap<&str, Vec<(f64, f64, f64)>>,
    rings: &[(f64, f64)],
) -> Result<(), Box<dyn std::error::Error>> {
    let all = || lines.values().flatten();
    let last = all().map(|point| point.0).fold(1.0, f64::max);
    let low = all().map(|point| point.1 - point.2).fold(f64::INFINITY, f64::min) - 0.02;
    let high = all().map(|point| point.1 + point.2).fold(f64::NEG_INFINITY, f64::max) + 0.02;
    let area = SVGBackend::with_string(text, (760, 440)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..last, low..high)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("layer")
        .y_desc("score over folds")
        .x_label_formatter(&|layer| format!("{layer:.0}"))
        .label_style(("sans-serif", 14))
        .draw()?;
    for (index, (name, points)) in lines.iter().enumerate() {
        let colour = Palette99::pick(index).to_rgba();
        let bars =
            points.iter().map(|&(x, mean, sd)| PathElement::new([(x, mean - sd), (x, mean + sd)], colour.mix(0.4)));
        chart.draw_series(bars)?;
        chart
            .draw_series(LineSeries::new(points.iter().map(|&(x, mean, _)| (x, mean)), colour.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart.draw_series(rings.iter().map(|&ring| Circle::new(ring, 7, BLACK.stroke_width(2))))?;
    chart
        .configure_series_labels()
        .border_style(BLACK.mix(0.3))
        .background_style(WHITE)
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}
