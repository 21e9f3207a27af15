//! Counts of what was answered, as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::peer::GONE;

/// Upper ends of the histogram's first buckets, in seconds.
const BUCKETS: [f64; 13] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Counts since the start.
pub(super) struct Metrics {
    /// Upper ends of the histogram's buckets, ascending.
    ends: Vec<f64>,
    counts: Mutex<Counts>,
}

/// What is true now.
pub(super) struct Gauges {
    /// Requests that wait or are judged.
    pub(super) waiting: usize,
    /// Of these, and of those given up, how many the model has.
    pub(super) in_model: usize,
    /// Bytes of the bodies that wait.
    pub(super) bytes: usize,
}

#[derive(Default)]
struct Counts {
    requests: BTreeMap<(&'static str, u16), u64>,
    /// Of the requests for decisions, by route.
    seconds: BTreeMap<&'static str, Histogram>,
    questions: u64,
    tokens: u64,
}

#[derive(Default)]
struct Histogram {
    /// How many took at most as long as each bucket's end, and longer than the one before.
    buckets: Vec<u64>,
    count: u64,
    sum: f64,
}

/// What answering a request took, where it was one for decisions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    pub(super) questions: usize,
    pub(super) tokens: usize,
}

impl Metrics {
    /// For answers that take at most this long from the end of a request: there are buckets beyond it.
    pub(super) fn new(timeout: Duration) -> Self {
        let mut ends = BUCKETS.to_vec();
        while ends.last().is_some_and(|end| *end <= timeout.as_secs_f64()) {
            ends.extend(ends.last().map(|end| end * 2.0));
        }
        Self { ends, counts: Mutex::default() }
    }

    /// Counts a request. `decides`: whether its route is one for decisions. The time of one that was refused (4xx) says nothing of how long
    /// answers take.
    pub(super) fn count(&self, route: &'static str, status: u16, decides: bool, took: Duration, work: Work) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.requests.entry((route, status)).or_default() += 1;
        counts.questions += work.questions as u64;
        counts.tokens += work.tokens as u64;
        if decides && !(400..GONE).contains(&status) {
            let seconds = took.as_secs_f64();
            let histogram = counts.seconds.entry(route).or_default();
            histogram.buckets.resize(self.ends.len(), 0);
            histogram.count += 1;
            histogram.sum += seconds;
            if let Some(bucket) = self.ends.iter().position(|end| seconds <= *end) {
                histogram.buckets[bucket] += 1;
            }
        }
    }

    /// All of them in Prometheus' text format.
    pub(super) fn text(&self, now: &Gauges) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let head =
            |name: &str, kind: &str, help: &str| format!("# HELP judge_{name} {help}\n# TYPE judge_{name} {kind}\n");
        text += &head("requests_total", "counter", "Requests by route and status; 499 is a client that went away.");
        for ((route, status), number) in &counts.requests {
            let _ = writeln!(text, "judge_requests_total{{route=\"{route}\",status=\"{status}\"}} {number}");
        }
        for (name, kind, help, number) in [
            ("requests_waiting", "gauge", "Requests that wait or are judged.", now.waiting as u64),
            ("requests_in_model", "gauge", "Requests that the model has, given up or not.", now.in_model as u64),
            ("queue_bytes", "gauge", "Bytes of the bodies of requests that wait.", now.bytes as u64),
            ("questions_total", "counter", "Questions answered.", counts.questions),
            ("input_tokens_total", "counter", "Tokens of the prompts of all questions answered.", counts.tokens),
        ] {
            text += &head(name, kind, help);
            let _ = writeln!(text, "judge_{name} {number}");
        }
        let name = "judge_request_seconds";
        text += &head(
            "request_seconds",
            "histogram",
            "Seconds from the head of a request for decisions to its end; refusals are left out.",
        );
        for (route, histogram) in &counts.seconds {
            let mut below = 0;
            for (end, number) in self.ends.iter().zip(&histogram.buckets) {
                below += number;
                let _ = writeln!(text, "{name}_bucket{{route=\"{route}\",le=\"{end}\"}} {below}");
            }
            let Histogram { count, sum, .. } = histogram;
            let _ = writeln!(text, "{name}_bucket{{route=\"{route}\",le=\"+Inf\"}} {count}");
            let _ = writeln!(text, "{name}_sum{{route=\"{route}\"}} {sum}");
            let _ = writeln!(text, "{name}_count{{route=\"{route}\"}} {count}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_as_long_as_it_may_has_a_bucket_and_refusals_have_none() {
        let metrics = Metrics::new(Duration::from_secs(200));
        for (status, seconds) in [(200, 1), (504, 201), (429, 0), (401, 0), (499, 3)] {
            metrics.count("/v1/systemone", status, true, Duration::from_secs(seconds), Work::default());
        }
        let text = metrics.text(&Gauges { waiting: 1, in_model: 2, bytes: 3 });
        let has = |line: &str| text.lines().any(|found| found == line);
        let bucket = |end: &str| format!("judge_request_seconds_bucket{{route=\"/v1/systemone\",le=\"{end}\"}}");
        for (end, number) in [("0.5", 0), ("1", 1), ("120", 2), ("240", 3), ("+Inf", 3)] {
            assert!(has(&format!("{} {number}", bucket(end))), "{end}: {text}");
        }
        assert!(has("judge_requests_total{route=\"/v1/systemone\",status=\"429\"} 1"), "{text}");
        assert!(has("judge_requests_waiting 1") && has("judge_requests_in_model 2") && has("judge_queue_bytes 3"));
    }
}
