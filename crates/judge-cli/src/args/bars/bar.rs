//! One bar, and a statistic held against it.

use std::str::FromStr;

use judge_metrics::comparison::NO_VARIATION;
use serde_json::Value;

/// How the method of a number begins that is no estimate.
pub(super) const COUNTED: &str = "counted";

/// A bar for a statistic.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    /// As it was written.
    pub(super) text: String,
    pub(super) statistic: String,
    /// `estimate`, `low` or `high`.
    pub(super) end: &'static str,
    pub(super) at_least: bool,
    pub(super) number: f64,
}

impl FromStr for Bar {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let is_cut = !text.contains(['<', '>']);
            let quotes = if is_cut { "; put it in quotes, or the shell takes > for a redirection" } else { "" };
            format!(
                "expected STATISTIC>=NUMBER or STATISTIC<=NUMBER, such as spearman>=0.7 or accuracy.low>=0.8{quotes}"
            )
        };
        let (name, at_least, number) = match (text.split_once(">="), text.split_once("<=")) {
            (Some((name, number)), None) => (name, true, number),
            (None, Some((name, number))) => (name, false, number),
            _ => return Err(wrong()),
        };
        let (statistic, end) = match name.trim().rsplit_once('.') {
            Some((name, "low")) => (name, "low"),
            Some((name, "high")) => (name, "high"),
            _ => (name.trim(), "estimate"),
        };
        let number = number.trim().parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(wrong)?;
        if statistic.is_empty() {
            return Err(wrong());
        }
        Ok(Self { text: text.to_owned(), statistic: statistic.to_owned(), end, at_least, number })
    }
}

/// A bar beside what was found.
pub(super) struct Held<'b> {
    pub(super) bar: &'b Bar,
    pub(super) is_reached: bool,
    /// In words.
    pub(super) found: String,
}

impl Bar {
    pub(super) fn held_against(&self, statistic: &Value) -> Held<'_> {
        let number = |name: &str| statistic.get(name).and_then(Value::as_f64);
        let method = statistic.get("method").and_then(Value::as_str).unwrap_or_default();
        let missed = |found: String| Held { bar: self, is_reached: false, found };
        if let Some(reason) = statistic.get("undefined").and_then(Value::as_str) {
            return missed(format!("undefined: {reason}"));
        }
        // Where nothing varies, and of what is counted, the estimate is all that there is.
        let is_exact = method.starts_with(NO_VARIATION) || method.starts_with(COUNTED);
        let of_end = number(self.end);
        let Some(found) = of_end.or_else(|| number("estimate").filter(|_| is_exact)) else {
            let estimate = number("estimate").map_or_else(|| "unknown".to_owned(), |estimate| format!("{estimate:.4}"));
            return missed(format!("it has no {} (the estimate is {estimate}; {method})", self.end));
        };
        let is_reached = if self.at_least { found >= self.number } else { found <= self.number };
        // The number of rows is whole.
        let mut words = if self.statistic == "n" { format!("found {found}") } else { format!("found {found:.4}") };
        if let (Some(estimate), Some(low), Some(high)) = (number("estimate"), number("low"), number("high")) {
            words += &match self.end {
                "estimate" => format!(" [{low:.4}, {high:.4}]"),
                _ => format!(" (the estimate is {estimate:.4} [{low:.4}, {high:.4}])"),
            };
        } else if method.starts_with(COUNTED) {
            words += &format!(" ({method})");
        } else if of_end.is_none() {
            words += " (no variation between rows: the estimate is the bound)";
        }
        if let Some(n) = number("n") {
            words += &format!(", n = {n}");
        }
        Held { bar: self, is_reached, found: words }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bar(text: &str) -> Bar {
        text.parse().unwrap()
    }

    #[test]
    fn a_bar_is_of_an_estimate_or_an_end() {
        let found = json!({"estimate": 0.75, "low": 0.6, "high": 0.8});
        for (text, reached) in [
            ("spearman>=0.7", true),
            ("spearman >= 0.8", false),
            ("spearman.low>=0.6", true),
            ("spearman.low>=0.61", false),
            ("mae.high<=0.8", true),
            ("mae<=-1", false),
        ] {
            let bar = bar(text);
            let held = bar.held_against(&found);
            assert!(held.is_reached == reached && held.found.contains("[0.6000, 0.8000]"), "{text}: {}", held.found);
        }
        let bar_of = bar("a.low>=0");
        let undefined = bar_of.held_against(&json!({"undefined": "one label"}));
        assert!(!undefined.is_reached && undefined.found.contains("one label"), "{}", undefined.found);
        assert!(!bar("a>=0").held_against(&json!({"estimate": null})).is_reached);
        for wrong in ["spearman", "spearman>0.7", ">=0.7", "a>=b", "a>=NaN", "a>=1<=2"] {
            let why = wrong.parse::<Bar>().unwrap_err();
            assert_eq!(why.contains("put it in quotes"), wrong == "spearman", "{why}");
        }
    }

    /// An end that is not there is missed, unless nothing varies: then the estimate is the bound, and it is said.
    #[test]
    fn an_end_without_variation_is_the_estimate() {
        let known = |method: &str| json!({"estimate": 0.0, "low": null, "high": null, "p": null, "method": method});
        let bar = bar("mae.high<=0.05");
        let held = bar.held_against(&known(NO_VARIATION));
        assert!(held.is_reached && held.found.contains("the estimate is the bound"), "{}", held.found);
        let held = bar.held_against(&known("no interval: 6 items or more are needed, found 4"));
        assert!(!held.is_reached && held.found.contains("it has no high (the estimate is 0.0000; no interval: 6"));
    }
}
