//! MT-bench's tables: how often a judge votes as people do, and people as each other.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use judge_cli::args::files::program;
use judge_cli::args::judged_pairs::check_convention;
use judge_cli::report::{BOOTSTRAP, write_json_if};
use judge_cli::terminal::console::{say, say_table, usage};
use judge_data::{Benchmark, BenchmarkPair, PairVote, Published, Rows};
use judge_metrics::comparison::{JudgeVote, VoteComparison, VoteStatistic};
use judge_metrics::preference::{Preference, Ties, Unparsed, Vote};
use serde_json::{Value, json};

use super::Cli;
use super::figures::published;

/// Turns, and what a table calls them.
const TURNS: [(Option<u32>, &str); 3] = [(Some(1), "1"), (Some(2), "2"), (None, "both")];

/// Compares the votes of all judges with people's.
pub(crate) fn report(cli: &Cli) -> Result<()> {
    if cli.pairs.benchmark()? != Benchmark::MtBench {
        return Err(usage(format!("--votes: {} has no votes; give --benchmark mtbench", cli.pairs.benchmark()?)));
    }
    let people = PairVote::read(&cli.pairs.data)?;
    if let Some(judge) = people.iter().find(|vote| !vote.is_persons()) {
        let (data, name) = (cli.pairs.data.display(), &judge.annotator);
        return Err(usage(format!("--data {data} has votes of {name:?}, expected people's (expert_N, author_N)")));
    }
    let (mut votes, mut judges, mut unparsed, mut texts) = (Vec::new(), Vec::new(), 0, 0);
    for path in &cli.votes {
        let (own, missing, read) = judges_votes(cli, path, &people)?;
        for vote in &own {
            if vote.is_persons() {
                let (path, name) = (path.display(), &vote.annotator);
                return Err(usage(format!("--votes {path} has a vote of {name:?}, expected a judge's own votes")));
            }
            if judges.iter().any(|(judge, known)| judge == vote.kind() && *known != path) {
                return Err(usage(format!("two files of --votes have votes of {:?}", vote.kind())));
            }
            if !judges.iter().any(|(judge, _)| judge == vote.kind()) {
                judges.push((vote.kind().to_owned(), path));
            }
        }
        votes.extend(own);
        unparsed += missing;
        texts += read;
    }
    if let Some(path) = cli.votes.first() {
        check_convention(cli.judge.convention.as_deref(), path, texts)?;
    }
    let judged = votes.len();
    votes.extend(people);
    let kinds: Vec<&str> = judges.iter().map(|(judge, _)| judge.as_str()).chain(["human", "author"]).collect();
    let comparison = VoteComparison { votes: votes.iter().map(judge_vote).collect(), bootstrap: BOOTSTRAP };
    let tables = TURNS.into_iter().map(|(turn, name)| Ok((name, comparison.statistics(&kinds, turn)?)));
    let tables = tables.collect::<Result<Vec<_>>>()?;

    let n = votes.len() - judged;
    write_json_if(cli.json.as_deref(), "pairwise_benchmark", || {
        let [one, two, both] = [0, 1, 2].map(|table| by_name(&tables[table].1));
        Ok(json!({
            "program": program("pairwise_benchmark"), "benchmark": cli.pairs.benchmark()?.as_str(), "n": n, "unparsed": unparsed, "policy": cli.pairs.policy().1,
            "statistics": both, "groups": {"1": one, "2": two}, "published": published(PairVote::published_agreement()),
        }))
    })?;
    say(format_args!("mtbench: {n} votes of people, {judged} of judges; votes without a verdict: {unparsed}"))?;
    print(&tables)
}

/// A judge's votes: a file of MT-bench's form, or verdicts on the rows of people's votes. Also how many pairs are
/// without a verdict, and how many texts were read by the convention.
fn judges_votes(cli: &Cli, path: &Path, people: &[PairVote]) -> Result<(Vec<PairVote>, usize, usize)> {
    if Rows::open(path)?.next().transpose()?.is_none_or(|row| row.has("winner")) {
        return Ok((PairVote::read(path)?, 0, 0));
    }
    let unparsed = match cli.pairs.policy().0 {
        Unparsed::Dropped => None,
        Unparsed::Tie => Some(std::cmp::Ordering::Equal),
        _ => return Err(usage("--unparsed wrong: a vote that is missing cannot be wrong; give tie or drop")),
    };
    let (pairs, _): (Vec<BenchmarkPair>, _) = cli.pairs.read()?;
    let verdicts = cli.pairs.verdicts(path, &pairs, &[], cli.judge.convention.as_deref())?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let (votes, missing) = PairVote::of_verdicts(&name, people, &verdicts, unparsed);
    Ok((votes, missing, verdicts.texts))
}

fn judge_vote(vote: &PairVote) -> JudgeVote<'_> {
    let [a, b] = &vote.models;
    let (annotator, preference) = (vote.annotator.as_str(), Preference::from(vote.verdict));
    JudgeVote {
        kind: vote.kind(),
        vote: Vote { question: &vote.question, models: [a, b], turn: vote.turn, annotator, preference },
    }
}

fn setup(ties: Ties) -> &'static str {
    match ties {
        Ties::Counted => "S1",
        Ties::Excluded => "S2",
    }
}

fn name(known: &VoteStatistic<'_>) -> String {
    let [first, second] = known.kinds;
    format!("agreement_{}:{first}:{second}", setup(known.ties).to_lowercase())
}

fn by_name(found: &[VoteStatistic<'_>]) -> BTreeMap<String, Value> {
    let value = |known: &VoteStatistic<'_>| {
        let mut value = json!(known.statistic);
        value["n"] = known.n.into();
        value
    };
    found.iter().map(|known| (name(known), value(known))).collect()
}

/// What the authors report in this place; beside any judge's agreement with people GPT-4's.
fn reported(known: &VoteStatistic<'_>, turn: &str, people: [&str; 2]) -> String {
    let [first, second] = known.kinds;
    let judge = !people.contains(&first) && second == people[0];
    let wanted =
        if judge { format!("agreement_{}:gpt4_pair:human", setup(known.ties).to_lowercase()) } else { name(known) };
    let rows = PairVote::published_agreement().iter().filter(|row| row.group == Some(turn));
    let figure = |row: &Published| row.statistics.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    let of = if judge { "GPT-4 " } else { "" };
    rows.filter_map(figure).next().map_or(String::new(), |value| format!("{of}{value:.2}"))
}

fn print(tables: &[(&str, Vec<VoteStatistic<'_>>)]) -> Result<()> {
    let mut rows = Vec::new();
    for ties in [Ties::Counted, Ties::Excluded] {
        for (turn, found) in tables {
            for known in found.iter().filter(|known| known.ties == ties) {
                rows.push(vec![
                    setup(ties).to_owned(),
                    (*turn).to_owned(),
                    known.kinds.join(", "),
                    format!("{:.3}", known.statistic),
                    known.n.to_string(),
                    reported(known, turn, ["human", "author"]),
                ]);
            }
        }
    }
    say_table(["setup", "turn", "judges", "agreement [95 %]", "n", "published"], rows)?;
    say(
        "S1: all votes, any two ties agree; random votes agree on 0.33. S2: without ties; random votes agree on 0.50.",
    )?;
    say("published: Zheng et al. (2023), table 5")
}
