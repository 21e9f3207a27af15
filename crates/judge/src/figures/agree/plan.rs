//! What rows like these could show: the difference that they find, and how many rows an interval of a wanted width takes.

use anyhow::Result;
use judge_cli::terminal::console::{say, say_table};
use judge_metrics::comparison::{Comparisons, Statistic};
use judge_metrics::decimals;
use judge_metrics::planning::{detectable_difference, items_for_correlation, items_for_proportion, items_for_width};
use serde_json::{Map, Value, json};

use super::judges::statistic_of;

/// The chance that a difference of the size that is reported is found.
pub const POWER: f64 = 0.8;

/// Widths fall with the root of the number of rows in large samples: fewer rows than these are not promised by scaling.
const FEWEST: usize = 20;

/// What is planned for, with all differences of two judges. Others would only make the table long.
const PLANNED: [&str; 11] = [
    "pearson",
    "spearman",
    "mae",
    "bias",
    "krippendorff_alpha_ordinal",
    "auroc",
    "brier",
    "accuracy",
    "cohen_kappa",
    "cohen_kappa_quadratic",
    "human_mean",
];

/// What rows like these could show of a statistic.
struct Planned<'f> {
    name: &'f str,
    /// From a bar, or from 0 for a difference.
    detectable: f64,
    /// For an interval of the wanted width, if one is, or why no number is enough.
    rows: Option<Result<usize, String>>,
}

/// Of the statistics that have an interval.
pub struct Plan<'f> {
    n: usize,
    level: f64,
    width: Option<f64>,
    planned: Vec<Planned<'f>>,
    /// How wide the interval of the first of these is, and how many rows would make it narrow.
    narrow: Option<(&'static str, f64, usize)>,
}

/// What a report says of how sure it is, by the first that has an interval, and how narrow an interval decides most questions.
const SURE: [(&str, &str); 3] = [
    ("spearman", "the rank correlation"),
    ("cohen_kappa_quadratic", "the weighted kappa"),
    ("cohen_kappa", "the kappa"),
];
const NARROW: f64 = 0.1;

impl<'f> Plan<'f> {
    /// `alike` says whether rows are independent, and drawn alike: closed forms then give the number of rows of a share and of a
    /// correlation, where others are scaled from the interval found.
    pub fn new(found: &'f Comparisons, level: f64, width: Option<f64>, alike: bool) -> Self {
        // Rows without a majority of raters do not count for accuracy.
        let all_count = found.get("rows_with_a_majority").is_none_or(|share| share.estimate() == Some(1.0));
        let of = |(name, statistic): &'f (String, Statistic)| {
            let is_planned = PLANNED.contains(&name.as_str()) || statistic_of(name).starts_with("difference_");
            let known = statistic.defined().filter(|_| is_planned)?;
            let interval = known.interval?;
            let detectable = detectable_difference(interval, POWER).ok()?;
            let rows = width.map(|width| match name.as_str() {
                "accuracy" if alike && all_count => items_for_proportion(known.estimate, width, level),
                "pearson" if alike => items_for_correlation(known.estimate, width, level),
                _ => items_for_width(interval, found.n, width).map(|rows| rows.max(FEWEST)),
            });
            Some(Planned { name, detectable, rows: rows.map(|rows| rows.map_err(|error| error.to_string())) })
        };
        let narrow = SURE.iter().find_map(|&(name, what)| {
            let interval = found.get(name)?.defined()?.interval?;
            Some((what, interval.high - interval.low, items_for_width(interval, found.n, NARROW).ok()?.max(FEWEST)))
        });
        Self { n: found.n, level, width, planned: found.statistics.iter().filter_map(of).collect(), narrow }
    }

    /// `{"power", "width", "statistics": {name: {"detectable", "rows"}}}`; `rows` is null where no width is wanted.
    pub fn json(&self) -> Value {
        let of = |planned: &Planned<'_>| {
            let rows = match &planned.rows {
                Some(Ok(rows)) => json!(rows),
                Some(Err(reason)) => json!({ "undefined": reason }),
                None => Value::Null,
            };
            (planned.name.to_owned(), json!({"detectable": planned.detectable, "rows": rows}))
        };
        let statistics: Map<String, Value> = self.planned.iter().map(of).collect();
        json!({"power": POWER, "width": self.width, "statistics": statistics})
    }

    /// A table of all where a width is wanted, else sentences about differences of judges and about more rows; nothing where there is nothing
    /// to say.
    pub fn print(&self) -> Result<()> {
        let Some(width) = self.width else {
            return self.sentence().map_or(Ok(()), |sentence| say(format_args!("\n{sentence}")));
        };
        if self.planned.is_empty() {
            return Ok(());
        }
        let line = |planned: &Planned<'_>| {
            let rows = planned.rows.as_ref().map_or_else(String::new, |rows| match rows {
                Ok(rows) => rows.to_string(),
                Err(_) => "-".to_owned(),
            });
            vec![planned.name.to_owned(), decimals(planned.detectable, 4), rows]
        };
        say(format_args!("\nwhat {} rows like these could show, at level {}", self.n, self.level))?;
        let head = ["", &format!("found at power {POWER}"), &format!("rows for a width of {width}")];
        say_table(head, self.planned.iter().map(line))
    }

    fn sentence(&self) -> Option<String> {
        const SAID: [(&str, &str); 3] = [
            ("difference_spearman", "in rank correlation"),
            ("difference_mae", "in mean absolute error"),
            ("difference_accuracy", "in the share of people's labels"),
        ];
        let of = |(name, what): (&str, &str)| {
            // Of several judges the one that is hardest to tell from the first.
            let all = self.planned.iter().filter(|planned| statistic_of(planned.name) == name);
            let most = all.map(|planned| planned.detectable).reduce(f64::max)?;
            Some(format!("{} {what}", decimals(most, 2)))
        };
        let parts: Vec<String> = SAID.into_iter().filter_map(of).collect();
        let difference = (!parts.is_empty()).then(|| {
            format!(
                "With {} rows like these a difference is found with power {POWER} from {} on.",
                self.n,
                parts.join(", ")
            )
        });
        let narrow = self.narrow.filter(|(_, width, _)| *width > NARROW).map(|(what, width, rows)| {
            let more = rows.saturating_sub(self.n);
            format!(
                "The interval of {what} is {} wide; one {NARROW} wide takes about {rows} rows like these, {more} more.",
                decimals(width, 2)
            )
        });
        let said: Vec<String> = difference.into_iter().chain(narrow).collect();
        (!said.is_empty()).then(|| said.join("\n"))
    }
}
