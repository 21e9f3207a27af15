//! Rows as examples of what is learned. What a row lacks, or does not fit the model, costs that row, and is said.

use std::borrow::Cow;
use std::cmp::Ordering;

use anyhow::{Context, Result, bail};
use judge_core::reward::{RewardJudge, closed_conversation};
use judge_core::{Backbone, Fields, Message, Prompt, PromptTemplate, Scale};
use judge_data::{DatasetFormat, Input, PairRecord, PromptInput, Record};
use judge_models::Model;
use judge_models::train::{ClassExample, CompletionExample, MarkExample, PairExample};

use super::Cli;
use super::cli::Objective;
use crate::terminal::console::tell;
use crate::unread::Unread;

/// Examples with what they are told by.
pub(super) struct Examples<E> {
    /// The examples, each with its tokens.
    pub(super) all: Vec<(E, usize)>,
    /// What people said of each: the mean of a row's raters, for marks alone.
    pub(super) human: Vec<f64>,
}

impl<E> Default for Examples<E> {
    fn default() -> Self {
        Self { all: Vec::new(), human: Vec::new() }
    }
}

/// What makes examples of rows.
pub(super) struct Maker<'a> {
    cli: &'a Cli,
    model: &'a Model,
    template: PromptTemplate,
    scale: &'a Scale,
}

/// Why a row is no example, in words.
type Made<E> = Result<Option<E>, String>;

/// The response of a pair as that of a row by itself.
struct Side<'a> {
    pair: &'a PairRecord,
    response: &'a str,
}

impl Fields for Side<'_> {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        if name == "response" { Some(self.response.into()) } else { self.pair.field(name) }
    }

    fn names(&self) -> Vec<String> {
        [vec!["response".to_owned()], self.pair.names()].concat()
    }
}

impl<'a> Maker<'a> {
    /// A maker for the model; `template` and `scale` are those that marks are read with.
    pub(super) fn new(cli: &'a Cli, model: &'a Model, template: &PromptTemplate, scale: &'a Scale) -> Self {
        let template = match cli.objective {
            Objective::Reward | Objective::Class => RewardJudge::template(),
            _ => template.clone(),
        };
        Self { cli, model, template, scale }
    }

    /// Marks: the share of raters for each label; a number between two labels is shared by them.
    pub(super) fn marks(&self, input: &Input) -> Result<Examples<MarkExample>> {
        self.of_rows(input, DatasetFormat::Graded, |record| {
            let raters = record.raters();
            let Some(target) = target(&raters, self.scale)? else { return Ok(None) };
            let prompt = self.tokens(record)?;
            let n = prompt.len();
            let human = raters.iter().sum::<f64>() / raters.len() as f64;
            Ok(Some((MarkExample { prompt, target }, n, human)))
        })
    }

    /// Pairs whose raters prefer one response: the better one first.
    pub(super) fn pairs(&self, input: &Input) -> Result<Examples<PairExample>> {
        self.of_rows(input, DatasetFormat::Pairs, |record| {
            let Record::Pair(pair) = record else { return Err("expected a pair".to_owned()) };
            let Some(preferred) = pair.human().filter(|preferred| *preferred != 0.5) else { return Ok(None) };
            let side = |response| self.tokens(&Side { pair, response });
            let (a, b) = (side(&pair.response_a)?, side(&pair.response_b)?);
            let (better, worse) = if preferred > 0.5 { (a, b) } else { (b, a) };
            let margin = match pair.extra.text("margin") {
                None | Some("null") => 0.0,
                Some(text) => {
                    let margin = text.parse().ok().filter(|margin: &f32| margin.is_finite());
                    margin.ok_or_else(|| format!("expected \"margin\" to be a finite number, found {text}"))?
                }
            };
            let n = better.len() + worse.len();
            Ok(Some((PairExample { better, worse, margin }, n, 0.0)))
        })
    }

    /// Classes: the grade on the scale that the mean of the raters is nearest to, the lower one of two.
    pub(super) fn classes(&self, input: &Input) -> Result<Examples<ClassExample>> {
        self.of_rows(input, DatasetFormat::Graded, |record| {
            let Some(human) = record.human() else { return Ok(None) };
            on_scale(human, self.scale)?;
            let distance = |value: &f64| (value - human).abs();
            let nearest = self
                .scale
                .values()
                .enumerate()
                .min_by(|(_, a), (_, b)| distance(a).partial_cmp(&distance(b)).unwrap_or(Ordering::Equal));
            let (prompt, types) = self.typed(record)?;
            let n = prompt.len();
            Ok(nearest.map(|(class, _)| (ClassExample { prompt, types, class }, n, human)))
        })
    }

    /// Last turns of conversations, behind the prompt that opens them: the reply and what the chat template closes it with.
    pub(super) fn completions(&self, input: &Input) -> Result<Examples<CompletionExample>> {
        let format = self.cli.input.records(input, None, Some(1))?.format();
        self.of_rows(input, format, |record| {
            let messages = match record {
                Record::Prompt(record) => match &record.input {
                    PromptInput::Messages(messages) => messages.clone(),
                    PromptInput::Text(_) => return Err("a prompt without a reply; `messages` end with one".to_owned()),
                },
                Record::Graded(row) => {
                    vec![Message::user(row.instruction.clone()), Message::new("assistant", row.response.clone())]
                }
                _ => return Err("expected `messages`, or `instruction` and `response`".to_owned()),
            };
            let Some((last, before)) = messages.split_last().filter(|(last, _)| last.role == "assistant") else {
                return Err("expected the last turn to be the assistant's".to_owned());
            };
            if last.content.is_empty() {
                return Err("the reply is empty".to_owned());
            }
            let args = |prompt: Prompt| self.cli.model.dress(prompt);
            let prompt = self.encoded(&args(Prompt::chat(before.to_vec())))?;
            let whole = self.encoded(&args(closed_conversation(messages.clone())))?;
            let Some(reply) = whole.strip_prefix(&prompt[..]).filter(|reply| !reply.is_empty()) else {
                return Err(
                    "the chat template does not render the conversation as its prompt and a reply behind it".to_owned()
                );
            };
            Ok(Some((CompletionExample::new(&prompt, reply), whole.len(), 0.0)))
        })
    }

