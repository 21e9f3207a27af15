//! Typed questions about a state, with a probability for every option.
//!
//! `judge decide --model FOLDER --input states.jsonl --questions questions.json --output answers.jsonl`

mod cli;
mod figures;
mod rows;
mod service;

use anyhow::Result;
use judge_core::decision::{DecisionJudge, DecisionWeights, Questions};
use judge_core::{Backbone, ItemResult};
use judge_data::{DecisionRecord, Input, Opened, Outputs, Resolved};

use self::cli::PROGRAM;
use self::figures::Measured;
use self::rows::Done;
use crate::args::bars::{self, rows_used_json};
use crate::args::decisions::{questions, refuse_dressing};
use crate::report::write_json;
use crate::terminal::console::{end_of_rows, tell_label_mass};
use crate::terminal::pace::Watch;

pub(crate) use self::cli::Cli;

/// What little probability on the labels means, and what to do.
pub(super) const NO_ANSWER: &str = "; what the model considers so little says little: the prompt may not lead it to an answer (see \
                                    --decision-prompt and --decision-template)";

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.bars.gate(PROGRAM, || decided(cli))
}

fn decided(cli: &Cli) -> Result<bars::Measured> {
    refuse_dressing(&cli.model)?;
    cli.decisions.check(cli.fitting.fit.is_some())?;
    let inputs = [&cli.input.input].into_iter().chain(&cli.questions).chain(cli.decisions.inputs());
    let outputs =
        Outputs::new(inputs).rows([&cli.output.output]).reports(PROGRAM, cli.json.iter().chain(cli.bars.reports()));
    let outputs = outputs.documents::<DecisionWeights>(&cli.fitting.fit);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let input = cli.input.open()?;
    let asked = cli.questions.as_deref().map(questions).transpose()?;
    let (rows, has_labels) = cli.check_rows(&input, asked.is_some())?;
    let Done { origin, counts } = match cli.service.named() {
        Some(named) => named.ask(cli, &input, rows, asked.as_ref())?,
        None => cli.read(&input, rows, asked.as_ref())?,
    };
    end_of_rows(&counts)?;
    let mut measured = if has_labels { Measured::of(cli, asked.as_ref())? } else { Measured::nothing() };
    measured.figures.statistics.extend(rows_used_json(counts.scored, counts.rows()));
    if let (Some(path), Some(origin)) = (&cli.fitting.fit, &origin) {
        measured.fit(&cli.fitting, origin, path, cli.output.write.overwrite)?;
    }
    if let Some(path) = &cli.json {
        write_json(path, PROGRAM, &measured.figures)?;
    }
    measured.print()?;
    Ok(bars::Measured { statistics: measured.figures.statistics.into(), worst: String::new() })
}

impl Cli {
    /// Has a model on this machine read what is not answered yet.
    fn read(&self, input: &Input, rows: usize, asked: Option<&Questions>) -> Result<Done> {
        let (mut settings, model) = self.decisions.settings(&self.model, asked.cloned())?;
        settings.every_layer |= self.fitting.fit.is_some();
        let mut of_plan = self.settings();
        of_plan.insert("decision".to_owned(), settings.to_json());
        let plan = self.output.plan(PROGRAM, input, rows, &self.input, &model, None, of_plan)?;
        let start = match plan.open()? {
            Opened::Ready(start) => start,
            Opened::Complete(record) => {
                self.say_complete(&record, rows)?;
                // The model is needed to say what weights belong to, and for nothing else.
                let origin = match self.fitting.fit {
                    Some(_) => Some(DecisionJudge::new(settings, &model.load()?)?.origin()),
                    None => None,
                };
                return Ok(Done { origin, counts: record.counts });
            }
        };
        let loaded = model.load()?;
        let judge = DecisionJudge::new(settings, &loaded)?;
        let resolved = Resolved { model: Some(loaded.info().clone()), ..Resolved::default() };
        let records = self.records(input)?;
        let mut watch = Watch::new("deciding", "rows", self.model.quiet)?;
        let row = |result: ItemResult<DecisionRecord>| {
            let tables = |questions: &Questions| {
                let every_layer = judge.settings().every_layer;
                let tables = || judge.tables(questions, &result.rounds(0)).map_err(|error| anyhow::anyhow!("{error}"));
                if every_layer { tables() } else { Ok(Vec::new()) }
            };
            self.row(&result, asked, tables)
        };
        let result = start.judge(resolved, &loaded, &[&judge], records, row, &mut watch)?;
        watch.finish(result.summary.cancelled)?;
        self.say_counts(&result.counts, rows)?;
        tell_label_mass(&result.summary, "the labels of the options", NO_ANSWER);
        Ok(Done { origin: Some(judge.origin()), counts: result.counts })
    }
}
