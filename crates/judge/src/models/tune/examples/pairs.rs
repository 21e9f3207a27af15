//! Pairs of responses as examples: each response by itself, or both in one prompt.

use std::cmp::Ordering;

use anyhow::Result;
use judge_core::combine::Renamed;
use judge_core::{Fields, PromptTemplate, Scale};
use judge_data::{DatasetFormat, Input, PairRecord, Record};
use judge_models::train::{MarkExample, PairExample};

use super::{Examples, Maker, target};
use crate::models::tune::cli::Swap;

impl Maker<'_> {
    /// Pairs whose raters prefer one response: the better one first.
    pub(in crate::models::tune) fn preferences(
        &self,
        input: &Input,
        template: &PromptTemplate,
    ) -> Result<Examples<PairExample>> {
        self.of_records(input, DatasetFormat::Pairs, |record| {
            let pair = of_record(record)?;
            let Some(preferred) = pair.human().filter(|preferred| *preferred != 0.5) else { return Ok(Vec::new()) };
            // A response of a pair as that of a row by itself.
            let side = |name| self.tokens(template, &Renamed { item: pair, fields: [("response", name)] });
            let (a, b) = (side("response_a")?, side("response_b")?);
            let (better, worse) = if preferred > 0.5 { (a, b) } else { (b, a) };
            let margin = match pair.extra.text("margin") {
                None | Some("null") => 0.0,
                Some(json) => {
                    let margin = pair.extra.rendered("margin").and_then(|text| text.trim().parse().ok());
                    let margin = margin.filter(|margin: &f32| margin.is_finite());
                    margin.ok_or_else(|| format!("expected \"margin\" to be a finite number, found {json}"))?
                }
            };
            let n = better.len() + worse.len();
            Ok(vec![(PairExample { better, worse, margin }, n, 0.0)])
        })
    }

    /// Verdicts on both responses in one prompt, on a scale of preferences for the one that is shown first: the share of raters for each
    /// verdict, and what most of them say. Where no verdict has more than half of them there is no example. With [`Swap::Random`] both
    /// orders are there, of which each epoch has one.
    pub(in crate::models::tune) fn verdicts(
        &self,
        input: &Input,
        template: &PromptTemplate,
        scale: &Scale,
        swap: Swap,
    ) -> Result<Examples<MarkExample>> {
        let has_tie = scale.values().any(|value| value == 0.5);
        let mut examples = self.of_records(input, DatasetFormat::Pairs, |record| {
            let pair = of_record(record)?;
            let Some(most) = pair.majority() else { return Ok(Vec::new()) };
            if most.is_eq() && !has_tie {
                return Ok(Vec::new());
            }
            let order = |fields: &dyn Fields, preferences: Vec<f64>, most: Ordering| {
                let target = target(&preferences, scale)?.unwrap_or_default();
                let prompt = self.tokens(template, fields)?;
                let n = prompt.len();
                let human = f64::from(most as i8).mul_add(0.5, 0.5);
                Ok::<_, String>((MarkExample { prompt, target }, n, human))
            };
            let preferences: Vec<f64> = pair.preferences().into_iter().flatten().collect();
            let mut made = vec![order(pair, preferences.clone(), most)?];
            if swap != Swap::None {
                let turned = preferences.iter().map(|preference| 1.0 - preference).collect();
                made.push(order(&Renamed::swapped(pair), turned, most.reverse())?);
            }
            Ok(made)
        })?;
        examples.one_of_two = swap == Swap::Random;
        Ok(examples)
    }
}

fn of_record(record: &Record) -> Result<&PairRecord, String> {
    match record {
        Record::Pair(pair) => Ok(pair),
        _ => Err("expected a pair".to_owned()),
    }
}
