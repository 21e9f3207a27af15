//! What the preferences of a judge of pairs are worth, for every program that reports on pairs: collected from rows, printed, and as JSON.

use std::cmp::Ordering;

use anyhow::Result;
use judge_core::Layer;
use judge_data::{OrderReading, PairVerdict, majority};
use judge_metrics::comparison::{PairStatistic, PreferenceComparison, PreferredPair, Rating, Statistic};
use judge_metrics::preference::{PairReading, Preference, mean_log_odds};
use judge_metrics::resampling::Bootstrap;
use serde_json::{Value, json};

use crate::terminal::console::{counted, say, say_table, title_cell};

/// The name of the share of the commonest label of the pairs that were read, beside that of all pairs.
pub const MAJORITY_READ: &str = "majority_share_read";

/// Pairs whose probabilities were read, as they are collected.
#[derive(Debug, Default)]
pub struct Preferences {
    pairs: Vec<PreferredPair>,
    /// The layers of the first pair that has some.
    layers: Option<Vec<Layer>>,
}

/// What preferences are worth, of all pairs or of a group of them.
#[derive(Debug)]
pub struct Worth {
    /// In the order of [`PreferenceComparison`], and what choosing a layer is worth.
    pub statistics: Vec<PairStatistic>,
    /// The accuracy of each layer alone; empty where layers were not read.
    pub layers: Vec<(Layer, PairStatistic)>,
    /// The layer that is right most often.
    pub chosen: Option<Layer>,
}

impl Preferences {
    /// Takes a pair with its gold label, what was read in each order that was asked, the given one first, and its cluster.
    ///
    /// # Errors
    /// Where the probabilities of an order do not sum to 1.
    pub fn push(&mut self, gold: Preference, orders: &[Option<&OrderReading>], cluster: Option<String>) -> Result<()> {
        let read = |order: &Option<&OrderReading>| {
            let found = order.and_then(|order| order.probabilities)?;
            Some(PairReading::from_probabilities(found.first, found.second, found.tie))
        };
        let readings: Option<Result<Vec<PairReading>, _>> = orders.iter().map(read).collect();
        let layers = self.of_layers(orders).unwrap_or_default();
        self.pairs.push(PreferredPair { gold, orders: readings.transpose()?.unwrap_or_default(), layers, cluster });
        Ok(())
    }

    /// Takes a row of `judge compare`, by the JSON text of its `orders` and what people say of it. Rows of another kind are left
    /// out, and those on which no verdict has [more than half](majority) of the raters.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn push_row<'r>(
        &mut self,
        orders: &str,
        human: impl IntoIterator<Item = &'r Rating>,
        cluster: Option<String>,
    ) -> Result<()> {
        let verdict = |rating: &Rating| match rating {
            Rating::Text(text) => serde_json::from_value::<PairVerdict>(text.as_str().into()).ok()?.ordering(),
            Rating::Number(_) => None,
        };
        let human: Option<Vec<Ordering>> = human.into_iter().map(verdict).collect();
        let gold = human.and_then(|verdicts| majority(&verdicts));
        let (Some(gold), Some(orders)) = (gold, OrderReading::of_json(orders)) else { return Ok(()) };
        let orders: Vec<Option<&OrderReading>> = orders.iter().map(Some).collect();
        self.push(gold.into(), &orders, cluster)
    }

    /// The averaged log-odds of each layer; `None` where an order has other layers than the pairs before.
    fn of_layers(&mut self, orders: &[Option<&OrderReading>]) -> Option<Vec<f64>> {
        let first = (*orders.first()?)?;
        if self.layers.is_none() && !first.layers.is_empty() {
            self.layers = Some(first.layers.iter().map(|(layer, _)| *layer).collect());
        }
        let known = self.layers.as_ref()?;
        let same = |order: &OrderReading| order.layers.iter().map(|(layer, _)| layer).eq(known.iter());
        let orders: Vec<&OrderReading> = orders.iter().copied().collect::<Option<_>>()?;
        if !orders.iter().all(|order| same(order)) {
            return None;
        }
        (0..known.len()).map(|at| mean_log_odds(orders.iter().map(|order| order.layers[at].1))).collect()
    }

    /// What they are worth, of all pairs and of groups of them, by their numbers; `None` where no pair has probabilities in each
    /// order that was asked.
    #[must_use]
    pub fn compared(self, bootstrap: Bootstrap) -> Option<Compared> {
        let comparison = PreferenceComparison { pairs: self.pairs, bootstrap };
        let layers = self.layers.unwrap_or_default();
        comparison.has_readings().then_some(Compared { comparison, layers })
    }
}

/// Pairs whose preferences are compared with gold labels.
#[derive(Debug)]
pub struct Compared {
    comparison: PreferenceComparison,
    layers: Vec<Layer>,
}

impl Compared {
    /// The pairs that have a reading, by the order in which they were taken.
    #[must_use]
    pub fn read(&self) -> Vec<usize> {
        let pairs = self.comparison.pairs.iter().enumerate();
        pairs.filter(|(_, pair)| !pair.orders.is_empty()).map(|(row, _)| row).collect()
    }

