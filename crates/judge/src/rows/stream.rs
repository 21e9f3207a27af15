//! Scores batches of rows that another program sends, for engines that move rows between machines: Ray, Spark, or a program of your own.
//!
//! `judge stream --id id --columns instruction=prompt,response=completion < requests.arrows > results.arrows`
//!
//! Both streams are Arrow's IPC format. Each batch is answered by one of the same rows in the same order, before the next is looked at.
//! `examples/clusters/judge_stream.py` is the other side of the pipe.

use std::io::{self, BufReader};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use judge_data::{
    BatchItem, BatchReader, BatchWriter, Counts, ItemColumns, ItemSpec, Outputs, ResultRow, ResultTally, RunRecord,
    save,
};
use serde_json::json;

use judge_cli::args::files::OverwriteArgs;
use judge_cli::args::scale_out::{Scoring, ScoringArgs, now};
use judge_cli::terminal::console::{exit, say, tell, usage_of};

/// Between two lines on stderr that say what became of the rows so far.
const SHOWN_EVERY: Duration = Duration::from_secs(10);

/// Score batches of rows from standard input to standard output.
///
/// Both are Arrow IPC streams. Each batch is answered by one with the same rows, the same ids and the same order, at once; rows that cannot
/// be scored say why in `status`. An input that ends without the stream's end mark means that whoever wrote it has died: the program ends
/// with exit code 1. Exit code 0 after the end mark, 1 for a failure, 2 for a wrong command line or columns that are not there.
#[derive(Args)]
pub(crate) struct Cli {
    /// Print the columns of the results, as JSON and in Spark's words, and end; no model is loaded
    #[arg(long)]
    schema: bool,
    /// Write the record of the run here, once it starts and again at its end
    #[arg(long, value_name = "FILE.json")]
    run: Option<PathBuf>,
    #[command(flatten)]
    write: OverwriteArgs,
    #[command(flatten)]
    scoring: ScoringArgs,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.scoring.check()?;
    let results = cli.scoring.results();
    if cli.schema {
        say(results.json())?;
        return say(results.spark_ddl());
    }
    let inputs = cli.scoring.lager.inputs();
    Outputs::new(inputs).reports("score_stream", &cli.run).overwrite(cli.write.overwrite).check()?;
    let started = Instant::now();
    let requests = requests(cli.scoring.items(&cli.scoring.judge()?));
    let scoring = cli.scoring.open()?;
    let mut record = scoring.record("score_stream");
    save_record(cli, &record)?;
    let ready = json!({"ready": true, "run": scoring.run, "device": scoring.device(), "seconds": started.elapsed().as_secs_f64()});
    tell(ready);

    let mut writer = BatchWriter::new(io::stdout().lock(), "standard output", &results.schema())?;
    let (begun, mut shown, mut tally) = (Instant::now(), Instant::now(), ResultTally::default());
    // What became of the rows so far.
    let show = |tally: &ResultTally| {
        let ResultTally { rows, scored, tokens, .. } = tally;
        let rate = *tokens as f64 / begun.elapsed().as_secs_f64().max(1e-9);
        if !cli.scoring.model.quiet {
            tell(format_args!("{rows} rows, {scored} scored, {tokens} tokens: {rate:.0} tokens/s"));
        }
    };
    // The end of the channel is that of its thread, which ends with `None` alone.
    while let Some(items) = requests.recv().context("the thread that reads standard input has failed")? {
        let rows = rows(&scoring, items)?;
        writer.write(&results.batch(&rows)?)?;
        rows.iter().for_each(|row| tally.add(row));
        if shown.elapsed() >= SHOWN_EVERY {
            shown = Instant::now();
            show(&tally);
        }
    }
    writer.finish()?;
    show(&tally);
    // Statuses other than `scored` are the reasons of the judge.
    let unscored = serde_json::from_value(serde_json::to_value(&tally.unscored)?)?;
    record.counts = Counts { scored: usize::try_from(tally.scored)?, unscored, ..Counts::default() };
    record.finished = Some(now());
    record.resolved.insert("digests".to_owned(), serde_json::to_value(tally.digests)?);
    save_record(cli, &record)
}

fn save_record(cli: &Cli, record: &RunRecord) -> Result<()> {
    cli.run.as_ref().map_or(Ok(()), |path| save(path, record)).context("cannot write the record of the run")
}

/// The rows of one batch, in its order.
fn rows(scoring: &Scoring, items: Vec<BatchItem>) -> Result<Vec<ResultRow>> {
    scoring.admit(&items)?;
    let mut rows = Vec::with_capacity(items.len());
    scoring.scorer().score(items.into_iter().map(Ok), |row| {
        rows.push(row);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

/// The batches of standard input, then `None`. They are read by a thread of their own, which ends the process as soon as the input ends
/// without its end mark or is none: whoever waits for an answer is gone, and a pass that is under way would be for nobody.
fn requests(spec: ItemSpec) -> Receiver<Option<Vec<BatchItem>>> {
    // Of no length: one batch is computed, and the next one waits with its reader.
    let (sender, receiver) = sync_channel(0);
    thread::spawn(move || {
        if let Err(error) = read_requests(&spec, &sender) {
            let is_usage = error.is::<clap::Error>();
            let _ = exit(Err(error)); // says what is wrong
            std::process::exit(if is_usage { 2 } else { 1 });
        }
    });
    receiver
}

fn read_requests(spec: &ItemSpec, sender: &SyncSender<Option<Vec<BatchItem>>>) -> Result<()> {
    let reader = BatchReader::new(BufReader::new(io::stdin()), "standard input")?;
    let found = ItemColumns::find(reader.schema(), spec).map_err(|error| usage_of(&error))?;
    let indices = found.indices(reader.schema());
    for (number, batch) in reader.select(indices).enumerate() {
        let items = found.items(&batch?).with_context(|| format!("standard input: batch {number}"))?;
        // If nobody takes it, the other thread has failed and says why.
        if sender.send(Some(items)).is_err() {
            return Ok(());
        }
    }
    let _ = sender.send(None);
    Ok(())
}
