//! Which answers are compared.

use std::error::Error;

use clap::ValueEnum;
use judge_core::combine::{Compared, Pairing, RoundRobin};
use judge_metrics::ranking::AdaptivePairing;
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strategy {
    RoundRobin,
    Adaptive,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PairingStrategy {
    pub(crate) strategy: Strategy,
    pub(crate) comparisons: Option<usize>,
}

impl Pairing for PairingStrategy {
    fn next(&self, n: usize, known: &[Compared]) -> Result<Vec<[usize; 2]>, Box<dyn Error + Send + Sync>> {
        match self.strategy {
            Strategy::RoundRobin => RoundRobin.next(n, known),
            Strategy::Adaptive => {
                let pairing = AdaptivePairing::of_items(n);
                let pairing = AdaptivePairing { budget: self.comparisons.unwrap_or(pairing.budget), ..pairing };
                let known: Vec<_> = known.iter().map(|c| (c.answers, c.verdict.value())).collect();
                Ok(pairing.next(n, &known)?)
            }
        }
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"strategy": format!("{:?}", self.strategy), "comparisons": self.comparisons}))
    }
}
