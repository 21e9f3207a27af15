//! How well each layer alone agrees with people, and a picture of it.

use anyhow::Result;
use judge_metrics::Interval;
use judge_metrics::correlation::{RankVariance, spearman, spearman_interval};
use plotters::prelude::*;
use serde::Serialize;

use crate::report::BOOTSTRAP;
use crate::terminal::svg::{self as terminal, BLUE, FONT};

/// Agreement of one layer with people.
#[derive(Serialize)]
pub struct LayerAgreement {
    /// Which layer.
    pub layer: usize,
    /// Of expected scores Spearman's correlation, as reports call it; `None` where the scores do not vary.
    #[serde(rename = "spearman")]
    pub estimate: Option<f64>,
    /// The lower end of its interval.
    pub low: Option<f64>,
    /// The upper end of its interval.
    pub high: Option<f64>,
    /// Where the interval comes from, which is another than that of a score's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'static str>,
    /// LAGER's weight of it.
    pub weight: Option<f64>,
}

impl LayerAgreement {
    /// Of a layer, its estimate with the interval that it has, and its weight.
    #[must_use]
    pub fn new(layer: usize, estimate: Option<f64>, interval: Option<Interval>, weight: Option<f64>) -> Self {
        let (low, high) = (interval.map(|interval| interval.low), interval.map(|interval| interval.high));
        Self { layer, estimate, low, high, method: None, weight }
    }
}

/// The agreement of each layer, with Bonett and Wright's interval: a bootstrap of each would take a page's worth of time. `scores` has the
/// scores of each row by layer, `weights` those of the first layers.
///
/// # Errors
/// If there are not as many human scores as rows.
pub fn agreement(
    numbers: &[usize],
    scores: &[Vec<f64>],
    human: &[f64],
    weights: Option<&[f64]>,
) -> Result<Vec<LayerAgreement>> {
    let of = |(index, &layer): (usize, &usize)| {
        let of_layer: Vec<f64> = scores.iter().map(|scores| scores[index]).collect();
        let rho = match spearman(&of_layer, human) {
            Ok(found) => Some(found.estimate),
            Err(error) if error.is_undefined() => None,
            Err(error) => return Err(error.into()),
        };
        let interval = rho.map(|rho| spearman_interval(rho, human.len(), BOOTSTRAP.level, RankVariance::BonettWright));
        let interval = interval.and_then(Result::ok);
        let weight = weights.and_then(|weights| weights.get(index).copied());
        let method = interval.map(|_| "Bonett and Wright");
        Ok(LayerAgreement { method, ..LayerAgreement::new(layer, rho, interval, weight) })
    };
    numbers.iter().enumerate().map(of).collect()
}

/// What [`svg`] draws the agreement of layers by: a name, and the numbers that its axis holds at least, of which the first is no agreement.
pub type Measure = (&'static str, [f64; 2]);

/// Of expected scores.
pub const SPEARMAN: Measure = ("Spearman, Bonett and Wright", [0.0, 0.1]);
/// Of choices between two.
pub const ACCURACY: Measure = ("accuracy", [0.5, 0.6]);

/// The agreement of each layer with its band, a line where there is none, and under it the weight of each.
///
/// # Errors
/// If it cannot be drawn.
pub fn svg(layers: &[LayerAgreement], (measure, axis): Measure, title: &str) -> Result<String> {
    let is_weighed = layers.iter().any(|layer| layer.weight.is_some());
    let head = if title.is_empty() { 0 } else { 30 };
    terminal::svg((640, head + if is_weighed { 420 } else { 290 }), |area| {
        let last = layers.iter().map(|layer| layer.layer).max().unwrap_or_default() as f64;
        let ends = layers.iter().flat_map(|layer| [layer.low, layer.high, layer.estimate]).flatten();
        let (low, high) = ends.fold((axis[0], axis[1]), |(low, high), x| (low.min(x), high.max(x)));
        let (upper, lower) = area.split_vertically(head + 290);
        let (numbers, held) = (-0.5..last + 0.5, low - 0.02..high + 0.02);
        let mut chart = terminal::chart(&upper, title, (numbers, "layer"), (held, measure), true)?;
        let band = |of: fn(&LayerAgreement) -> Option<f64>| {
            layers.iter().filter_map(move |layer| Some((layer.layer as f64, of(layer)?)))
        };
        let mut around: Vec<(f64, f64)> = band(|layer| layer.low).collect();
        let mut above: Vec<(f64, f64)> = band(|layer| layer.high).collect();
        above.reverse();
        around.extend(above);
        if around.len() > 2 {
            chart.draw_series([Polygon::new(around, BLUE.mix(0.15).filled())])?;
        }
        chart.draw_series([PathElement::new([(-0.5, axis[0]), (last + 0.5, axis[0])], BLACK.mix(0.5))])?;
        chart.draw_series(LineSeries::new(band(|layer| layer.estimate), BLUE.stroke_width(2)))?;
        chart.draw_series(band(|layer| layer.estimate).map(|point| Circle::new(point, 3, BLUE.filled())))?;

        let weights: Vec<(f64, f64)> = band(|layer| layer.weight).collect();
        if weights.is_empty() {
            return Ok(());
        }
        let (low, high) =
            weights.iter().fold((0.0_f64, 1e-9_f64), |(low, high), point| (low.min(point.1), high.max(point.1)));
        let mut chart = ChartBuilder::on(&lower)
            .margin(12)
            .x_label_area_size(8)
            .y_label_area_size(60)
            .build_cartesian_2d(-0.5..last + 0.5, low..1.05 * high)?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_mesh().disable_x_axis().y_labels(3).y_desc("LAGER's weight").label_style(FONT).draw()?;
        chart.draw_series(weights.iter().map(|&(layer, weight)| {
            Rectangle::new([(layer - 0.4, 0.0), (layer + 0.4, weight)], BLUE.mix(0.6).filled())
        }))?;
        Ok(())
    })
}
