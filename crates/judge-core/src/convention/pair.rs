use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{after_thought, double_brackets, only};
use crate::{Error, error::by_name};

/// How a text says which of two responses is better.
///
/// ```
/// use std::cmp::Ordering::{Greater, Less};
/// use judge_core::prompted::PairConvention;
///
/// assert_eq!(PairConvention::Letters.parse("Both are right, but [[B]] is clearer."), Some(Less));
/// assert_eq!("score-pair".parse::<PairConvention>()?.parse("8 5\nThe first one …"), Some(Greater));
/// assert_eq!(PairConvention::Strict.parse("[[A]], or rather [[B]]"), None);
/// # Ok::<(), judge_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PairConvention {
    /// `[[A]]`, `[[B]]` or `[[C]]` for a tie, all occurrences of the same letter. The form that this project's own prompts ask for.
    Strict,
    /// MT-bench (FastChat's `llm_judge`): looks for `[[A]]`, then `[[B]]`, then `[[C]]`, wherever they are;
    /// the first that occurs at all counts.
    Letters,
    /// Auto-J: what follows the last `final decision is ` begins, in any case, with `response 1`, `response 2` or `tie`.
    Decision,
    /// PandaLM: the first line of the trimmed text is exactly `1` or `2`, or `tie` in any case.
    /// Its program takes every other text for a tie.
    FirstLine,
    /// LLMBar's plain prompts: `Output (a)` or `Output (b)` where a line begins, with at most one space before it; (a) is looked for first.
    OutputAb,
    /// LLMBar's reasoning prompts: `Output (a) is better.` or `Output (b) is better.` anywhere, where any one character may stand for the
    /// full stop; (a) is looked for first, so that it counts where both occur, whichever is last.
    OutputAbSentence,
    /// JudgeLM and FastChat's reviews: the first line is two numbers with one space or one comma between them;
    /// the larger wins, and equal ones are a tie.
    ScorePair,
    /// MT-bench's pair of grades: the first `[[8, 5]]`, or else the first `[8, 5]`; a tie if they differ by 0.1 or less.
    RatingPair,
    /// The library prometheus-eval: the first line that ends in `[RESULT] A`, `[Result] Response B`, `[Response A]` or `[RESULT: B]`, or
    /// that is `Result: A`, in any case.
    Result,
    /// Arena-Hard and JudgeBench: `[[A>>B]]`, `[[A>B]]`, `[[A=B]]`, `[[B>A]]` or `[[B>>A]]`, all occurrences the same. A reply that opens a
    /// thought with `<think>` is read behind its end, and has no verdict where it has none.
    Arrows,
    /// The last `\\boxed{…}` holds `A`, `B`, `tie`, or a verdict of [`Arrows`](Self::Arrows) without its brackets; thoughts as there.
    Boxed,
    /// The last `<answer>…</answer>` holds `A`, `B`, `tie`, or a verdict of [`Arrows`](Self::Arrows), with or without `[[…]]`; thoughts as
    /// there.
    AnswerTags,
    /// Nothing but `A` or `1`, `B` or `2`, or `0` or `tie` in any case.
    Bare,
}

crate::names! { PairConvention {
    Strict: "strict",
    Letters: "letters",
    Decision: "decision",
    FirstLine: "first-line",
    OutputAb: "output-ab",
    OutputAbSentence: "output-ab-sentence",
    ScorePair: "score-pair",
    RatingPair: "rating-pair",
    Result: "result",
    Arrows: "arrows",
    Boxed: "boxed",
    AnswerTags: "answer-tags",
    Bare: "bare",
}}

