//! Writes generated rows with planted defects and simulated raters: data to try the other commands on.
//!
//! `judge rows --split test --rows 400 --output graded.jsonl`

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use judge_data::{Outputs, PairVerdict, Rows, write_new};
use serde_json::{Value, json};
use tiny_judge::planted::{self, Split};

use judge_cli::args::files::{OverwriteArgs, tell_json_lines};
use judge_cli::args::model_args::SeedArgs;
use judge_cli::args::numbers::{at_least, within};
use judge_cli::args::one_of;
use judge_cli::terminal::console::say;

/// The values of `--split`.
const SPLITS: [(&str, Split); 4] =
    [("train", Split::Train), ("validation", Split::Validation), ("test", Split::Test), ("shifted", Split::Shifted)];

/// Write generated rows to try the other commands on.
///
/// Each is a question, an answer with planted defects, and the marks of three simulated raters:
/// {"id", "instruction", "response", "rubric", "scores"}, with --truth what was planted beside them; with --pairs, two answers
/// to the question and which one each rater prefers: {"id", "instruction", "response_a", "response_b", "rubric", "human"};
/// with --answers, several answers and the mean mark of each: {"id",
/// "instruction", "responses", "rubric", "human"}. The same arguments write the same bytes. The embedded model
/// was trained on the split `train`; no question of one split occurs in another, and `shifted` has topics and wordings of its own.
#[derive(Args)]
pub(crate) struct Cli {
    /// Where the rows go
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Which part of the data
    #[arg(long, value_parser = one_of(&SPLITS), default_value = "test")]
    split: Split,
    /// How many
    #[arg(long, default_value_t = 400, value_name = "N", value_parser = at_least::<usize>(1))]
    rows: usize,
    /// Two answers to each question
    #[arg(long)]
    pairs: bool,
    /// So many answers to each question
    #[arg(long, value_name = "N", conflicts_with = "pairs", value_parser = within::<u8>(2, 16))]
    answers: Option<u8>,
    /// Also write what is planted: "topic" of the question, "quality", what the answer deserves, and "defects"
    #[arg(long, conflicts_with_all = ["pairs", "answers"])]
    truth: bool,
    #[command(flatten)]
    seed: SeedArgs,
    #[command(flatten)]
    write: OverwriteArgs,
}

/// Whether a file has rows of this command, by the first one: its id is that of a split and a number.
fn is_generated(path: &Path) -> bool {
    let Some(Ok(row)) = Rows::open(path).ok().and_then(|mut rows| rows.next()) else { return false };
    let id: Option<String> = row.optional("id", "a text").unwrap_or_default();
    let of = |id: &str| {
        id.rsplit_once('-').is_some_and(|(split, number)| {
            Split::ALL.iter().any(|known| known.name() == split) && number.parse::<usize>().is_ok()
        })
    };
    id.is_some_and(|id| of(&id)) && row.has("instruction") && row.has("rubric")
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    Outputs::default().made([&cli.output], is_generated).check()?;
    tell_json_lines(&cli.output);
    let mut rows: Vec<u8> = Vec::new();
    let mut write = |row: &Value| writeln!(rows, "{row}");
    if cli.pairs {
        for pair in planted::pairs(cli.split, cli.rows, cli.seed.seed) {
            let ([a, b], human) =
                (&pair.responses, pair.verdicts.iter().map(|&verdict| PairVerdict::from(verdict)).collect::<Vec<_>>());
            write(
                &json!({"id": pair.id, "instruction": pair.instruction, "response_a": a, "response_b": b, "rubric": pair.rubric, "human": human}),
            )?;
        }
    } else if let Some(answers) = cli.answers {
        for row in planted::candidates(cli.split, cli.rows, answers.into(), cli.seed.seed) {
            write(
                &json!({"id": row.id, "instruction": row.instruction, "responses": row.responses, "rubric": row.rubric, "human": row.grades}),
            )?;
        }
    } else {
        for item in planted::generate(cli.split, cli.rows, cli.seed.seed) {
            let mut row = json!({"id": item.id, "instruction": item.instruction, "response": item.response, "rubric": item.rubric, "scores": item.scores});
            if cli.truth {
                row["topic"] = json!(item.topic);
                row["quality"] = json!(item.quality);
                row["defects"] = item.defects.iter().map(ToString::to_string).collect();
            }
            write(&row)?;
        }
    }
    write_new(&cli.output, &rows, cli.write.overwrite)?;
    say(format_args!("{} rows -> {}", cli.rows, cli.output.display()))
}