    /// Of all pairs.
    ///
    /// # Errors
    /// None that can occur: pairs have the same layers.
    pub fn whole(&self) -> Result<Worth> {
        self.of(&(0..self.comparison.pairs.len()).collect::<Vec<_>>())
    }

    /// Of some of the pairs, by the order in which they were taken.
    ///
    /// # Errors
    /// None that can occur: pairs have the same layers.
    pub fn of(&self, rows: &[usize]) -> Result<Worth> {
        let layers = self.layers.iter().copied().zip(self.comparison.by_layer(rows)?).collect();
        let (chosen, known) = self.comparison.chosen_layer(rows)?.unzip();
        let statistics = self.comparison.statistics(rows).into_iter().chain(known).collect();
        Ok(Worth { statistics, layers, chosen: chosen.map(|place| self.layers[place]) })
    }
}

impl Worth {
    /// The statistic of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&PairStatistic> {
        self.statistics.iter().find(|known| known.name == name)
    }

    /// For people: a sentence, and a table of every figure. `verdicts` is the accuracy of the verdicts on the pairs that were read, where
    /// it is known.
    ///
    /// # Errors
    /// If stdout takes nothing.
    pub fn print(&self, verdicts: Option<&Statistic>) -> Result<()> {
        let estimate = |name: &str| self.get(name).map(|known| format!("{:.3}", known.statistic));
        say("what the preferences are worth, averaged over the orders that were asked:")?;
        let rows = self.statistics.iter().map(|known| {
            let cell = format!("{:.3}", known.statistic);
            vec![format!("  {}", known.name), cell, known.n.to_string()]
        });
        say_table([title_cell("preferences"), "estimate [95 %]", "n"], rows)?;
        if !self.layers.is_empty() {
            say("accuracy of the averaged log-odds of each layer alone:")?;
            let rows = self.layers.iter().map(|(layer, known)| {
                vec![format!("  {}", layer.0), format!("{:.3}", known.statistic), known.n.to_string()]
            });
            say_table(["  layer", "estimate [95 %]", "n"], rows)?;
        }
        if let (Some(layer), Some(known)) = (self.chosen, self.get(PreferenceComparison::CHOSEN_LAYER)) {
            say(format_args!(
                "Layer {} is right most often here. Chosen on other questions, the best layer is right in {:.3}.",
                layer.0, known.statistic
            ))?;
        }
        if let (Some(verdicts), Some(odds), Some(majority)) =
            (verdicts.and_then(Statistic::estimate), self.get("accuracy_mean_log_odds"), estimate("majority_share"))
        {
            say(format_args!(
                "Of the {} with probabilities, verdicts name people's choice in {verdicts:.3}, averaged log-odds in {:.3}; always saying the \
                 commonest would in {majority}.",
                counted(odds.n, "pair"),
                odds.statistic
            ))?;
        }
        Ok(())
    }

    /// The statistics by name, as the files of programs have them.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.statistics.iter().map(|known| (known.name, of_pairs(known)))
    }

    /// The same beside the statistics of verdicts, where the share of the commonest label is that of all pairs: that of the pairs that were
    /// read is [`MAJORITY_READ`].
    pub fn beside_verdicts(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.entries().map(|(name, value)| (if name == "majority_share" { MAJORITY_READ } else { name }, value))
    }

    /// A list of `{"layer", "accuracy_mean_log_odds"}`; null where layers were not read.
    #[must_use]
    pub fn layers_json(&self) -> Value {
        if self.layers.is_empty() {
            return Value::Null;
        }
        let layer = |(layer, known): &(Layer, PairStatistic)| json!({"layer": layer.0, known.name: of_pairs(known)});
        self.layers.iter().map(layer).collect()
    }
}

/// A statistic of pairs with the number of pairs that it rests on.
#[must_use]
pub fn of_pairs(known: &PairStatistic) -> Value {
    let mut value = json!(known.statistic);
    value["n"] = known.n.into();
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::BOOTSTRAP;

    #[test]
    fn figures_are_of_the_pairs_that_were_read() {
        let read = r#"[{"order": "given", "verdict": "A", "probabilities": {"A": 0.9, "B": 0.1}, "layers": [0, 1],
            "logits": {"A": [0.0, 2.0], "B": [0.0, 1.0]}}]"#;
        let mut preferences = Preferences::default();
        // The layers are those of the first pair that has some.
        for (orders, human) in [(r#"[{"order": "given", "verdict": null}]"#, "B"), (read, "A")] {
            preferences.push_row(orders, &[Rating::Text(human.to_owned())], None).unwrap();
        }
        let compared = preferences.compared(BOOTSTRAP).unwrap();
        assert_eq!(compared.read(), [1]);
        let worth = compared.whole().unwrap();
        let of_layer = |(layer, known): &(Layer, PairStatistic)| (layer.0, known.n, known.statistic.estimate());
        let layers: Vec<_> = worth.layers.iter().map(of_layer).collect();
        assert_eq!((layers, worth.chosen), (vec![(0, 1, Some(0.0)), (1, 1, Some(1.0))], Some(Layer(1))));
        let names: Vec<&str> = worth.beside_verdicts().map(|(name, _)| name).collect();
        assert!(names.contains(&MAJORITY_READ) && !names.contains(&"majority_share"), "{names:?}");
    }
}
