//! `check`, and `export`, which checks first.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use judge_cli::args::files::{OverwriteArgs, parquet_files, program, tell_json_lines};
use judge_cli::args::numbers::at_least;
use judge_cli::report::write_json_if;
use judge_cli::terminal::console::{say, tell, usage};
use judge_cli::terminal::progress::Progress;
use judge_core::{ModelInfo, lager::TableOrigin};
use judge_data::{
    Check, CommandPlan, CommandResults, Completeness, Export, Exported, InputFile, ItemSpec, MadeBy, ORIGIN, Output,
    Outputs, Resolved, RunPlan, RunRecord, Settings, ShardPlan, load,
};
use serde_json::Value;

use super::command;
use super::said::{lines_of, show, with_folder};

/// What is checked, and how: of `check`, and of `export`, which checks first.
#[derive(Args)]
pub(crate) struct PartsArgs {
    /// The plan whose parts are checked
    #[arg(long, value_name = "PLAN.json", required_unless_present = "input", conflicts_with_all = ["input", "run"])]
    plan: Option<PathBuf>,
    /// What an engine scored: Parquet files, their folder, or a pattern
    #[arg(long, num_args = 1.., value_name = "GLOB", requires = "run")]
    input: Vec<String>,
    /// The record of the run, which `judge stream --run` wrote
    #[arg(long, value_name = "RUN.json")]
    run: Option<PathBuf>,
    /// Rows that are there more than once are no fault if they are equal: an engine that tries again may write both
    #[arg(long)]
    allow_repeats: bool,
    /// This many rows whose worker died are no fault
    #[arg(long, default_value_t = 0, value_name = "ROWS", value_parser = at_least::<u64>(0))]
    allow_lost: u64,
    /// All rows must come from one device and instruction set: on the CPU, bits are promised for each
    #[arg(long)]
    one_device: bool,
    /// Write what was found here
    #[arg(long, value_name = "FILE.json")]
    json: Option<PathBuf>,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    write: OverwriteArgs,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    parts: PartsArgs,
    /// The folder of the parts; with --input the files that the engine wrote, their folder, or a pattern
    #[arg(long, required = true, num_args = 1.., value_name = "DIR|GLOB")]
    output: Vec<String>,
    /// The former spelling of `judge shards export`
    #[arg(long, value_name = "FILE.jsonl", hide = true)]
    export: Option<PathBuf>,
    /// Of an export, the input's column of human scores
    #[arg(long, value_name = "COLUMN", requires = "export", hide = true)]
    human: Option<String>,
}

/// What is checked first, and then joined.
#[derive(Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    of: PartsArgs,
    /// The folder of the parts; with --input the files that the engine wrote, their folder, or a pattern
    #[arg(long, required = true, num_args = 1.., value_name = "DIR|GLOB")]
    parts: Vec<String>,
    /// Where the results go: JSON lines in the order of the input. Of a plan of a command, the file that this command would have written,
    /// with its run record and what it keeps beside it; else a score file with the fields of the template
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Write the rows of all files of a command's plan here, for commands that go on from the joined results
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "input")]
    rows: Option<PathBuf>,
    /// The input's column of human scores, for a score file [default: as every command finds it: human, scores or score]
    #[arg(long, value_name = "COLUMN")]
    human: Option<String>,
}

/// A check, and the export of what it finds complete.
struct Checked<'a> {
    parts: &'a PartsArgs,
    /// Where the parts are.
    output: &'a [String],
    /// Where the results go, if they are joined.
    export: Option<&'a Path>,
    /// Where the rows of a command's plan go.
    rows: Option<&'a Path>,
    /// The input's column of human scores.
    human: Option<&'a str>,
}

pub(crate) fn check(args: &CheckArgs) -> Result<()> {
    let CheckArgs { parts, output, export, human } = args;
    Checked { parts, output, export: export.as_deref(), rows: None, human: human.as_deref() }.run()
}

pub(crate) fn export(args: &ExportArgs) -> Result<()> {
    let ExportArgs { of, parts, output, rows, human } = args;
    Checked { parts: of, output: parts, export: Some(output), rows: rows.as_deref(), human: human.as_deref() }.run()
}

