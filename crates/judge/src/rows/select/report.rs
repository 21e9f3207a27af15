//! What was chosen, and how it differs from what there was.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use judge_cli::choice::{Choice, best};
use judge_cli::terminal::console::{counted_that, say, say_table};
use judge_cli::terminal::options::name_of;
use judge_core::Unscored;
use judge_data::{Program, Rows};
use judge_metrics::Proportion;
use serde::Serialize;
use serde_json::Value;

use super::numbers::{Criterion, Numbers, scores};
use super::write::UNREAD;

/// Different values of a field that rows are grouped by; a field with more is no grouping.
const GROUPS: usize = 1_000;

/// Repeats that are listed.
const LISTED: usize = 100;

/// Mean, deviation and range of some numbers, one after the other (Welford).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Moments {
    /// How many.
    pub n: usize,
    /// Their mean; `None` for none.
    pub mean: Option<f64>,
    /// Their standard deviation, with n − 1; `None` for fewer than two.
    pub deviation: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    #[serde(skip)]
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: f64) {
        self.n += 1;
        let old = self.mean.unwrap_or(0.0);
        let mean = old + (value - old) / self.n as f64;
        self.squares += (value - old) * (value - mean);
        self.mean = Some(mean);
        self.deviation = (self.n > 1).then(|| (self.squares / (self.n - 1) as f64).sqrt());
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.max = Some(self.max.map_or(value, |max| max.max(value)));
    }
}

/// A number over all rows that have one, and over the chosen ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Over all.
    pub before: Moments,
    /// Over the chosen ones.
    pub after: Moments,
    /// Of numbers on a scale, how many lie nearest to each whole number, over all.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counts_before: BTreeMap<i64, usize>,
    /// The same of the chosen ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counts_after: BTreeMap<i64, usize>,
}

impl Distribution {
    fn add(&mut self, value: f64, is_chosen: bool, on_scale: bool) {
        self.before.add(value);
        if on_scale {
            *self.counts_before.entry(value.round() as i64).or_default() += 1;
        }
        if is_chosen {
            self.after.add(value);
            if on_scale {
                *self.counts_after.entry(value.round() as i64).or_default() += 1;
            }
        }
    }
}

/// A share with its 95 % interval (Wilson).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// How many.
    pub count: usize,
    /// Of how many.
    pub n: usize,
    /// The share; `None` of none.
    pub share: Option<f64>,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Share {
    fn of(count: usize, n: usize) -> Self {
        let interval = Proportion { count, n }.wilson(0.95).ok();
        let share = (n > 0).then(|| count as f64 / n as f64);
        Self { count, n, share, low: interval.map(|i| i.low), high: interval.map(|i| i.high) }
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.share, self.low, self.high) {
            (Some(share), Some(low), Some(high)) => write!(f, "{share:.3} [{low:.3}, {high:.3}]"),
            _ => f.write_str("–"),
        }
    }
}

/// What one criterion would choose, as many rows as were chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The criterion.
    pub criterion: Criterion,
    /// Rows that it chooses.
    pub chosen: usize,
    /// Which share of them is chosen.
    pub overlap: Share,
    /// The share that would be by chance: that of the chosen rows among all.
    pub by_chance: f64,
    /// What people say of its choice, where they say something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub human: Option<Human>,
    /// Of each group of rows, which share it lets through.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub let_through: BTreeMap<String, Share>,
}

/// What people say of a choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Human {
    /// The mean of their scores over the choice.
    pub mean: f64,
    /// Which share of the choice is among as many rows that people rate best; all that are rated like the last of those count too.
    pub precision: Share,
}

/// Rows that are there more than once.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Repeats {
    /// How many have an earlier one like them.
    pub rows: usize,
    /// How many of these are chosen together with it.
    pub chosen: usize,
    /// The first hundred.
    pub first: Vec<Repeat>,
}

