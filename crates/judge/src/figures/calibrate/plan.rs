//! What so many graded rows show of a calibrator's coverage, and how many rows an interval of a wanted width takes.

use anyhow::Result;
use judge_metrics::calibration::CalibrationReport;
use judge_metrics::planning::{detectable_difference, detectable_shortfall, items_for_proportion, items_for_width};
use serde_json::{Value, json};

/// Level of intervals and tests of the coverage.
pub const LEVEL: f64 = 0.95;
/// The chance that a shortfall of the size that is said is found.
const POWER: f64 = 0.8;

pub struct Plan {
    graded: usize,
    /// A coverage below this would be found to be lower than the target; `None` where these rows find none.
    found_below: Option<f64>,
    /// Whether these rows do not show how much the coverage varies.
    unknown: bool,
    width: Option<f64>,
    rows: Option<usize>,
}

impl Plan {
    /// # Errors
    /// If an interval of this width takes more rows than can be counted.
    pub fn new(report: &CalibrationReport, width: Option<f64>) -> Result<Self> {
        let n = report.n;
        // Of clusters only the interval says how much they vary.
        let interval = report.covered.interval(LEVEL).ok();
        let clustered = report.covered.method() != Some("Wilson");
        let shortfall = match interval {
            Some(interval) if clustered => detectable_difference(interval, POWER).ok(),
            None if clustered => None,
            _ => detectable_shortfall(report.level, n, POWER, LEVEL).ok(),
        };
        let rows = match (width, interval) {
            (Some(width), Some(interval)) if clustered => Some(items_for_width(interval, n, width)?),
            (Some(width), _) if !clustered => Some(items_for_proportion(report.level, width, LEVEL)?),
            _ => None,
        };
        let found_below = shortfall.map(|shortfall| report.level - shortfall).filter(|share| *share > 0.0);
        let unknown = clustered && interval.is_none();
        Ok(Self { graded: n, found_below, unknown, width, rows })
    }

    pub fn json(&self) -> Value {
        json!({"power": POWER, "level": LEVEL, "found_below": self.found_below, "width": self.width, "rows": self.rows})
    }

    pub fn text(&self) -> String {
        let n = self.graded;
        let mut text = match self.found_below {
            Some(share) => {
                let percent = 100.0 * share;
                format!(
                    "{n} graded rows like these show with power {POWER} that a coverage of {percent:.0} % is below the target"
                )
            }
            None if self.unknown => format!(
                "{n} graded rows like these do not show how much the coverage varies, so how low it would have to be is not known"
            ),
            None => {
                format!("{n} graded rows like these show of no coverage with power {POWER} that it is below the target")
            }
        };
        if let Some(width) = self.width {
            text += &match self.rows {
                Some(rows) => format!("; an interval of the coverage {width} wide takes {rows}"),
                None => "; nor is how many an interval of the coverage takes".to_owned(),
            };
        }
        text
    }
}
