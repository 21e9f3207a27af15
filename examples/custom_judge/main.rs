//! Your own judge from the parts: it asks in two wordings and averages the answers. docs/judges.md explains it.
//!
//! `cargo run --release --example custom_judge`

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use judge_core::{
    Fields, Judge, JudgeError, Prompt, PromptTemplate, Request, Rounds, Runner, Scale, Score, Verdict, Want,
    request::LabelRead, runner::RunEvent, scale::ScoreDistribution,
};
use judge_examples::console::{say, start};
use judge_examples::{model_args::embedded_model, planted};
use judge_models::{LoadOptions, Model};

/// Judge ten answers by asking for each score in two wordings
#[derive(Parser)]
#[command(name = "custom_judge")]
struct Cli {}

struct TwoWordings {
    scale: Scale,
    read: LabelRead,
    wordings: [PromptTemplate; 2],
}

impl<I: Fields + ?Sized> Judge<I> for TwoWordings {
    fn name(&self) -> &str {
        "two wordings"
    }

    fn ask(&self, item: &I) -> Result<Vec<Request>, JudgeError> {
        let want = Want { labels: vec![self.read.clone()], ..Want::default() };
        self.wordings.iter().map(|wording| Ok(Request { prompt: wording.fill(item)?, want: want.clone() })).collect()
    }

    fn decide(&self, _: &I, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let mut sum = vec![0.0; self.scale.len()];
        for reading in rounds.readings()? {
            let heard = reading.distribution(&self.read, self.read.layers[0], &self.scale)?;
            sum.iter_mut().zip(heard.probabilities()).for_each(|(sum, p)| *sum += p);
        }
        Ok(Score::expected(ScoreDistribution::from_weights(&self.scale, &sum)?))
    }
}

fn main() -> ExitCode {
    start(|_: &Cli| run())
}

fn run() -> Result<()> {
    let model = Model::load(embedded_model(), &LoadOptions::default())?;
    let scale = Scale::integers(1, 5)?;
    let ask = |rubric| {
        PromptTemplate::new(Prompt::user(format!("Question: {{instruction}}\nAnswer: {{response}}\n{rubric}")))
    };
    let wordings =
        [ask("Score from 1 (bad) to 5 (very good).")?, ask("How good is this answer? 1 is poor, 5 is perfect.")?];
    let judge = TwoWordings { read: LabelRead::at_prompt_end(&scale, &model)?, scale, wordings };
    let items = planted::generate(planted::Split::Test, 10, 0).into_iter().map(|item| (item.id.as_str().into(), item));
    Runner::new(&model, vec![&judge]).run(items, |event| match event {
        RunEvent::Item(result) => match &result.verdicts[0] {
            Verdict::Scored(score) => {
                say(format_args!("{}: {:.2}, people say {:.2}", result.item.id, score.value, result.item.human()))
            }
            Verdict::Unscored(reason) => say(format_args!("{}: {reason}", result.item.id)),
        },
        _ => Ok(()),
    })?;
    Ok(())
}
