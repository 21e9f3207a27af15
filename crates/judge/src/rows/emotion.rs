//! How strongly a character of a dialogue feels an emotion, by a model's inner states, and how well that agrees with people.
//!
//! `judge emotion --input dialogues.jsonl --output scores.jsonl`

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use judge_core::{
    Scale,
    lager::{LayerWeights, States, Variant},
    scale::ScalePoint,
};
use judge_data::{DatasetFormat, Finished, LabelTable, Outputs, Program, Record, Records, ScoreOutcome, ScoreRow};
use serde::Serialize;

use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs, program};
use judge_cli::args::lager::{LagerArgs, layer_weights};
use judge_cli::args::layers::LayerList;
use judge_cli::args::model_args::ModelArgs;
use judge_cli::lager_file::LagerFile;
use judge_cli::report::{Compared, say_compared, write_json_if};
use judge_cli::terminal::console::{counted_that, say};

/// Emotions of fewer items have a line in the JSON file alone.
const FEW: usize = 10;

/// Judge how strongly characters of dialogues feel emotions, and compare with people.
///
/// Reads the items of LAGER's emotion experiment: {"dialogue", "human": the character's name, "emotion", "emotion_score"?: 1 to 9}. Writes
/// one row per item in input order, {"id", "emotion", "score", "human": what people say, …}, and prints the agreement of each score with
/// people, over all items and for each emotion.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Where the statistics go
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) carry: CarryArgs,
    #[command(flatten)]
    lager: LagerArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    // Its report has the scores of several variants.
    cli.lager.check_condition()?;
    let inputs = [&cli.input.input].into_iter().chain(cli.lager.inputs());
    let outputs = Outputs::new(inputs).rows([&cli.output.output]).reports("emotional_understanding", &cli.json);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let file = LagerFile {
        program: "emotional_understanding",
        rows: "items",
        input: &cli.input,
        format: Some(DatasetFormat::Emotion),
        output: &cli.output,
        carry: &cli.carry,
        layers: &LayerList::All,
        lager: &cli.lager,
        model: &cli.model,
        check: &|_| Ok(()),
        template: None,
        probe: None,
    };
    file.score(
        |record, _, row| match record {
            Record::Emotion(item) => row.extra.set("emotion", &item.emotion),
            _ => Ok(()),
        },
        |finished| {
            let results = Results::of(cli, finished)?;
            write_json_if(cli.json.as_deref(), "emotional_understanding", || Ok(&results))?;
            results.print()
        },
    )
}

/// The agreement with people.
#[derive(Serialize)]
struct Results {
    program: Program,
    /// Items with a score.
    n: usize,
    unscored: BTreeMap<String, usize>,
    /// Which of the scores was written, and is compared by emotion.
    written: String,
    variants: BTreeMap<&'static str, Found>,
    emotions: BTreeMap<String, Found>,
}

#[derive(Serialize)]
struct Found {
    n: usize,
    #[serde(flatten)]
    compared: Compared,
}

impl Found {
    fn new(scores: &[f64], human: &[f64]) -> Result<Self> {
        Ok(Self { n: scores.len(), compared: Compared::new(scores, human)? })
    }
}

impl Results {
    /// Reads the finished rows: of each some numbers are kept, and no table.
    fn of(cli: &Cli, finished: &Finished<'_, Records>) -> Result<Self> {
        let weights = cli.lager.weights.as_deref().map(layer_weights).transpose()?;
        let states = cli.lager.states.or(weights.as_ref().map(LayerWeights::states)).unwrap_or_default();
        let mut variants = vec![Variant::LastMode, Variant::LastExpected, Variant::MeanExpected];
        variants.extend(weights.is_some().then_some(Variant::WeightedExpected));
        let written = cli.lager.variant();

        let mut scores: Vec<Vec<f64>> = vec![Vec::new(); variants.len()];
        let (mut n, mut human, mut unscored) = (0, Vec::new(), BTreeMap::new());
        let mut by_emotion: BTreeMap<String, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        for row in finished.rows()? {
            let (_, row) = row?;
            let row = ScoreRow::from_row(row)?;
            let emotion = row.extra.string("emotion");
            let people = row.human_mean();
            match row.outcome {
                ScoreOutcome::Unscored(why) => *unscored.entry(why.reason.to_string()).or_default() += 1,
                ScoreOutcome::Read(read, judged) => {
                    n += 1;
                    // What nobody has graded is compared with nobody.
                    let Some(people) = people else { continue };
                    for (scores, variant) in scores.iter_mut().zip(&variants) {
                        scores.push(score(*variant, &read, states, weights.as_ref())?);
                    }
                    human.push(people);
                    if let (Some(emotion), Some(judged)) = (emotion, judged) {
                        let (scores, human) = by_emotion.entry(emotion).or_default();
                        scores.push(judged.score);
                        human.push(people);
                    }
                }
            }
        }
        let compared = |(variant, scores): (&Variant, &Vec<f64>)| Ok((variant.as_str(), Found::new(scores, &human)?));
        let of_emotion =
            |(emotion, (scores, human)): (String, (Vec<f64>, Vec<f64>))| Ok((emotion, Found::new(&scores, &human)?));
        Ok(Self {
            program: program("emotional_understanding"),
            n,
            unscored,
            written: written.as_str().to_owned(),
            variants: if human.is_empty() {
                BTreeMap::new()
            } else {
                variants.iter().zip(&scores).map(compared).collect::<Result<_>>()?
            },
            emotions: by_emotion.into_iter().map(of_emotion).collect::<Result<_>>()?,
        })
    }

    fn print(&self) -> Result<()> {
        let show = |title: &str, entries: &[(&str, &Found)]| {
            let entries = entries.iter().map(|(name, found)| (*name, Some(found.n), &found.compared));
            say_compared(title, &entries.collect::<Vec<_>>())
        };
        if self.variants.is_empty() {
            return say("no item has both a score and a human score, so nothing is compared");
        }
        show("score", &self.variants.iter().map(|(name, found)| (*name, found)).collect::<Vec<_>>())?;
        let mut emotions: Vec<(&str, &Found)> = self
            .emotions
            .iter()
            .map(|(name, found)| (name.as_str(), found))
            .filter(|(_, found)| found.n >= FEW)
            .collect();
        emotions.sort_by_key(|(_, found)| std::cmp::Reverse(found.n));
        if !emotions.is_empty() {
            show(&format!("{} by emotion", self.written), &emotions)?;
        }
        let few = self.emotions.values().filter(|found| found.n < FEW).count();
        if few > 0 {
            let few = counted_that(few, "emotion", ["has", "have"]);
            say(format_args!("{few} fewer than {FEW} items; --json has them too"))?;
        }
        Ok(())
    }
}

/// A score of one table.
fn score(variant: Variant, read: &LabelTable, states: States, weights: Option<&LayerWeights>) -> Result<f64> {
    let point =
        |label: &String| Ok(ScalePoint { value: label.parse().context("a label is no number")?, label: label.clone() });
    let scale = Scale::new(read.labels.iter().map(point).collect::<Result<_>>()?)?;
    let scored = match weights {
        Some(weights) => weights.score(variant, &read.table, &scale),
        None => variant.score(&read.table, &scale, states),
    };
    Ok(scored?.score)
}