impl PairConvention {
    /// What a verdict of this form looks like, for people.
    pub fn form(self) -> &'static str {
        match self {
            Self::Strict | Self::Letters => "[[A]], [[B]] or [[C]]",
            Self::Decision => "`final decision is Response 1`, `Response 2` or `Tie`",
            Self::FirstLine => "1, 2 or Tie alone on the first line",
            Self::OutputAb => "`Output (a)` or `Output (b)` at the start of a line",
            Self::OutputAbSentence => "`Output (a) is better.` or `Output (b) is better.`",
            Self::ScorePair => "two numbers on the first line, such as 8 5",
            Self::RatingPair => "[[8, 5]]",
            Self::Result => "[RESULT] A or [RESULT] B at the end of a line",
            Self::Arrows => "[[A>>B]], [[A>B]], [[A=B]], [[B>A]] or [[B>>A]]",
            Self::Boxed => "\\boxed{A>>B}, or \\boxed{A}",
            Self::AnswerTags => "<answer>[[A]]</answer>, <answer>A</answer>, or <answer>A>B</answer>",
            Self::Bare => "A, B or tie, or 1, 2 or 0, and nothing else",
        }
    }

    /// Where a verdict may stand, and which of several counts, for people; empty where the form says it.
    pub fn rule(self) -> &'static str {
        match self {
            Self::Strict => "anywhere, all of them the same",
            Self::Letters | Self::OutputAbSentence => "anywhere, the first of these that occurs",
            Self::OutputAb => "the first of these that occurs",
            Self::Decision => "anywhere, the last one",
            Self::RatingPair => {
                "the first in double brackets, else the first in single ones; a tie if they differ by 0.1 or less"
            }
            Self::Arrows => "behind any thought, all of them the same",
            Self::Boxed | Self::AnswerTags => "behind any thought, the last one",
            Self::FirstLine | Self::ScorePair | Self::Result | Self::Bare => "",
        }
    }

    /// Whose form it is: this project's, a benchmark's, a published judge's, or that of models or tables in general.
    pub fn origin(self) -> &'static str {
        match self {
            Self::Strict => "this project",
            Self::Letters | Self::RatingPair => "MT-bench",
            Self::Decision => "Auto-J",
            Self::FirstLine => "PandaLM",
            Self::OutputAb | Self::OutputAbSentence => "LLMBar",
            Self::ScorePair => "JudgeLM",
            Self::Result => "prometheus-eval",
            Self::Arrows => "Arena-Hard, JudgeBench",
            Self::Boxed | Self::AnswerTags => "models that reason",
            Self::Bare => "tables of verdicts",
        }
    }

    /// Which response a text prefers, `Greater` for the one that was shown first; `None` if it holds no verdict of this form.
    pub fn parse(self, text: &str) -> Option<Ordering> {
        match self {
            Self::Strict => only(double_brackets(text).filter_map(letter)),
            Self::Letters => first_that_occurs(text, &[("[[A]]", Greater), ("[[B]]", Less), ("[[C]]", Equal)]),
            Self::Decision => {
                let (_, rest) = text.trim().rsplit_once("final decision is ")?;
                let rest = rest.trim().to_lowercase();
                let words = [("response 1", Greater), ("response 2", Less), ("tie", Equal)];
                words.into_iter().find(|(words, _)| rest.starts_with(words)).map(|(_, verdict)| verdict)
            }
            Self::FirstLine => match text.trim().split('\n').next()? {
                "1" => Some(Greater),
                "2" => Some(Less),
                line => line.eq_ignore_ascii_case("tie").then_some(Equal),
            },
            Self::OutputAb => {
                let opens = |words| text.split('\n').any(|l| l.strip_prefix(' ').unwrap_or(l).starts_with(words));
                if opens("Output (a)") { Some(Greater) } else { opens("Output (b)").then_some(Less) }
            }
            Self::OutputAbSentence => {
                let says = |words: &str| {
                    text.match_indices(words).any(|(at, _)| {
                        let next = text[at + words.len()..].chars().next();
                        next.is_some_and(|c| c != '\n')
                    })
                };
                if says("Output (a) is better") { Some(Greater) } else { says("Output (b) is better").then_some(Less) }
            }
            Self::ScorePair => {
                let line = text.split('\n').next()?.replace(',', " ");
                compare(line.split(' '), 0.0)
            }
            Self::RatingPair => rating_pair(text, "[[", "]]").or_else(|| rating_pair(text, "[", "]")),
            Self::Result => {
                // Lower case has the same length.
                let (text, mut end) = (text.to_ascii_lowercase(), 0);
                text.split_inclusive('\n').find_map(|line| {
                    end += line.len();
                    // A blank line adds nothing to what is before it.
                    if line.trim().is_empty() { None } else { result_letter(&text[..end]) }
                })
            }
            Self::Arrows => {
                only(double_brackets(after_thought(text)?).filter_map(|text| Some((text.trim(), arrow(text)?))))
                    .map(|(_, verdict)| verdict)
            }
            Self::Boxed => side(last_between(after_thought(text)?, "\\boxed{", "}")?),
            Self::AnswerTags => {
                let inside = last_between(after_thought(text)?, "<answer>", "</answer>")?.trim();
                side(inside.strip_prefix("[[").and_then(|inside| inside.strip_suffix("]]")).unwrap_or(inside))
            }
            Self::Bare => match text.trim() {
                "A" | "1" => Some(Greater),
                "B" | "2" => Some(Less),
                "0" => Some(Equal),
                word => word.eq_ignore_ascii_case("tie").then_some(Equal),
            },
        }
    }
}

