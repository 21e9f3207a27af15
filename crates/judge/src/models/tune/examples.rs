//! Rows as examples of what is learned. What a row lacks, or does not fit the model, costs that row, and is said.

mod decisions;
mod pairs;

use anyhow::{Result, bail};
use judge_cli::replies::Replied;
use judge_cli::terminal::console::{counted_that, tell};
use judge_core::{Backbone, Fields, Prompt, PromptTemplate, Scale};
use judge_data::{DatasetFormat, Input, Record, Unread};
use judge_models::Model;
use judge_models::train::{ClassExample, CompletionExample, MarkExample};

use super::Cli;

/// Examples with what they are told by.
pub(super) struct Examples<E> {
    /// The examples, each with its tokens.
    pub(super) all: Vec<(E, usize)>,
    /// What people said of each as a number on the scale, where there is one: the mean of a row's raters, or what most of them said.
    pub(super) human: Vec<f64>,
    /// The id of the row of each.
    pub(super) ids: Vec<String>,
    /// Whether two neighbours are the two orders of a pair, of which each epoch has one.
    pub(super) one_of_two: bool,
}

/// What makes examples of rows.
pub(super) struct Maker<'a> {
    pub(super) cli: &'a Cli,
    pub(super) model: &'a Model,
    /// The rows that are read at most: held-out ones are read all.
    pub(super) limit: Option<usize>,
}

/// An example, its tokens, and what people said.
type One<E> = (E, usize, f64);

/// The examples of a row, none without a label, or why it cannot be used, in words.
type Made<E> = Result<Vec<One<E>>, String>;

impl Maker<'_> {
    /// Marks: the share of raters for each label; a number between two labels is shared by them.
    pub(super) fn marks(
        &self,
        input: &Input,
        template: &PromptTemplate,
        scale: &Scale,
    ) -> Result<Examples<MarkExample>> {
        self.of_records(input, DatasetFormat::Graded, |record| {
            let raters: Vec<f64> = record.raters().iter().flatten().copied().collect();
            let (Some(target), Some(human)) = (target(&raters, scale)?, record.human()) else { return Ok(Vec::new()) };
            let prompt = self.tokens(template, record)?;
            let n = prompt.len();
            Ok(vec![(MarkExample { prompt, target }, n, human)])
        })
    }

    /// Classes: the grade on the scale that the mean of the raters is [nearest] to.
    pub(super) fn classes(
        &self,
        input: &Input,
        template: &PromptTemplate,
        scale: &Scale,
    ) -> Result<Examples<ClassExample>> {
        self.of_records(input, DatasetFormat::Graded, |record| {
            let Some(human) = record.human() else { return Ok(Vec::new()) };
            on_scale(human, scale)?;
            let (prompt, types) = self.typed(template, record)?;
            let n = prompt.len();
            Ok(vec![(ClassExample { prompt, types, class: nearest(human, scale) }, n, human)])
        })
    }

    /// Last turns of conversations, behind the prompt that opens them: the reply and what the chat template closes it with.
    pub(super) fn completions(&self, input: &Input) -> Result<Examples<CompletionExample>> {
        let format = self.cli.input.records(input, None, Some(1))?.format();
        self.of_records(input, format, |record| {
            let (prompt, reply) = Replied::of(record, &self.cli.model)?.tokens(self.model)?;
            let n = prompt.len() + reply.len();
            self.fits(n)?;
            Ok(vec![(CompletionExample::new(&prompt, &reply), n, 0.0)])
        })
    }

    fn tokens(&self, template: &PromptTemplate, fields: &dyn Fields) -> Result<Vec<u32>, String> {
        self.encoded(&template.fill(fields).map_err(|error| error.to_string())?)
    }

    /// Tokens with their types, which are empty for most models.
    fn typed(&self, template: &PromptTemplate, fields: &dyn Fields) -> Result<(Vec<u32>, Vec<u32>), String> {
        let prompt = template.fill(fields).map_err(|error| error.to_string())?;
        let types = self.model.token_types(&prompt).map_err(|error| error.to_string())?;
        Ok((self.encoded(&prompt)?, types))
    }

    fn encoded(&self, prompt: &Prompt) -> Result<Vec<u32>, String> {
        let tokens = self.model.tokens(prompt).map_err(|error| error.to_string())?;
        self.fits(tokens.len())?;
        Ok(tokens)
    }

    fn fits(&self, tokens: usize) -> Result<(), String> {
        let most = self.model.info().max_len;
        match tokens {
            0 => Err("the prompt has no token".to_owned()),
            n if n > most => Err(format!("{n} tokens, the context has {most}; nothing is cut")),
            _ => Ok(()),
        }
    }

    fn of_records<E>(
        &self,
        input: &Input,
        format: DatasetFormat,
        make: impl Fn(&Record) -> Made<E>,
    ) -> Result<Examples<E>> {
        let records = self.cli.input.records(input, Some(format), self.limit)?;
        let lack = match format {
            DatasetFormat::Pairs => "no label of more than half of the raters, or one that prefers neither response",
            _ => NO_LABEL,
        };
        gathered(
            input,
            ["row", lack],
            records.map(|record| {
                let record = record?;
                let made = match (record.unread(), record.no_grade()) {
                    (Some(why), _) => Err(why.detail.clone()),
                    // A grade that is none, where one is learned from.
                    (None, Some(why)) => make(&record).and_then(|made| match made.is_empty() {
                        true => Err(why.to_owned()),
                        false => Ok(made),
                    }),
                    (None, None) => make(&record),
                };
                Ok((record.id().to_string(), made))
            }),
        )
    }
}

