//! A judge of your own: it asks for the grade in two wordings and averages the two distributions.
//!
//! `cargo run --release --example custom_judge [INPUT [MODEL]]`

use std::{env, error::Error};

use judge_core::testing::check_judge;
use judge_core::{Fields, Judge, JudgeError, Prompt, PromptTemplate, Request, request::LabelRead};
use judge_core::{Rounds, Runner, Scale, Score, Verdict, Want, scale::ScoreDistribution};
use judge_data::{Dataset, DatasetOptions};
use judge_metrics::correlation::spearman;
use judge_models::{LoadOptions, Model};

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/test.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");

struct TwoWordings {
    scale: Scale,
    read: LabelRead,
    wordings: [PromptTemplate; 2],
}

impl<I: Fields + ?Sized> Judge<I> for TwoWordings {
    fn name(&self) -> &str {
        "two wordings"
    }

    /// Two prompts about an item, and what to read of each: the logits of the five grades where the reply begins.
    fn ask(&self, item: &I) -> Result<Vec<Request>, JudgeError> {
        let want = Want { labels: vec![self.read.clone()], ..Want::default() };
        self.wordings.iter().map(|wording| Ok(Request { prompt: wording.fill(item)?, want: want.clone() })).collect()
    }

    /// The expected grade under the mean of the two distributions.
    fn decide(&self, _: &I, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        let mut sum = vec![0.0; self.scale.len()];
        for reading in rounds.readings()? {
            let grades = reading.distribution(&self.read, self.read.layers[0], &self.scale)?;
            sum.iter_mut().zip(grades.probabilities()).for_each(|(sum, p)| *sum += p);
        }
        Ok(Score::expected(ScoreDistribution::from_weights(&self.scale, &sum)?))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let input = args.next().unwrap_or(INPUT.into());
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;

    let scale = Scale::integers(1, 5)?;
    let wording = |question: &str| {
        PromptTemplate::new(Prompt::user(format!("Question: {{instruction}}\nAnswer: {{response}}\n{question}")))
    };
    let wordings = [
        wording("Score from 1 (bad) to 5 (very good).")?,
        wording("How good is this answer? 1 is poor, 5 is perfect.")?,
    ];
    let judge = TwoWordings { read: LabelRead::at_prompt_end(&scale, &model)?, scale, wordings };

    let records = Dataset::open(input, &DatasetOptions::default())?.collect::<Result<Vec<_>, _>>()?;
    check_judge(&judge, &model, records.iter().take(3).cloned())?; // the same requests and verdicts each time, no NaN

    let items = records.into_iter().map(|record| (record.id().clone(), record));
    let results = Runner::new(&model, vec![&judge]).collect(items)?;
    for result in results.iter().take(5) {
        match &result.verdicts[0] {
            Verdict::Scored(score) => println!("{}: {:.2}", result.id, score.value),
            Verdict::Unscored(why) => println!("{}: {why}", result.id),
        }
    }
    let graded = results.iter().filter_map(|result| Some((result.verdicts[0].value()?, result.item.human()?)));
    let (scores, human): (Vec<f64>, Vec<f64>) = graded.unzip();
    println!("Spearman with people: {:.3} ({} items)", spearman(&scores, &human)?.estimate, scores.len());
    Ok(())
}
