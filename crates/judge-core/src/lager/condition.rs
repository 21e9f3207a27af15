use serde::{Deserialize, Serialize};

use crate::{
    Error, JudgeError, Reading, Reason, Unscored,
    reading::{LabelLogits, LabelStep},
    request::{Generation, ReadAt},
};

/// How a model is brought to the point where it would write a score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "condition", rename_all = "snake_case", deny_unknown_fields)]
pub enum Condition {
    /// Nothing is generated: logits are read at the prompt's last token. The reply should be opened up to the label,
    /// e.g. by `score: ` ([`LagerSettings::opening`](super::LagerSettings::opening)).
    /// The fastest condition by far, and the one in which no item lacks a score for what the model wrote.
    PromptEnd,
    /// The model writes its score and little else.
    Direct {
        /// How the reply is generated.
        generation: Generation,
        /// Which of the reply's labels is the score.
        rule: ScoreRule,
    },
    /// The model writes its reasons first, then its score.
    Reasoning {
        /// How the reply is generated.
        generation: Generation,
        /// Which of the reply's labels is the score.
        rule: ScoreRule,
    },
}

impl Condition {
    /// Direct, as LAGER runs it: greedy, at most 10 new tokens, the last label counts.
    pub fn direct() -> Self {
        Self::Direct { generation: greedy(10), rule: ScoreRule::LastLabel }
    }

    /// Reasoning: greedy, at most 256 new tokens, the first label after `Score:` counts.
    ///
    /// LAGER's program takes the last label here too, which a number in truncated feedback satisfies;
    /// [`ScoreRule::LastLabel`] gives that.
    pub fn reasoning() -> Self {
        Self::Reasoning { generation: greedy(256), rule: ScoreRule::AfterMarker { marker: "Score:".to_owned() } }
    }

    /// The name without settings: `prompt-end`, `direct` or `reasoning`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::PromptEnd => "prompt-end",
            Self::Direct { .. } => "direct",
            Self::Reasoning { .. } => "reasoning",
        }
    }

    /// What is generated; `None` at the prompt's end.
    pub fn generation(&self) -> Option<&Generation> {
        match self {
            Self::PromptEnd => None,
            Self::Direct { generation, .. } | Self::Reasoning { generation, .. } => Some(generation),
        }
    }

    /// Where logits are read.
    pub fn read_at(&self) -> ReadAt {
        match self {
            Self::PromptEnd => ReadAt::PromptEnd,
            Self::Direct { .. } | Self::Reasoning { .. } => ReadAt::LabelSteps,
        }
    }

    /// The step of `labels` that predicts the score.
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] if the model wrote no score; [`Error::NotRead`] if `labels` were read elsewhere, or `reading` has no text
    /// where the rule needs it.
    pub fn score_step<'r>(&self, labels: &'r LabelLogits, reading: &Reading) -> Result<&'r LabelStep, JudgeError> {
        match self {
            Self::PromptEnd => Ok(labels.prompt_end()?),
            Self::Direct { rule, .. } | Self::Reasoning { rule, .. } => rule.find(labels, reading),
        }
    }
}

fn greedy(max_new_tokens: usize) -> Generation {
    Generation { max_new_tokens, ..Generation::default() }
}

/// Which generated token is the score. A token is a label only if it *is* the label's vocabulary entry: ` 4` or `42` is not `4`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "snake_case", deny_unknown_fields)]
pub enum ScoreRule {
    /// The last label token. `3/5` is scored 5, and so is whatever digit a cut-off reply ends with.
    LastLabel,
    /// The first label token that begins at or after the end of the marker's first occurrence in the text.
    AfterMarker {
        /// Exact text, upper and lower case apart. Empty: the first label counts.
        marker: String,
    },
}

impl ScoreRule {
    /// The step of `labels` whose token is the score. Works on those of [`ReadAt::LabelSteps`] and [`ReadAt::EveryStep`].
    ///
    /// # Errors
    /// [`JudgeError::Unscored`] with [`Reason::NoLabel`] or [`Reason::NoMarker`]; [`Error::NotRead`] if `reading` has no generated text.
    pub fn find<'r>(&self, labels: &'r LabelLogits, reading: &Reading) -> Result<&'r LabelStep, JudgeError> {
        let generated = reading.generated.as_ref().ok_or(Error::NotRead { what: "generated text" })?;
        let no_score = |reason, detail| Err(Unscored::new(reason, detail).into());
        match self {
            Self::LastLabel => match label_steps(labels).last() {
                Some(step) => Ok(step),
                None => no_score(
                    Reason::NoLabel,
                    format!("no label among {} new tokens: {:?}", generated.tokens.len(), generated.text),
                ),
            },
            Self::AfterMarker { marker } => {
                let Some(start) = generated.text.find(marker.as_str()) else {
                    return no_score(Reason::NoMarker, format!("no {marker:?} in {:?}", generated.text));
                };
                let marker_end = start + marker.len();
                let begins = |step: &LabelStep| match step.step.checked_sub(1) {
                    None => Some(0),
                    Some(before) => generated.text_ends.get(before).copied(),
                };
                match label_steps(labels).find(|step| begins(step).is_some_and(|begin| begin >= marker_end)) {
                    Some(step) => Ok(step),
                    None => no_score(Reason::NoLabel, format!("no label after {marker:?} in {:?}", generated.text)),
                }
            }
        }
    }
}

