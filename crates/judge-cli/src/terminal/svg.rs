//! Pictures as SVG: the frame of all, and a line for each statistic with its interval.

use std::error::Error;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Result, anyhow, ensure};
use judge_metrics::Interval;
use judge_metrics::comparison::Statistic;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// What is drawn on.
pub type Area<'t> = DrawingArea<SVGBackend<'t>, Shift>;

// The palette of Okabe and Ito, which readers with any kind of colour vision tell apart.
/// The first colour of every picture.
pub const BLUE: RGBColor = RGBColor(0, 114, 178);
/// The second: what is compared with the first.
pub const VERMILLION: RGBColor = RGBColor(213, 94, 0);
/// And more, in their order.
pub const MORE: [(RGBColor, &str); 4] = [
    (RGBColor(0, 158, 115), "green"),
    (RGBColor(204, 121, 167), "purple"),
    (RGBColor(230, 159, 0), "orange"),
    (RGBColor(86, 180, 233), "sky blue"),
];

/// A file's name, for a caption.
pub fn name_of(path: &std::path::Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The path of a picture, as an option takes it. A name that promises another form than SVG is refused.
///
/// # Errors
/// If its ending is another.
pub fn path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension() {
        _ if text.is_empty() => Err("expected FILE.svg, the name of a file".to_owned()),
        Some(other) if !other.eq_ignore_ascii_case("svg") => Err(format!(
            "expected FILE.svg, the only form of pictures here, found .{}; other programs, such as rsvg-convert, make PDF or PNG of it",
            other.display()
        )),
        _ => Ok(path),
    }
}

/// The text of labels.
pub const FONT: (&str, i32) = ("sans-serif", 14);

const WIDTH: u32 = 760;
/// The least height of a line of [`intervals`].
const ROW: u32 = 44;
/// And of each of its points.
const POINT: u32 = 14;
/// The height of a name of the legend.
const LEGEND: u32 = 22;
/// Caption, axis and margins.
const AROUND: u32 = 110;

/// A white picture of this size, with what `draw` puts on it.
///
/// # Errors
/// If it cannot be drawn.
pub fn svg(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Result<(), Box<dyn Error>>) -> Result<String> {
    let mut text = String::new();
    let drawn = || -> Result<(), Box<dyn Error>> {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)?;
        draw(&area)?;
        area.present()?;
        Ok(())
    };
    drawn().map_err(|error| anyhow!("cannot draw the figure: {error}"))?;
    Ok(text)
}

/// A chart over two axes of numbers.
pub type Chart<'a, 't> = ChartContext<'a, SVGBackend<'t>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// A chart with its title, unless that is empty. Each axis holds these numbers and says this; `whole` is for a lower one that labels whole
/// numbers alone, and has no lines above them.
///
/// # Errors
/// If it cannot be drawn.
pub fn chart<'a, 't>(
    area: &'a Area<'t>,
    title: &str,
    (across, below): (Range<f64>, &str),
    (up, beside): (Range<f64>, &str),
    whole: bool,
) -> Result<Chart<'a, 't>, Box<dyn Error>> {
    let mut builder = ChartBuilder::on(area);
    if !title.is_empty() {
        builder.caption(title, ("sans-serif", 20));
    }
    let ticks = [&across, &up].map(ticks);
    let mut chart = builder.margin(12).x_label_area_size(46).y_label_area_size(60).build_cartesian_2d(across, up)?;
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(WHITE).x_desc(below).y_desc(beside).label_style(FONT);
    mesh.x_label_formatter(&ticks[0]).y_label_formatter(&ticks[1]);
    if whole {
        mesh.disable_x_mesh().x_label_formatter(&whole_number);
    }
    mesh.draw()?;
    Ok(chart)
}

/// An axis that holds all of these numbers, with a margin at either end.
///
/// # Errors
/// As [`checked`].
pub fn axis(numbers: impl Iterator<Item = f64>) -> Result<Range<f64>> {
    let Range { start: low, end: high } = span(numbers);
    let margin = 0.05 * (high - low);
    drawable(low - margin..high + margin, low..high)
}

/// From the least of these numbers to the greatest. One number, or what differs in its last digits, is in the middle of a span of 1, or of
/// one that is long enough to be told from it.
pub fn span(numbers: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
    let least = 1e-9 * low.abs().max(high.abs()).max(1.0);
    let half = if high - low > least { 0.0 } else { least.max(0.5) };
    low - half..high + half
}

