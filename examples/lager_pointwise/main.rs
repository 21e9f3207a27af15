//! Scores a data file with LAGER: one score and the table of layer logits per item.
//!
//! `cargo run --release --example lager_pointwise -- --data graded.jsonl --output scores.jsonl`

mod item;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;
use std::{fs, io};

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum, value_parser};
use judge_core::{
    Backbone, Condition, Generation, LagerJudge, LagerSettings, LayerTable, LayerWeights, Lens, Outcome,
    PromptTemplate, RunEvent, RunSettings, Runner, Scale, ScoreRule, States, Variant, Verdict,
};
use judge_data::{
    Counts, Dataset, DatasetFormat, DatasetOptions, Extra, InputFile, LabelTable, LagerResult, LagerScores,
    ResumableJsonl, Rows, RunRecord, ScoreOutcome, ScoreRow, Settings, load, save, write_lager_results,
};
use judge_examples::console::{say, start};
use judge_examples::labels::note_split_labels;
use judge_examples::model_args::{ModelArgs, read_template};
use judge_examples::origin::{ORIGIN, record_path};
use judge_examples::pace::Pace;
use serde_json::json;

use item::Item;

/// Score a data file with LAGER.
///
/// Reads graded records {"id", "instruction", "response", "rubric"?, "scores"?}, prompts {"id", "prompt"}, the benchmark
/// files of the LAGER reference program and its emotion items; which, is told from the first row. Writes one row per item, in
/// input order, with the layer logits, the score and the human score; a run record goes to FILE.run.json. Stopped and
/// started again, it goes on.
#[derive(Parser)]
#[command(name = "lager_pointwise")]
struct Cli {
    /// The items, JSON lines or a JSON array
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Where the scores go, JSON lines
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// What the items are [default: told from the first row]
    #[arg(long, value_name = "prompts|graded|lager|emotion", value_parser = format)]
    format: Option<DatasetFormat>,
    /// How the model is brought to its score
    #[arg(long, value_enum, default_value_t = ConditionArg::PromptEnd)]
    condition: ConditionArg,
    /// Which generated label is the score [default: last-label for direct, after-marker for reasoning]
    #[arg(long, value_enum)]
    rule: Option<Rule>,
    /// The text after which after-marker looks for a label
    #[arg(long, default_value = "Score:", value_name = "TEXT")]
    marker: String,
    /// Upper bound on generated tokens [default: 10 for direct, 256 for reasoning]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    max_new_tokens: Option<u32>,
    /// The scale is the numbers 1 to N
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = value_parser!(u16).range(2..))]
    points: u16,
    /// A prompt template (JSON) [default: for prompt-end judge_template.json of the model folder, else a built-in one]
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// Opening of the reply, put after the prompt [default for prompt-end with a built-in template: "score: "]
    #[arg(long, value_name = "TEXT")]
    prefill: Option<String>,
    /// Layer weights that lager_evaluate has saved
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// The score to give [default: lager_w with --weights, lager_wo without]
    #[arg(long, value_name = "NAME")]
    variant: Option<Variant>,
    /// Which layers are put together
    #[arg(long, default_value_t = States::All, value_name = "all|drop-last")]
    states: States,
    /// Apply the final norm to inner states before the head
    #[arg(long)]
    normed: bool,
    /// Also write the result JSON of the LAGER reference program here; every item needs a human score
    #[arg(long, value_name = "FILE")]
    lager_json: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ConditionArg {
    /// Read at the prompt's end; nothing is generated
    PromptEnd,
    /// Generate a short reply and read where its score is predicted
    Direct,
    /// Generate reasons, then the score
    Reasoning,
}

#[derive(Clone, Copy, ValueEnum)]
enum Rule {
    LastLabel,
    AfterMarker,
}

