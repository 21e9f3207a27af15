//! Verdicts of a model on the pairs of a benchmark.

use anyhow::{Result, bail};
use judge_cli::args::files::{CarryArgs, OutputArgs};
use judge_cli::args::prompt_judge::{APART, suited};
use judge_cli::pair_orders::PairJudging;
use judge_cli::row_job::{RowJob, Words, resolved};
use judge_cli::terminal::console::{end_of_rows, usage};
use judge_core::{Reason, Unscored, prompted::PairConvention};
use judge_data::{
    Benchmark, BenchmarkPair, Carry, Extra, InputFile, PairRow, PairVerdicts, Record, RecordList, RowColumns,
    UnreadRecord,
};

use super::Cli;

const WORDS: Words = Words { doing: "judging", rows: "pairs", done: "judged" };

/// Judges all pairs that the output does not have yet, in both orders, and reads the verdicts from it.
pub(crate) fn of_model(cli: &Cli, pairs: &[BenchmarkPair]) -> Result<PairVerdicts> {
    let benchmark = cli.pairs.benchmark()?;
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
        Benchmark::Pairs => {
            let has_reference = |pair: &BenchmarkPair| pair.reference.as_ref().is_some_and(|text| !text.is_empty());
            suited(true, pairs.iter().all(|pair| pair.texts.is_none() || has_reference(pair)), false)
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
    match cli.judge.is_apart() {
        true => asked.check_rows(&cli.pairs.data, &records, [APART])?,
        false => asked.check_rows(&cli.pairs.data, &records, [])?,
    }
    cli.model.admit_items(&records, |record| record.id().to_string())?;
    let files = benchmark.files(&cli.pairs.data)?.iter().map(InputFile::of).collect::<Result<_, _>>()?;
    let source = RecordList { records, files };
    let output = OutputArgs { output: path.clone(), write: cli.write };
    let job = RowJob::new("pairwise_benchmark", WORDS, source, &output, &CarryArgs::default(), cli.model.quiet);
    let checked = job.check(PairRow::KNOWN, |_| Ok(None))?;
    let (form, settings) = (asked.form(), cli.judge.settings(&asked)?);
    let job = job.with_settings(settings).with_settings(cli.pairs.settings());
    let job = job.with_model(&cli.model, Some(asked.template()))?;
    let finished = job.run(&checked, |pending| {
        let model = cli.model.load()?;
        let (description, template) = (cli.judge.describe(&asked), Some(asked.template().to_owned()));
        let judge = cli.judge.judge(asked, &model)?;
        let resolved = resolved(&model, template, cli.judge.origin(&judge));
        job.tell(description);
        let (tables, carry, apart) = (cli.judge.tables(&judge), &Carry::All, cli.judge.is_apart());
        let (place_offset, probe) = (None, None);
        let judging = PairJudging { judge: &judge, apart, both_orders: true, place_offset, probe, tables, carry };
        let result = judging.run(pending, resolved, &model)?;
        cli.judge.tell_label_mass(&result.summary);
        Ok(result)
    })?;
    cli.judge.tell_unscored(&finished.counts.unscored, form, true);
    end_of_rows(&finished.counts)?;
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
