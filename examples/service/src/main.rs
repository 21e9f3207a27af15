//! A judge of your own behind HTTP: a thread owns the model, handlers hand it answers, and what waits together is judged together.
//!
//! `cargo run --release -p service -- [ADDRESS [MODEL]]`
//!
//! `curl -s http://127.0.0.1:8090/grade -d '{"question": "2 + 3?", "answer": "5"}'`

use std::{env, error::Error, sync::Arc, time::Duration};

use axum::{Router, body::Bytes, extract::State, http::StatusCode, routing::post};
use judge_core::{
    Prompt, PromptTemplate, Scale, Verdict,
    lager::{LagerJudge, LagerSettings},
    runner::JudgeQueue,
};
use judge_models::{LoadOptions, Model};
use serde_json::{Value, json};
use tokio::{net::TcpListener, signal, sync::Semaphore, time::timeout};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny-judge");
const PROMPT: &str = "Question: {question}\nAnswer: {answer}\nScore from 1 (bad) to 5 (very good).";

/// The judge's queue has no bound of its own: at most so many answers wait, and others are told so.
const PLACES: usize = 64;

struct Service {
    queue: JudgeQueue<Value>,
    places: Semaphore,
}

type Reply = (StatusCode, String);

fn refused(status: StatusCode, why: impl ToString) -> Reply {
    (status, json!({"error": why.to_string()}).to_string())
}

/// Grades an answer. A client that goes away drops this, and its answer is not judged unless the model has begun with it.
async fn grade(State(service): State<Arc<Service>>, body: Bytes) -> Result<String, Reply> {
    let item: Value = serde_json::from_slice(&body).map_err(|error| refused(StatusCode::BAD_REQUEST, error))?;
    let _place =
        service.places.try_acquire().map_err(|_| refused(StatusCode::SERVICE_UNAVAILABLE, "all places are taken"))?;
    let judged = timeout(Duration::from_secs(30), service.queue.submit(item)).await;
    let judged = judged.map_err(|_| refused(StatusCode::GATEWAY_TIMEOUT, "no verdict within 30 seconds"))?;
    let judged = judged.map_err(|error| refused(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    match &judged.verdicts[0] {
        Verdict::Scored(score) => Ok(json!({"grade": score.value, "distribution": score.distribution}).to_string()),
        Verdict::Unscored(why) => Err(refused(StatusCode::UNPROCESSABLE_ENTITY, why)),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let address = args.next().unwrap_or("127.0.0.1:8090".into());
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;
    let template = PromptTemplate::new(Prompt::user(PROMPT))?;
    let settings = LagerSettings::prompt_end(Scale::integers(1, 5)?);
    let judge = LagerJudge::new(LagerSettings { template, opening: String::new(), ..settings }, &model)?;

    let queue = JudgeQueue::start(model, vec![Box::new(judge)]);
    let service = Arc::new(Service { queue, places: Semaphore::new(PLACES) });
    let router = Router::new().route("/grade", post(grade)).with_state(service);
    let listener = TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let ended = async { drop(signal::ctrl_c().await) };
    axum::serve(listener, router).with_graceful_shutdown(ended).await?; // what was accepted is answered
    Ok(())
}
