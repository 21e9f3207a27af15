//! A learning curve: what weights are worth by how many rows they are fitted on.

use anyhow::{Result, ensure};
use judge_core::fit::{Graded, LayerWeightFit};
use judge_core::lager::{States, Variant};
use judge_data::ScoreTable;
use judge_metrics::Interval;
use judge_metrics::sampling::draw_alike;
use plotters::prelude::*;

use judge_cli::report::agreement;
use judge_cli::terminal::svg::{BLUE, FONT, VERMILLION, name_of, short, svg};

/// The fewest rows that weights are fitted on; each further point has twice as many, the last one all.
const FEWEST: usize = 10;

/// The curve of LAGER's weighted score on `data`, beside the last layer's expected score, which learns nothing. The rows of each
/// point are drawn by the seed of the fit.
///
/// # Errors
/// If `valid` has fewer rows than two points take, weights cannot be fitted, or the curve cannot be drawn.
pub(super) fn of(data: &ScoreTable, valid: &ScoreTable, settings: &LayerWeightFit) -> Result<String> {
    let rows = valid.graded.len();
    ensure!(
        rows >= 2 * FEWEST,
        "--learning-plot: {} has {rows} graded items; a learning curve takes {} or more",
        valid.path.display(),
        2 * FEWEST
    );
    let origin = valid.origin_or_file()?;
    let human = data.human();
    let sizes =
        std::iter::successors(Some(FEWEST), |size| Some(2 * size)).take_while(|size| *size < rows).chain([rows]);
    let mut points = Vec::new();
    for size in sizes {
        let drawn = draw_alike(rows, size, settings.seed);
        let graded: Vec<Graded> = drawn.iter().map(|drawn| valid.graded[drawn.item].clone()).collect();
        let weights = settings.fit(&graded, &origin)?;
        let scores = data.scores(Variant::WeightedExpected, settings.states, Some(&weights))?;
        let found = agreement(&scores, &human)?.spearman;
        points.extend(found.estimate().map(|estimate| (size as f64, estimate, found.interval())));
    }
    let without = data.scores(Variant::LastExpected, States::All, None)?;
    let without = agreement(&without, &human)?.spearman.estimate();
    ensure!(!points.is_empty(), "--learning-plot: the agreement is undefined: scores or people's do not vary");
    let [data, valid] = [data, valid].map(|table| short(&name_of(&table.path), 20));
    let title = format!("{data}, weights fitted on rows of {valid}");
    draw(&title, &points, without)
}

/// The numbers of a logarithmic axis that have room: 1, 2 and 5 of each power of ten.
fn ticks(rows: &f64) -> String {
    let number = format!("{rows:.0}");
    if number.starts_with(['1', '2', '5']) { number } else { String::new() }
}

fn draw(title: &str, points: &[(f64, f64, Option<Interval>)], without: Option<f64>) -> Result<String> {
    let ends = points.iter().flat_map(|(_, rho, interval)| match interval {
        Some(interval) => [interval.low, *rho, interval.high],
        None => [*rho; 3],
    });
    let (low, high) =
        ends.chain(without).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let (first, last) = (points[0].0, points[points.len() - 1].0);
    svg((700, 420), |area| {
        let mut chart = ChartBuilder::on(area)
            .caption(title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(46)
            .y_label_area_size(60)
            .build_cartesian_2d((0.9 * first..1.1 * last).log_scale(), low - 0.02..high + 0.02)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("graded rows, on a logarithmic axis; vermillion: the last layer alone")
            .y_desc("Spearman, 95 % interval")
            .x_label_formatter(&ticks)
            .label_style(FONT)
            .draw()?;
        if let Some(without) = without {
            chart.draw_series(LineSeries::new([(first, without), (last, without)], VERMILLION.stroke_width(2)))?;
        }
        chart.draw_series(points.iter().filter_map(|&(rows, _, interval)| {
            let interval = interval?;
            Some(PathElement::new([(rows, interval.low), (rows, interval.high)], BLUE.stroke_width(2)))
        }))?;
        let line = || points.iter().map(|&(rows, rho, _)| (rows, rho));
        chart.draw_series(LineSeries::new(line(), BLUE.stroke_width(2)))?;
        chart.draw_series(line().map(|point| Circle::new(point, 4, BLUE.filled())))?;
        Ok(())
    })
}