fn format(name: &str) -> Result<DatasetFormat, String> {
    DatasetFormat::from_name(name).ok_or_else(|| "expected prompts, graded, lager or emotion".to_owned())
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    let started = SystemTime::now();
    let format = cli.open(None)?.format();
    let settings = cli.lager_settings(format)?;
    let rows = cli.check_data(format, &settings.template)?;
    let labels: Vec<String> = settings.scale.labels().map(str::to_owned).collect();
    let model = cli.model.load()?;
    let judge = LagerJudge::new(settings, &model)?;
    for note in judge.weight_notes() {
        eprintln!("note: {note}");
    }

    if cli.condition == ConditionArg::PromptEnd
        && let Some(record) = cli.open(Some(format))?.next()
    {
        let first = Item { row: 0, record: record?, reasoning: false };
        note_split_labels(&model, &judge.settings().template.fill(&first)?, &labels)?;
    }
    let record = cli.record(&model, &judge)?;
    let mut output = ResumableJsonl::open(&cli.output, rows, &record.settings)?;
    let resumed = output.resumed().rows;
    if resumed > 0 && !cli.model.quiet {
        eprintln!("going on: {resumed} of {rows} rows are done");
    }
    let done: Vec<bool> = (0..rows).map(|row| output.is_done(row)).collect();
    let mut pace = Pace::new("judging", rows - resumed, cli.model.quiet);
    let reasoning = cli.condition == ConditionArg::Reasoning;
    let items = cli.open(Some(format))?.enumerate().filter(|(row, record)| record.is_err() || !done[*row]);
    let items = items.map(|(row, record)| record.map(|record| (record.id().clone(), Item { row, record, reasoning })));

    let mut failed = None;
    let runner = Runner::new(&model, vec![&judge]).with_settings(RunSettings::default());
    runner.try_run(items, &mut |event| {
        let RunEvent::Item(result) = event else { return ControlFlow::Continue(()) };
        pace.done(&result.outcomes[0]); // one judge
        let row = result.item.row;
        let stored = score_row(&judge, &labels, result).and_then(|score| Ok(output.push(row, &score)?));
        match stored {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    pace.finish();
    // Scores never lie beside the record of other scores, not even if this is killed here.
    let record_file = record_path(&cli.output);
    match fs::remove_file(&record_file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).context(record_file.display().to_string());
        }
        _ => {}
    }
    output.finish()?;
    let counts = cli.count()?;
    let time = |at| Some(humantime::format_rfc3339_seconds(at).to_string());
    let record =
        RunRecord { counts: counts.clone(), started: time(started), finished: time(SystemTime::now()), ..record };
    save(record_file, &record)?;
    if let Some(path) = &cli.lager_json {
        cli.write_lager(path, format)?;
    }
    say(format_args!("{} of {rows} items scored ({}) -> {}", counts.scored, judge.variant(), cli.output.display()))?;
    for (reason, count) in &counts.unscored {
        say(format_args!("unscored, {reason}: {count}"))?;
    }
    Ok(())
}

impl Cli {
    fn open(&self, format: Option<DatasetFormat>) -> Result<Dataset> {
        let (format, max_rows) = (format.or(self.format), self.model.limit);
        Ok(Dataset::open(&self.data, &DatasetOptions { format, max_rows, ..DatasetOptions::default() })?)
    }

    /// Reads the whole data file and fills every prompt once, so that whatever is wrong is said before any model work.
    fn check_data(&self, format: DatasetFormat, template: &PromptTemplate) -> Result<usize> {
        let reasoning = self.condition == ConditionArg::Reasoning;
        let mut rows = 0;
        for record in self.open(Some(format))? {
            let record = record?;
            let id = record.id().clone();
            if self.lager_json.is_some() && record.human().is_none() {
                bail!("--lager-json: item {id} of {} has no human score", self.data.display());
            }
            item::check(&record, reasoning)?;
            let item = Item { row: rows, record, reasoning };
            template.fill(&item).with_context(|| format!("item {id} of {}", self.data.display()))?;
            rows += 1;
        }
        if !self.model.quiet {
            eprintln!("{}: {rows} items of the format `{format}`", self.data.display());
        }
        Ok(rows)
    }

    fn condition(&self) -> Condition {
        let (mut generation, default_rule) = match self.condition {
            ConditionArg::PromptEnd => return Condition::PromptEnd,
            ConditionArg::Direct => (Condition::direct().generation().cloned(), Rule::LastLabel),
            ConditionArg::Reasoning => (Condition::reasoning().generation().cloned(), Rule::AfterMarker),
        };
        if let (Some(generation), Some(max)) = (&mut generation, self.max_new_tokens) {
            generation.max_new_tokens = max as usize;
        }
        let generation: Generation = match generation {
            Some(generation) => generation,
            None => return Condition::PromptEnd, // the two conditions above generate
        };
        let rule = match self.rule.unwrap_or(default_rule) {
            Rule::LastLabel => ScoreRule::LastLabel,
            Rule::AfterMarker => ScoreRule::AfterMarker { marker: self.marker.clone() },
        };
        match self.condition {
            ConditionArg::Reasoning => Condition::Reasoning { generation, rule },
            _ => Condition::Direct { generation, rule },
        }
    }

    fn lager_settings(&self, format: DatasetFormat) -> Result<LagerSettings> {
        let scale = Scale::integers(1, self.points.into())?;
        let template = self.template(format, &scale)?;
        Ok(LagerSettings {
            template: self.model.dress_template(template),
            condition: self.condition(),
            lens: if self.normed { Lens::Normed } else { Lens::Raw },
            states: self.states,
            weights: self.weights.as_ref().map(load::<LayerWeights>).transpose()?,
            variant: self.variant,
            ..LagerSettings::prompt_end(scale)
        })
    }

    fn template(&self, format: DatasetFormat, scale: &Scale) -> Result<PromptTemplate> {
        let own = match (&self.template, format) {
            (Some(path), _) => Some(read_template(path)?),
            // A model's own template opens the score right after the prompt.
            (None, DatasetFormat::Graded) if self.condition == ConditionArg::PromptEnd => self.model.own_template()?,
            (None, _) => None,
        };
        if let Some(own) = own {
            return Ok(own.with_prefill(self.prefill.as_deref().unwrap_or_default()));
        }
        let reasoning = self.condition == ConditionArg::Reasoning;
        let template = match format {
            DatasetFormat::Graded if reasoning => PromptTemplate::pointwise_reasoning(scale),
            DatasetFormat::Graded => PromptTemplate::pointwise_direct(scale),
            DatasetFormat::Prompts | DatasetFormat::Lager => item::verbatim()?,
            DatasetFormat::Emotion => item::emotion(scale)?,
        };
        let opening = if self.condition == ConditionArg::PromptEnd { "score: " } else { "" };
        Ok(template.with_prefill(self.prefill.as_deref().unwrap_or(opening)))
    }

    /// Everything that a row depends on goes into its settings: a run goes on only with the same.
    fn record(&self, model: &dyn Backbone, judge: &LagerJudge) -> Result<RunRecord> {
        let data = InputFile::of(&self.data)?;
        let settings: Settings = [
            ("data", json!(data.blake3)),
            (ORIGIN, serde_json::to_value(judge.origin())?),
            ("template", serde_json::to_value(&judge.settings().template)?),
            ("device", json!(model.info().device)),
            ("states", json!(judge.settings().states)),
            ("variant", json!(judge.variant().as_str())),
            ("weights", json!(judge.settings().weights.as_ref().map(LayerWeights::weights))),
            ("date", json!(self.model.date.to_string())),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
        Ok(RunRecord {
            command: std::env::args().collect(),
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            model: Some(model.info().clone()),
            template: Some(judge.settings().template.id().to_owned()),
            inputs: vec![data],
            settings,
            ..RunRecord::default()
        })
    }

    /// Counts the rows of the finished output, those of earlier runs included.
    fn count(&self) -> Result<Counts> {
        let mut counts = Counts { scored: 0, unscored: BTreeMap::new() };
        for row in Rows::open(&self.output)? {
            match ScoreRow::from_row(row?)?.outcome {
                ScoreOutcome::Read(_) => counts.scored += 1,
                ScoreOutcome::Unscored(unscored) => *counts.unscored.entry(unscored.reason).or_default() += 1,
            }
        }
        Ok(counts)
    }

    /// The finished output as the reference program's result file.
    fn write_lager(&self, path: &PathBuf, format: DatasetFormat) -> Result<()> {
        let rows = Rows::open(&self.output)?.zip(self.open(Some(format))?).enumerate();
        let results = rows.map(|(index, (row, record))| {
            let (row, record) = (row?, record?);
            let place = row.place().clone();
            let row = ScoreRow::from_row(row)?;
            let scores = match &row.outcome {
                ScoreOutcome::Read(table) => {
                    Some(layer_table(table).and_then(|table| LagerScores::from_table(&table)).map_err(|source| {
                        judge_data::Error::Table { place: place.clone(), source: Box::new(source) }
                    })?)
                }
                ScoreOutcome::Unscored(_) => None,
            };
            let prompt = item::text(&record, self.condition == ConditionArg::Reasoning).into_owned();
            // `check_data` has seen to it that every item has a human score.
            let human_score = record.human().unwrap_or_default();
            Ok(LagerResult { idx: index as u64, prompt, human_score, scores })
        });
        write_lager_results(path, results).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// A stored table as the variants want it.
fn layer_table(table: &LabelTable) -> Result<LayerTable, judge_core::Error> {
    LayerTable::new(table.layers.clone(), table.labels.len(), table.logits.iter().map(|&z| z.into()).collect())
}

/// What is stored of an item: its table and score, or why there is none.
fn score_row(judge: &LagerJudge, labels: &[String], result: judge_core::ItemResult<Item>) -> Result<ScoreRow> {
    let [outcomes] = result.outcomes.as_slice() else { bail!("expected the outcomes of one judge") };
    let mut extra = Extra::new();
    let outcome = match judge.table(outcomes)? {
        Err(unscored) => ScoreOutcome::Unscored(unscored),
        Ok(table) => {
            if let Some(Verdict::Scored { distribution, .. }) = result.verdicts.first() {
                extra.set("score", &distribution.expected())?;
                extra.set("probabilities", distribution.probabilities())?;
            }
            let (step, completion) = position(judge, outcomes)?;
            ScoreOutcome::Read(LabelTable {
                layers: table.layers().to_vec(),
                labels: labels.to_vec(),
                // Logits left the model as f32, so this loses nothing.
                logits: table.logits().iter().map(|&z| z as f32).collect(),
                step,
                completion,
            })
        }
    };
    Ok(ScoreRow { id: result.id, human: result.item.record.human(), outcome, extra })
}

/// Step and generated text of the score position.
fn position(judge: &LagerJudge, outcomes: &[Outcome]) -> Result<(usize, String)> {
    let [Outcome::Read(reading)] = outcomes else { bail!("expected one reading") };
    let step = judge.settings().condition.score_step(reading)?.map(|step| step.step).unwrap_or_default();
    Ok((step, reading.generated.as_ref().map(|generated| generated.text.clone()).unwrap_or_default()))
}
