//! Does a model know whether it can answer? Questions in, how answerable each is out, and what is risked by answering those.
//!
//! `judge knowledge --input questions.jsonl --output scores.jsonl`

mod boundary;

use std::cell::Cell;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;
use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs};
use judge_cli::args::lager::LagerArgs;
use judge_cli::args::layers::LayerList;
use judge_cli::args::model_args::ModelArgs;
use judge_cli::judge_record::{check_same_judge, check_scale};
use judge_cli::lager_file::LagerFile;
use judge_cli::probes::PromptedProbe;
use judge_cli::report::write_json_if;
use judge_cli::terminal::console::tell;
use judge_core::{Prompt, PromptTemplate, Scale, Score, Verdict};
use judge_data::{Columns, DatasetFormat, Field, Outputs, Record, ScoreOutcome, ScoreRow};

use self::boundary::{ANSWERABLE, Boundary, Judged, PROBE, PROBE_UNSCORED, Rule, answerable};

/// Find out whether a model knows what it can answer.
///
/// Reads questions {"id", "question", "answerable"?: true or false, or a cell of a table that says so}.
/// The model says how answerable each is, and LAGER reads it from its states: one row per question in input
/// order, {"id", "score", "answerable_p", "answerable"?, …}, with --probe also what the probe says.
/// Where the input says which are answerable, prints how well a threshold tells the unanswerable ones, and what is risked
/// by answering the surest.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Where the statistics go
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// How the threshold is found, at and above which a question counts as answerable [default: fitted with --valid, else min-max]
    #[arg(long, value_enum, value_name = "RULE")]
    threshold_rule: Option<Rule>,
    /// Rows that this program has written of other questions, on which the threshold is fitted
    #[arg(long, value_name = "FILE")]
    valid: Option<PathBuf>,
    /// A probe that was fitted on questions with grade 0 or 1, or on any grades that rise with answerability, as a second method
    #[arg(long, value_name = "FILE")]
    probe: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) carry: CarryArgs,
    #[command(flatten)]
    lager: LagerArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// What the model is asked. Own wording; the reference's is not licensed.
const PROMPT: &str = "Here is a question. Do not answer it. Judge only whether you could: whether what it asks is known, whether you know it, and whether it rests on nothing false.\n\n\
     Question: {prompt}\n\n\
     {low} means that you certainly could not answer it, {high} that you certainly could. Reply with one line of the form\nscore: <number>";

impl Cli {
    /// Which columns the questions are in, where nobody has chosen others. `answerable` is carried along as it is: it is no grade on the
    /// scale.
    pub(crate) fn columns(&self) -> Result<Columns> {
        const OWN: [(Field, &[&str]); 2] = [(Field::Prompt, &["question"]), (Field::Human, &[])];
        let mut columns = self.input.columns.clone().unwrap_or_default();
        for (field, names) in OWN {
            if !columns.is_chosen(field) {
                columns = columns.with(field, names)?;
            }
        }
        Ok(columns)
    }
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.lager.check()?;
    let rule = Rule::choose(cli.threshold_rule, cli.valid.is_some())?;
    let inputs = [&cli.input.input].into_iter().chain(&cli.valid).chain(&cli.probe).chain(cli.lager.inputs());
    let outputs = Outputs::new(inputs).rows([&cli.output.output]).reports("self_knowledge", &cli.json);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let (low, high) = (1_u16, cli.lager.asked.points.unwrap_or(5));
    if let Some(path) = &cli.valid {
        let scale = serde_json::to_value(Scale::integers(low.into(), high.into())?)?;
        check_scale("--valid", path, &scale, "this run")?;
    }
    let valid = cli.valid.as_deref().map(Judged::read_valid).transpose()?;
    let columns = cli.columns()?;
    let input = InputArgs { columns: Some(columns), ..cli.input.clone() };
    let prompt = PROMPT.replace("{low}", &low.to_string()).replace("{high}", &high.to_string());
    let probe = match &cli.probe {
        Some(path) => {
            let plain = PromptTemplate::new(Prompt::user("{prompt}"))?;
            let mut found = PromptedProbe::read(std::slice::from_ref(path), None, Some(&plain))?;
            ensure!(found.len() == 1, "--probe {}: expected one probe, found {}", path.display(), found.len());
            found.pop()
        }
        None => None,
    };
    let is_told = Cell::new(false);
    let file = LagerFile {
        program: "self_knowledge",
        rows: "questions",
        input: &input,
        format: Some(DatasetFormat::Prompts),
        output: &cli.output,
        carry: &cli.carry,
        layers: &LayerList::All,
        lager: &cli.lager,
        model: &cli.model,
        check: &|record| {
            // Nothing is asked about it, so it costs the row no score.
            if let Err(why) = answerable(record.extra().text(ANSWERABLE))
                && !is_told.replace(true)
            {
                let id = record.id();
                tell(format_args!(
                    "note: item {id}: {why}; of this and rows like it nothing is known, and they are scored"
                ));
            }
            cli.carry.fields().of_row(record.extra().clone(), &["answerable_p", PROBE, PROBE_UNSCORED])?;
            Ok(())
        },
        template: Some(PromptTemplate::new(Prompt::user(prompt))?),
        probe: probe.as_ref(),
    };
    let finish = |record: &Record, by_probe: Option<&Verdict>, row: &mut ScoreRow| {
        // The figures are made of the rows, whatever else is carried.
        if let Ok(Some(answerable)) = answerable(record.extra().text(ANSWERABLE)) {
            row.extra.set(ANSWERABLE, &answerable)?;
        }
        if let ScoreOutcome::Read(_, Some(judged)) = &row.outcome {
            // How far along the scale: not a probability until people have said which are answerable.
            let share = (judged.score - f64::from(low)) / f64::from(high - low);
            row.extra.set("answerable_p", &share.clamp(0.0, 1.0))?;
        }
        match by_probe {
            // The expected class, or the class of a probe that knows no probabilities; `null` if it could not be read.
            Some(verdict) => {
                let expected =
                    |score: &Score| score.distribution.as_ref().map_or(score.value, |known| known.expected());
                if let Verdict::Unscored(why) = verdict {
                    row.extra.set(PROBE_UNSCORED, why)?;
                }
                row.extra.set(PROBE, &verdict.score().map(expected))
            }
            None => Ok(()),
        }
    };
    file.score(finish, |_| {
        cli.valid.as_ref().map_or(Ok(()), |path| check_same_judge("--valid", path, &cli.output.output))?;
        let judged = Judged::read(&cli.output.output)?;
        let found = Boundary::new(&judged, rule, valid.as_ref())?;
        write_json_if(cli.json.as_deref(), "self_knowledge", || Ok(&found))?;
        found.print()
    })
}
