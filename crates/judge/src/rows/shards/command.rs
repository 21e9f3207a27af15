//! Any command that makes rows of rows, by parts: which commands these are asked of is the caller's to say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use judge_cli::args::files::{CarryArgs, OverwriteArgs, input_files, program};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::terminal::console::{in_words, say, tell, usage};
use judge_cli::terminal::interrupt::Stopped;
use judge_cli::terminal::options::quoted;
use judge_cli::terminal::progress::{Progress, begin_part};
use judge_core::ItemId;
use judge_data::{
    Columns, CommandPart, CommandPlan, Error, Field, Input, Outputs, RowColumns, RowItem, RunPlan, SeeIds, Source,
    check_files, load, record_path, save_new,
};

use super::run_args::RunArgs;

/// Refuses files.
type CheckFiles = dyn Fn(&[&Path]) -> Result<()>;

/// How a command reads its rows, and what it makes of them.
pub(crate) struct Reading {
    /// Tells of the ids of an input's rows.
    pub(crate) ids: Box<SeeIds<'static>>,
    /// Refuses files that one run over all of their rows would refuse.
    pub(crate) check: Box<CheckFiles>,
    /// Whether the results have the ids of the rows.
    pub(crate) has_ids: bool,
    /// What the name of its output ends with.
    pub(crate) extension: &'static str,
}

impl Reading {
    /// Of a command whose rows are those of this source, and whose results are JSON lines with their ids; `model` reads them, if one on
    /// this machine does.
    pub(crate) fn of<S: Source>(
        source: impl Fn(Input) -> S + Clone + 'static,
        carry: &CarryArgs,
        model: Option<&ModelArgs>,
    ) -> Self {
        let (carry, model, of_ids) = (carry.clone(), model.cloned(), source.clone());
        let ids = move |input: Input, see: &mut dyn FnMut(ItemId) -> Result<(), Error>| of_ids(input).see_ids(see);
        let check = move |files: &[&Path]| check(files, &source, &carry, model.as_ref());
        Self { ids: Box::new(ids), check: Box::new(check), has_ids: true, extension: ".jsonl" }
    }
}

/// Refuses what one command over the rows of all files would refuse, and no part of them can: fields to be carried or cut that no row has,
/// rows of which none can be judged, and those that the embedded model was not made for.
fn check<S: Source>(
    files: &[&Path],
    source: impl Fn(Input) -> S,
    carry: &CarryArgs,
    model: Option<&ModelArgs>,
) -> Result<()> {
    // Of each field the columns that it is read from, each with the first file that has it there.
    let mut columns: BTreeMap<Field, Vec<(String, PathBuf)>> = BTreeMap::new();
    let sources = files.iter().map(|path| Input::open(path).map(&source));
    let unread = check_files(sources, &carry.chosen, &carry.cuts, |source, item| {
        let is_chosen = |field| source.columns().is_some_and(|columns| columns.is_chosen(field));
        let read = item.columns().into_iter().flat_map(RowColumns::iter);
        for (field, column) in read.filter(|(field, _)| !is_chosen(*field)) {
            let found = columns.entry(field).or_default();
            if !found.iter().any(|(name, path)| name == column || path == source.path()) {
                found.push((column.to_owned(), source.path().to_path_buf()));
            }
        }
    })?;
    if let (Some((id, why)), Some(first)) = (unread.all(), files.first()) {
        bail!("{}: no row can be judged; the first is {id}: {why}", first.display());
    }
    tell_columns(&columns);
    files.iter().try_for_each(|path| model.map_or(Ok(()), |model| model.admit(&Input::open(path)?)))
}

/// Says so where files have a field in different columns: in one file of all their rows it would be read from one of them.
fn tell_columns(columns: &BTreeMap<Field, Vec<(String, PathBuf)>>) {
    let mut differ = columns.iter().filter(|(_, found)| found.len() > 1);
    let names = |(field, found): (&Field, &Vec<(String, PathBuf)>)| {
        format!("{field}={}", found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("|"))
    };
    let both = differ.clone().map(names).collect::<Vec<_>>().join(",");
    if let Some((field, [(one, in_one), (other, in_other), ..])) = differ.next().map(|(field, all)| (field, &all[..])) {
        let [in_one, in_other] = [in_one.display(), in_other.display()];
        tell(format_args!(
            "note: {field} is in the column {one:?} of {in_one} and in {other:?} of {in_other}: each file is read by its own, but a file \
             of all rows (`export --rows`) would be read by one and lose the other; with --columns {} both are read there too",
            quoted(&both)
        ));
    }
}

/// The program's commands, by their words.
pub(crate) trait Commands {
    /// How the command of this command line reads its rows; `None` if it does not make rows of rows.
    fn reading(&self, words: &[String]) -> Result<Option<Reading>>;

    /// Runs a command line.
    fn run(&self, words: &[String]) -> Result<()>;
}

