//! What held-out rows say of a judge that is being tuned: the loss, and the figures by which a judge of its kind is told from a better one.
//!
//! | learned | figures besides `loss` |
//! |---|---|
//! | marks | `mae`, `spearman` of the expected mark; `accuracy`, `majority_share`, `ece`, `brier` |
//! | verdicts, classes, decisions | `accuracy`, `majority_share`, `ece`, `brier` |
//! | ordered classes | `mae`, `spearman` of the expected grade; `accuracy` |
//! | preferences, rewards | `accuracy` |
//!
//! `accuracy`, `ece` and `brier` are those of [`DecisionComparison`], which `judge decide` reports: the likeliest label against what people
//! say. That is for marks and classes the point of the scale nearest to the mean of raters, for verdicts what more than half of them say.
//! `majority_share` is the accuracy of always giving the commonest label of the held-out rows.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use anyhow::Result;
use judge_cli::report::BOOTSTRAP;
use judge_core::{Scale, scale::ScoreDistribution};
use judge_metrics::comparison::{ComparedDecision, DecisionComparison};
use judge_metrics::correlation::spearman;
use judge_metrics::prediction::mean_absolute_error;
use judge_metrics::resampling::Bootstrap;
use judge_models::train::{
    BradleyTerry, Class, ClassExample, Decision, DecisionExample, Loss, Mark, MarkExample, Ordinal, PairExample,
    Trainer,
};

use super::examples::{Examples, nearest};

/// What held-out rows say of the judge, by name.
pub(super) type Figures = BTreeMap<&'static str, f64>;

/// The labels that a judge reads: the points of a scale, and the token of each.
pub(super) struct Labels {
    pub(super) scale: Scale,
    pub(super) tokens: Vec<u32>,
}

/// The examples alone.
pub(super) fn examples<E: Clone>(held_out: &Examples<E>) -> Vec<E> {
    held_out.all.iter().map(|(example, _)| example.clone()).collect()
}

/// Of marks.
pub(super) fn of_marks(labels: &Labels, tuned: &Trainer<Mark>, held_out: &Examples<MarkExample>) -> Result<Figures> {
    let found = distributions(tuned, held_out, |example| &example.prompt, labels)?;
    let expected: Vec<f64> = found.iter().map(ScoreDistribution::expected).collect();
    let mut figures = of_numbers(&expected, &held_out.human)?;
    figures.extend(of_labels(&labels.scale, held_out, found)?);
    Ok(figures)
}

/// Of verdicts on pairs.
pub(super) fn of_verdicts(labels: &Labels, tuned: &Trainer<Mark>, held_out: &Examples<MarkExample>) -> Result<Figures> {
    of_labels(&labels.scale, held_out, distributions(tuned, held_out, |example| &example.prompt, labels)?)
}

/// Of classes of a scale.
pub(super) fn of_classes(scale: &Scale, tuned: &Trainer<Class>, held_out: &Examples<ClassExample>) -> Result<Figures> {
    let scores = tuned.scores(&examples(held_out))?;
    of_labels(scale, held_out, scores.iter().map(|scores| softmax(scale, scores)).collect::<Result<_>>()?)
}

/// Of ordered classes of a scale: the expected grade is the lowest one and each step above it times the probability of being above, and
/// the class is the number of steps of which that is at least ½.
pub(super) fn of_ordinal(
    scale: &Scale,
    tuned: &Trainer<Ordinal>,
    held_out: &Examples<ClassExample>,
) -> Result<Figures> {
    let scores = tuned.scores(&examples(held_out))?;
    let values: Vec<f64> = scale.values().collect();
    let expected = |logits: &Vec<f32>| {
        let steps = values.windows(2).map(|pair| pair[1] - pair[0]);
        let above = logits.iter().map(|&z| 1.0 / (1.0 + (-f64::from(z)).exp()));
        values[0] + above.zip(steps).map(|(p, step)| p * step).sum::<f64>()
    };
    let expected: Vec<f64> = scores.iter().map(expected).collect();
    let mut figures = of_numbers(&expected, &held_out.human)?;
    let class = |logits: &Vec<f32>| logits.iter().filter(|&&z| z >= 0.0).count();
    let right = scores.iter().zip(&held_out.all).filter(|(logits, (example, _))| class(logits) == example.class);
    figures.insert("accuracy", right.count() as f64 / scores.len() as f64);
    Ok(figures)
}

