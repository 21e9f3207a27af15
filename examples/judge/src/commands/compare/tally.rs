//! What the finished rows come to: a table for people, and the same as JSON.

use anyhow::Result;
use judge_core::ItemId;
use judge_data::{Counts, OrderReading, PairVerdict, Row, Rows};
use judge_metrics::comparison::{PairStatistic, PairTallied, PairTally, Statistic, TalliedPair};
use judge_metrics::means::sample_mean;
use judge_metrics::preference::Preference;
use serde_json::{Map, Value, json};

use super::{Cli, Orders};
use crate::args::files::program;
use crate::preferences::of_pairs;
use crate::report::{BOOTSTRAP, write_json};
use crate::terminal::console::{say, say_unscored, table, tell};

/// Reads the output and says what is in it; `pairs` says what its rows are. Returns the statistics by name.
pub(crate) fn report(cli: &Cli, pairs: bool, counts: &Counts) -> Result<Value> {
    let mut found = if pairs { of_all_pairs(cli)? } else { of_grades(cli)? };
    if let Some(path) = &cli.json {
        found.json.insert("program".to_owned(), json!(program("prompt_judge")));
        found.json.insert("n".to_owned(), counts.rows().into());
        found.json.insert("scored".to_owned(), counts.scored.into());
        found.json.insert("unscored".to_owned(), json!(counts.unscored));
        write_json(path, "prompt_judge", &found.json)?;
    }
    say(table(&found.lines).trim_end())?;
    say_unscored(&counts.unscored)?;
    if let Some(note) = found.note {
        tell(format_args!("note: {note}"));
    }
    Ok(found.json.remove("statistics").unwrap_or_default())
}

/// What a row's verdict may be.
const VERDICT: &str = "A, B, tie or inconsistent";

/// Most ids of rows that got worse that are printed.
const SHOWN: usize = 10;

/// What is printed, and what is written.
struct Found {
    lines: Vec<Vec<String>>,
    json: Map<String, Value>,
    note: Option<String>,
}

fn of_all_pairs(cli: &Cli) -> Result<Found> {
    let (mut pairs, mut worse) = (Vec::new(), Vec::new());
    for row in Rows::open(&cli.output.output)? {
        let row = row?;
        pairs.push(pair(&row)?);
        if cli.old.is_some() && row.optional("verdict", VERDICT)? == Some(PairVerdict::B) {
            worse.push(row.required::<ItemId>("id", "a string or a whole number")?);
        }
    }
    let both_orders = cli.orders() == Orders::Both;
    let found = PairTally { both_orders, bootstrap: BOOTSTRAP, ..PairTally::new(pairs) }.found()?;
    let verdicts = [("A", found.first), ("B", found.second), ("tie", found.ties), ("inconsistent", found.inconsistent)];
    let mut lines = vec![vec!["verdict".to_owned(), "pairs".to_owned()]];
    let version = |name| match (name, &cli.old) {
        ("A", Some(_)) => "A, the new version",
        ("B", Some(_)) => "B, the old version",
        _ => name,
    };
    lines.extend(verdicts.map(|(name, count)| vec![format!("  {}", version(name)), count.to_string()]));
    lines.push(vec![String::new(), "estimate [95 %]".to_owned(), "n".to_owned()]);
    lines.extend(found.statistics.iter().map(line));
    let statistics: Map<String, Value> =
        found.statistics.iter().map(|known| (known.name.to_owned(), of_pairs(known))).collect();
    let note = followed(&found);
    if !worse.is_empty() {
        let names: Vec<String> = worse.iter().take(SHOWN).map(ToString::to_string).collect();
        let more = if worse.len() > SHOWN { ", …" } else { "" };
        lines.push(vec![format!("  worse than before: {}{more}", names.join(", ")), worse.len().to_string()]);
    }
    let json = json!({
        "verdicts": Map::from_iter(verdicts.map(|(name, count)| (name.to_owned(), count.into()))),
        "flips": {"shown_first": found.flips[0], "shown_second": found.flips[1]}, "statistics": statistics, "note": note,
    });
    let Value::Object(mut json) = json else { return Err(anyhow::anyhow!("a tally is an object")) };
    if cli.old.is_some() {
        json.insert("worse".to_owned(), json!(worse));
    }
    Ok(Found { lines, json, note })
}

/// A row as it is counted.
fn pair(row: &Row) -> Result<TalliedPair> {
    let orders = OrderReading::of_row(row)?;
    let verdict = |order: usize| orders.get(order).and_then(|order| order.verdict).map(Preference::from);
    let preference = row.optional("preference", "a number from 0 to 1, or null")?;
    let averaged = row.optional::<PairVerdict>("verdict", VERDICT)?.and_then(PairVerdict::ordering);
    Ok(TalliedPair { given: verdict(0), swapped: verdict(1), preference, averaged: averaged.map(Preference::from) })
}

/// A statistic in words.
fn line(known: &PairStatistic) -> Vec<String> {
    let words = match known.name {
        "win_rate" => "A's win rate, a tie counting half",
        "mean_preference" => "mean preference, the probability of A",
        "first_share" => "share of verdicts for the response shown first",
        other => other,
    };
    vec![format!("  {words}"), format!("{:.3}", known.statistic), known.n.to_string()]
}

/// Says so where verdicts are about the place of a response.
fn followed(found: &PairTallied) -> Option<String> {
    let (place, flips) = match found.follows_place()? {
        Preference::First => ("first", found.flips[0]),
        _ => ("second", found.flips[1]),
    };
    let mut note = format!(
        "in {flips} of {} pairs the response shown {place} wins in both orders: verdicts of one order follow the place, not the response",
        found.n
    );
    let preference = found.statistics.iter().find(|known| known.name == "mean_preference");
    if preference.is_some_and(|known| known.statistic.estimate().is_some()) {
        note += ". A row's verdict and preference are of both orders averaged, in which a constant pull of the place cancels; where people have \
                 judged, `judge bench` says what they are worth";
    }
    Some(note)
}

fn of_grades(cli: &Cli) -> Result<Found> {
    let mut scores: Vec<f64> = Vec::new();
    for row in Rows::open(&cli.output.output)? {
        scores.extend(row?.optional::<f64>("score", "a number or null")?);
    }
    scores.sort_by(f64::total_cmp);
    let mean = Statistic::estimated(sample_mean(&scores), BOOTSTRAP.level);
    let quantiles: Vec<(&str, f64)> = match scores.len().checked_sub(1) {
        None => Vec::new(),
        Some(last) => [("least", 0), ("lower quartile", 1), ("median", 2), ("upper quartile", 3), ("greatest", 4)]
            .map(|(name, quarter)| (name, scores[(last * quarter + 2) / 4]))
            .to_vec(),
    };
    let mut lines = vec![vec!["score".to_owned(), "estimate [95 %]".to_owned(), "n".to_owned()]];
    lines.push(vec!["  mean".to_owned(), format!("{mean:.3}"), scores.len().to_string()]);
    lines.extend(quantiles.iter().map(|(name, value)| vec![format!("  {name}"), format!("{value:.3}")]));
    let mut known = json!(mean);
    known["p"] = Value::Null; // nobody asks whether grades are 0 on average
    known["n"] = scores.len().into();
    let quantiles: Map<String, Value> =
        quantiles.into_iter().map(|(name, value)| (name.replace(' ', "_"), value.into())).collect();
    let json = Map::from_iter([
        ("statistics".to_owned(), json!({"mean_score": known})),
        ("quantiles".to_owned(), Value::Object(quantiles)),
    ]);
    Ok(Found { lines, json, note: None })
}