    fn tokens(&self, fields: &dyn Fields) -> Result<Vec<u32>, String> {
        self.encoded(&self.template.fill(fields).map_err(|error| error.to_string())?)
    }

    /// Tokens with their types, which are empty for most models.
    fn typed(&self, fields: &dyn Fields) -> Result<(Vec<u32>, Vec<u32>), String> {
        let prompt = self.template.fill(fields).map_err(|error| error.to_string())?;
        let types = self.model.token_types(&prompt).map_err(|error| error.to_string())?;
        Ok((self.encoded(&prompt)?, types))
    }

    fn encoded(&self, prompt: &Prompt) -> Result<Vec<u32>, String> {
        let tokens = self.model.tokens(prompt).map_err(|error| error.to_string())?;
        let most = self.model.info().max_len;
        match tokens.len() {
            0 => Err("the prompt has no token".to_owned()),
            n if n > most => Err(format!("{n} tokens, the context has {most}; nothing is cut")),
            _ => Ok(tokens),
        }
    }

    fn of_rows<E>(
        &self,
        input: &Input,
        format: DatasetFormat,
        make: impl Fn(&Record) -> Made<(E, usize, f64)>,
    ) -> Result<Examples<E>> {
        let (mut examples, mut unread, mut without) = (Examples::default(), Unread::default(), 0);
        for record in self.cli.input.records(input, Some(format), self.cli.model.limit)? {
            let record = record?;
            let made = match record.unread() {
                Some(why) => Err(why.detail.clone()),
                None => make(&record),
            };
            unread.note(record.id(), made.as_ref().err().cloned());
            match made {
                Ok(Some((example, n, human))) => {
                    examples.all.push((example, n));
                    examples.human.push(human);
                }
                Ok(None) => without += 1,
                Err(_) => {}
            }
        }
        let path = input.path().display();
        if examples.all.is_empty() {
            let first = unread.first().map(|(id, why)| format!("; the first that cannot be used is {id}: {why}"));
            bail!("{path}: no row can be learned from; {without} have no label{}", first.unwrap_or_default());
        }
        if without > 0 {
            tell(format_args!("note: {path}: {without} rows have no label, or one that prefers neither response"));
        }
        unread.tell_that("cannot be learned from, and are left out");
        Ok(examples)
    }
}

fn on_scale(score: f64, scale: &Scale) -> Result<(), String> {
    let (low, high) = scale.range();
    if (low..=high).contains(&score) {
        Ok(())
    } else {
        Err(format!("a score of {score}, off the scale {low} to {high}"))
    }
}

/// The share of raters for each point of the scale; `None` without any.
fn target(raters: &[f64], scale: &Scale) -> Result<Option<Vec<f32>>, String> {
    let values: Vec<f64> = scale.values().collect();
    let mut shares = vec![0.0; values.len()];
    for &score in raters {
        on_scale(score, scale)?;
        let above = values.iter().position(|value| *value >= score).unwrap_or(values.len() - 1);
        match above.checked_sub(1) {
            Some(below) if values[above] > score => {
                let part = (score - values[below]) / (values[above] - values[below]);
                shares[above] += part;
                shares[below] += 1.0 - part;
            }
            _ => shares[above] += 1.0,
        }
    }
    let n = raters.len() as f64;
    Ok((!raters.is_empty()).then(|| shares.into_iter().map(|share| (share / n) as f32).collect()))
}

/// What distinguishes these examples and their order from others, for a checkpoint.
pub(super) fn data(
    cli: &Cli,
    input: &Input,
    held_out: Option<&Input>,
    template: &PromptTemplate,
    scale: &Scale,
) -> Result<String> {
    let identity = |input: &Input| input.identity().with_context(|| input.path().display().to_string());
    let rows = [Some(identity(input)?), held_out.map(identity).transpose()?];
    let labels: Vec<&str> = scale.labels().collect();
    let options = format!(
        "{:?} {:?} {:?} {:?} {} {} {} {:?} {} {labels:?} {}",
        cli.objective,
        cli.model.limit,
        cli.input.columns,
        cli.model.template_args,
        cli.model.date,
        cli.epochs,
        cli.batch_size,
        cli.batch_tokens,
        cli.seed,
        template.id()
    );
    Ok(format!("{} {options}", serde_json::to_string(&rows)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raters_share_a_target() {
        let scale = Scale::integers(1, 5).unwrap();
        let of = |raters: &[f64]| target(raters, &scale);
        assert_eq!(of(&[5.0, 5.0, 1.0, 2.0]).unwrap().unwrap(), [0.25, 0.25, 0.0, 0.0, 0.5]);
        assert_eq!(of(&[2.25]).unwrap().unwrap(), [0.0, 0.75, 0.25, 0.0, 0.0]);
        assert_eq!(of(&[]).unwrap(), None);
        assert!(of(&[0.5]).unwrap_err().contains("off the scale 1 to 5"));
        assert!(of(&[f64::NAN]).is_err());
    }
}
