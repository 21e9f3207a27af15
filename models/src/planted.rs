//! Question and answer pairs with planted defects, graded by simulated raters.
//!
//! [`generate`] writes the items of a [`Split`]. Each is a short question, an answer with none or some [`Defect`]s of graded severity,
//! and the marks 1 to 5 of three raters, each with a bias and noise of their own. What an answer deserves is known ([`Item::quality`]),
//! so an instrument that reads answers can be checked against the truth as well as against people.
//!
//! A question belongs to the training, the validation or the test split by a hash of its text, so no question of one occurs in another.
//! Half of the training items are told in other words, so that a judge learns to look at how an answer hangs together.
//! The shifted split has topics, wordings, names, things, empty phrases and grading instructions that no other split has.
//!
//! ```
//! use tiny_judge::planted::{Split, generate, prompt};
//!
//! let items = generate(Split::Test, 10, 0);
//! assert_eq!(items, generate(Split::Test, 20, 0)[..10]);
//! assert!(prompt(&items[0]).contains(&items[0].response));
//! ```

mod compared;
mod defects;
mod disguise;
mod draw;
mod exercise;
mod fields;
mod raters;
mod topics;
mod values;
mod words;

#[cfg(test)]
mod tests;

use raters::marks;
use topics::{SHIFTED, TRAINED, Topic};
use words::Words;

pub use compared::{Candidates, Pair, candidates, pairs};
pub use defects::{Defect, Severity};
pub use draw::Draw;
pub use exercise::is_exercise;

/// Which part of the data an item belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    /// What a judge is trained on; as many items as wanted.
    Train,
    /// For choosing and for fitting layer weights.
    Validation,
    /// New questions of the training topics.
    Test,
    /// Topics and wordings that were not trained on.
    Shifted,
}

impl Split {
    /// All splits.
    pub const ALL: [Self; 4] = [Self::Train, Self::Validation, Self::Test, Self::Shifted];

    /// The name in file names and item ids.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
            Self::Shifted => "shifted",
        }
    }

    /// The topics of its questions, where their words are from, and what its judges are told about grading.
    fn material(self) -> (&'static [Topic], Words, &'static [&'static str]) {
        match self {
            Self::Train | Self::Validation | Self::Test => (TRAINED, Words::Trained, RUBRICS),
            Self::Shifted => (SHIFTED, Words::Shifted, SHIFTED_RUBRICS),
        }
    }
}

/// A question, an answer, and what the raters gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// `SPLIT-INDEX`, unique within a seed.
    pub id: String,
    /// The topic of the question.
    pub topic: &'static str,
    /// The question.
    pub instruction: String,
    /// The answer to be judged.
    pub response: String,
    /// What the judge is told about grading.
    pub rubric: &'static str,
    /// One mark per rater, each a whole number from 1 to 5.
    pub scores: Vec<f64>,
    /// What the answer deserves, in [1, 5]: 5 less the penalties of its defects.
    pub quality: f64,
    /// What was done to the answer.
    pub defects: Vec<Defect>,
}

impl Item {
    /// The mean of the raters' marks, in [1, 5].
    #[must_use]
    pub fn human(&self) -> f64 {
        self.scores.iter().sum::<f64>() / self.scores.len() as f64
    }
}

/// What an answer is graded by where nothing else is said: the first of the wordings that are trained on.
pub const RUBRIC: &str = RUBRICS[0];

const RUBRICS: &[&str] = &[
    "Grade the answer from 1 to 5: is it right, complete and clear?",
    "How good is this answer? 1 is poor, 5 is perfect.",
    "Score from 1 (bad) to 5 (very good).",
    "From 1 to 5, is the answer correct, to the point and well written?",
    "Is it right and well put? Use 5 for a perfect answer, 1 for a bad one.",
    "Give a number from 1 to 5, where 5 is the best.",
];

const SHIFTED_RUBRICS: &[&str] = &[
    "Give 5 for a perfect answer and 1 for a very bad one.",
    "Is this a good answer? Use the numbers 1 to 5, where 5 is very good.",
];

/// How often a training item is told in other words.
const DISGUISED: f64 = 0.5;

/// The items `0..n` of a split. Item `i` depends on `split`, `seed` and `i` alone: the same bytes on every machine, whatever `n` is.
#[must_use]
pub fn generate(split: Split, n: usize, seed: u64) -> Vec<Item> {
    (0..n).map(|index| item(split, index, seed)).collect()
}

/// The item number `index` of a split.
#[must_use]
pub fn item(split: Split, index: usize, seed: u64) -> Item {
    let (topics, words, rubrics) = split.material();
    let mut draw = Draw::new(seed, (index as u64) * 4 + split as u64);
    // Topics take turns; within a topic the rest is drawn anew until the question belongs to this split.
    let topic = &topics[index % topics.len()];
    let (instruction, response, defects) = loop {
        let defects = defects::plan(&mut draw);
        let (instruction, response) = defects::write(&mut draw, topic, topics, words, &defects);
        if split == Split::Shifted || split_of(&instruction) == split {
            break (instruction, response, defects);
        }
    };
    let (instruction, response) = if split == Split::Train && draw.chance(DISGUISED) {
        // In other words it must not become a question of another split either.
        loop {
            let told = disguise::disguise(&mut draw, &instruction, &response);
            if split_of(&told.0) == split {
                break told;
            }
        }
    } else {
        (instruction, response)
    };
    let lost: f64 = defects.iter().map(|defect| defect.penalty()).sum();
    let quality = (5.0 - lost).max(1.0);
    Item {
        id: format!("{}-{index}", split.name()),
        topic: topic.name,
        instruction,
        response,
        rubric: draw.pick(rubrics),
        scores: marks(&mut draw, quality),
        quality,
        defects,
    }
}

/// How such a text begins, before the question.
const ASKED: &str = "Question: ";

/// The text that asks a judge for the mark of an item: one user turn, to be answered by the mark alone.
#[must_use]
pub fn prompt(item: &Item) -> String {
    format!("{ASKED}{}\nAnswer: {}\n{}", item.instruction, item.response, item.rubric)
}

/// What a judge is taught to answer: a rater's mark, then one word for each defect, or "good".
#[must_use]
pub fn reply(item: &Item, mark: f64) -> String {
    let mut reply = format!("{mark}");
    if item.defects.is_empty() {
        reply.push_str(" good");
    }
    for defect in &item.defects {
        reply.push(' ');
        reply.push_str(defect.remark());
    }
    reply
}

/// The split that a question of the training topics belongs to: one in eight to validation, one in eight to test (FNV-1a of its bytes).
fn split_of(instruction: &str) -> Split {
    let hash = instruction
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    match (hash >> 32) % 8 {
        0 => Split::Validation,
        1 => Split::Test,
        _ => Split::Train,
    }
}
