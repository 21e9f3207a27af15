//! What a run came to, on one page.
//!
//! ```sh
//! judge report --input scores.jsonl --output report.html        # rows of `judge score`, `judge compare` or calibrate, or of anything with scores
//! judge report --input parts --check check.json --output report.html    # what `judge shards` wrote, and what its check found
//! ```

mod answers;
mod figures;
mod findings;
mod layers;
mod list;
mod measures;
mod page;
mod record;
mod rows;
mod texts;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use judge_cli::args::files::{OverwriteArgs, parquet_files};
use judge_cli::report::{write_json_if, write_marked};
use judge_cli::terminal::console::{say, tell, usage};
use judge_cli::terminal::progress::Progress;
use judge_data::{Input, Outputs};

use self::findings::Findings;
use self::record::Record;
use self::rows::Rows;

/// How the help of the command ends.
const EXAMPLES: &str = "\
Examples:
  judge report --input scores.jsonl --output report.html
  judge report --input scores.jsonl --texts graded.jsonl --output report.html --json report.json

More: docs/first-steps.md";

/// What a run came to, on one page.
///
/// One HTML file that loads nothing and can be printed, under 1 MB; with --json its numbers too. The same input gives the same bytes. It
/// has whether all rows are there, how well scores agree with people and how sure that is, the agreement of each layer, the distribution of
/// scores, whether they mean what they say, rows without a score by reason, the rows that differ most with their texts and layers, to sort
/// and to filter, the longest items, and all settings. What needs human scores is left out where there are none.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// JSON lines of scores (`judge score`, `judge compare`, `judge calibrate`, `judge rag`, `judge shards export`, or your own with `score` and
    /// `human`), or a folder of result rows
    #[arg(long, value_name = "FILE|DIR")]
    input: PathBuf,
    /// Where the page goes
    #[arg(long, value_name = "FILE.html")]
    output: PathBuf,
    /// Where the numbers of the page go
    #[arg(long, value_name = "FILE.json")]
    json: Option<PathBuf>,
    /// The plan or the run record that says how the rows were made [default: the record beside the input, if there is one]
    #[arg(long, value_name = "FILE.json")]
    run: Option<PathBuf>,
    /// What `judge shards check --json` found
    #[arg(long, value_name = "FILE.json")]
    check: Option<PathBuf>,
    /// The rows that were scored (JSON lines, a JSON array, CSV or Parquet), for the texts and groups of the rows that are listed, where the
    /// scores do not carry them
    #[arg(long, value_name = "FILE")]
    texts: Option<PathBuf>,
    /// Field of the prediction [default: predicted, score, verdict or faithfulness.mean, the first that is there]
    #[arg(long, value_name = "FIELD")]
    predicted: Option<String>,
    /// Field of the human score [default: human, scores or score, whichever is not the prediction]
    #[arg(long, value_name = "FIELD")]
    human: Option<String>,
    /// Field by whose values the page can filter its rows
    #[arg(long, value_name = "FIELD")]
    group: Option<String>,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    write: OverwriteArgs,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    if cli.input.is_dir() {
        let given = [
            (cli.texts.is_some(), "--texts"),
            (cli.predicted.is_some(), "--predicted"),
            (cli.human.is_some(), "--human"),
            (cli.group.is_some(), "--group"),
        ];
        if let Some((_, option)) = given.into_iter().find(|(given, _)| *given) {
            return Err(usage(format!("{option} has no effect on a folder of result rows, which have scores alone")));
        }
    }
    let read = [&cli.run, &cli.check, &cli.texts].into_iter().flatten();
    let outputs = Outputs::new(read.chain([&cli.input])).reports("report", [&cli.output].into_iter().chain(&cli.json));
    outputs.overwrite(cli.write.overwrite).check()?;
    let record = Record::find(cli.run.as_deref(), &cli.input, cli.check.as_deref())?;
    let bar = Progress::new("reading", 0, cli.quiet);
    let mut rows = Rows::new(cli.group.clone());
    match cli.input.is_dir() {
        true => {
            let files = parquet_files(&[cli.input.to_string_lossy().into_owned()])?;
            rows.read_results(&files, |rows| bar.inc(rows))?;
        }
        false => {
            let [predicted, human] = [cli.predicted.as_deref(), cli.human.as_deref()];
            rows.read_lines(&cli.input, predicted, human, |rows| bar.inc(rows))?;
        }
    }
    bar.finish_and_clear();
    if let Some(path) = &cli.texts {
        let has_inputs = !record.inputs.is_empty();
        let is_scored = has_inputs && record.inputs.contains(&Input::identify(path)?.blake3);
        let is_another = has_inputs && !is_scored;
        let joined = rows.add_texts(path, is_scored)?;
        let first = rows.listed.first().filter(|_| joined.found == 0);
        if joined.nameless && (is_another || first.is_some()) {
            let of = if is_another { "" } else { "known as " };
            return Err(usage(format!(
                "--texts: {} is not {of}the file that was scored, and its rows have no ids, so whose texts they are is not known: name the \
                 file that was scored, or give the rows of both an id",
                path.display()
            )));
        }
        if let Some(first) = first {
            return Err(usage(format!(
                "--texts: none of the rows of {} has the id of a row that is listed, such as {}; name the file that was scored",
                path.display(),
                first.id
            )));
        }
        if is_another {
            tell(format_args!(
                "note: {} is not the file that was scored, by its content; texts are those of the rows with the same ids",
                path.display()
            ));
        }
    }
    ensure!(rows.n > 0, "{} has no rows", cli.input.display());
    rows.check_scored().with_context(|| cli.input.display().to_string())?;
    rows.check_group()?;
    let findings = Findings::new(&cli.input, rows, record)?;
    if let Some(repeated) = &findings.repeated {
        tell(format_args!("note: {repeated}; `judge agree --cluster` allows for it"));
    }
    let page = page::html(&findings)?;
    write_json_if(cli.json.as_deref(), "report", || Ok(&findings))?;
    write_marked(&cli.output, "report", &page)?;
    let json = cli.json.as_ref().map_or_else(String::new, |json| format!(", {}", json.display()));
    say(format_args!("{} -> {}{json}", findings.in_words(), cli.output.display()))
}
