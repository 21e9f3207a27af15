//! Two answers to the same question.

use std::cmp::Ordering;

use super::raters::marks;
use super::topics::{SHIFTED, TRAINED};
use super::words::Words;
use super::{Defect, Draw, RUBRICS, SHIFTED_RUBRICS, Split, defects, split_of};

/// Streams of pairs lie behind those of items.
const PAIRS: u64 = 1 << 40;

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

/// The pairs `0..n` of a split. Pair `i` depends on `split`, `seed` and `i` alone.
#[must_use]
pub fn pairs(split: Split, n: usize, seed: u64) -> Vec<Pair> {
    (0..n).map(|index| pair(split, index, seed)).collect()
}

fn pair(split: Split, index: usize, seed: u64) -> Pair {
    let (topics, words, rubrics) = match split {
        Split::Train | Split::Validation | Split::Test => (TRAINED, Words::Trained, RUBRICS),
        Split::Shifted => (SHIFTED, Words::Shifted, SHIFTED_RUBRICS),
    };
    let mut draw = Draw::new(seed, PAIRS + (index as u64) * 4 + split as u64);
    let topic = &topics[index % topics.len()];
    let (instruction, responses, planned) = loop {
        let first = defects::plan(&mut draw);
        let mut second = defects::plan(&mut draw);
        while second == first {
            second = defects::plan(&mut draw);
        }
        // The same draws from here on: the same question, told in the same words.
        let (instruction, one) = defects::write(&mut draw.clone(), topic, topics, words, &first);
        let (_, other) = defects::write(&mut draw, topic, topics, words, &second);
        if one != other && (split == Split::Shifted || split_of(&instruction) == split) {
            break (instruction, [one, other], [first, second]);
        }
    };
    let deserved = |defects: &[Defect]| (5.0 - defects.iter().map(|d| d.penalty()).sum::<f64>()).max(1.0);
    let quality = [deserved(&planned[0]), deserved(&planned[1])];
    let rubric = draw.pick(rubrics);
    let [first, second] = quality.map(|quality| marks(&mut draw, quality));
    Pair {
        id: format!("{}-pair-{index}", split.name()),
        topic: topic.name,
        instruction,
        responses,
        rubric,
        quality,
        verdicts: first.iter().zip(&second).map(|(a, b)| a.total_cmp(b)).collect(),
    }
}
