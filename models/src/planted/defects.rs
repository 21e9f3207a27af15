//! Defects of graded severity, and the answers that carry them.

use std::fmt;

use super::draw::Draw;
use super::topics::Topic;
use super::values::Filling;
use super::words::Words;

/// How bad a defect is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// Less than it could be.
    Mild,
    /// As bad as this kind of defect gets.
    Severe,
}

/// Something wrong with an answer that was put there on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// Mild: a wrong step, but the right result. Severe: the wrong result.
    Wrong(Severity),
    /// Mild: a step of the working is absent. Severe: all of it.
    MissingSteps(Severity),
    /// The answer to another question: a mild case is one of the same topic, a severe one of another topic.
    Irrelevant(Severity),
    /// Words left out, doubled or swapped: a few, or many.
    BrokenLanguage(Severity),
    /// Empty sentences: one, or several.
    Padding(Severity),
}

impl Defect {
    /// The names of its kind and of its severity, a judge's word for it, and the points of quality that it costs.
    fn described(self) -> (&'static str, &'static str, &'static str, f64) {
        let (kind, mild, severe, severity) = match self {
            Self::Wrong(severity) => ("wrong", ("slip", 1.25), ("wrong", 2.5), severity),
            Self::MissingSteps(severity) => ("missing_steps", ("thin", 0.75), ("bare", 1.5), severity),
            Self::Irrelevant(severity) => ("irrelevant", ("astray", 3.0), ("elsewhere", 3.5), severity),
            Self::BrokenLanguage(severity) => ("broken_language", ("rough", 1.0), ("broken", 2.25), severity),
            Self::Padding(severity) => ("padding", ("wordy", 0.5), ("padded", 1.5), severity),
        };
        let (severity, (remark, penalty)) = match severity {
            Severity::Mild => ("mild", mild),
            Severity::Severe => ("severe", severe),
        };
        (kind, severity, remark, penalty)
    }

    /// One word for it, as a judge remarks on it.
    #[must_use]
    pub fn remark(self) -> &'static str {
        let (.., remark, _) = self.described();
        remark
    }

    /// Points of quality that the defect costs, in (0, 4).
    #[must_use]
    pub fn penalty(self) -> f64 {
        let (.., penalty) = self.described();
        penalty
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, severity, ..) = self.described();
        write!(f, "{kind}:{severity}")
    }
}

/// Draws which defects an answer gets: none in about one of five, else one to four, at most one of a kind. An answer to another
/// question is not also made wrong, and a wrong step needs its working.
pub(super) fn plan(draw: &mut Draw) -> Vec<Defect> {
    let severity = |draw: &mut Draw| if draw.chance(0.5) { Severity::Mild } else { Severity::Severe };
    let mut defects = Vec::new();
    match draw.weighted(&[0.48, 0.24, 0.10, 0.18]) {
        1 => defects.push(Defect::Wrong(Severity::Severe)),
        2 => defects.push(Defect::Wrong(Severity::Mild)),
        3 => defects.push(Defect::Irrelevant(severity(draw))),
        _ => {}
    }
    if defects != [Defect::Wrong(Severity::Mild)] && draw.chance(0.25) {
        defects.push(Defect::MissingSteps(severity(draw)));
    }
    if draw.chance(0.22) {
        defects.push(Defect::BrokenLanguage(severity(draw)));
    }
    if draw.chance(0.22) {
        defects.push(Defect::Padding(severity(draw)));
    }
    defects
}

