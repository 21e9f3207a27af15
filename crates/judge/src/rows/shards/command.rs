//! Any command that makes rows of rows, by parts: which commands these are asked of is the caller's to say.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use judge_cli::args::files::{input_files, program};
use judge_cli::report::write_json;
use judge_cli::terminal::console::{in_words, say, tell, usage};
use judge_cli::terminal::interrupt::Stopped;
use judge_cli::terminal::progress::{Progress, Whole};
use judge_core::ItemId;
use judge_data::{
    CommandPart, CommandPlan, CommandResults, Error, Input, Outputs, RunPlan, SeeIds, Source, load, record_path,
    save_new,
};

use super::run_args::RunArgs;

/// How a command reads its rows, and what it makes of them.
pub(crate) struct Reading {
    /// Tells of the ids of an input's rows.
    pub(crate) ids: Box<SeeIds<'static>>,
    /// Whether the results have the ids of the rows.
    pub(crate) has_ids: bool,
    /// What the name of its output ends with.
    pub(crate) extension: &'static str,
}

impl Reading {
    /// Of a command whose rows are those of this source, and whose results are JSON lines with their ids.
    pub(crate) fn of<S: Source>(source: impl Fn(Input) -> S + 'static) -> Self {
        let ids = move |input: Input, see: &mut dyn FnMut(ItemId) -> Result<(), Error>| source(input).see_ids(see);
        Self { ids: Box::new(ids), has_ids: true, extension: ".jsonl" }
    }
}

/// The program's commands, by their words.
pub(crate) trait Commands {
    /// How the command of this command line reads its rows; `None` if it does not make rows of rows.
    fn reading(&self, words: &[String]) -> Result<Option<Reading>>;

    /// Runs a command line.
    fn run(&self, words: &[String]) -> Result<()>;
}

/// Options that are not for a part: what the plan itself decides, and files of which each part would write its own in the place of the
/// last.
const NOT_OF_A_PART: [&str; 10] = [
    "--input",
    "--data",
    "--output",
    "--part",
    "--limit",
    "--json",
    "--selected",
    "--lager-json",
    "--dry-run",
    "--rows-per-shard",
];

pub(super) fn plan(
    commands: &dyn Commands,
    words: &[String],
    input: &[String],
    output: &Path,
    rows_per_shard: u64,
    [quiet, overwrite]: [bool; 2],
) -> Result<()> {
    let named = |word: &&String| NOT_OF_A_PART.iter().any(|option| word.split('=').next() == Some(option));
    if let Some(word) = words.iter().find(named) {
        let option = word.split('=').next().unwrap_or_default();
        return Err(usage(format!(
            "{option}: it is not for the parts of a plan, which gives each its input and output; what is made of all rows is made of the joined results"
        )));
    }
    let files = input_files(input)?;
    let outputs = Outputs::new(&files).documents::<CommandPlan>([output]);
    outputs.overwrite(overwrite).check()?;
    let first = files.first().map(PathBuf::as_path).unwrap_or(output);
    let Some(reading) = commands.reading(&of_part(words, first, "0..1", Path::new("part")))? else {
        return Err(usage(format!("`judge {}` makes no rows of rows, so it has no parts", words.join(" "))));
    };
    let rows = usize::try_from(rows_per_shard)?;
    let bar = Progress::new("reading", 0, quiet);
    let plan =
        CommandPlan::make(words.to_vec(), reading.extension, reading.has_ids, &files, &*reading.ids, rows, |rows| {
            bar.inc(rows)
        });
    bar.finish_and_clear();
    let plan = plan?;
    save_new(output, &plan, overwrite)?;
    say(format_args!(
        "{} rows of {} files in {} shards for `judge {}` -> {}",
        plan.rows(),
        plan.files.len(),
        plan.shards(),
        words.join(" "),
        output.display()
    ))
}

/// The command line of a part.
fn of_part(words: &[String], input: &Path, part: &str, output: &Path) -> Vec<String> {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let own =
        ["--input".to_owned(), path(input), "--part".to_owned(), part.to_owned(), "--output".to_owned(), path(output)];
    words.iter().cloned().chain(own).collect()
}

/// The words with other values for some options, which may differ from machine to machine.
fn with_options(words: &[String], options: &[(&str, Option<String>)], quiet: bool) -> Vec<String> {
    let mut found = words.to_vec();
    for (name, value) in options {
        let Some(value) = value else { continue };
        while let Some(at) = found
            .iter()
            .position(|word| word == name || word.split_once('=').is_some_and(|(before, _)| before == *name))
        {
            let end = if found[at] == *name { (at + 2).min(found.len()) } else { at + 1 };
            found.drain(at..end);
        }
        found.extend([(*name).to_owned(), value.clone()]);
    }
    if quiet && !found.iter().any(|word| word == "--quiet") {
        found.push("--quiet".to_owned());
    }
    found
}