fn label_steps(labels: &LabelLogits) -> impl DoubleEndedIterator<Item = &LabelStep> {
    labels.steps.iter().filter(|step| step.token.is_some_and(|token| labels.tokens.contains(&token)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Layer, Lens,
        reading::{Finish, Generated},
    };

    /// A reading of a reply cut into `pieces`; the labels are the tokens `1` to `5` (ids 1 to 5), other pieces have id 9.
    fn reading(pieces: &[&str], at: ReadAt) -> Reading {
        let id = |piece: &str| piece.parse().ok().filter(|id| piece.len() == 1 && (1..=5).contains(id)).unwrap_or(9);
        let steps = pieces.iter().enumerate().map(|(step, piece)| LabelStep {
            step,
            token: Some(id(piece)),
            logits: vec![0.0; 5],
            label_mass: None,
        });
        let mut end = 0;
        let text_ends = pieces
            .iter()
            .map(|piece| {
                end += piece.len();
                end
            })
            .collect();
        Reading {
            labels: vec![LabelLogits {
                tokens: vec![1, 2, 3, 4, 5],
                layers: vec![Layer(0)],
                lens: Lens::Raw,
                at,
                steps: steps.filter(|s| at == ReadAt::EveryStep || s.token != Some(9)).collect(),
            }],
            generated: Some(Generated {
                tokens: pieces.iter().map(|piece| id(piece)).collect(),
                text: pieces.concat(),
                text_ends,
                n_tokens: Some(pieces.len()),
                finish: Finish::EndToken,
                alternatives: Vec::new(),
            }),
            ..Reading::default()
        }
    }

    fn found(rule: &ScoreRule, pieces: &[&str]) -> Result<usize, Reason> {
        let both = [ReadAt::LabelSteps, ReadAt::EveryStep].map(|at| {
            let reading = reading(pieces, at);
            rule.find(&reading.labels[0], &reading).map(|step| step.step).map_err(|error| match error {
                JudgeError::Unscored(unscored) => unscored.reason,
                JudgeError::Failed(error) => panic!("{error}"),
            })
        });
        assert_eq!(both[0], both[1]);
        both[0]
    }

    fn after(marker: &str) -> ScoreRule {
        ScoreRule::AfterMarker { marker: marker.to_owned() }
    }

    #[test]
    fn last_label() {
        let rule = ScoreRule::LastLabel;
        assert_eq!(found(&rule, &["score", ":", " ", "4"]), Ok(3));
        assert_eq!(found(&rule, &["4", ".", "5"]), Ok(2));
        assert_eq!(found(&rule, &["4", "\n", "because", "1", "."]), Ok(3));
        assert_eq!(found(&rule, &["44", " 4"]), Err(Reason::NoLabel));
        assert_eq!(found(&rule, &[]), Err(Reason::NoLabel));
    }

    #[test]
    fn first_label_after_the_marker() {
        assert_eq!(found(&after("Score:"), &["2", " flaws.", " Score", ":", " ", "4", "/", "5"]), Ok(5));
        assert_eq!(found(&after("Score:"), &["Score", ": 3 ", "x", "2"]), Ok(3));
        assert_eq!(found(&after("Score:"), &["4", " Score", ":"]), Err(Reason::NoLabel));
        assert_eq!(found(&after("Score:"), &["score", ":", "4"]), Err(Reason::NoMarker));
        assert_eq!(found(&after(""), &["3", "4"]), Ok(0));
        // A label inside the marker is not after it; the first occurrence of the marker counts.
        assert_eq!(found(&after("Level 1:"), &["Level ", "1", ":", "2"]), Ok(3));
        assert_eq!(found(&after("s:"), &["s:", "4", "s:", "2"]), Ok(1));
    }

    #[test]
    fn a_reading_without_the_parts_is_an_error_not_a_verdict() {
        let mut bare = reading(&["4"], ReadAt::LabelSteps);
        bare.generated = None;
        let failed = |found: Result<&LabelStep, JudgeError>| matches!(found, Err(JudgeError::Failed(_)));
        assert!(failed(after("x").find(&bare.labels[0], &bare)));
        assert!(failed(Condition::PromptEnd.score_step(&bare.labels[0], &bare)));
    }
}