impl FromStr for PairConvention {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        by_name("convention for a preference", name, &Self::ALL, Self::as_str)
    }
}

/// What stands between the last `open` that is closed and its `close`.
fn last_between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let (before, _) = text.rsplit_once(close)?;
    let (_, inside) = before.rsplit_once(open)?;
    Some(inside.split_once(close).map_or(inside, |(inside, _)| inside))
}

/// A comparison of the two sides.
fn arrow(text: &str) -> Option<Ordering> {
    match text.trim() {
        "A>>B" | "A>B" | "B<A" | "B<<A" => Some(Greater),
        "B>>A" | "B>A" | "A<B" | "A<<B" => Some(Less),
        "A=B" | "B=A" => Some(Equal),
        _ => None,
    }
}

/// A side, a tie, or a comparison.
fn side(text: &str) -> Option<Ordering> {
    let text = text.trim();
    match text.strip_prefix("\\text{").unwrap_or(text).trim() {
        "A" => Some(Greater),
        "B" => Some(Less),
        text if text.eq_ignore_ascii_case("tie") => Some(Equal),
        text => arrow(text),
    }
}

fn letter(text: &str) -> Option<Ordering> {
    match text {
        "A" => Some(Greater),
        "B" => Some(Less),
        "C" => Some(Equal),
        _ => None,
    }
}

fn first_that_occurs(text: &str, verdicts: &[(&str, Ordering)]) -> Option<Ordering> {
    verdicts.iter().find(|(words, _)| text.contains(words)).map(|&(_, verdict)| verdict)
}

/// The order of exactly two finite numbers; a difference of no more than `margin` is a tie.
fn compare<'t>(numbers: impl Iterator<Item = &'t str>, margin: f64) -> Option<Ordering> {
    let numbers: Vec<f64> =
        numbers.map(|text| text.trim().parse().ok().filter(|x: &f64| x.is_finite())).collect::<Option<_>>()?;
    let [first, second] = numbers[..] else { return None };
    let gap = first - second;
    Some(if gap.abs() <= margin { Equal } else { gap.total_cmp(&0.0) })
}

/// The first `open a,b close` with digits and at most one decimal point in each number, and at most one white space behind the comma.
fn rating_pair(text: &str, open: &str, close: &str) -> Option<Ordering> {
    // No further than the digits: the text behind a bracket is not searched for each of them.
    let number = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    text.match_indices(open).find_map(|(at, _)| {
        let opened = &text[at + open.len()..];
        let (first, rest) = opened.split_at(number(opened));
        let rest = rest.strip_prefix(',')?;
        let rest = rest.strip_prefix(char::is_whitespace).unwrap_or(rest);
        let (second, rest) = rest.split_at(number(rest));
        (rest.starts_with(close) && super::grade::is_plain(first) && super::grade::is_plain(second))
            .then(|| compare([first, second].into_iter(), 0.1))?
    })
}

/// A marker and a letter at the end of the text, which is in lower case.
fn result_letter(text: &str) -> Option<Ordering> {
    let text = text.trim_end();
    let text = text.strip_suffix(']').unwrap_or(text);
    let endings = [("a", Greater), ("b", Less)];
    let (before, verdict) = endings.into_iter().find_map(|(end, verdict)| Some((text.strip_suffix(end)?, verdict)))?;
    let marker = before.trim_end();
    let spaced = marker.len() < before.len();
    let line_start = |rest: &str| rest.is_empty() || rest.ends_with('\n');
    let marked = marker.ends_with("[result]")
        || marker.ends_with("[result:")
        || spaced && marker.ends_with("[response")
        || marker.strip_suffix("response").is_some_and(|rest| {
            let marker = rest.trim_end();
            marker.len() < rest.len() && marker.ends_with("[result]")
        })
        || marker.strip_suffix("result:").or_else(|| marker.strip_suffix("result")).is_some_and(line_start);
    marked.then_some(verdict)
}