/// The label of a place on an axis of whole numbers: none between two of them.
pub fn whole_number(place: &f64) -> String {
    let number = place.round();
    if (place - number).abs() < 1e-9 { format!("{:.0}", number + 0.0) } else { String::new() }
}

/// The labels of an axis: as many decimals as tell its ticks apart, with an exponent where they would be many digits.
fn ticks(axis: &Range<f64>) -> impl Fn(&f64) -> String + use<> {
    let (step, largest) = ((axis.end - axis.start) / 10.0, axis.start.abs().max(axis.end.abs()));
    let place = |number: f64| number.log10().floor() as i32;
    let (of_step, of_largest) = (place(step), place(largest));
    move |tick: &f64| {
        let tick = if tick.abs() < 1e-6 * step { 0.0 } else { *tick };
        let is_plain = of_step >= -3 && of_largest < 6;
        let digits = usize::try_from(if is_plain { -of_step } else { of_largest - of_step }).unwrap_or(0);
        if is_plain { format!("{tick:.digits$}") } else { format!("{tick:.digits$e}") }
    }
}

/// The longest name of a line, in characters, and of a legend.
const NAMES: [usize; 2] = [30, 60];

/// A name of so many characters at most; a long one without its middle, since names often begin alike.
pub fn short(name: &str, most: usize) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= most {
        return name.to_owned();
    }
    let (head, tail) = (&chars[..most / 2 - 1], &chars[chars.len() - most / 2..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

/// An axis that can be divided: dividing one whose length is no number never ends.
///
/// # Errors
/// If its length is more than the largest number.
pub fn checked(axis: Range<f64>) -> Result<Range<f64>> {
    drawable(axis.clone(), axis)
}

/// The same of an axis that holds numbers with these ends.
fn drawable(axis: Range<f64>, Range { start, end }: Range<f64>) -> Result<Range<f64>> {
    let is_finite = (axis.end - axis.start).is_finite();
    ensure!(is_finite, "cannot draw the figure: no axis is long enough for numbers from {start:e} to {end:e}");
    Ok(axis)
}

/// A line of [`intervals`].
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// To the left of it, as far as there is room.
    pub name: String,
    /// Points with their intervals, one above the other.
    pub points: Vec<Point>,
}

/// A statistic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Its value.
    pub estimate: f64,
    /// Its interval, if it has one.
    pub interval: Option<Interval>,
    /// The colour of both.
    pub colour: RGBColor,
}

impl Line {
    /// One statistic; `None` where it is undefined.
    #[must_use]
    pub fn of(name: impl Into<String>, statistic: &Statistic, colour: RGBColor) -> Option<Self> {
        let (estimate, interval) = (statistic.estimate()?, statistic.interval());
        Some(Self { name: name.into(), points: vec![Point { estimate, interval, colour }] })
    }
}

