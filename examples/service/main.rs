//! A judge inside a service: one thread owns the model, handlers send it answers, and what waits together is judged together.
//!
//! `cargo run --release --example service [MODEL]`
//!
//! In an async program nothing changes but the reply: take your runtime's one-shot channel for it, and `.await` the verdict.

use std::sync::mpsc::{self, Receiver, Sender};
use std::{borrow::Cow, env, error::Error, iter, thread};

use judge_core::{
    Fields, Prompt, PromptTemplate, Runner, Scale, Verdict,
    lager::{LagerJudge, LagerSettings},
    runner::{RunEvent, RunSettings},
};
use judge_models::{LoadOptions, Model};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");
const PROMPT: &str = "Question: {question}\nAnswer: {answer}\nScore from 1 (bad) to 5 (very good).";

/// An answer on its way to the judge, and where its verdict goes.
struct Job {
    texts: [(&'static str, String); 2],
    reply: Sender<Verdict>,
}

impl Fields for Job {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.texts.field(name)
    }
}

/// What a handler does: the verdict comes out of the receiver, or an error if the judge has ended without one.
fn submit(judge: &Sender<Job>, question: &str, answer: &str) -> Result<Receiver<Verdict>, Box<dyn Error>> {
    let (reply, verdict) = mpsc::channel();
    let texts = [("question", question.to_owned()), ("answer", answer.to_owned())];
    judge.send(Job { texts, reply }).map_err(|_| "the judge has ended")?;
    Ok(verdict)
}

/// Judges what comes in until every sender is gone.
fn serve(model: &Model, judge: &LagerJudge, jobs: &Receiver<Job>) -> Result<(), judge_core::Error> {
    while let Ok(first) = jobs.recv() {
        // A run takes further jobs whenever the model has room, and ends when none waits.
        let waiting = iter::once(first).chain(jobs.try_iter());
        let items = iter::zip(0_u64.., waiting).map(|(number, job)| (number.into(), job));
        let settings = RunSettings { in_order: false, ..RunSettings::default() }; // each as soon as it is known
        Runner::new(model, vec![judge]).with_settings(settings).run(items, |event| {
            let RunEvent::Item(mut result) = event else { return };
            let verdict = result.verdicts.pop().expect("one judge, one verdict");
            drop(result.item.reply.send(verdict)); // whoever asked may be gone
        })?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let model = Model::open(&env::args().nth(1).unwrap_or(MODEL.into()), &LoadOptions::default())?;
    let template = PromptTemplate::new(Prompt::user(PROMPT))?;
    let settings = LagerSettings::prompt_end(Scale::integers(1, 5)?);
    let judge = LagerJudge::new(LagerSettings { template, opening: String::new(), ..settings }, &model)?;

    let (service, jobs) = mpsc::channel();
    let worker = thread::spawn(move || serve(&model, &judge, &jobs));

    let question = "Ana has 3 hats and gets 2 more. How many hats does Ana have?";
    let answers = ["There are 3 and 2. 3 + 2 = 5. Ana has 5 hats.", "Ana has 9 hats.", "There are 3 and 2."];
    let verdicts = answers.map(|answer| submit(&service, question, answer)); // all three are under way now
    for (answer, verdict) in iter::zip(answers, verdicts) {
        match verdict?.recv()? {
            Verdict::Scored(score) => println!("{:.2}  {answer}", score.value),
            Verdict::Unscored(why) => println!("{why}  {answer}"),
        }
    }
    drop(service); // nobody asks any more, so the worker ends
    worker.join().map_err(|_| "the judge panicked")??;
    Ok(())
}
