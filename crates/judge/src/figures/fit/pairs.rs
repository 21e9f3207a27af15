//! What reading pairs is worth: at the last layer, at all of them, at one that is chosen, and by weights. What is chosen or fitted is
//! measured on questions that took no part in it.

use std::cmp::Ordering;
use std::collections::HashMap;

use anyhow::{Result, anyhow};
use judge_core::{
    ItemId, Layer,
    fit::{Graded, LayerWeightFit},
    lager::TableOrigin,
};
use judge_data::{Rows, ScoreTable, majority, preferred};
use judge_metrics::comparison::{PairStatistic, PreferenceComparison, PreferredPair, Statistic};
use judge_metrics::preference::Preference;
use judge_probe::{GroupKFold, RowGroups};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use judge_cli::groups::OtherFields;
use judge_cli::preferences::of_pairs;
use judge_cli::report::BOOTSTRAP;
use judge_cli::terminal::console::{in_words, say, say_table, tell, title_cell, usage};

/// The accuracy of the sign of log-odds that are averaged over the orders, against people's [majority], by how they are read.
pub(super) struct Worth {
    /// Whether pairs were judged in the given order alone.
    one_order: bool,
    readings: Vec<(&'static str, String, PairStatistic)>,
    /// The layer that is right most often.
    pub(super) chosen: Layer,
}

impl Worth {
    /// Of pairs that were read at every layer. Rows with the same value of the field `cluster` are about one question; without one each is
    /// about its own.
    pub(super) fn of(pairs: &ScoreTable, settings: &LayerWeightFit, cluster: Option<&str>) -> Result<Self> {
        let (gold, one_order) = people(pairs, cluster)?;
        // Of pairs without a gold label nothing is right.
        let (decided, (gold, questions)): (Vec<&Graded>, (Vec<Preference>, Vec<String>)) =
            pairs.graded.iter().zip(gold).filter_map(|(pair, gold)| Some((pair, gold?))).unzip();
        // Columns are preferences, ascending: the first label is B, the last one A.
        let odds: Vec<Vec<f64>> =
            decided.iter().map(|pair| pair.table.rows().map(|row| row[row.len() - 1] - row[0]).collect()).collect();
        let comparison = |numbers: Vec<Vec<f64>>| {
            let rows = gold.iter().zip(&questions).zip(numbers);
            let rows = rows.map(|((gold, question), layers)| PreferredPair {
                gold: *gold,
                orders: Vec::new(),
                layers,
                cluster: Some(question.clone()),
            });
            PreferenceComparison { pairs: rows.collect(), bootstrap: BOOTSTRAP }
        };
        let all: Vec<usize> = (0..odds.len()).collect();
        let mean = |layers: &Vec<f64>| layers.iter().sum::<f64>() / layers.len() as f64;
        let fixed = comparison(odds.iter().map(|layers| vec![layers[pairs.n_layers], mean(layers)]).collect());
        let (place, chosen) = comparison(odds.clone()).chosen_layer(&all)?.ok_or_else(|| {
            anyhow!("{}: on no pair has a verdict more than half of the raters", pairs.path.display())
        })?;
        let fitted = match out_of_fold(&decided, &pairs.origin_or_file()?, settings, &questions, &odds) {
            Ok(numbers) => comparison(numbers.into_iter().map(|number| vec![number]).collect()).by_layer(&all)?,
            Err(error) => {
                let statistic = Statistic::Undefined { reason: in_words(&error) };
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
        Ok(Self { one_order, readings, chosen: Layer(place) })
    }

    pub(super) fn print(&self) -> Result<()> {
        say(match self.one_order {
            true => {
                "accuracy of the log-odds in the given order alone, in which what the place adds has not cancelled:"
            }
            false => "accuracy of the log-odds averaged over both orders:",
        })?;
        let rows = self.readings.iter().map(|(_, words, known)| {
            vec![format!("  {words}"), format!("{:.3}", known.statistic), known.n.to_string()]
        });
        say_table([title_cell("log-odds"), "estimate [95 %]", "n"], rows)
    }

    /// The orders in which pairs were judged.
    pub(super) fn orders(&self) -> &'static str {
        if self.one_order { "given" } else { "both" }
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

/// The gold label of a pair and its question; `None` where raters are split.
type Gold = Option<(Preference, String)>;

/// What people say of each pair, and whether pairs were judged in one order alone.
fn people(pairs: &ScoreTable, cluster: Option<&str>) -> Result<(Vec<Gold>, bool)> {
    let (mut known, mut named, mut one_order) = (HashMap::new(), false, false);
    let (mut others, mut ids) = (OtherFields::default(), Vec::new());
    for row in Rows::open(&pairs.path)? {
        let row = row?;
        let id: ItemId = row.required("id", "a string or a whole number")?;
        // A pair that could not be asked about has one entry too.
        let orders = row.optional::<Vec<IgnoredAny>>("orders", "a list")?.filter(|_| row.value("unscored").is_none());
        one_order |= orders.is_some_and(|orders| orders.len() == 1);
        let verdicts: Vec<Ordering> = preferred(&row).0.into_iter().flatten().collect();
        if verdicts.is_empty() {
            continue;
        }
        let question = cluster.and_then(|field| row.value(field));
        named |= question.is_some();
        let question = question.map_or_else(|| format!("id {id}"), str::to_owned);
        if let Some(gold) = majority(&verdicts) {
            others.see(row.clone().into_extra(&["id", "human"]).iter());
            ids.push(id.clone());
            known.insert(id, (Preference::from(gold), question));
        }
    }
    if let Some(field) = cluster.filter(|_| !named) {
        return Err(usage(format!("--cluster: no row of {} has the field {field:?}", pairs.path.display())));
    }
    if cluster.is_none() {
        let together = others.together(RowGroups::alone(ids.len()), true);
        let together = together
            .map_err(|undecided| usage(format!("{undecided}: name the one that counts with --cluster FIELD")))?;
        if let Some(field) = together.by.first() {
            let (n, pairs) = (together.groups.n_groups(), ids.len());
            tell(format_args!(
                "note: pairs with the same {field:?} are about one question, {n} questions of {pairs} pairs; name another field with --cluster FIELD"
            ));
            for (id, first) in ids.iter().zip(together.groups.group_of_row()) {
                known.entry(id.clone()).and_modify(|(_, question)| *question = format!("id {}", ids[first]));
            }
        }
    }
    Ok((pairs.ids.iter().map(|id| known.remove(id)).collect(), one_order))
}

/// The log-odds of each pair by weights that were fitted on other questions.
fn out_of_fold(
    pairs: &[&Graded],
    origin: &TableOrigin,
    settings: &LayerWeightFit,
    questions: &[String],
    odds: &[Vec<f64>],
) -> Result<Vec<f64>> {
    let mut numbers = vec![0.0; odds.len()];
    for split in GroupKFold::default().split(questions)? {
        let others: Vec<Graded> = split.train.iter().map(|&row| pairs[row].clone()).collect();
        let weights = settings.fit(&others, origin)?;
        for row in split.test {
            numbers[row] = odds[row].iter().zip(weights.weights()).map(|(odds, weight)| odds * weight).sum();
        }
    }
    Ok(numbers)
}
