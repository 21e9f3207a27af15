//! Instruction data graded on seven aspects by LAGER, and the best of them chosen.
//!
//! `judge select --input examples.jsonl --output graded.jsonl --selected chosen.jsonl --top 0.1`

mod diverse;
mod example;
mod graders;
mod numbers;
mod pass;
mod report;
mod rubrics;
mod write;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{ArgGroup, Args};
use judge_cli::args::files::{InputArgs, OutputArgs, beside, program, tell_json_lines};
use judge_cli::args::lager::LagerArgs;
use judge_cli::args::model_args::{ModelArgs, SeedArgs};
use judge_cli::args::numbers::number;
use judge_cli::choice::{Choice, best, reaching, rows_of_share, tell_few};
use judge_cli::missing_fields::tell_unread;
use judge_cli::probes::PromptedProbe;
use judge_cli::report::write_json_if;
use judge_cli::terminal::console::{check_scored, say, usage};
use judge_cli::terminal::interrupt::Interrupts;
use judge_cli::terminal::options::name_of;
use judge_cli::terminal::progress::Progress;
use judge_core::Unscored;
use judge_data::{Checked, Job, Outputs, Settings};
use serde_json::json;

use self::diverse::{Directions, Near, diverse};
use self::example::{Examples, Form};
use self::graders::Aspects;
use self::numbers::{Criterion, Files, Missing, Numbers};
use self::pass::Passes;
use self::report::{Repeat, Repeats, Report};
use self::rubrics::Rubrics;

pub(crate) use self::example::options;

/// Cosine of states from which on a row counts as nearly equal to another.
const NEAR: f64 = 0.95;

/// The name in records.
const PROGRAM: &str = "data_selection";