impl Repeats {
    /// All of these, so many of them chosen together with the row that they are like.
    pub fn new(all: impl ExactSizeIterator<Item = Repeat>, chosen: usize) -> Self {
        Self { rows: all.len(), chosen, first: all.take(LISTED).collect() }
    }
}

/// A row and one that it is like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repeat {
    /// The row's place in the input.
    pub row: usize,
    /// The other row's.
    pub like: usize,
    /// The cosine of their states; 1 for equal texts.
    pub similarity: f64,
}

/// All that is found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// What has found it.
    pub program: Program,
    /// Rows of the input.
    pub n: usize,
    /// By what rows were chosen.
    pub criterion: Criterion,
    /// How many were.
    pub chosen: usize,
    /// Rows without a number.
    pub without: usize,
    /// How often each aspect, likelihood or probe is missing, by reason.
    pub missing: BTreeMap<String, BTreeMap<String, usize>>,
    /// The smallest number chosen.
    pub least: Option<f64>,
    /// Rows that have it too and were not chosen.
    pub tied: usize,
    /// Equal texts, but for case and white space.
    pub duplicates: Repeats,
    /// Rows that were passed over beside one that they are like, with --diversity: of those whose turn to be compared came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near_duplicates: Option<Repeats>,
    /// By name: `score`, each aspect, and characters of instructions and responses.
    pub distributions: Vec<(String, Distribution)>,
    /// The mean of people's scores over all rows that have one.
    pub human_mean: Option<f64>,
    /// The choices by this and other criteria, this one first.
    pub choices: Vec<Compared>,
}

/// Distributions of the score and of lengths, before and after.
///
/// # Errors
/// If a file cannot be read.
pub fn distributions(
    numbers: &Numbers<'_>,
    criterion: Criterion,
    values: &[Option<f64>],
    chosen: &[bool],
) -> Result<Vec<(String, Distribution)>> {
    let mut all: Vec<(String, Distribution)> = Vec::new();
    let mut add = |name: &str, value: f64, row: usize, on_scale: bool| {
        let place = all.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            all.push((name.to_owned(), Distribution::default()));
            all.len() - 1
        });
        all[place].1.add(value, chosen[row], on_scale);
    };
    let graded = Criterion::GRADED.contains(&criterion);
    for (row, value) in values.iter().enumerate() {
        if let Some(value) = value {
            add("score", *value, row, graded);
        }
    }
    if let Some(path) = &numbers.files.aspects {
        for (row, graded) in Rows::open(path)?.enumerate() {
            for (aspect, score) in scores(&graded?)? {
                add(&aspect, score, row, true);
            }
        }
    }
    for example in numbers.passes.examples()? {
        let example = example?;
        if let Ok(said) = &example.said {
            add("characters of the instruction", said.asked().chars().count() as f64, example.row, false);
            add("characters of the response", said.response.chars().count() as f64, example.row, false);
        }
    }
    Ok(all)
}

