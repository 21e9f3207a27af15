//! The run as a picture: the loss of each step, and of held-out rows.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_cli::terminal::svg::{BLUE, chart, checked, svg};
use plotters::prelude::*;

use super::log::Log;

/// Steps in grey and held-out rows in blue, with a ring around the state that is kept.
pub(super) fn of(log: &Log, objective: &str, kept: u64) -> Result<String> {
    let steps: Vec<(f64, f64)> = log.losses.iter().map(|(&step, &loss)| (step as f64, loss)).collect();
    let loss = |figures: &BTreeMap<String, f64>| figures.get("loss").copied();
    let held_out: Vec<(f64, f64)> =
        log.figures.iter().filter_map(|(step, figures)| Some((*step as f64, loss(figures)?))).collect();
    let all = || steps.iter().chain(&held_out);
    let last = all().fold(1.0_f64, |last, point| last.max(point.0));
    let (low, high) = all().fold((0.0_f64, 1e-9_f64), |(low, high), point| (low.min(point.1), high.max(point.1)));
    let of_losses = checked(low..1.05 * high)?;
    svg((760, 420), |area| {
        let below = "steps; grey: loss of each step, blue: of held-out rows, ring: the state that is kept";
        let (steps_axis, title) = (0.0..1.02 * last, format!("judge tune, {objective}"));
        let mut chart = chart(area, &title, (steps_axis, below), (of_losses, "loss"), true)?;
        chart.draw_series(LineSeries::new(steps.iter().copied(), BLACK.mix(0.35).stroke_width(1)))?;
        chart.draw_series(LineSeries::new(held_out.iter().copied(), BLUE.stroke_width(2)))?;
        chart.draw_series(held_out.iter().map(|&point| Circle::new(point, 3, BLUE.filled())))?;
        let ring = held_out.iter().filter(|point| point.0 == kept as f64);
        chart.draw_series(ring.map(|&point| Circle::new(point, 8, BLACK.stroke_width(2))))?;
        Ok(())
    })
}