pub(super) fn run(commands: &dyn Commands, plan: &CommandPlan, args: &RunArgs) -> Result<()> {
    let share = args.share()?;
    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot make the folder {}", args.output.display()))?;
    let mine: Vec<usize> = (share.index..plan.shards()).step_by(share.of).collect();
    let mut pending = Vec::new();
    for &shard in &mine {
        if CommandPart::find(&args.output, plan, shard)?.is_none() {
            pending.push(shard);
        }
    }
    let done = mine.len() - pending.len();
    if pending.is_empty() {
        return say(format_args!("all {done} shards of {}/{} are there; nothing to do", share.index, share.of));
    }
    if done > 0 {
        tell(format_args!("{done} of {} shards are there already", mine.len()));
    }
    let words = with_options(&plan.command, &args.options(), args.quiet);
    let rows = pending.iter().map(|&shard| plan.rows_of(shard).len()).sum();
    let whole = Whole::of(rows);
    for (index, &shard) in pending.iter().enumerate() {
        let Some((file, part)) = plan.shard(shard) else { bail!("the plan has no shard {shard}") };
        let output = plan.output(&args.output, shard);
        whole.begin(plan.rows_of(shard).len());
        if !args.quiet {
            tell(format_args!(
                "shard {shard}, {} of {}: rows {part} of {}",
                done + index + 1,
                mine.len(),
                file.path.display()
            ));
        }
        let ended = commands.run(&of_part(&words, &file.path, &part.to_string(), &output));
        if let Err(error) = ended {
            let is_whole = record_path(&output).exists() && !error.is::<Stopped>() && !error.is::<clap::Error>();
            if !is_whole {
                return Err(error.context(format!("shard {shard}, rows {part} of {}", file.path.display())));
            }
            // The rows are all there: what failed is said of them, such as that none has a score.
            tell(format_args!("note: shard {shard}: {}", in_words(&error)));
        }
        CommandPart::finish(&args.output, plan, shard)?;
        whole.done();
    }
    say(format_args!("{rows} rows of {} shards -> {}", pending.len(), args.output.display()))
}

/// Checks the parts of a plan and says what was found; an error if they are not complete.
pub(super) fn check(
    plan: &CommandPlan,
    folder: &Path,
    one_device: bool,
    json: Option<&PathBuf>,
    quiet: bool,
) -> Result<()> {
    let bar = Progress::new("checking", plan.rows(), quiet);
    let found = plan.check(folder, one_device, |rows| bar.inc(rows));
    bar.finish_and_clear();
    let found = found?;
    if let Some(path) = json {
        write_json(path, "score_files", &found)?;
    }
    let CommandResults { planned, rows, scored, unscored, devices, results, .. } = &found;
    say(format_args!("{rows} results of {planned} rows, {scored} with a score"))?;
    for (reason, rows) in unscored {
        say(format_args!("unscored, {reason}: {rows}"))?;
    }
    for (device, rows) in devices {
        say(format_args!("device {device}: {rows}"))?;
    }
    say(format_args!("results {results}"))?;
    say(if found.complete { "complete" } else { "not complete" })?;
    if !found.complete {
        bail!("not complete: {}", found.problems.join("\n  "));
    }
    Ok(())
}

/// Joins the parts of a plan that was checked. `rows` is where the rows of several files go.
pub(super) fn export(
    plan: &CommandPlan,
    folder: &Path,
    output: &Path,
    rows: Option<&PathBuf>,
    write: judge_cli::args::files::OverwriteArgs,
    quiet: bool,
) -> Result<()> {
    let input = match rows {
        Some(path) => {
            let bar = Progress::new("writing", plan.rows(), quiet);
            // By its record the program knows the file again.
            let mut record = RunPlan::new(path, plan.rows(), program("score_files"));
            record.options.overwrite = write.overwrite;
            let input = plan.write_rows(&record, |rows| bar.inc(rows));
            bar.finish_and_clear();
            Some(input?)
        }
        None => None,
    };
    let command = RunPlan::new(output, 0, program("score_files")).command;
    let options = judge_data::WriteOptions { overwrite: write.overwrite, ..judge_data::WriteOptions::default() };
    for file in plan.join(folder, output, input.as_ref(), &command, options)? {
        say(format_args!("{} rows -> {}", file.rows, file.path.display()))?;
    }
    if input.is_none() && plan.files.len() > 1 {
        tell(
            "note: the rows are of several files; with --rows FILE they are written to one, by which `judge` recognises the results",
        );
    }
    Ok(())
}

/// The plan of a command; `None` if the file is a plan of another kind.
pub(super) fn planned(path: &Path) -> Result<Option<CommandPlan>> {
    match load(path) {
        Ok(plan) => Ok(Some(plan)),
        Err(Error::FileFormat { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