/// The choices by all criteria, and the mean of people's scores.
///
/// # Errors
/// If a file cannot be read, or the groups are no groups.
pub fn choices(
    numbers: &Numbers<'_>,
    criterion: Criterion,
    others: &[Criterion],
    choice: &Choice,
    groups: Option<&str>,
) -> Result<(Vec<Compared>, Option<f64>)> {
    let (n, wanted) = (choice.chosen.len(), choice.count());
    let human: Vec<Option<f64>> =
        numbers.passes.examples()?.map(|example| Ok(example?.record.human())).collect::<Result<_>>()?;
    let known = human.iter().flatten().count();
    let human_mean = (known > 0).then(|| human.iter().flatten().sum::<f64>() / known as f64);
    // All that people rate as high as the last of the best.
    let cut = best(&human, wanted).least;
    let groups = groups.map_or_else(|| Ok(BTreeMap::new()), |field| grouped(numbers, field))?;
    let mut found = Vec::new();
    for (place, &criterion) in [criterion].iter().chain(others).enumerate() {
        let other = match place {
            0 => choice.clone(),
            _ => best(&numbers.by(criterion)?, wanted),
        };
        let both = other.rows().filter(|&row| choice.chosen[row]).count();
        let rated: Vec<f64> = other.rows().filter_map(|row| human[row]).collect();
        let good = rated.iter().filter(|&&score| cut.is_some_and(|cut| score >= cut)).count();
        let of_people = (!rated.is_empty()).then(|| Human {
            mean: rated.iter().sum::<f64>() / rated.len() as f64,
            precision: Share::of(good, rated.len()),
        });
        let let_through = groups
            .iter()
            .map(|(name, rows)| {
                (name.clone(), Share::of(rows.iter().filter(|&&row| other.chosen[row as usize]).count(), rows.len()))
            })
            .collect();
        found.push(Compared {
            criterion,
            chosen: other.count(),
            overlap: Share::of(both, other.count()),
            by_chance: if n > 0 { wanted as f64 / n as f64 } else { 0.0 },
            human: of_people,
            let_through,
        });
    }
    Ok((found, human_mean))
}

/// The rows of each group, by the field that names it: a text, or a list of texts.
fn grouped(numbers: &Numbers<'_>, field: &str) -> Result<BTreeMap<String, Vec<u32>>> {
    let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (row, found) in Rows::open(numbers.passes.input())?.take(numbers.passes.checked.rows).enumerate() {
        let found = found?;
        let names = match found.value(field).map(serde_json::from_str::<Value>).transpose()? {
            None => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(one) => vec![one],
        };
        let name = |name: Value| name.as_str().map_or_else(|| name.to_string(), str::to_owned);
        // A group that is named twice has the row once.
        for name in names.into_iter().map(name).collect::<BTreeSet<_>>() {
            groups.entry(name).or_default().push(u32::try_from(row)?);
        }
        ensure!(
            groups.len() <= GROUPS,
            "--groups {field}: expected at most {GROUPS} different values, found more; the first are {:?}",
            groups.keys().take(3).collect::<Vec<_>>()
        );
    }
    Ok(groups)
}

/// Why rows have no number: of each thing that was asked, how often each reason was given.
///
/// # Errors
/// If a file cannot be read.
pub fn missing(numbers: &Numbers<'_>) -> Result<BTreeMap<String, BTreeMap<String, usize>>> {
    let mut missing: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    let mut count = |what: String, why: &Unscored| {
        *missing.entry(what).or_default().entry(why.reason.to_string()).or_default() += 1;
    };
    for path in numbers.files.paths() {
        for row in Rows::open(path)? {
            let reasons: Option<BTreeMap<String, Unscored>> = row?.optional("unscored", "an object of reasons")?;
            reasons.into_iter().flatten().for_each(|(what, why)| count(what, &why));
        }
    }
    let unread = numbers.unread_by_no_model().into_iter().flatten();
    unread.for_each(|(_, why)| count(UNREAD.to_owned(), why));
    Ok(missing)
}

