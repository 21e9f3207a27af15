//! The grades of an export as rows.

use anyhow::{Result, bail};
use judge_cli::args::files::{open, program};
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::terminal::console::{counted, say, usage};
use judge_data::{Fate, GradingTool, ImportedGrades, Opened, Resolved, RunPlan};
use serde_json::json;

use super::cli::{COMMAND, Cli};

pub(super) fn run(cli: &Cli, tool: GradingTool) -> Result<()> {
    let input = open(&cli.input)?;
    let path = cli.input.display();
    let grades = ImportedGrades::read(&input, tool)?;
    if let Some((place, why)) = grades.unread.all().filter(|_| grades.questions.is_empty()) {
        bail!("{path}: no item can be read; the first is {place}: {why}");
    }
    tell_unread_that(&grades.unread, "cannot be read in full; what cannot be is left out");
    let questions = || grades.questions.join(", ");
    let question = match (&cli.question, grades.questions.as_slice()) {
        (_, []) => bail!("{path}: nobody has answered anything"),
        (Some(named), all) if all.contains(named) => named,
        (Some(named), _) => return Err(usage(format!("--question: {named:?} is not one of {}", questions()))),
        (None, [only]) => only,
        (None, _) => {
            return Err(usage(format!(
                "{path} answers several questions; name one of {} with --question",
                questions()
            )));
        }
    };
    let rows = grades.rows(question, &cli.carry)?;
    let mut plan = RunPlan::new(&cli.output.output, rows.len(), program(COMMAND));
    plan.settings.insert("import".to_owned(), json!(format!("{tool:?}")));
    plan.settings.insert("question".to_owned(), json!(question));
    plan.settings.insert("carry".to_owned(), json!(cli.carry.to_string()));
    plan.options = cli.output.write.options();
    plan.inputs.push(input.identity()?.with_rows(rows.len()));
    let graded = rows.iter().filter(|(_, graded)| *graded).count();
    let output = cli.output.output.display();
    match plan.open()? {
        Opened::Complete(_) => {
            return say(format_args!("{output} is complete: {graded} of {} rows graded; nothing to do", rows.len()));
        }
        Opened::Ready(start) => {
            let mut run = start.begin(Resolved::default())?;
            for (place, (row, graded)) in rows.iter().enumerate() {
                run.replace(place, row, Fate { unscored: None, graded: *graded })?;
            }
            run.finish()?;
        }
    }
    let raters = counted(grades.raters.len(), "rater");
    say(format_args!("{graded} of {} rows graded by {raters} ({question}) -> {output}", rows.len()))
}
