//! Several answers to the same question.

use std::cmp::Ordering;

use super::raters::marks;
use super::{Defect, Draw, Split, defects, split_of};

/// Streams of pairs lie behind those of items, and those of longer lists behind them.
const PAIRS: u64 = 1 << 40;
const LISTS: u64 = 1 << 41;

/// A question, two answers, and which of them each rater prefers.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// `SPLIT-pair-INDEX`, unique within a seed.
    pub id: String,
    /// The topic of the question.
    pub topic: &'static str,
    /// The question.
    pub instruction: String,
    /// The answers. They differ in their defects alone.
    pub responses: [String; 2],
    /// What a judge is told about grading.
    pub rubric: &'static str,
    /// What each answer deserves, in [1, 5].
    pub quality: [f64; 2],
    /// Per rater, how the first answer's mark compares with the second's.
    pub verdicts: Vec<Ordering>,
}

/// A question and several answers, which differ in their defects alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidates {
    /// `SPLIT-list-INDEX`, unique within a seed.
    pub id: String,
    /// The topic of the question.
    pub topic: &'static str,
    /// The question.
    pub instruction: String,
    /// The answers, no two of them equal.
    pub responses: Vec<String>,
    /// What a judge is told about grading.
    pub rubric: &'static str,
    /// What each answer deserves, in [1, 5].
    pub quality: Vec<f64>,
    /// The mean of the raters' marks, for each answer.
    pub grades: Vec<f64>,
}

/// The pairs `0..n` of a split. Pair `i` depends on `split`, `seed` and `i` alone.
#[must_use]
pub fn pairs(split: Split, n: usize, seed: u64) -> Vec<Pair> {
    (0..n).map(|index| pair(split, index, seed)).collect()
}

/// The lists `0..n` of a split with so many answers each, at most 16.
/// List `i` depends on `split`, `seed`, `i` and the number of answers alone.
///
/// # Panics
/// For more answers than there are kinds of defects to tell them apart.
#[must_use]
pub fn candidates(split: Split, n: usize, answers: usize, seed: u64) -> Vec<Candidates> {
    assert!((2..=16).contains(&answers), "expected 2 to 16 answers, found {answers}");
    (0..n).map(|index| list(split, index, answers, seed)).collect()
}

fn pair(split: Split, index: usize, seed: u64) -> Pair {
    let mut draw = Draw::new(seed, PAIRS + (index as u64) * 4 + split as u64);
    let Candidates { topic, instruction, responses, rubric, quality, .. } = answered(&mut draw, split, index, 2);
    let (responses, quality) = ([responses[0].clone(), responses[1].clone()], [quality[0], quality[1]]);
    let [first, second] = quality.map(|quality| marks(&mut draw, quality));
    let verdicts = first.iter().zip(&second).map(|(a, b)| a.total_cmp(b)).collect();
    Pair { id: format!("{}-pair-{index}", split.name()), topic, instruction, responses, rubric, quality, verdicts }
}

fn list(split: Split, index: usize, answers: usize, seed: u64) -> Candidates {
    let mut draw = Draw::new(seed, LISTS + (index as u64) * 4 + split as u64);
    let answered = answered(&mut draw, split, index, answers);
    let mean = |marks: Vec<f64>| marks.iter().sum::<f64>() / marks.len() as f64;
    let grades = answered.quality.iter().map(|&quality| mean(marks(&mut draw, quality))).collect();
    Candidates { grades, ..answered }
}

/// A question and so many answers to it, which nobody has graded.
fn answered(draw: &mut Draw, split: Split, index: usize, answers: usize) -> Candidates {
    let (topics, words, rubrics) = split.material();
    let topic = &topics[index % topics.len()];
    let (instruction, responses, planned) = loop {
        let mut planned: Vec<Vec<Defect>> = Vec::new();
        while planned.len() < answers {
            let plan = defects::plan(draw);
            if !planned.contains(&plan) {
                planned.push(plan);
            }
        }
        // The same draws for each from here on: the same question, told in the same words.
        let mut written: Vec<(String, String)> = Vec::new();
        let mut after = draw.clone();
        for plan in &planned {
            after = draw.clone();
            written.push(defects::write(&mut after, topic, topics, words, plan));
        }
        *draw = after;
        let (questions, responses): (Vec<String>, Vec<String>) = written.into_iter().unzip();
        let instruction = questions[0].clone();
        let distinct = (1..answers).all(|last| !responses[..last].contains(&responses[last]));
        if distinct && (split == Split::Shifted || split_of(&instruction) == split) {
            break (instruction, responses, planned);
        }
    };
    let deserved = |defects: &Vec<Defect>| (5.0 - defects.iter().map(|d| d.penalty()).sum::<f64>()).max(1.0);
    let quality = planned.iter().map(deserved).collect();
    let (id, rubric, grades) = (format!("{}-list-{index}", split.name()), draw.pick(rubrics), Vec::new());
    Candidates { id, topic: topic.name, instruction, responses, rubric, quality, grades }
}
