//! For the program `judge` alone, without a promise of stability: decisions and scores of documents over HTTP, a local model behind the
//! routes that clients of decision models and rerankers call.
//!
//! `judge serve --model DIR`
//!
//! ```text
//! listener      connections: how many, how slow (connection), how they end
//!   peer        who is at the other end, and whether it still is
//!   observe     one log line and the metrics of each request
//!   admission   its head (checks), its key, its body in time and in size
//!   routes      which handler
//!     page      the page to try it
//!     wire      each standard's JSON ⇄ questions and answers
//!     queue     the bounded queue before the model, of which each client has its share (shares)
//!       registry   the judges: the plain one, that of documents (reranker), and those with names of their own
//!         state      what one of these sees of a request
//!
//! judges        the file of judges ─► registry
//! app           what all requests share: queue, registry, key, limits, metrics
//! paths         the names of the routes; response, refusal: answers and refusals as HTTP has them
//! ```

mod admission;
mod app;
mod checks;
mod cli;
mod connection;
mod judges;
mod key;
mod limits;
mod listener;
mod metrics;
mod observe;
mod page;
mod paths;
mod peer;
mod queue;
mod refusal;
mod registry;
mod reranker;
mod response;
mod routes;
mod shares;
mod state;
mod wire;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use judge_cli::args::decisions::tell_without_weights;
use judge_cli::args::rerank::readout;
use judge_cli::terminal::console::{tell, usage};
use judge_cli::terminal::signals::Signals;
use judge_core::decision::{DecisionJudge, QuestionKind};
use judge_core::rerank::{Activation, RerankJudge};
use judge_core::{Backbone, TextModel as _};
use judge_models::{Model, RerankForm};

use self::app::App;
use self::judges::Judges;
use self::key::Key;
use self::metrics::Metrics;
use self::queue::RequestQueue;
use self::registry::Registry;
use self::reranker::Reranker;
use self::shares::Lines;

pub use self::cli::Cli;

/// The judge of documents of a model that scores them in this form.
fn reranker(form: &RerankForm, model: &Arc<Model>) -> Result<Reranker> {
    let (mut settings, activation) = (form.settings(model)?, form.activation());
    settings.scoring.activation = Activation::Identity;
    let (judge, model) = (RerankJudge::new(settings, model)?, Arc::clone(model));
    let counted = Arc::clone(&model);
    Ok(Reranker {
        judge,
        activation,
        count: Box::new(move |text| counted.tokens_in(text).unwrap_or_default()),
        // What cannot be put into tokens is refused where it is read.
        lost: Box::new(move |prompt| model.cut_tokens(prompt).unwrap_or_default()),
    })
}

/// Serves until a signal ends it.
///
/// # Errors
/// If the model, the judges or the address cannot be had.
pub fn run(cli: &Cli) -> Result<()> {
    cli.check()?;
    let key = cli.key_file.as_deref().map(Key::read).transpose()?;
    // Addresses have those of IPv6 in brackets.
    let host = cli.host.trim_start_matches('[').trim_end_matches(']');
    // A port that is taken is said before a model is loaded.
    let listener =
        TcpListener::bind((host, cli.port)).with_context(|| format!("cannot listen on {}:{}", cli.host, cli.port))?;
    let address = listener.local_addr().context("cannot listen")?;
    listener.set_nonblocking(true).context("cannot listen")?;
    if key.is_none() && !address.ip().is_loopback() {
        tell(format_args!(
            "warning: {address} can be reached by other machines, and without --key-file everybody is answered"
        ));
    }
    if cli.model.model.is_none() && !cli.model.quiet {
        tell("note: without --model the embedded model answers, and its answers mean nothing");
    }
    let judges = cli.judges.as_deref().map(Judges::read).transpose()?.unwrap_or_default();
    let readout = readout(cli.rerank_layer, cli.rerank_weights.as_deref())?;
    let form = cli.rerank.form_if_said(&cli.model, readout)?;
    if form.is_none() && (cli.rerank_layer.is_some() || cli.rerank_weights.is_some()) {
        return Err(usage(
            "--rerank-layer, --rerank-weights: this model does not say how it scores documents; see --rerank-template",
        ));
    }
    let (settings, args) = cli.decisions.settings(&cli.model, None, false)?;
    let model = Arc::new(args.load()?);
    let reranker = form.map(|form| reranker(&form, &model)).transpose()?;
    let plain = match DecisionJudge::new(settings, &model) {
        Ok(plain) => {
            tell_without_weights(plain.settings(), QuestionKind::ALL);
            Some(plain)
        }
        // A head has no labels, and the service is there for documents.
        Err(_) if reranker.is_some() => None,
        Err(error) => return Err(error.into()),
    };
    let plain_name = cli.name.clone().unwrap_or_else(|| model.info().name.clone());
    let named = judges.registered(plain.as_ref(), &plain_name, &args, &model)?;
    let registry = Arc::new(Registry { plain_name, plain, reranker, model: model.info().clone(), named });
    let limits = cli.limits.clone();
    let app = Arc::new(App {
        queue: RequestQueue::new(model, Arc::clone(&registry), &limits),
        registry,
        is_open_here: key.is_none() && address.ip().is_loopback(),
        key,
        bytes: Lines::new(limits.queue_bytes, limits.client_share),
        metrics: Metrics::new(limits.timeout),
        limits,
        started: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        label_mass: cli.label_mass,
        page: !cli.no_page,
        quiet: cli.model.quiet,
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let served = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        let listener = tokio::net::TcpListener::from_std(listener).context("cannot listen")?;
        tell(format_args!("listening on http://{address}"));
        listener::serve(listener, &app, &mut signals).await
    });
    // What is still parsed is for nobody.
    runtime.shutdown_background();
    served
}
