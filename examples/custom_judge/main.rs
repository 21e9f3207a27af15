//! A judge of one's own from the parts: it asks in two wordings and averages what it hears.
//!
//! `cargo run --release --example custom_judge`

use std::ops::ControlFlow;

use judge_core::{
    Backbone, Error, Judge, LabelRead, Layer, Lens, Outcome, PromptTemplate, ReadAt, Request, RunEvent, Runner, Scale,
    ScoreDistribution, TokenId, Verdict, Want,
};
use judge_examples::{model_args::embedded_model, planted};
use judge_models::{LoadOptions, Model};

/// Reads one layer, once per wording of the question.
struct TwoWordings {
    scale: Scale,
    tokens: Vec<TokenId>,
    layer: Layer,
    wordings: [PromptTemplate; 2],
}

impl Judge<planted::Item> for TwoWordings {
    fn ask(&self, item: &planted::Item) -> Result<Vec<Request>, Error> {
        let labels =
            LabelRead { tokens: self.tokens.clone(), layers: vec![self.layer], lens: Lens::Raw, at: ReadAt::PromptEnd };
        let want = Want { labels: Some(labels), ..Want::default() };
        self.wordings.iter().map(|wording| Ok(Request { prompt: wording.fill(item)?, want: want.clone() })).collect()
    }

    fn decide(&self, _: &planted::Item, done: &[Outcome]) -> Result<Verdict, Error> {
        let mut mean = vec![0.0; self.scale.len()];
        for outcome in done {
            let reading = match outcome {
                Outcome::Read(reading) => reading,
                Outcome::Unscored(reason) => return Ok(Verdict::Unscored(reason.clone())),
            };
            let logits: Vec<f64> =
                reading.labels.iter().flat_map(|l| &l.steps).flat_map(|s| &s.logits).map(|&z| z.into()).collect();
            let heard = ScoreDistribution::softmax(&self.scale, &logits)?;
            mean.iter_mut().zip(heard.probabilities()).for_each(|(sum, p)| *sum += p);
        }
        Ok(Verdict::Scored { distribution: ScoreDistribution::from_weights(&self.scale, &mean)?, interval: None })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = Model::load(embedded_model(), &LoadOptions::default())?;
    let scale = Scale::integers(1, 5)?;
    let tokens = scale.labels().map(|label| model.token(label)).collect::<Result<_, _>>()?;
    let ask = |rubric: &str| {
        PromptTemplate::new(judge_core::Prompt::user(format!(
            "Question: {{instruction}}\nAnswer: {{response}}\n{rubric}"
        )))
    };
    let wordings =
        [ask("Score from 1 (bad) to 5 (very good).")?, ask("How good is this answer? 1 is poor, 5 is perfect.")?];
    let judge = TwoWordings { scale, tokens, layer: Layer(model.info().n_layers), wordings };

    let items = planted::generate(planted::Split::Test, 10, 0).into_iter().map(|item| (item.id.as_str().into(), item));
    Runner::new(&model, vec![&judge]).run(items, &mut |event| {
        if let RunEvent::Item(result) = event {
            match &result.verdicts[0] {
                Verdict::Scored { distribution, .. } => {
                    println!("{}: {:.2}, people say {:.2}", result.id, distribution.expected(), result.item.human())
                }
                Verdict::Unscored(reason) => println!("{}: {reason}", result.id),
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}