impl Checked<'_> {
    fn run(&self) -> Result<()> {
        self.export.into_iter().chain(self.rows).for_each(tell_json_lines);
        match (&self.parts.plan, &self.parts.run) {
            (Some(path), _) => self.planned(path).map_err(|error| with_folder(path, error)),
            (None, Some(path)) => {
                let record: RunRecord = load(path)?;
                let setting = |name: &str| setting(path, record.setting(name), name);
                let (items, run): (ItemSpec, String) =
                    (serde_json::from_value(setting("items")?)?, serde_json::from_value(setting("run")?)?);
                let (input, output) = (parquet_files(&self.parts.input)?, parquet_files(self.output)?);
                let output = Output::Files { input: &input, items: &items, run: &run, output: &output };
                let model = record.model.clone();
                Scored { record: path, output, files: &input, model, resolved: &record.resolved }.check(self)
            }
            (None, None) => Err(usage("give --plan, or --input and --run")),
        }
    }

    /// Checks the parts of a plan of either kind.
    fn planned(&self, path: &Path) -> Result<()> {
        let [folder] = self.output else {
            return Err(usage("with --plan, the parts are in one folder"));
        };
        if let Some(plan) = command::planned(path)? {
            return self.command(path, &plan, folder.as_ref());
        }
        if self.rows.is_some() {
            return Err(usage("--rows is for the plan of a command; a score file has the texts in it"));
        }
        let plan: ShardPlan = load(path)?;
        let files: Vec<PathBuf> = plan.files.iter().map(|file| file.path.clone()).collect();
        let output = Output::Parts { plan: &plan, folder: folder.as_ref() };
        let model = plan.resolved.get("model").map(|model| serde_json::from_value(model.clone())).transpose()?;
        let scored = Scored { record: path, output, files: &files, model, resolved: &plan.resolved };
        scored.check(self)
    }

    /// Checks the parts of a command, and joins them if that is wanted.
    fn command(&self, path: &Path, plan: &CommandPlan, folder: &Path) -> Result<()> {
        if self.human.is_some() || self.parts.allow_repeats || self.parts.allow_lost > 0 {
            return Err(usage(
                "--human, --allow-repeats and --allow-lost are for scores in Parquet, not for the parts of a command",
            ));
        }
        let outputs = Outputs::new(plan.files.iter().map(|file| file.path.as_path()).chain([path]));
        let outputs = outputs.reports("score_files", &self.parts.json).rows(self.export.into_iter().chain(self.rows));
        outputs.overwrite(self.parts.write.overwrite).check()?;
        let bar = Progress::new("checking", plan.rows(), self.parts.quiet);
        let found = plan.check(folder, self.parts.one_device, |rows| bar.inc(rows))?;
        bar.finish_and_clear();
        write_json_if(self.parts.json.as_deref(), "score_files", || Ok(&found))?;
        let CommandResults { planned, rows, scored, unscored, devices, results, problems, .. } = &found;
        let lines = [lines_of("unscored,", unscored), lines_of("device", devices)].concat();
        show([rows, planned, scored], &lines, results, problems)?;
        match self.export {
            Some(output) => command::export(plan, folder, output, self.rows, self.parts.write, self.parts.quiet),
            None => Ok(()),
        }
    }
}

/// What was scored, and what is recorded of it.
struct Scored<'a> {
    /// The plan, or the record of the run.
    record: &'a Path,
    output: Output<'a>,
    /// Of the input.
    files: &'a [PathBuf],
    model: Option<ModelInfo>,
    resolved: &'a Settings,
}

impl Scored<'_> {
    fn check(&self, args: &Checked<'_>) -> Result<()> {
        let outputs = Outputs::new(self.files.iter().map(PathBuf::as_path).chain([self.record]));
        let outputs = outputs.reports("score_files", &args.parts.json).rows(args.export);
        outputs.overwrite(args.parts.write.overwrite).check()?;
        let allowed =
            Check { repeats: args.parts.allow_repeats, lost: args.parts.allow_lost, one_device: args.parts.one_device };
        let bar = Progress::new("checking", 0, args.parts.quiet);
        let found = allowed.run(&self.output, |rows| bar.inc(rows))?;
        bar.finish_and_clear();
        write_json_if(args.parts.json.as_deref(), "score_files", || Ok(&found))?;
        let Completeness { planned, rows, scored, unscored, digests, runs, devices, problems, .. } = &found;
        let lines = [lines_of("unscored,", unscored), lines_of("run", runs), lines_of("device", devices)].concat();
        show([rows, planned, scored], &lines, &digests.results, problems)?;
        match args.export {
            Some(path) => self.export(path, usize::try_from(found.planned)?, args),
            None => Ok(()),
        }
    }

    /// Writes a score file, and the record beside it that says what its tables are read from.
    fn export(&self, path: &Path, rows: usize, args: &Checked<'_>) -> Result<()> {
        let origin: TableOrigin = serde_json::from_value(setting(self.record, self.resolved.get(ORIGIN), ORIGIN)?)?;
        let resolved = Resolved {
            model: self.model.clone(),
            template: Some(origin.template.clone()),
            settings: self.resolved.clone(),
            ..Resolved::default()
        };
        let mut plan = RunPlan::new(path, rows, program("score_files"));
        plan.inputs = self.files.iter().map(InputFile::of).collect::<Result<_, _>>()?;
        plan.settings.insert("human".to_owned(), args.human.into());
        plan.made_by = MadeBy::Model(resolved.clone());
        plan.options.overwrite = args.parts.write.overwrite;
        if plan.finished()?.is_some() {
            return say(format_args!("{} is complete; nothing to do", path.display()));
        }
        let export = Export { output: &self.output, origin: &origin, human: args.human };
        let bar = Progress::new("exporting", 0, args.parts.quiet);
        let Exported { counts, notes, .. } = export.write(&plan, resolved, |rows| bar.inc(rows))?;
        bar.finish_and_clear();
        notes.iter().for_each(|note| tell(format_args!("note: {note}")));
        say(format_args!("{} rows, {} of them with a human score -> {}", counts.rows(), counts.graded, path.display()))
    }
}

/// A setting that must be there.
fn setting(path: &Path, found: Option<&Value>, name: &str) -> Result<Value> {
    let expected = || format!("{}: expected the setting `{name}`, as this version writes it", path.display());
    found.cloned().with_context(expected)
}