/// Writes a question of `topic` and an answer that has the `defects`.
/// `others` are the topics from which a severely irrelevant answer comes.
pub(super) fn write(
    draw: &mut Draw,
    topic: &Topic,
    others: &[Topic],
    words: Words,
    defects: &[Defect],
) -> (String, String) {
    let has = |wanted: Defect| defects.contains(&wanted);
    let asked = (topic.values)(draw, words);
    let question = fill(draw.pick(topic.wordings.questions), &[&asked.given]);

    let (answered, values) = if has(Defect::Irrelevant(Severity::Severe)) {
        let away = 1 + draw.below(others.len() - 1);
        let here = others.iter().position(|other| other.name == topic.name).unwrap_or(0);
        let other = &others[(here + away) % others.len()];
        (other, (other.values)(draw, words))
    } else if has(Defect::Irrelevant(Severity::Mild)) {
        let mut other = (topic.values)(draw, words);
        while other.given == asked.given {
            other = (topic.values)(draw, words);
        }
        (topic, other)
    } else {
        (topic, asked)
    };
    let wrong_result = has(Defect::Wrong(Severity::Severe));
    let in_steps = if wrong_result || has(Defect::Wrong(Severity::Mild)) { &values.wrong } else { &values.right };
    let in_result = if wrong_result { &values.wrong } else { &values.right };
    let wordings = &answered.wordings;

    let mut sentences = Vec::new();
    let mut say = |draw: &mut Draw, choices: &[&str], told: &Filling| {
        sentences.push(fill(draw.pick(choices), &[&values.given, told]))
    };
    if draw.chance(0.5) {
        say(draw, wordings.openings, in_result);
    }
    let (keeps_givens, keeps_working) = if has(Defect::MissingSteps(Severity::Severe)) {
        (false, false)
    } else if has(Defect::MissingSteps(Severity::Mild)) {
        (true, false)
    } else {
        (true, true)
    };
    if keeps_givens {
        say(draw, wordings.givens, in_steps);
    }
    if keeps_working {
        say(draw, wordings.workings, in_steps);
    }
    say(draw, wordings.conclusions, in_result);
    if draw.chance(0.5) {
        say(draw, wordings.closings, in_result);
    }

    for &defect in defects {
        match defect {
            Defect::BrokenLanguage(severity) => break_language(draw, &mut sentences, severity),
            Defect::Padding(severity) => pad(draw, &mut sentences, words, severity),
            Defect::Wrong(_) | Defect::MissingSteps(_) | Defect::Irrelevant(_) => {}
        }
    }
    (question, sentences.join(" "))
}

/// Replaces each `{name}` of `template` by its text.
fn fill(template: &str, fillings: &[&Filling]) -> String {
    let mut text = template.to_owned();
    for (name, value) in fillings.iter().copied().flatten() {
        text = text.replace(&format!("{{{name}}}"), value);
    }
    text
}

/// Leaves out, doubles or swaps words: one in eight, or two in five, but always one at least.
/// Words with a digit are never chosen, so that a sound
/// result is not lost.
pub(super) fn break_language(draw: &mut Draw, sentences: &mut [String], severity: Severity) {
    let rate = match severity {
        Severity::Mild => 0.12,
        Severity::Severe => 0.4,
    };
    let plain = |word: &str| !word.contains(|c: char| c.is_ascii_digit());
    let plain_words = sentences.iter().flat_map(|sentence| sentence.split(' ')).filter(|word| plain(word)).count();
    let surely = draw.below(plain_words);
    let mut seen = 0;
    for sentence in sentences {
        let mut broken: Vec<&str> = Vec::new();
        let mut words = sentence.split(' ').peekable();
        while let Some(word) = words.next() {
            if !plain(word) {
                broken.push(word);
                continue;
            }
            let hit = draw.chance(rate) || seen == surely;
            seen += 1;
            match (hit, draw.below(3)) {
                (false, _) => broken.push(word),
                (true, 0) => {}
                (true, 1) if words.peek().is_some_and(|next| plain(next) && *next != word) => {
                    broken.extend(words.next());
                    seen += 1;
                    broken.push(word);
                }
                (true, _) => broken.extend([word, word]),
            }
        }
        *sentence = broken.join(" ");
    }
}

const FILLERS: &[&str] = &[
    "Let me think about this.",
    "This is a nice question.",
    "I hope that this helps.",
    "Thank you for asking.",
    "Well, well, let us see.",
    "It is good to take time.",
    "Many people ask this.",
    "There is a lot to say here.",
    "As we all know, it is so.",
    "I am happy to help.",
    "What a thing to ask me.",
    "I like to talk about it.",
    "People say so for days.",
    "Now I think and think.",
    "You can use this at home.",
];

const SHIFTED_FILLERS: &[&str] = &[
    "What a nice day for this.",
    "We can talk and talk about it.",
    "People like to count on me.",
    "I look at it again and again.",
];

/// Puts one empty sentence, or three, of which two are the same, anywhere in the answer.
fn pad(draw: &mut Draw, sentences: &mut Vec<String>, words: Words, severity: Severity) {
    let list = match words {
        Words::Trained => FILLERS,
        Words::Shifted => SHIFTED_FILLERS,
    };
    let first = draw.pick(list);
    let fillers = match severity {
        Severity::Mild => vec![first],
        Severity::Severe => vec![first, draw.pick(list), first],
    };
    for filler in fillers {
        let at = draw.below(sentences.len() + 1);
        sentences.insert(at, filler.to_owned());
    }
}
