//! What a model that was tuned on replies is worth on rows that are held out.
//!
//! `judge sft-evaluate --model FOLDER --adapter ADAPTER --input held-out.jsonl --output evaluated.jsonl`
//!
//! ```text
//! replying  a row ─► how likely its reply is, and what the model itself writes
//! answers   the answer in a text, and whether it is the right one
//! figures   the finished rows ─► a table, and JSON
//! ```

mod answers;
mod cli;
mod figures;
mod reply;

use anyhow::Result;
use judge_cli::replies::Replied;
use judge_cli::row_job::{RowJob, Words, refuse_unusable, resolved};
use judge_cli::terminal::console::{counted_that, end_of_rows, tell, usage};
use judge_core::{ItemResult, JudgeError};
use judge_data::{Carry, Fate, Human, Judged, Numbered, OutputRow, Outputs, Settings};
use serde_json::json;

use self::cli::PROGRAM;
use self::figures::Figures;
use self::reply::{Evaluated, Replying};

pub(crate) use self::cli::Cli;

const WORDS: Words = Words { doing: "measuring", rows: "rows", done: "measured" };

pub(crate) fn run(cli: &Cli) -> Result<()> {
    if cli.model.raw_prompt {
        return Err(usage("--raw-prompt: a reply is read behind a conversation, through the model's chat template"));
    }
    let outputs = Outputs::new([&cli.input.input]).rows([&cli.output.output]).reports(PROGRAM, &cli.json);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let source = cli.input.source(&cli.input.open()?, None, cli.model.limit);
    let job = RowJob::new(PROGRAM, WORDS, source, &cli.output, &cli.carry, cli.model.quiet);
    let mut unread = 0;
    let checked = job.check(Evaluated::KNOWN, |item| {
        unread += usize::from(reply::has_unread_answer(&item.record));
        Ok(Replied::of(&item.record, &cli.model).err())
    })?;
    if unread > 0 {
        let have = ["has an `answer` or `reference`", "have an `answer` or `reference`"];
        let have = counted_that(unread, "row", have);
        tell(format_args!("note: {have} that is a list or an object, which is compared with nothing"));
    }
    refuse_unusable(&job.job.source, &checked, "has a reply", None)?;
    let settings = [("max_new_tokens".to_owned(), json!(cli.max_new_tokens))];
    let job = job.with_settings(settings).with_model(&cli.model, None)?;
    let finished = job.run(&checked, |pending| {
        let model = cli.model.load()?;
        let judge = Replying { model: &model, args: &cli.model, max_new_tokens: cli.max_new_tokens as usize };
        let resolved = resolved(&model, None, Settings::new());
        pending.judge(resolved, &model, &[&judge], |result| row(&judge, result, &cli.carry.fields()))
    })?;
    Figures::of(&cli.output.output)?.report(cli.json.as_deref())?;
    end_of_rows(&finished.counts)
}

fn row(judge: &Replying<'_>, result: ItemResult<Numbered>, carry: &Carry) -> Result<(OutputRow<Evaluated>, Fate)> {
    let evaluated = match (result.verdicts[0].unscored(), judge.read(&result.item.record, &result.rounds(0))) {
        (Some(unscored), _) => Evaluated::Unscored { unscored: unscored.clone() },
        (None, Ok(measured)) => Evaluated::Measured(measured),
        (None, Err(JudgeError::Unscored(unscored))) => Evaluated::Unscored { unscored },
        (None, Err(JudgeError::Failed(source))) => return Err(anyhow::Error::from_boxed(source)),
    };
    let record = result.item.record;
    let (id, human) = (record.id().clone(), Human::Numbers(record.raters().into_owned()));
    Ok(OutputRow::of(id, human, evaluated, record.into_extra(), carry)?)
}
