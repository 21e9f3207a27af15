//! The logits of the score labels at every layer of a model, for each prompt of a file.
//!
//! `judge logits --input prompts.jsonl --output logits.jsonl`

mod cli;

use anyhow::Result;
use judge_cli::prompts::prompt;
use judge_cli::row_job::{RowJob, Words, resolved};
use judge_cli::terminal::console::{end_of_rows, tell};
use judge_core::{
    Backbone, JudgeError, Outcome, Unscored, Want,
    lager::Condition,
    request::{LabelRead, TokenId},
};
use judge_data::{DatasetFormat, Error, Fate, LabelTable, Numbered, ScoreOutcome, ScoreRow};
use serde_json::json;

use self::cli::Position;

pub(crate) use self::cli::Cli;

const WORDS: Words = Words { doing: "reading", rows: "rows", done: "read" };

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.check()?;
    let labels = cli.labels()?;
    if let Some(note) = mixed_spaces(&labels) {
        tell(note);
    }
    let condition = cli.condition();
    let source = cli.input.source(&cli.input.open()?, Some(DatasetFormat::Prompts), cli.model.limit);
    let job = RowJob::new("layer_logits", WORDS, source, &cli.output, &cli.carry, cli.model.quiet);
    let checked = job.check(&ScoreRow::KNOWN, |_| Ok(None))?;
    let job = job.with_settings(cli.settings(&labels, &condition)?).with_model(&cli.model, None)?;
    let prompt = |item: &Numbered| prompt(&item.record, &cli.model, &cli.prefill);
    let finished = job.run(&checked, |pending| {
        let model = cli.model.load()?;
        let tokens = labels.iter().map(|label| model.token(label)).collect::<Result<Vec<TokenId>, _>>()?;
        let layers = cli.layers.of_model(model.info().n_layers)?;
        let read = LabelRead { tokens, layers, lens: cli.lens, at: condition.read_at(), label_mass: false };
        let want = Want { labels: vec![read.clone()], generate: condition.generation().cloned(), ..Want::default() };
        if cli.position == Position::PromptEnd {
            job.tell_split_label(&model, &labels, |item| prompt(item).ok())?;
        }
        let row = |Numbered { record, .. }: Numbered, outcome: &Outcome| {
            let (outcome, fate) = match table(&condition, &read, &labels, outcome)? {
                Ok(table) => (ScoreOutcome::Read(table, None), Fate::SCORED),
                Err(reason) => (ScoreOutcome::Unscored(reason.clone()), Fate::unscored(reason.reason)),
            };
            let (id, human) = (record.id().clone(), record.raters().into_owned());
            let fate = Fate { graded: !human.is_empty(), ..fate };
            let extra = cli.carry.fields().of(record.into_extra())?;
            Ok((ScoreRow { id, human, outcome, extra }, fate))
        };
        let settings = [("layers".to_owned(), json!(read.layers))].into();
        pending.read(resolved(&model, None, settings), &model, want, prompt, row)
    })?;
    end_of_rows(&finished.counts)
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
    Ok(Ok(LabelTable::from_step(logits, step, &logits.layers, labels, completion)?))
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
