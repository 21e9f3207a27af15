//! What reading pairs is worth: at the last layer, at all of them, at one that is chosen, and by weights. What is chosen or fitted is
//! measured on questions that took no part in it.

use std::collections::HashMap;

use anyhow::{Result, anyhow};
use judge_core::{Layer, fit::LayerWeightFit};
use judge_data::{Rows, ScoreTable};
use judge_metrics::comparison::{PairStatistic, PreferenceComparison, PreferredPair, Statistic};
use judge_metrics::preference::Preference;
use judge_probe::GroupKFold;
use serde_json::{Map, Value};

use crate::preferences::of_pairs;
use crate::report::BOOTSTRAP;
use crate::terminal::console::{say, table, usage};

/// The accuracy of the sign of log-odds that are averaged over the orders, against people's mean preference, by how they are read.
pub(super) struct Worth {
    readings: Vec<(&'static str, String, PairStatistic)>,
    /// The layer that is right most often.
    pub(super) chosen: Layer,
}

impl Worth {
    /// Of pairs that were read at every layer. Rows with the same value of the field `cluster` are about one question; without one each is
    /// about its own.
    pub(super) fn of(pairs: &ScoreTable, settings: &LayerWeightFit, cluster: Option<&str>) -> Result<Self> {
        let questions = questions(pairs, cluster)?;
        // Columns are preferences, ascending: the first label is B, the last one A.
        let odds: Vec<Vec<f64>> = pairs
            .graded
            .iter()
            .map(|pair| pair.table.rows().map(|row| row[row.len() - 1] - row[0]).collect())
            .collect();
        let comparison = |numbers: Vec<Vec<f64>>| {
            let rows = pairs.graded.iter().zip(&questions).zip(numbers);
            let rows = rows.map(|((pair, question), layers)| PreferredPair {
                gold: match pair.human {
                    human if human > 0.5 => Preference::First,
                    human if human < 0.5 => Preference::Second,
                    _ => Preference::Tie,
                },
                orders: Vec::new(),
                layers,
                cluster: Some(question.clone()),
            });
            PreferenceComparison { pairs: rows.collect(), bootstrap: BOOTSTRAP }
        };
        let all: Vec<usize> = (0..odds.len()).collect();
        let mean = |layers: &Vec<f64>| layers.iter().sum::<f64>() / layers.len() as f64;
        let fixed = comparison(odds.iter().map(|layers| vec![layers[pairs.n_layers], mean(layers)]).collect());
        let (place, chosen) =
            comparison(odds.clone()).chosen_layer(&all)?.ok_or_else(|| anyhow!("a pair has no layers"))?;
        let fitted = match out_of_fold(pairs, settings, &questions, &odds) {
            Ok(numbers) => comparison(numbers.into_iter().map(|number| vec![number]).collect()).by_layer(&all)?,
            Err(error) => {
                let statistic = Statistic::Undefined { reason: format!("{error:#}") };
                vec![PairStatistic { name: "accuracy_weights", n: all.len(), statistic }]
            }
        };
        let known = fixed.by_layer(&all)?.into_iter().chain([chosen]).chain(fitted);
        let names = [
            ("last_layer", format!("last layer, {}", pairs.n_layers)),
            ("mean_of_layers", "mean of all layers".to_owned()),
            ("chosen_layer", format!("best layer of other questions; of all it is {place}")),
            ("weights", "weights fitted on other questions".to_owned()),
        ];
        let readings = names.into_iter().zip(known).map(|((name, words), known)| (name, words, known)).collect();
        Ok(Self { readings, chosen: Layer(place) })
    }

    pub(super) fn print(&self) -> Result<()> {
        say("accuracy of the log-odds averaged over both orders:")?;
        let mut rows = vec![["", "estimate [95 %]", "n"].map(str::to_owned).to_vec()];
        rows.extend(self.readings.iter().map(|(_, words, known)| {
            vec![format!("  {words}"), format!("{:.3}", known.statistic), known.n.to_string()]
        }));
        say(table(&rows).trim_end())
    }

    /// The readings by name.
    pub(super) fn json(&self) -> Map<String, Value> {
        let entry = |(name, _, known): &(&str, String, PairStatistic)| {
            let mut value = of_pairs(known);
            if *name == "chosen_layer" {
                value["layer"] = self.chosen.0.into();
            }
            ((*name).to_owned(), value)
        };
        self.readings.iter().map(entry).collect()
    }
}

/// The question of each pair.
fn questions(pairs: &ScoreTable, cluster: Option<&str>) -> Result<Vec<String>> {
    let own = |id: &judge_core::ItemId| format!("id {id}");
    let Some(field) = cluster else { return Ok(pairs.ids.iter().map(own).collect()) };
    let mut known = HashMap::new();
    for row in Rows::open(&pairs.path)? {
        let row = row?;
        let id: judge_core::ItemId = row.required("id", "a string or a whole number")?;
        if let Some(question) = row.value(field) {
            known.insert(id, question.to_owned());
        }
    }
    if known.is_empty() {
        return Err(usage(format!("--cluster: no row of {} has the field {field:?}", pairs.path.display())));
    }
    Ok(pairs.ids.iter().map(|id| known.get(id).cloned().unwrap_or_else(|| own(id))).collect())
}

/// The log-odds of each pair by weights that were fitted on other questions.
fn out_of_fold(
    pairs: &ScoreTable,
    settings: &LayerWeightFit,
    questions: &[String],
    odds: &[Vec<f64>],
) -> Result<Vec<f64>> {
    let origin = pairs.origin_or_file()?;
    let mut numbers = vec![0.0; odds.len()];
    for split in GroupKFold::default().split(questions)? {
        let others: Vec<_> = split.train.iter().map(|&row| pairs.graded[row].clone()).collect();
        let weights = settings.fit(&others, &origin)?;
        for row in split.test {
            numbers[row] = odds[row].iter().zip(weights.weights()).map(|(odds, weight)| odds * weight).sum();
        }
    }
    Ok(numbers)
}