/// Options that are not for a part: what the plan itself decides, files of which each part would write its own in the place of the last,
/// and what is measured, or learned, of all rows.
const NOT_OF_A_PART: [&str; 15] = [
    "--input",
    "--data",
    "--new",
    "--output",
    "--part",
    "--limit",
    "--json",
    "--selected",
    "--lager-json",
    "--dry-run",
    "--rows-per-shard",
    "--fit",
    "--require",
    "--min-coverage",
    "--junit",
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
    let reading = commands.reading(&of_part(words, first, "0..1", Path::new("part")));
    let Some(reading) = reading.map_err(|error| without_parts(words, error))? else {
        return Err(no_parts(words, MAKES_NONE));
    };
    let rows = usize::try_from(rows_per_shard)?;
    let bar = Progress::new("reading", 0, quiet);
    let plan =
        CommandPlan::make(words.to_vec(), reading.extension, reading.has_ids, &files, &*reading.ids, rows, |rows| {
            bar.inc(rows)
        })?;
    bar.finish_and_clear();
    let read = plan.files.iter().filter(|file| file.rows != Some(0)).map(|file| file.path.as_path());
    (reading.check)(&read.collect::<Vec<_>>())?;
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

/// What is said of a command that has another use.
const MAKES_NONE: &str = "makes no rows of rows";

fn no_parts(words: &[String], why: &str) -> anyhow::Error {
    usage(format!("`judge {}` {why}, so it has no parts", words.join(" ")))
}

/// What is wrong with the command line of a part; where it is that it is one of a part, this is what is said. Whoever plans has given none
/// of a part's own options.
fn without_parts(words: &[String], error: anyhow::Error) -> anyhow::Error {
    let why = error.downcast_ref::<clap::Error>().and_then(|error| {
        match (error.kind(), error.get(ContextKind::InvalidArg)) {
            (ErrorKind::ArgumentConflict, _) if error.to_string().contains("--part") => Some("reads all rows together"),
            // `judge probe` is half a command, of which nothing is known: clap's usage says what is missing.
            (ErrorKind::UnknownArgument, _) if error.to_string().contains("<COMMAND>") => None,
            (ErrorKind::UnknownArgument, Some(ContextValue::String(name))) if OF_A_PART.contains(&name.as_str()) => {
                Some(MAKES_NONE)
            }
            _ => None,
        }
    });
    why.map_or(error, |why| no_parts(words, why))
}

/// Whether options choose the column of the ids.
fn chooses_ids(words: &[String]) -> bool {
    let behind = words.windows(2).filter(|two| two[0] == "--columns").map(|two| two[1].as_str());
    let mut chosen = words.iter().filter_map(|word| word.strip_prefix("--columns=")).chain(behind);
    chosen.any(|columns| columns.parse::<Columns>().is_ok_and(|columns| columns.is_chosen(Field::Id)))
}

/// What a plan adds to the command line for each part.
const OF_A_PART: [&str; 3] = ["--input", "--part", "--output"];

/// The command line of a part.
fn of_part(words: &[String], input: &Path, part: &str, output: &Path) -> Vec<String> {
    let values = [input.to_string_lossy(), part.into(), output.to_string_lossy()];
    let own = OF_A_PART.into_iter().zip(values).flat_map(|(option, value)| [option.to_owned(), value.into_owned()]);
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
    let find = CommandPart::finder(&args.output, plan);
    let is_done = |shard| -> Result<bool> {
        Ok(match find(shard)? {
            Some(part) => part.is_whole(&args.output, plan)?,
            None => false,
        })
    };
    let Some((pending, mine)) = args.pending(plan.shards(), is_done)? else { return Ok(()) };
    plan.check_inputs(&pending)?;
    let done = mine - pending.len();
    let words = with_options(&plan.command, &args.options(), args.quiet);
    let rows: usize = pending.iter().map(|&shard| plan.rows_of(shard).len()).sum();
    let mut behind = rows;
    for (index, &shard) in pending.iter().enumerate() {
        let Some((file, part)) = plan.shard(shard) else { bail!("the plan has no shard {shard}") };
        let output = plan.output(&args.output, shard);
        let own = plan.rows_of(shard).len();
        behind -= own;
        begin_part(own, behind);
        if !args.quiet {
            tell(format_args!(
                "shard {shard}, {} of {}: rows {part} of {}",
                done + index + 1,
                mine,
                file.path.display()
            ));
        }
        for removed in CommandPart::clear(&args.output, plan, shard)? {
            let removed = removed.display();
            tell(format_args!("note: shard {shard}: {removed} was not what its run had written; it is made again"));
        }
        let ended = commands.run(&of_part(&words, &file.path, &part.to_string(), &output));
        if let Err(error) = ended {
            let nothing_was_done =
                error.is::<Stopped>() || error.is::<clap::Error>() || error.downcast_ref().is_some_and(Error::is_usage);
            if nothing_was_done || !record_path(&output).exists() {
                return Err(error.context(format!("shard {shard}, rows {part} of {}", file.path.display())));
            }
            // What is not whole was removed before, so the rows are all there: what failed is said of them, such as that none has a score.
            tell(format_args!("note: shard {shard}: {}", in_words(&error)));
        }
        CommandPart::finish(&args.output, plan, shard)?;
    }
    say(format_args!("{rows} rows of {} shards -> {}", pending.len(), args.output.display()))
}

/// Joins the parts of a plan that was checked. `rows` is where the rows of several files go.
pub(super) fn export(
    plan: &CommandPlan,
    folder: &Path,
    output: &Path,
    rows: Option<&Path>,
    write: OverwriteArgs,
    quiet: bool,
) -> Result<()> {
    let input = match rows {
        Some(path) => {
            let bar = Progress::new("writing", plan.rows(), quiet);
            // By its record the program knows the file again.
            let mut record = RunPlan::new(path, plan.rows(), program("score_files"));
            record.options.overwrite = write.overwrite;
            let input = plan.write_rows(&record, chooses_ids(&plan.command), |rows| bar.inc(rows))?;
            bar.finish_and_clear();
            Some(input)
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
