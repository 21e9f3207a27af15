//! Rankings of documents against people's relevance.

use std::path::Path;

use anyhow::{Result, ensure};
use judge_cli::args::bars::Measured;
use judge_cli::args::files::program;
use judge_cli::rankings::Queries;
use judge_cli::report::write_json_if;
use judge_cli::terminal::console::{counted_that, tell};
use judge_data::{Outputs, Qrels, TrecRun};
use serde_json::{Map, json};

use super::cli::{COMMAND, Cli};

/// The cutoff of `recall_k`, if none is given.
const K: usize = 10;

pub(super) fn measured(cli: &Cli, run: &Path) -> Result<Measured> {
    let inputs = [&cli.pairs.data].into_iter().chain(&cli.run).chain(&cli.against);
    let outputs = Outputs::new(inputs).reports("pairwise_benchmark", &cli.json).reports(COMMAND, cli.bars.reports());
    outputs.overwrite(cli.write.overwrite).check()?;
    let (qrels, k) = (Qrels::read(&cli.pairs.data)?, cli.k.unwrap_or(K));
    let of = |run: &Path| queries(&qrels, &cli.pairs.data, run, k);
    let (queries, others) = (of(run)?, cli.against.as_deref().map(of).transpose()?);
    let (figures, difference) = (queries.figures(k), others.map(|others| queries.less(&others)));
    write_json_if(cli.json.as_deref(), "pairwise_benchmark", || {
        let first = json!({"program": program("pairwise_benchmark"), "benchmark": "trec", "difference": difference});
        let fields = [first, json!(figures)].into_iter().filter_map(|part| part.as_object().cloned());
        Ok(fields.flatten().collect::<Map<_, _>>())
    })?;
    figures.print(difference.as_ref())?;
    Ok(figures.into())
}

/// The queries of which people judged documents, with the order that a file has for each, of at least one.
fn queries(qrels: &Qrels, data: &Path, run: &Path, k: usize) -> Result<Queries> {
    let (rankings, mut queries) = (TrecRun::read(run)?, Queries::default());
    for query in qrels.queries() {
        let ranking = rankings.ranking(query);
        let (order, missed) = qrels.along(query, ranking.unwrap_or_default());
        queries.push(query.to_owned(), query.to_owned(), ranking.map(|_| &order[..]), &missed, k)?;
    }
    let first = |name: Option<&str>| name.map_or_else(|| "none".to_owned(), |name| format!("{name:?}"));
    ensure!(
        !queries.is_empty(),
        "expected a query with a relevant document in {} that has a ranking in {}, found none: the first query with a relevant document \
         is {}, the first with a ranking {}",
        data.display(),
        run.display(),
        first(queries.unranked().first().map(String::as_str)),
        first(rankings.queries().next())
    );
    let unknown = rankings.queries().filter(|query| !qrels.has(query)).count();
    if unknown > 0 {
        let unknown = counted_that(unknown, "query", ["is", "are"]);
        tell(format_args!("note: {}: {unknown} left out, as people judged none of their documents", run.display()));
    }
    Ok(queries)
}