/// Grade instruction data and choose the best.
///
/// Reads instructions and responses (Alpaca's fields, ShareGPT's conversations, or any that --columns names), grades each on seven aspects
/// from 1 to 9, and writes every row with {"aspects": {NAME: score}, "variants", "score", "selected"}; the score is the mean of the
/// aspects. What the model says stays in OUTPUT.aspects.jsonl, so that another choice from the same rows needs no model (with --overwrite).
#[derive(Args)]
#[command(group(ArgGroup::new("which").args(["top", "threshold"])))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Where the chosen rows go, in the form of --format
    #[arg(long, value_name = "FILE")]
    selected: Option<PathBuf>,
    /// The form of the chosen rows
    #[arg(long, value_enum, default_value_t = Form::Rows, requires = "selected")]
    format: Form,
    /// Where the report goes
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Choose this share of all rows, the best, and at least one [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = number, help_heading = "Choice")]
    top: Option<f64>,
    /// Choose all rows with at least this score
    #[arg(long, value_name = "SCORE", value_parser = number, help_heading = "Choice")]
    threshold: Option<f64>,
    /// Weight from 0 to 1 of being unlike the rows that are chosen already, by the states of the model; for --top
    #[arg(long, value_name = "WEIGHT", value_parser = number, conflicts_with = "threshold", help_heading = "Choice")]
    diversity: Option<f64>,
    /// Choose by this instead of the mean of the aspects
    #[arg(long, value_enum, value_name = "CRITERION", help_heading = "Choice")]
    baseline: Option<Criterion>,
    /// What the choice is compared with [default: longest,random, and direct,expected where aspects are graded]
    #[arg(long, value_enum, value_name = "CRITERION,…", value_delimiter = ',', help_heading = "Choice")]
    compare: Option<Vec<Criterion>>,
    /// What becomes of a row that lacks the score of an aspect
    #[arg(long, value_enum, default_value_t, help_heading = "Choice")]
    missing: Missing,
    /// Say which share of each group is chosen, by this field of the input: a text, or a list of them
    #[arg(long, value_name = "FIELD", help_heading = "Choice")]
    groups: Option<String>,
    /// The aspects that are graded [default: all of the rubrics]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Judge")]
    aspects: Vec<String>,
    /// Aspects of your own: a JSON list of {"name", "question", "levels"} [default: the seven of docs/selection.md]
    #[arg(long, value_name = "FILE.json", help_heading = "Judge")]
    rubrics: Option<PathBuf>,
    /// Probe files, or folders of them, for the criterion probe
    #[arg(long, num_args = 1.., value_name = "FILE|DIR", help_heading = "Judge")]
    probes: Vec<PathBuf>,
    /// Folder of ASPECT.json, the prompt templates that the probes were fitted with [default: those beside the probes]
    #[arg(long, value_name = "DIR", requires = "probes", help_heading = "Judge")]
    templates: Option<PathBuf>,
    #[command(flatten)]
    lager: LagerArgs,
    #[command(flatten)]
    seed: SeedArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    let criterion = cli.criterion();
    let others = cli.check(criterion)?;
    let output = &cli.output.output;
    let grades = beside(output, "aspects.jsonl");
    let likelihood = beside(output, "likelihood.jsonl");
    let probe = beside(output, "probe.jsonl");
    let states = beside(output, "states.safetensors");
    let inputs = [&cli.input.input].into_iter().chain(&cli.rubrics).chain(&cli.probes).chain(cli.lager.inputs());
    let outputs = Outputs::new(inputs).rows([output]).rows(&cli.selected).rows([&grades, &likelihood, &probe]);
    let outputs = outputs.states([&states]).reports(PROGRAM, &cli.json);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    [output].into_iter().chain(&cli.selected).for_each(|path| tell_json_lines(path));

    let asks = |some: &[Criterion]| others.iter().chain([&criterion]).any(|one| some.contains(one));
    let rubrics = Rubrics::read(cli.rubrics.as_deref(), &cli.aspects)?;
    let is_graded = asks(&Criterion::GRADED);
    let source = Examples::new(cli.input.open()?, &cli.input, cli.model.limit)?;
    let aspects = is_graded.then(|| Aspects::new(&rubrics, &cli.lager, &cli.model)).transpose()?;
    let probes = PromptedProbe::read(&cli.probes, cli.templates.as_deref(), None)?;
    let job = Job { write: cli.output.write.options(), ..Job::new(source, output, program(PROGRAM)) };
    let templates = aspects.iter().flat_map(Aspects::templates).chain(probes.iter().map(PromptedProbe::template));
    job.source.check_templates(templates)?;
    let Seen { checked, repeats, unread } = look_through(&job)?;
    tell_unread(&checked.unread);
    let rows = checked.rows;
    let passes = Passes { job, checked, model: &cli.model, loaded: OnceCell::new() };
    if cli.reads_a_model(criterion, &others) {
        cli.model.admit(passes.input())?;
    }
    write::check_fields(&passes, cli.groups.as_deref())?;

    let settings = cli.choice_settings(criterion, rubrics.names().len());
    passes.plan(output, settings.clone())?.check_settings()?;
    let mut files = Files::default();
    if let Some(aspects) = &aspects {
        aspects.grade(&passes, &grades)?;
        files.aspects = Some(grades);
    }
    if asks(&[Criterion::Perplexity, Criterion::Difficulty]) {
        graders::likelihoods(&passes, &likelihood)?;
        files.likelihood = Some(likelihood);
    }
    if asks(&[Criterion::Probe]) {
        let graded = if is_graded { rubrics.names() } else { Vec::new() };
        graders::probes(&passes, &probe, &probes, &graded)?;
        files.probe = Some(probe);
    }
    if let Some(part) = &cli.input.part {
        let with_states = cli.diversity.map(|_| &states);
        if let Some(states) = with_states {
            graders::states(&passes, states)?;
        }
        // The best are chosen from all rows.
        return say(format_args!(
            "rows {part} graded -> {}",
            files.paths().chain(with_states).map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
        ));
    }
    let names = rubrics.names().len();
    let numbers = Numbers { passes: &passes, files, aspects: names, missing: cli.missing, seed: cli.seed.seed, unread };
    let values = numbers.by(criterion)?;
    let (choice, near) = cli.choose(&passes, &states, &values)?;

    let is_new = write::rows(output, &numbers, &values, &choice, settings.clone())?;
    if let Some(path) = &cli.selected {
        write::selected(path, &numbers, &choice, cli.format, settings)?;
    }
    let (choices, human_mean) = report::choices(&numbers, criterion, &others, &choice, cli.groups.as_deref())?;
    let both = repeats.iter().filter(|&&(row, like)| choice.chosen[row] && choice.chosen[like]).count();
    let repeats = repeats.iter().map(|&(row, like)| Repeat { row, like, similarity: 1.0 });
    let near = near.iter().map(|near| Repeat { row: near.row, like: near.chosen, similarity: near.similarity });
    let report = Report {
        program: program(PROGRAM),
        n: rows,
        criterion,
        chosen: choice.count(),
        without: values.iter().filter(|value| value.is_none()).count(),
        missing: report::missing(&numbers)?,
        least: choice.least,
        tied: choice.tied,
        duplicates: Repeats::new(repeats, both),
        near_duplicates: cli.diversity.map(|_| Repeats::new(near, 0)),
        distributions: report::distributions(&numbers, criterion, &values, &choice.chosen)?,
        human_mean,
        choices,
    };
    write_json_if(cli.json.as_deref(), PROGRAM, || Ok(&report))?;
    if !is_new {
        say(format_args!("{} is complete; nothing to do", output.display()))?;
    }
    report.print()?;
    say(format_args!("-> {}", output.display()))?;
    check_scored(rows - report.without, report.missing.into_values().flatten())
}

/// What the rows are, before any model work.
struct Seen {
    checked: Checked,
    /// Rows that repeat an earlier one, with that.
    repeats: Vec<(usize, usize)>,
    /// Why rows cannot be read, by their place.
    unread: BTreeMap<usize, Unscored>,
}

