//! Verdicts of a model on the pairs of a benchmark.

use anyhow::{Result, bail};
use judge_core::{Backbone, Reason, Unscored, prompted::PairConvention};
use judge_data::{
    Benchmark, BenchmarkPair, Carry, Extra, InputFile, Opened, PairVerdicts, Record, Resolved, RowColumns, RunPlan,
    RunResult, RunStart, UnreadRecord,
};

use super::Cli;
use crate::args::files::program;
use crate::args::prompt_judge::Asked;
use crate::pair_orders::PairJudging;
use crate::terminal::console::{end_of_rows, say, usage};
use crate::terminal::pace::Watch;

/// Judges all pairs that the output does not have yet, in both orders, and reads the verdicts from it.
pub(crate) fn of_model(cli: &Cli, pairs: &[BenchmarkPair]) -> Result<PairVerdicts> {
    let benchmark = cli.pairs.benchmark;
    let Some(path) = &cli.output else {
        let why = "give --verdicts FILE for verdicts that were made elsewhere, or --output FILE to keep those of a model, so that a run can be resumed";
        return Err(usage(why));
    };
    cli.judge.check()?;
    if cli.judge.is_apart() && benchmark == Benchmark::MtBench {
        return Err(usage(
            "the responses of mtbench are conversations, for which there is no single grade: neither --apart nor --reward",
        ));
    }
    let default = match benchmark {
        Benchmark::MtBench => "pair-multi-turn",
        Benchmark::Pairs if pairs.iter().all(|pair| pair.texts.is_none() || pair.reference.is_some()) => {
            "pair-reference"
        }
        Benchmark::LlmBar | Benchmark::Hhh | Benchmark::RubricBench | Benchmark::HelpSteer3 | Benchmark::Ppe => {
            "pair-forced"
        }
        _ => "pair",
    };
    let asked = cli.judge.asked(default, None, true, &cli.model)?;
    let textless = pairs.iter().filter(|pair| pair.texts.is_none()).count();
    if textless > 0 && (benchmark != Benchmark::Pairs || textless == pairs.len()) {
        bail!(
            "{}: {textless} of {} rows have no texts to judge (MT-bench's are conversation_a and conversation_b); give --verdicts",
            cli.pairs.data.display(),
            pairs.len()
        );
    }
    let records: Vec<Record> = pairs.iter().map(record).collect();
    cli.model.admit_items(&records, |record| record.id().to_string())?;
    let mut plan = RunPlan::new(path, records.len(), program("pairwise_benchmark"));
    plan.inputs = benchmark.files(&cli.pairs.data)?.iter().map(InputFile::of).collect::<Result<_, _>>()?;
    plan.settings = cli.judge.settings(&asked)?;
    cli.model.describe(&mut plan, Some(asked.template()))?;
    plan.settings.extend(cli.pairs.settings());
    plan.options = cli.write.options();
    match plan.open()? {
        Opened::Complete(record) => {
            say(format_args!("{} is complete: nothing is left to judge", path.display()))?;
            end_of_rows(&record.counts)?;
        }
        Opened::Ready(start) => judge_all(cli, *start, asked, records)?,
    }
    Ok(PairVerdicts::read(path, pairs, PairConvention::Bare)?)
}

/// A pair as a row; one that lacks a text costs itself alone.
fn record(pair: &BenchmarkPair) -> Record {
    match pair.to_record() {
        Some(record) => Record::Pair(record),
        None => Record::Unread(UnreadRecord {
            id: pair.id.clone(),
            why: Unscored::new(Reason::Missing, "the question or one of its two responses is missing"),
            scores: Vec::new(),
            columns: RowColumns::default(),
            extra: Extra::new(),
        }),
    }
}

fn judge_all(cli: &Cli, start: RunStart, asked: Asked, records: Vec<Record>) -> Result<()> {
    let model = cli.model.load()?;
    let (template, form) = (Some(asked.template().to_owned()), asked.form());
    let judge = cli.judge.judge(asked, &model)?;
    let mut resolved = Resolved { model: Some(model.info().clone()), template, ..Resolved::default() };
    resolved.settings.extend(cli.judge.origin(&judge)?);
    let (tables, carry) = (cli.judge.tables(&judge), &Carry::All);
    let apart = cli.judge.is_apart();
    let (place_offset, probe) = (None, None);
    let judging = PairJudging { judge: &judge, apart, both_orders: true, place_offset, probe, tables, carry };
    let watch = Watch::new("judging", "pairs", cli.model.quiet)?;
    let records = records.into_iter().map(Ok);
    let RunResult { counts, summary } = judging.run(start, resolved, &model, records, watch)?;
    cli.judge.tell_label_mass(&summary);
    cli.judge.tell_unscored(&counts.unscored, form, true);
    end_of_rows(&counts)
}
