//! A judge of one's own from the parts: it asks in two wordings and averages what it hears.
//!
//! `cargo run --release --example custom_judge`

use std::ops::ControlFlow;

use clap::Parser;
use judge_core::{Backbone, Error, Judge, LabelRead, Lens, Outcome, Prompt, PromptTemplate, ReadAt, Request, RunEvent};
use judge_core::{Runner, Scale, ScoreDistribution, Verdict, Want};
use judge_examples::{model_args::embedded_model, planted};
use judge_models::{LoadOptions, Model};

/// Judge ten answers by asking for each score in two wordings
#[derive(Parser)]
struct Cli {}

struct TwoWordings(Scale, LabelRead, [PromptTemplate; 2]);

impl Judge<planted::Item> for TwoWordings {
    fn ask(&self, item: &planted::Item) -> Result<Vec<Request>, Error> {
        let want = Want { labels: Some(self.1.clone()), ..Want::default() };
        self.2.iter().map(|wording| Ok(Request { prompt: wording.fill(item)?, want: want.clone() })).collect()
    }

    fn decide(&self, _: &planted::Item, done: &[Outcome]) -> Result<Verdict, Error> {
        let mut sum = vec![0.0; self.0.len()];
        for outcome in done {
            let reading = match outcome {
                Outcome::Read(reading) => reading,
                Outcome::Unscored(reason) => return Ok(Verdict::Unscored(reason.clone())),
            };
            let steps = reading.labels.iter().flat_map(|labels| &labels.steps);
            let logits: Vec<f64> = steps.flat_map(|step| &step.logits).map(|&z| z.into()).collect();
            let heard = ScoreDistribution::softmax(&self.0, &logits)?;
            sum.iter_mut().zip(heard.probabilities()).for_each(|(sum, p)| *sum += p);
        }
        Ok(Verdict::Scored { distribution: ScoreDistribution::from_weights(&self.0, &sum)?, interval: None })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Cli::parse();
    let model = Model::load(embedded_model(), &LoadOptions::default())?;
    let scale = Scale::integers(1, 5)?;
    let tokens = scale.labels().map(|label| model.token(label)).collect::<Result<_, _>>()?;
    let last = vec![*model.info().layers().last().ok_or("a model without layers")?];
    let labels = LabelRead { tokens, layers: last, lens: Lens::Raw, at: ReadAt::PromptEnd };
    let ask = |rubric| {
        PromptTemplate::new(Prompt::user(format!("Question: {{instruction}}\nAnswer: {{response}}\n{rubric}")))
    };
    let judge = TwoWordings(
        scale,
        labels,
        [ask("Score from 1 (bad) to 5 (very good).")?, ask("How good is this answer? 1 is poor, 5 is perfect.")?],
    );
    let items = planted::generate(planted::Split::Test, 10, 0).into_iter().map(|item| (item.id.as_str().into(), item));
    Runner::new(&model, vec![&judge]).run(items, &mut |event| {
        if let RunEvent::Item(result) = event
            && let Verdict::Scored { distribution, .. } = &result.verdicts[0]
        {
            println!("{}: {:.2}, people say {:.2}", result.id, distribution.expected(), result.item.human());
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}