/// Reads all rows once, so that whatever is wrong with one is said before any model work.
fn look_through(job: &Job<Examples>) -> Result<Seen> {
    let (mut first_of, mut repeats, mut unread) = (HashMap::new(), Vec::new(), BTreeMap::new());
    let checked = job.check(&[], |example| {
        if let Err(why) = &example.said {
            unread.insert(example.row, why.clone());
        }
        if let Some(digest) = example.digest() {
            let row = u32::try_from(example.row)?;
            let first = *first_of.entry(digest).or_insert(row);
            if first != row {
                repeats.push((example.row, first as usize));
            }
        }
        anyhow::Ok(None)
    })?;
    Ok(Seen { checked, repeats, unread })
}

impl Cli {
    /// By what rows are chosen.
    fn criterion(&self) -> Criterion {
        self.baseline.unwrap_or(Criterion::Score)
    }

    fn reads_a_model(&self, criterion: Criterion, others: &[Criterion]) -> bool {
        self.diversity.is_some() || others.iter().chain([&criterion]).any(|one| one.reads_a_model())
    }

    /// Refuses, before there are parts, what each of them would refuse, and a choice for which no model is read: a part would write nothing.
    pub(crate) fn check_parts(&self) -> Result<()> {
        let criterion = self.criterion();
        let others = self.check(criterion)?;
        if self.reads_a_model(criterion, &others) {
            return Ok(());
        }
        let by = name_of(criterion);
        Err(usage(format!(
            "expected a choice for which a model reads the rows, found --baseline {by}, for which none does, so it has no parts: \
             run `judge select` on the whole file"
        )))
    }

    /// Refuses what does not fit together; the criteria that the choice is compared with.
    fn check(&self, criterion: Criterion) -> Result<Vec<Criterion>> {
        for (name, value) in [("--top", self.top), ("--diversity", self.diversity)] {
            if let Some(value) = value.filter(|value| !(0.0..=1.0).contains(value)) {
                return Err(usage(format!("{name} {value} is not between 0 and 1")));
            }
        }
        if self.top == Some(0.0) {
            return Err(usage(
                "--top 0 would choose no row; a tenth of the rows is --top 0.1, and any share above 0 at least one row",
            ));
        }
        let graded = [Criterion::Direct, Criterion::Expected];
        let default = [Criterion::Longest, Criterion::Random];
        let mut others = match &self.compare {
            Some(others) => others.clone(),
            None if criterion == Criterion::Score => graded.into_iter().chain(default).collect(),
            None => default.to_vec(),
        };
        let mut seen = BTreeSet::from([criterion]);
        others.retain(|other| seen.insert(*other));
        if let Some(option) =
            self.of_aspects().filter(|_| !Criterion::GRADED.iter().any(|graded| seen.contains(graded)))
        {
            let by = name_of(criterion);
            return Err(usage(format!(
                "{option} is for the grades of aspects, and with --baseline {by} no aspect is graded: leave it out, or give --compare score"
            )));
        }
        match (seen.contains(&Criterion::Probe), self.probes.is_empty()) {
            (true, true) => Err(usage("the criterion probe needs --probes FILE|DIR")),
            (false, false) => Err(usage("--probes needs --baseline probe or --compare probe")),
            _ => Ok(others),
        }
    }

    /// The first option that says how aspects are graded, or what their grades come to.
    fn of_aspects(&self) -> Option<&'static str> {
        let own = [
            ("--aspects", !self.aspects.is_empty()),
            ("--rubrics", self.rubrics.is_some()),
            ("--missing", self.missing != Missing::default()),
        ];
        let own = own.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name);
        own.or_else(|| self.lager.given())
    }

    fn choose(
        &self,
        passes: &Passes<'_>,
        states: &std::path::Path,
        values: &[Option<f64>],
    ) -> Result<(Choice, Vec<Near>)> {
        if let Some(least) = self.threshold {
            return Ok((reaching(values, least), Vec::new()));
        }
        let share = self.top.unwrap_or(0.1);
        tell_few(values.len(), share);
        let wanted = rows_of_share(values.len(), share);
        let Some(weight) = self.diversity else { return Ok((best(values, wanted), Vec::new())) };
        let states = graders::states(passes, states)?;
        let directions = Directions::new(&states)?;
        let (stop, bar) = (Interrupts::catch()?, Progress::new("choosing", wanted, self.model.quiet));
        let mut done = 0;
        let step = || {
            bar.inc(1);
            done += 1;
            stop.flow()
        };
        let found = diverse(values, wanted, weight, NEAR, |row| directions.of(row), step)?;
        bar.finish_and_clear();
        stop.check(found.is_none(), done, wanted, "choices")?;
        found.context("the choice was ended without a signal")
    }

    /// What decides about the choice.
    fn choice_settings(&self, criterion: Criterion, aspects: usize) -> Settings {
        [
            ("criterion", json!(criterion)),
            ("top", json!(self.threshold.is_none().then(|| self.top.unwrap_or(0.1)))),
            ("threshold", json!(self.threshold)),
            ("diversity", json!(self.diversity)),
            ("missing", json!(self.missing)),
            ("aspects", json!(aspects)),
            ("seed", json!(self.seed.seed)),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }
}
