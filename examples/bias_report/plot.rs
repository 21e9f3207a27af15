//! The statistics of one bias with their intervals, as a picture.

use anyhow::{Result, anyhow};
use judge_metrics::Interval;
use judge_metrics::comparison::BiasFinding;
use plotters::prelude::*;

const WIDTH: u32 = 760;
const ROW: u32 = 44;
/// Caption, axis and margins.
const AROUND: u32 = 110;

/// `None` if nothing of it is defined.
pub(crate) fn svg(finding: &BiasFinding) -> Result<Option<String>> {
    let rows: Vec<(&str, f64, Option<Interval>)> = finding
        .statistics
        .iter()
        .filter_map(|(name, statistic)| Some((*name, statistic.estimate()?, statistic.interval())))
        .collect();
    if rows.is_empty() {
        return Ok(None);
    }
    let mut text = String::new();
    draw(&mut text, finding, &rows).map_err(|error| anyhow!("cannot draw the figure: {error}"))?;
    Ok(Some(text))
}

fn draw(
    text: &mut String,
    finding: &BiasFinding,
    rows: &[(&str, f64, Option<Interval>)],
) -> Result<(), Box<dyn std::error::Error>> {
    let count = rows.len() as f64;
    let area = SVGBackend::with_string(text, (WIDTH, AROUND + ROW * rows.len() as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("{}, {} pairs", finding.bias.replace('_', "-"), finding.n), ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(210)
        .build_cartesian_2d(-1.05..1.05, (count - 0.5)..-0.5)?;
    let name = |place: &f64| {
        let row = place.round();
        let known = (place - row).abs() < 1e-9 && row >= 0.0;
        if known { rows.get(row as usize).map_or(String::new(), |row| row.0.to_owned()) } else { String::new() }
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(WHITE)
        .y_labels(2 * rows.len() + 1)
        .y_label_formatter(&name)
        .x_label_formatter(&|x: &f64| format!("{:.1}", if x.abs() < 1e-9 { 0.0 } else { *x }))
        .x_desc("95 % interval over questions; the first row measures the bias, and 0 is none")
        .label_style(("sans-serif", 14))
        .draw()?;
    chart.draw_series([PathElement::new([(0.0, -0.5), (0.0, count - 0.5)], BLACK.mix(0.5))])?;
    for (row, (_, estimate, interval)) in rows.iter().enumerate() {
        let (place, colour) = (row as f64, if row == 0 { RED } else { BLUE });
        if let Some(interval) = interval {
            let line = [(interval.low, place), (interval.high, place)];
            chart.draw_series([PathElement::new(line, colour.stroke_width(2))])?;
        }
        chart.draw_series([Circle::new((*estimate, place), 5, colour.filled())])?;
    }
    area.present()?;
    Ok(())
}
