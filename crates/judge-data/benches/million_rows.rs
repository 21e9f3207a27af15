//! How fast rows go through the runner and the files, and in how much memory, with a model that costs nothing.
//!
//! `cargo bench -p judge-data --bench million_rows [-- ROWS]`: writes a file of graded rows, judges them with LAGER on a scripted model
//! into a run's file, and says rows a second and the peak of memory after a tenth of the rows and at the end.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::time::Instant;

use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Backbone, Scale,
    lager::{LagerJudge, LagerSettings},
    runner::RunEvent,
};
use judge_data::{Carry, Dataset, DatasetOptions, InputFile, Numbered, Opened, Program, Resolved, RunPlan, score_row};

#[allow(clippy::print_stdout)] // it is what a benchmark is for
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let folder = tempfile::tempdir()?;
    let (input, output) = (folder.path().join("graded.jsonl"), folder.path().join("scores.jsonl"));
    let mut file = BufWriter::new(File::create(&input)?);
    for row in 0..rows {
        let (question, answer) = (row % 997, row * 7 % 1013);
        writeln!(
            file,
            r#"{{"id":{row},"instruction":"What is {question} and {answer}?","response":"It is {}, I believe.","human":[{},{}],"topic":"sums"}}"#,
            question + answer,
            1 + row % 5,
            1 + row % 4
        )?;
    }
    file.into_inner()?.sync_all()?;

    let model = ScriptedBackbone::new(4)
        .with_logits(|before, layer, label| (before.len() % 7 + layer.0) as f32 / f32::from(label as u8));
    let judge = LagerJudge::new(LagerSettings::prompt_end(Scale::integers(1, 5)?), &model)?;
    let start = Instant::now();
    let mut plan = RunPlan::new(&output, rows, Program::new("million_rows", env!("CARGO_PKG_VERSION")));
    plan.inputs = vec![InputFile::of(&input)?];
    let Opened::Ready(ready) = plan.open()? else { return Err("a new file is complete".into()) };
    let (mut done, mut early, mut judged) = (0, None, 0.0);
    let mut observe = |event: &RunEvent<Numbered>| {
        done += usize::from(matches!(event, RunEvent::Item(_)));
        if done == rows / 10 {
            early = peak();
        }
        judged = start.elapsed().as_secs_f64();
        ControlFlow::Continue(())
    };
    let items = Numbered::all(Dataset::open(&input, &DatasetOptions::default())?);
    let row = |result| score_row(&judge, result, &model.info().layers(), &Carry::All);
    let counts = ready.judge(Resolved::default(), &model, &[&judge], items, row, &mut observe)?.counts;
    let seconds = start.elapsed().as_secs_f64();
    let megabytes =
        |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), |bytes| format!("{:.0} MB", bytes as f64 / 1e6));
    println!(
        "{rows} rows: judged and written in {judged:.1} s ({:.0} rows/s), in order with their record after {seconds:.1} s ({:.0} rows/s)",
        rows as f64 / judged,
        rows as f64 / seconds
    );
    println!("peak of memory after a tenth of the rows {}, at the end {}", megabytes(early), megabytes(peak()));
    println!("{} scored, {} graded, {} bytes", counts.scored, counts.graded, fs::metadata(&output)?.len());
    Ok(())
}

/// The most memory that this process has had, where the system says it.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| 1024 * kilobytes)
}
