//! Drawings, inline: no address, no script.

use anyhow::Result;
use judge_cli::terminal::svg::{BLUE, FONT, VERMILLION, svg};
use plotters::prelude::*;

use super::findings::Bar;

const SIZE: (u32, u32) = (640, 300);
/// What plotters puts first. Inside of a page it says nothing, and it reads like an address.
const NAMESPACE: &str = " xmlns=\"http://www.w3.org/2000/svg\"";

/// A drawing as it stands in a page.
pub fn inline(svg: &str) -> String {
    svg.replacen(NAMESPACE, "", 1)
}

/// How many rows have which value; beside them people's.
pub fn bars(bars: &[Bar], what: &str) -> Result<String> {
    let drawn = svg(SIZE, |area| {
        let (Some(first), Some(last)) = (bars.first(), bars.last()) else { return Ok(()) };
        let most = bars.iter().map(|bar| bar.rows.max(bar.human) as u64).max().unwrap_or(1).max(1);
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(46)
            .y_label_area_size(60)
            .build_cartesian_2d(first.low..last.high, 0..most + most.div_ceil(20))?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_x_mesh().light_line_style(WHITE).x_desc(what).y_desc("rows").label_style(FONT);
        mesh.draw()?;
        let is_both = bars.iter().any(|bar| bar.human > 0);
        let of_scores = if is_both { (0.05, 0.5) } else { (0.05, 0.95) };
        let mut draw = |rows: fn(&Bar) -> usize, (left, right): (f64, f64), color: RGBColor| {
            let drawn = bars.iter().filter(|bar| rows(bar) > 0).map(|bar| {
                let at = |share: f64| bar.low + share * (bar.high - bar.low);
                Rectangle::new([(at(left), 0), (at(right), rows(bar) as u64)], color.mix(0.6).filled())
            });
            chart.draw_series(drawn).map(|_| ())
        };
        draw(|bar| bar.rows, of_scores, BLUE)?;
        draw(|bar| bar.human, (0.5, 0.95), VERMILLION)?;
        Ok(())
    })?;
    Ok(inline(&drawn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_of_counts_has_whole_numbers_each_once() {
        for most in [1, 2, 3, 7, 119] {
            let bar = |low: usize| Bar { low: low as f64, high: low as f64 + 1.0, rows: most, human: 0 };
            let drawn = bars(&[bar(0), bar(1)], "score").expect("a drawing");
            // Labels of this axis are in the lines of its left margin.
            let page = scraper::Html::parse_fragment(&drawn);
            let all = scraper::Selector::parse("text[text-anchor=end]").expect("a selector");
            let labels: Vec<String> =
                page.select(&all).map(|label| label.text().collect::<String>().trim().to_owned()).collect();
            let counts: Vec<usize> = labels.iter().filter_map(|label| label.parse().ok()).collect();
            assert!(counts.len() >= 2 && counts.len() == labels.len(), "{most}: {labels:?}");
            assert!(counts.is_sorted_by(|a, b| a < b) || counts.is_sorted_by(|a, b| a > b), "{most}: {labels:?}");
        }
    }
}
