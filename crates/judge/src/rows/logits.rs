//! The logits of the score labels at every layer of a model, for each prompt of a file.
//!
//! `judge logits --input prompts.jsonl --output logits.jsonl`

mod cli;

use anyhow::Result;
use judge_core::{
    Backbone, JudgeError, Outcome, Unscored, Want,
    lager::Condition,
    request::{LabelRead, TokenId},
};
use judge_data::{CarryCheck, Error, Fate, LabelTable, Opened, Resolved, ScoreOutcome, ScoreRow};
use serde_json::json;

use self::cli::Position;
use crate::prompts::Prompts;
use crate::terminal::console::{end_of_rows, say, tell};

pub(crate) use self::cli::Cli;

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.check()?;
    let labels = cli.labels()?;
    if let Some(note) = mixed_spaces(&labels) {
        tell(note);
    }
    let condition = cli.condition();
    let input = cli.input.open()?;
    let prompts = Prompts { input: &input, columns: &cli.input, model: &cli.model, prefill: &cli.prefill };
    let mut carried = CarryCheck::new(&cli.carry, &ScoreRow::KNOWN);
    let rows = prompts.check(|record| carried.see(record.clone()))?;
    carried.finish(&input)?;
    let plan = cli.output.plan(
        "layer_logits",
        &input,
        rows,
        &cli.input,
        &cli.model,
        None,
        cli.settings(&labels, &condition)?,
    )?;
    let start = match plan.open()? {
        Opened::Complete(record) => {
            say(format_args!("{} is complete: {rows} rows; nothing to do", cli.output.output.display()))?;
            return end_of_rows(&record.counts);
        }
        Opened::Ready(start) => start,
    };
    let model = cli.model.load()?;
    let tokens = labels.iter().map(|label| model.token(label)).collect::<Result<Vec<TokenId>, _>>()?;
    let layers = cli.layers.of_model(model.info().n_layers)?;
    let read = LabelRead { tokens, layers, lens: cli.lens.into(), at: condition.read_at(), label_mass: false };
    let want = Want { labels: vec![read.clone()], generate: condition.generation().cloned(), ..Want::default() };
    if cli.position == Position::PromptEnd
        && let Some((label, found)) = prompts.split_label(&model, &labels)?
    {
        tell(format_args!(
            "note: after the first prompt the tokenizer would write label {label:?} as {:?}, not as {:?}; --prefill may end the prompt better",
            found.together, found.apart
        ));
    }
    let mut resolved = Resolved { model: Some(model.info().clone()), ..Resolved::default() };
    resolved.settings.insert("layers".to_owned(), json!(read.layers));
    let mut output = start.begin(resolved)?;
    let before = output.resumed().rows;
    let pending: Vec<bool> = (0..rows).map(|row| !output.is_done(row)).collect();
    prompts.read(&model, want, &pending, |id, (row, record), outcome| {
        let (outcome, fate) = match table(&condition, &read, &labels, outcome)? {
            Ok(table) => (ScoreOutcome::Read(table, None), Fate::SCORED),
            Err(reason) => (ScoreOutcome::Unscored(reason.clone()), Fate::unscored(reason.reason)),
        };
        let human = record.raters().into_owned();
        let fate = Fate { graded: !human.is_empty(), ..fate };
        let extra = cli.carry.of(record.into_extra())?;
        output.push(row, &ScoreRow { id: id.clone(), human, outcome, extra }, fate)
    })?;
    let counts = output.finish()?.counts;
    let unscored: usize = counts.unscored.values().sum();
    say(format_args!(
        "{rows} rows, {before} of them done before: {} read, {unscored} unscored -> {}",
        counts.scored,
        cli.output.output.display()
    ))?;
    end_of_rows(&counts)
}

/// What to say where some labels begin with a space and others do not: their logits are those of two spellings.
fn mixed_spaces(labels: &[String]) -> Option<String> {
    let with = labels.iter().find(|label| label.starts_with(' '))?;
    let without = labels.iter().find(|label| !label.starts_with(' '))?;
    Some(format!(
        "note: label {with:?} begins with a space and label {without:?} does not, so their logits are those of tokens of two kinds; \
        write the labels without spaces between ({:?}), or each with its space",
        labels.iter().map(|label| label.trim_start()).collect::<Vec<_>>().join(",")
    ))
}

/// The label logits at the score position, or why there are none.
fn table(
    condition: &Condition,
    read: &LabelRead,
    labels: &[String],
    outcome: &Outcome,
) -> Result<Result<LabelTable, Unscored>, Error> {
    let reading = match outcome.reading() {
        Ok(reading) => reading,
        Err(reason) => return Ok(Err(reason)),
    };
    let logits = reading.labels(read)?;
    let step = match condition.score_step(logits, reading) {
        Ok(step) => step,
        Err(JudgeError::Unscored(reason)) => return Ok(Err(reason)),
        Err(JudgeError::Failed(source)) => return Err(judge_core::Error::Observer { source }.into()),
    };
    let completion = reading.generated.as_ref().map_or("", |generated| generated.text.as_str());
    Ok(Ok(LabelTable::from_step(logits, step, labels, completion)?))
}

#[cfg(test)]
mod tests {
    use super::mixed_spaces;

    /// <https://github.com/EleutherAI/lm-evaluation-harness/issues/2346>.
    #[test]
    fn labels_of_two_spellings_are_said() {
        let note = |labels: &[&str]| mixed_spaces(&labels.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>());
        assert!(note(&["1", " 2", " 3"]).is_some_and(|note| note.contains(r#"("1,2,3")"#)));
        assert_eq!((note(&["1", "2"]), note(&[" 1", " 2"]), note(&[])), (None, None, None));
    }
}
