//! Counts of what was answered, as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper ends of the histogram's buckets, in seconds.
const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Counts since the start.
#[derive(Default)]
pub(super) struct Metrics(Mutex<Counts>);

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
    buckets: [u64; BUCKETS.len()],
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
    /// Counts a request. `decides`: whether its route is one for decisions.
    pub(super) fn count(&self, route: &'static str, status: u16, decides: bool, took: Duration, work: Work) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.requests.entry((route, status)).or_default() += 1;
        counts.questions += work.questions as u64;
        counts.tokens += work.tokens as u64;
        if decides {
            let seconds = took.as_secs_f64();
            let histogram = counts.seconds.entry(route).or_default();
            histogram.count += 1;
            histogram.sum += seconds;
            if let Some(bucket) = BUCKETS.iter().position(|end| seconds <= *end) {
                histogram.buckets[bucket] += 1;
            }
        }
    }

    /// All of them in Prometheus' text format, with how many requests wait now.
    pub(super) fn text(&self, waiting: usize) -> String {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        let head =
            |name: &str, kind: &str, help: &str| format!("# HELP judge_{name} {help}\n# TYPE judge_{name} {kind}\n");
        text += &head("requests_total", "counter", "Requests by route and status; 499 is a client that went away.");
        for ((route, status), number) in &counts.requests {
            let _ = writeln!(text, "judge_requests_total{{route=\"{route}\",status=\"{status}\"}} {number}");
        }
        for (name, kind, help, number) in [
            ("requests_waiting", "gauge", "Requests that wait or are judged.", waiting as u64),
            ("questions_total", "counter", "Questions answered.", counts.questions),
            ("input_tokens_total", "counter", "Tokens of the prompts of all questions answered.", counts.tokens),
        ] {
            text += &head(name, kind, help);
            let _ = writeln!(text, "judge_{name} {number}");
        }
        let name = "judge_request_seconds";
        text +=
            &head("request_seconds", "histogram", "Seconds from the head of a request for decisions to its answer.");
        for (route, histogram) in &counts.seconds {
            let mut below = 0;
            for (end, number) in BUCKETS.iter().zip(histogram.buckets) {
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