/// What rows without an example have.
const NO_LABEL: &str = "no label";

/// The examples of rows, each with its id. What cannot be used is said: `noun` is what an id names, `lack` what rows
/// without an example have.
fn gathered<E>(
    input: &Input,
    [noun, lack]: [&str; 2],
    rows: impl Iterator<Item = Result<(String, Made<E>)>>,
) -> Result<Examples<E>> {
    let mut examples = Examples { all: Vec::new(), human: Vec::new(), ids: Vec::new(), one_of_two: false };
    let (mut unread, mut without) = (Unread::default(), 0);
    for row in rows {
        let (id, made) = row?;
        unread.note(&id, made.as_ref().err().cloned());
        let made = made.unwrap_or_default();
        without += usize::from(made.is_empty());
        for (example, n, human) in made {
            examples.all.push((example, n));
            examples.human.push(human);
            examples.ids.push(id.clone());
        }
    }
    without -= unread.count();
    let path = input.path().display();
    let without = (without > 0).then(|| format!("{} {lack}", counted_that(without, "row", ["has", "have"])));
    if examples.all.is_empty() {
        let first = unread.first().map(|(id, why)| format!("the first that cannot be used is {id}: {why}"));
        let why: String = without.into_iter().chain(first).map(|clause| format!("; {clause}")).collect();
        bail!("{path}: no row can be learned from{why}");
    }
    if let Some(without) = without {
        tell(format_args!("note: {path}: {without}"));
    }
    if let Some((id, why)) = unread.first() {
        let left = ["cannot be learned from and is left out", "cannot be learned from and are left out"];
        let left = counted_that(unread.count(), noun, left);
        tell(format_args!("note: {path}: {left}; the first is {id}: {why}"));
    }
    Ok(examples)
}

fn on_scale(score: f64, scale: &Scale) -> Result<(), String> {
    let (low, high) = scale.range();
    if (low..=high).contains(&score) {
        Ok(())
    } else {
        Err(format!("a score of {score}, off the scale {low} to {high}"))
    }
}

/// The place of the point of a scale that a number is nearest to, the upper one of two, as grades of probes are rounded.
pub(super) fn nearest(score: f64, scale: &Scale) -> usize {
    let distances = scale.values().map(|value| (value - score).abs()).enumerate();
    let nearest = distances.min_by(|(i, a), (j, b)| a.total_cmp(b).then(j.cmp(i)));
    nearest.map_or(0, |(place, _)| place)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// 2.5 is 3, the class that `judge probe train` makes of it.
    #[test]
    fn a_mean_between_two_grades_is_the_upper_one() {
        let scale = Scale::integers(1, 5).unwrap();
        let grades = [1.0, 1.5, 2.4, 2.5, 2.6, 4.5, 5.0].map(|mean| 1 + nearest(mean, &scale));
        assert_eq!(grades, [1, 2, 2, 3, 3, 5, 5]);
    }

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