impl Report {
    /// Says it to people, on stdout.
    ///
    /// # Errors
    /// If stdout takes nothing.
    pub fn print(&self) -> Result<()> {
        let Self { n, chosen, without, .. } = self;
        say(format_args!("{chosen} of {n} rows chosen by {}, {without} without a number", name_of(self.criterion)))?;
        for (what, reasons) in &self.missing {
            let reasons: Vec<String> = reasons.iter().map(|(reason, rows)| format!("{rows} {reason}")).collect();
            say(format_args!("no {what}: {}", reasons.join(", ")))?;
        }
        if let Some(least) = self.least {
            let tied = counted_that(self.tied, "unselected row", ["ties", "tie"]);
            say(format_args!("lowest selected score: {least:.4} ({tied} with it)"))?;
        }
        if self.duplicates.rows > 0 {
            let Repeats { rows, chosen, .. } = self.duplicates;
            let repeat = counted_that(rows, "row", ["repeats", "repeat"]);
            say(format_args!("{repeat} an earlier one, {chosen} of them chosen together with it"))?;
        }
        if let Some(Repeats { rows, .. }) = &self.near_duplicates {
            let passed = counted_that(*rows, "row", ["was", "were"]);
            say(format_args!("at least {passed} passed over beside a chosen one that is nearly equal"))?;
        }
        let mut lines = Vec::new();
        for (name, Distribution { before, after, .. }) in &self.distributions {
            let mut line = vec![name.clone()];
            for moments in [before, after] {
                let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.2}"));
                line.extend([moments.mean, moments.deviation].map(number));
            }
            lines.push(line);
        }
        say_table(["", "all", "±", "chosen", "±"], lines)?;
        let mut head = vec!["choice by", "also chosen", "by chance"];
        let people = self.human_mean.is_some();
        if people {
            head.extend(["people's mean", "among people's best [95 %]"]);
        }
        let mut lines = Vec::new();
        for Compared { criterion, overlap, by_chance, human, .. } in &self.choices {
            let overlap = overlap.share.map_or("–".to_owned(), |share| format!("{share:.3}"));
            let mut line = vec![name_of(*criterion), overlap, format!("{by_chance:.3}")];
            if people {
                line.extend(match human {
                    Some(human) => [format!("{:.3}", human.mean), human.precision.to_string()],
                    None => ["–".to_owned(), "–".to_owned()],
                });
            }
            lines.push(line);
        }
        say_table(head, lines)?;
        let names: Vec<&String> =
            self.choices.first().map(|first| first.let_through.keys().collect()).unwrap_or_default();
        if !names.is_empty() {
            let criteria = self.choices.iter().map(|choice| name_of(choice.criterion));
            let line = |name: &String| {
                let share =
                    |choice: &Compared| choice.let_through[name].share.map_or("–".to_owned(), |s| format!("{s:.3}"));
                let own = [name.clone(), self.choices[0].let_through[name].n.to_string()];
                own.into_iter().chain(self.choices.iter().map(share)).collect()
            };
            let head = ["let through", "rows"].map(str::to_owned).into_iter().chain(criteria);
            say_table(head, names.into_iter().map(line))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_definition() {
        let mut found = Distribution::default();
        for (value, chosen) in [(1.0, false), (2.0, true), (4.4, true), (4.6, false)] {
            found.add(value, chosen, true);
        }
        let mean = |moments: &Moments| moments.mean.unwrap();
        assert!((mean(&found.before) - 3.0).abs() < 1e-12 && (mean(&found.after) - 3.2).abs() < 1e-12);
        let deviation = ((4.0_f64 + 1.0 + 1.96 + 2.56) / 3.0).sqrt();
        assert!((found.before.deviation.unwrap() - deviation).abs() < 1e-12);
        assert_eq!((found.before.min, found.after.max), (Some(1.0), Some(4.4)));
        assert_eq!(found.counts_before, [(1, 1), (2, 1), (4, 1), (5, 1)].into());
        assert_eq!(found.counts_after, [(2, 1), (4, 1)].into());
    }

    #[test]
    fn what_is_not_defined_is_no_number() {
        let mut found = Distribution::default();
        found.add(-2.5, false, true);
        assert_eq!((found.before.mean, found.before.deviation), (Some(-2.5), None));
        assert_eq!((found.after.n, found.after.mean, found.after.deviation), (0, None, None));
    }

    #[test]
    fn a_share_of_none_is_no_share() {
        assert_eq!((Share::of(0, 0).share, Share::of(0, 0).low), (None, None));
        let half = Share::of(5, 10);
        assert!(half.low.unwrap() < 0.5 && half.high.unwrap() > 0.5 && half.to_string().starts_with("0.500 ["));
    }
}