/// Of typed questions; `soft_cap` is what bounds the model's logits.
pub(super) fn of_decisions(
    soft_cap: Option<f64>,
    tuned: &Trainer<Decision>,
    held_out: &Examples<DecisionExample>,
) -> Result<Figures> {
    // Questions with the same options are read together.
    let mut by_options: BTreeMap<&[u32], Vec<&DecisionExample>> = BTreeMap::new();
    for (example, _) in &held_out.all {
        by_options.entry(&example.options).or_default().push(example);
    }
    let mut compared = Vec::with_capacity(held_out.all.len());
    for (question, (options, examples)) in by_options.into_iter().enumerate() {
        let scale = Scale::integers(1, i32::try_from(options.len())?)?;
        let prompts: Vec<Vec<u32>> = examples.iter().map(|example| example.prompt.clone()).collect();
        for (logits, example) in tuned.label_logits(&prompts, options)?.into_iter().zip(examples) {
            let capped = |z: f64| soft_cap.map_or(z, |cap| cap * (z / cap).tanh());
            let cold = |z: &f32| capped(f64::from(*z)) / f64::from(example.temperature);
            let logits: Vec<f64> = logits.iter().map(cold).collect();
            let predicted = ScoreDistribution::softmax(&scale, &logits)?.probabilities().to_vec();
            let observed = example.target.iter().map(|&share| f64::from(share)).collect();
            compared.push((question, observed, predicted));
        }
    }
    of_choices(compared)
}

/// Of preferences by expected marks.
pub(super) fn of_preferences(
    labels: &Labels,
    tuned: &Trainer<BradleyTerry>,
    held_out: &Examples<PairExample>,
) -> Result<Figures> {
    let better = distributions(tuned, held_out, |pair| &pair.better, labels)?;
    let worse = distributions(tuned, held_out, |pair| &pair.worse, labels)?;
    Ok(of_pairs(better.iter().zip(&worse).map(|(better, worse)| (better.expected(), worse.expected()))))
}

/// Of rewards.
pub(super) fn of_rewards(tuned: &Trainer<BradleyTerry>, held_out: &Examples<PairExample>) -> Result<Figures> {
    let scores = tuned.scores(&examples(held_out))?.concat();
    let (pairs, _) = scores.as_chunks::<2>();
    Ok(of_pairs(pairs.iter().map(|&[better, worse]| (f64::from(better), f64::from(worse)))))
}

/// In how many pairs the better response has the greater value; equal ones count half.
fn of_pairs(values: impl ExactSizeIterator<Item = (f64, f64)>) -> Figures {
    let n = values.len() as f64;
    let right = values.map(|(better, worse)| match better.total_cmp(&worse) {
        Ordering::Greater => 1.0,
        Ordering::Equal => 0.5,
        Ordering::Less => 0.0,
    });
    [("accuracy", right.sum::<f64>() / n)].into()
}

/// What the labels' logits say at the end of a prompt of each example.
fn distributions<L: Loss>(
    tuned: &Trainer<L>,
    held_out: &Examples<L::Example>,
    prompt: fn(&L::Example) -> &Vec<u32>,
    labels: &Labels,
) -> Result<Vec<ScoreDistribution>> {
    let prompts: Vec<Vec<u32>> = held_out.all.iter().map(|(example, _)| prompt(example).clone()).collect();
    tuned.label_logits(&prompts, &labels.tokens)?.iter().map(|logits| softmax(&labels.scale, logits)).collect()
}

fn softmax(scale: &Scale, logits: &[f32]) -> Result<ScoreDistribution> {
    let logits: Vec<f64> = logits.iter().map(|&z| f64::from(z)).collect();
    Ok(ScoreDistribution::softmax(scale, &logits)?)
}

/// Distance and rank correlation of numbers.
fn of_numbers(expected: &[f64], human: &[f64]) -> Result<Figures> {
    let mut figures = Figures::from([("mae", mean_absolute_error(human, expected)?.estimate)]);
    // Undefined where all of one side are equal.
    figures.extend(spearman(expected, human).ok().map(|found| ("spearman", found.estimate)));
    Ok(figures)
}

/// What people say of each example is the point of the scale that is nearest.
fn of_labels<E>(scale: &Scale, held_out: &Examples<E>, found: Vec<ScoreDistribution>) -> Result<Figures> {
    let observed = |human: f64| {
        let mut observed = vec![0.0; scale.len()];
        observed[nearest(human, scale)] = 1.0;
        observed
    };
    let pairs = held_out.human.iter().zip(found);
    of_choices(pairs.map(|(&human, found)| (0, observed(human), found.probabilities().to_vec())).collect())
}

/// Of distributions, each what people say and what the judge says of a question; questions are those with the same options.
fn of_choices(compared: Vec<(usize, Vec<f64>, Vec<f64>)>) -> Result<Figures> {
    let compared = compared.into_iter().enumerate().map(|(group, (question, observed, predicted))| ComparedDecision {
        observed,
        predicted,
        group,
        question,
    });
    let compared: Vec<ComparedDecision> = compared.collect();
    // The estimates alone: intervals are for the judge that is kept, by the commands that read it.
    let found = DecisionComparison::new(&compared, &Bootstrap { resamples: 1, ..BOOTSTRAP })?;
    let named = [
        ("accuracy", found.accuracy),
        ("majority_share", found.majority_share),
        ("ece", found.ece),
        ("brier", found.brier),
    ];
    Ok(named.into_iter().filter_map(|(name, known)| Some((name, known.estimate()?))).collect())
}