/// A line for each statistic, on it its points and intervals; the axis holds at least `range`, and below it the legend names colours.
///
/// # Errors
/// If it cannot be drawn.
pub fn intervals(
    title: &str,
    note: &str,
    range: [f64; 2],
    lines: &[Line],
    legend: &[(String, RGBColor)],
) -> Result<String> {
    let count = lines.len() as f64;
    let points = lines.iter().flat_map(|line| &line.points);
    let ends = points.flat_map(|point| match point.interval {
        Some(interval) => [point.estimate, interval.low, interval.high],
        None => [point.estimate; 3],
    });
    let axis = axis(ends.chain(range))?;
    let is_across_zero = axis.contains(&0.0);
    let most = lines.iter().map(|line| line.points.len()).max().unwrap_or_default();
    // The points of a line leave a fifth of it to what parts it from the next.
    let step = 0.3_f64.min(0.8 / most as f64);
    let height = AROUND + ROW.max(POINT * most as u32) * lines.len() as u32;
    svg((WIDTH, height + LEGEND * legend.len() as u32), |area| {
        let (upper, lower) = area.split_vertically(height);
        for (row, (name, colour)) in (0..).zip(legend) {
            let y = row * LEGEND as i32;
            lower.draw(&Circle::new((230, y + 8), 5, colour.filled()))?;
            lower.draw(&Text::new(short(name, NAMES[1]), (242, y + 1), FONT))?;
        }
        let mut chart = ChartBuilder::on(&upper)
            .caption(title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(210)
            .build_cartesian_2d(axis, (count - 0.5)..-0.5)?;
        let name = |place: &f64| {
            let row = place.round();
            let known = (place - row).abs() < 1e-9 && row >= 0.0;
            if known {
                lines.get(row as usize).map_or(String::new(), |line| short(&line.name, NAMES[0]))
            } else {
                String::new()
            }
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(WHITE)
            .y_labels(2 * lines.len() + 1)
            .y_label_formatter(&name)
            .x_label_formatter(&|x: &f64| format!("{:.1}", if x.abs() < 1e-9 { 0.0 } else { *x }))
            .x_desc(note)
            .label_style(FONT)
            .draw()?;
        if is_across_zero {
            chart.draw_series([PathElement::new([(0.0, -0.5), (0.0, count - 0.5)], BLACK.mix(0.5))])?;
        }
        for (row, line) in lines.iter().enumerate() {
            let middle = (line.points.len() as f64 - 1.0) / 2.0;
            for (index, point) in line.points.iter().enumerate() {
                let place = row as f64 + step * (index as f64 - middle);
                if let Some(interval) = point.interval {
                    let ends = [(interval.low, place), (interval.high, place)];
                    chart.draw_series([PathElement::new(ends, point.colour.stroke_width(2))])?;
                }
                chart.draw_series([Circle::new((point.estimate, place), 5, point.colour.filled())])?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_labelled_each_once() {
        let labels = [0.0, -0.0, 0.5, 0.8, 1.0 + f64::EPSILON, 12.0].map(|place| whole_number(&place));
        assert_eq!(labels, ["0", "0", "", "", "1", "12"]);
    }

    #[test]
    fn one_number_is_in_the_middle_of_its_axis() {
        for (numbers, expected) in [([3.0, 3.0], 2.5..3.5), ([3.0, 3.0 + 1e-12], 2.5..3.5), ([1.0, 3.0], 1.0..3.0)] {
            let Range { start, end } = span(numbers.into_iter());
            assert!((start - expected.start).abs() < 1e-9 && (end - expected.end).abs() < 1e-9, "{numbers:?}");
        }
        let large = axis([1e100; 2].into_iter()).expect("an axis");
        assert!(large.start < 1e100 && 1e100 < large.end, "{large:?}");
    }

    #[test]
    fn long_names_keep_both_ends() {
        let names = ["a", "b"].map(|end| short(&format!("spearman, {}{end}", "the same beginning ".repeat(3)), 30));
        assert_ne!(names[0], names[1]);
        assert!(names.iter().all(|name| name.chars().count() == 30 && name.starts_with("spearman, ")), "{names:?}");
        assert_eq!(short("spearman, short", 30), "spearman, short");
    }

    #[test]
    fn points_stand_in_their_line_and_the_legend_names_each_colour() {
        let points = vec![Point { estimate: 0.5, interval: None, colour: BLUE }; 6];
        let lines = ["first", "second"].map(|name| Line { name: name.to_owned(), points: points.clone() });
        let legend: Vec<_> = (0..6).map(|n| (format!("{}{n} (blue)", "a judge ".repeat(5)), BLUE)).collect();
        let svg = intervals("title", "note", [0.0, 1.0], &lines, &legend).unwrap();
        let places: Vec<f64> =
            svg.split(" cy=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect();
        assert_eq!(places.len(), 18, "{svg}");
        let gaps: Vec<f64> = places[6..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().all(|gap| *gap >= 10.0) && gaps[5] >= 1.5 * gaps[4], "{gaps:?}");
        assert!(legend.iter().all(|(name, _)| svg.contains(name.as_str())), "{svg}");
    }

    #[test]
    fn labels_tell_the_ticks_of_any_axis_apart() {
        for (axis, tick, label) in [
            (0.0..5.0, 2.5, "2.5"),
            (0.0..1.0, -0.0, "0.0"),
            (-3.0..30.0, 20.0, "20"),
            (0.0..5e-6, 2e-6, "2.0e-6"),
            (1e6..1.00001e6, 1.000002e6, "1.000002e6"),
            (0.0..6e8, 2e8, "2.0e8"),
        ] {
            assert_eq!(ticks(&axis)(&tick), label, "{axis:?}");
        }
    }
}
