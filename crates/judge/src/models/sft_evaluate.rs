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
use judge_core::{Backbone, ItemResult, JudgeError};
use judge_data::{CarryCheck, Fate, Human, Input, Judged, Numbered, Opened, OutputRow, Outputs, Resolved, Settings};
use serde_json::json;

use self::cli::PROGRAM;
use self::figures::Figures;
use self::reply::{Evaluated, Replying};
use crate::missing_fields::Unread;
use crate::replies::Replied;
use crate::terminal::console::{end_of_rows, say, usage};
use crate::terminal::pace::Watch;

pub(crate) use self::cli::Cli;

pub(crate) fn run(cli: &Cli) -> Result<()> {
    if cli.model.raw_prompt {
        return Err(usage("--raw-prompt: a reply is read behind a conversation, through the model's chat template"));
    }
    let outputs = Outputs::new([&cli.input.input]).rows([&cli.output.output]).reports(PROGRAM, &cli.json);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let input = cli.input.open()?;
    let rows = cli.check_rows(&input)?;
    let settings = Settings::from([
        ("carry".to_owned(), json!(format!("{:?}", cli.carry))),
        ("max_new_tokens".to_owned(), json!(cli.max_new_tokens)),
    ]);
    let plan = cli.output.plan(PROGRAM, &input, rows, &cli.input, &cli.model, None, settings)?;
    let path = cli.output.output.display();
    let counts = match plan.open()? {
        Opened::Complete(record) => {
            say(format_args!("{path} is complete: {} of {rows} rows measured; nothing to do", record.counts.scored))?;
            record.counts
        }
        Opened::Ready(start) => {
            let model = cli.model.load()?;
            let judge = Replying { model: &model, args: &cli.model, max_new_tokens: cli.max_new_tokens as usize };
            let resolved = Resolved { model: Some(model.info().clone()), ..Resolved::default() };
            let records = Numbered::all(cli.input.records(&input, None, cli.model.limit)?);
            let mut watch = Watch::new("measuring", "rows", cli.model.quiet)?;
            let row = |result: ItemResult<Numbered>| cli.row(&judge, result);
            let result = start.judge(resolved, &model, &[&judge], records, row, &mut watch)?;
            watch.finish(result.summary.cancelled)?;
            say(format_args!("{} of {rows} rows measured -> {path}", result.counts.scored))?;
            result.counts
        }
    };
    Figures::of(&cli.output.output)?.report(cli.json.as_deref())?;
    end_of_rows(&counts)
}

impl Cli {
    /// Reads the whole input before any model work: how many rows there are.
    fn check_rows(&self, input: &Input) -> Result<usize> {
        let (mut rows, mut unread) = (0, Unread::default());
        let mut carried = CarryCheck::new(&self.carry, Evaluated::KNOWN);
        for record in self.input.records(input, None, self.model.limit)? {
            let record = record?;
            let why = match record.unread() {
                Some(why) => Some(why.detail.clone()),
                None => Replied::of(&record, &self.model).err(),
            };
            unread.see_as(&record, why);
            carried.see(record)?;
            rows += 1;
        }
        carried.finish(input)?;
        if let Some((id, why)) = unread.all() {
            return Err(usage(format!("{}: no row has a reply; row {id}: {why}", input.path().display())));
        }
        unread.tell();
        Ok(rows)
    }

    fn row(&self, judge: &Replying<'_>, result: ItemResult<Numbered>) -> Result<(OutputRow<Evaluated>, Fate)> {
        let evaluated = match (result.verdicts[0].unscored(), judge.read(&result.item.record, &result.rounds(0))) {
            (Some(unscored), _) => Evaluated::Unscored { unscored: unscored.clone() },
            (None, Ok(measured)) => Evaluated::Measured(measured),
            (None, Err(JudgeError::Unscored(unscored))) => Evaluated::Unscored { unscored },
            (None, Err(JudgeError::Failed(source))) => return Err(anyhow::Error::from_boxed(source)),
        };
        let record = result.item.record;
        let (id, human) = (record.id().clone(), Human::Numbers(record.raters().into_owned()));
        Ok(OutputRow::of(id, human, evaluated, record.into_extra(), &self.carry)?)
    }
}
