//! What the finished rows come to: a table for people, and the same as JSON.

use std::cmp::Ordering;

use anyhow::Result;
use judge_cli::args::bars::{Lost, Measured, first_names, rows_compared_json, rows_used_in_words};
use judge_cli::args::files::program;
use judge_cli::preferences::of_pairs;
use judge_cli::report::{BOOTSTRAP, share, write_json};
use judge_cli::terminal::console::{counted, say, say_table, tell};
use judge_core::ItemId;
use judge_data::{Counts, OrderReading, PairVerdict, Row, Rows, majority, preferred};
use judge_metrics::Proportion;
use judge_metrics::comparison::{PairStatistic, PairTallied, PairTally, Statistic, TalliedPair};
use judge_metrics::means::sample_mean;
use judge_metrics::preference::Preference;
use judge_metrics::resampling::quantile;
use serde_json::{Map, Value, json};

use super::cli::{Cli, Orders, PROGRAM};

/// Reads the output and says what is in it; `pairs` says what its rows are, `range` where grades lie, and `lost` which rows of two versions
/// are no pairs.
pub(crate) fn report(cli: &Cli, pairs: bool, range: [f64; 2], counts: &Counts, lost: Vec<ItemId>) -> Result<Measured> {
    let mut found = if pairs { of_all_pairs(cli)? } else { of_grades(cli, range)? };
    let (used, of) = (found.used, found.rows + lost.len());
    found.lost.extend(lost);
    if let Some(statistics) = found.json.get_mut("statistics").and_then(Value::as_object_mut) {
        statistics.extend(rows_compared_json(used, used, of));
    }
    if let Some(path) = &cli.json {
        found.json.insert("program".to_owned(), json!(program(PROGRAM)));
        found.json.insert("n".to_owned(), counts.rows().into());
        found.json.insert("scored".to_owned(), counts.scored.into());
        found.json.insert("unscored".to_owned(), json!(counts.unscored));
        write_json(path, PROGRAM, &found.json)?;
    }
    for (head, rows) in found.tables {
        say_table(head.iter().copied(), rows)?;
    }
    if !found.worst.is_empty() {
        say(&found.worst)?;
    }
    if used < of {
        say(rows_used_in_words(used, of))?;
    }
    if let Some(sentence) = found.sentence {
        say(sentence)?;
    }
    if let Some(note) = found.note {
        tell(format_args!("note: {note}"));
    }
    let statistics = found.json.remove("statistics").unwrap_or_default();
    Ok(Measured { statistics, worst: found.worst, lost: found.lost, apart: found.apart })
}

/// Names of the statistics of pairs, or of single responses; all but those of counts.
pub(super) fn names(pairs: bool, orders: Orders) -> Result<Vec<&'static str>> {
    if !pairs {
        return Ok(vec![MEAN_SCORE]);
    }
    let both_orders = orders == Orders::Both;
    let of_none = PairTally { both_orders, bootstrap: BOOTSTRAP, ..PairTally::new(Vec::new()) }.found()?;
    Ok(of_none.statistics.iter().chain([&separates(Proportion::default())]).map(|known| known.name).collect())
}

/// The statistic of grades.
const MEAN_SCORE: &str = "mean_score";

/// What a row's verdict may be.
const VERDICT: &str = "A, B, tie or inconsistent";

/// A head, and the rows below it.
type Table = (&'static [&'static str], Vec<Vec<String>>);

/// What is printed, and what is written.
struct Found {
    tables: Vec<Table>,
    json: Map<String, Value>,
    note: Option<String>,
    /// Whether the judge can tell a better response from a worse one.
    sentence: Option<String>,
    /// Rows that the figures are of, and how many of them have a verdict or a score.
    rows: usize,
    used: usize,
    /// Rows that got worse, in words.
    worst: String,
    /// Rows without a verdict or a score.
    lost: Lost,
    /// Rows that other statistics are about.
    apart: Vec<(&'static str, String)>,
}

fn of_all_pairs(cli: &Cli) -> Result<Found> {
    let (mut pairs, mut worse, mut misjudged) = (Vec::new(), Vec::new(), Vec::new());
    let (mut lost, mut unscored, mut is_judged) = (Lost::default(), 0, false);
    let mut told_apart = Proportion::default();
    for row in Rows::open(&cli.output.output)? {
        let row = row?;
        let verdict = row.optional("verdict", VERDICT)?;
        is_judged |= row.value("unscored").is_none();
        if let Some(better) = better(&row) {
            told_apart.n += 1;
            told_apart.count += usize::from(verdict == Some(better));
            if verdict != Some(better) {
                misjudged.push(id(&row)?);
            }
            if cli.old.is_some() {
                continue; // it is of neither version
            }
        }
        if row.value("unscored").is_some() {
            unscored += 1;
            lost.push(id(&row)?);
        }
        pairs.push(pair(&row)?);
        if cli.old.is_some() && verdict == Some(PairVerdict::B) {
            worse.push(id(&row)?);
        }
    }
    let (rows, used) = (pairs.len(), pairs.len() - unscored);
    let separates = separates(told_apart);
    let both_orders = cli.orders() == Orders::Both;
    let found = PairTally { both_orders, bootstrap: BOOTSTRAP, ..PairTally::new(pairs) }.found()?;
    let verdicts = [("A", found.first), ("B", found.second), ("tie", found.ties), ("inconsistent", found.inconsistent)];
    let version = |name| match (name, &cli.old) {
        ("A", Some(_)) => "A, the new version",
        ("B", Some(_)) => "B, the old version",
        _ => name,
    };
    let counts = verdicts.map(|(name, count)| vec![format!("  {}", version(name)), count.to_string()]).to_vec();
    // Of responses that are judged one by one none is shown first.
    let is_shown = |known: &&PairStatistic| !(cli.judge.is_apart() && known.name == "first_share");
    let mut lines: Vec<Vec<String>> = found.statistics.iter().filter(is_shown).map(line).collect();
    if told_apart.n > 0 {
        lines.push(line(&separates));
    }
    let statistics: Map<String, Value> =
        found.statistics.iter().chain([&separates]).map(|known| (known.name.to_owned(), of_pairs(known))).collect();
    let note = followed(&found);
    let worst = first_names("worse than before", &worse);
    let json = json!({
        "verdicts": Map::from_iter(verdicts.map(|(name, count)| (name.to_owned(), count.into()))),
        "flips": {"shown_first": found.flips[0], "shown_second": found.flips[1]}, "statistics": statistics, "note": note,
    });
    let Value::Object(mut json) = json else { return Err(anyhow::anyhow!("a tally is an object")) };
    if cli.old.is_some() {
        json.insert("worse".to_owned(), json!(worse));
    }
    // Of a judge that has judged nothing there is nothing to say.
    let sentence = is_judged.then(|| skill(&separates, cli.old.is_some(), has_preferences(&found))).flatten();
    let against = first_names("the better response is known, and was not named", &misjudged);
    let apart = vec![("separates", against)];
    let tables: Vec<Table> = vec![(&["verdict", "pairs"], counts), (&["", "estimate [95 %]", "n"], lines)];
    Ok(Found { tables, json, note, sentence, rows, used, worst, lost, apart })
}

fn id(row: &Row) -> Result<ItemId> {
    Ok(row.required("id", "a string or a whole number")?)
}

/// Which response people say is better, where they say it; `None` for a tie too.
fn better(row: &Row) -> Option<PairVerdict> {
    let human: Vec<Ordering> = preferred(row).0.into_iter().flatten().collect();
    majority(&human).filter(|better| better.is_ne()).map(PairVerdict::from)
}

/// Of the pairs whose better response is known, the share that the judge orders so. A tie, orders that disagree and no verdict at all do not
/// tell them apart. The interval is Wilson's.
fn separates(told_apart: Proportion) -> PairStatistic {
    let none = "no pair has a better response that is known; with --old, --graded FILE adds some";
    PairStatistic { name: "separates", n: told_apart.n, statistic: share(told_apart, none) }
}

/// Whether the judge can tell, in a sentence. Of one file of pairs that nobody has judged, nothing is said.
/// Verdicts are less than the preferences behind them, of whose worth this is no measure.
fn skill(separates: &PairStatistic, is_of_versions: bool, has_preferences: bool) -> Option<String> {
    let PairStatistic { n, statistic, .. } = separates;
    let Some(interval) = statistic.interval() else {
        let why = "No pair here has a better response that is known, so these figures cannot show whether this judge can tell better responses \
                   from worse ones: one that cannot passes a gate on its preferences. Add such pairs with --graded.";
        return is_of_versions.then(|| why.to_owned());
    };
    let known = format!("{statistic:.3} of the {} whose better response is known", counted(*n, "pair"));
    let of = if is_of_versions { "versions" } else { "responses" };
    if interval.low > 0.5 {
        return Some(format!("The judge tells better from worse: it rightly orders {known}."));
    }
    let mut sentence = format!(
        "That the judge can tell better from worse is not shown: it rightly orders {known}. Its verdicts do not \
         say which of the {of} is better."
    );
    if has_preferences && !is_of_versions {
        sentence += " `judge bench` says what its preferences are worth.";
    }
    Some(sentence)
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
        "separates" => "separates: pairs whose better response is known, in order",
        other => other,
    };
    vec![format!("  {words}"), format!("{:.3}", known.statistic), known.n.to_string()]
}

/// Whether a pair has a preference.
fn has_preferences(found: &PairTallied) -> bool {
    let preference = found.statistics.iter().find(|known| known.name == "mean_preference");
    preference.is_some_and(|known| known.statistic.estimate().is_some())
}

/// Says so where verdicts are about the place of a response.
fn followed(found: &PairTallied) -> Option<String> {
    let (place, flips) = match found.follows_place()? {
        Preference::First => ("first", found.flips[0]),
        _ => ("second", found.flips[1]),
    };
    let mut note = format!(
        "in {flips} of {} the response shown {place} wins in both orders: verdicts of one order follow the place, not the response",
        counted(found.read(), "pair")
    );
    if has_preferences(found) {
        note += ". A row's verdict and preference are of both orders averaged, in which a constant pull of the place cancels; where people have \
                 judged, `judge bench` says what they are worth";
    }
    Some(note)
}

fn of_grades(cli: &Cli, range: [f64; 2]) -> Result<Found> {
    let (mut scores, mut rows, mut lost): (Vec<f64>, _, _) = (Vec::new(), 0, Lost::default());
    for row in Rows::open(&cli.output.output)? {
        let row = row?;
        match row.optional::<f64>("score", "a number or null")? {
            Some(score) => scores.push(score),
            None => lost.push(id(&row)?),
        }
        rows += 1;
    }
    let used = scores.len();
    scores.sort_by(f64::total_cmp);
    let mean = Statistic::estimated(sample_mean(&scores).map(|mean| mean.within(range)), BOOTSTRAP.level);
    let quarters =
        [("least", 0.0), ("lower quartile", 0.25), ("median", 0.5), ("upper quartile", 0.75), ("greatest", 1.0)];
    let of_scores = |(name, q)| Some((name, quantile(&scores, q).ok()?));
    let quantiles: Vec<(&str, f64)> = quarters.into_iter().filter_map(of_scores).collect();
    let mut lines = vec![vec!["  mean".to_owned(), format!("{mean:.3}"), scores.len().to_string()]];
    lines.extend(quantiles.iter().map(|(name, value)| vec![format!("  {name}"), format!("{value:.3}")]));
    let mut known = json!(mean);
    known["p"] = Value::Null; // nobody asks whether grades are 0 on average
    known["n"] = scores.len().into();
    let quantiles: Map<String, Value> =
        quantiles.into_iter().map(|(name, value)| (name.replace(' ', "_"), value.into())).collect();
    let json = Map::from_iter([
        ("statistics".to_owned(), json!({MEAN_SCORE: known})),
        ("quantiles".to_owned(), Value::Object(quantiles)),
    ]);
    let tables: Vec<Table> = vec![(&["score", "estimate [95 %]", "n"], lines)];
    let (worst, apart) = (String::new(), Vec::new());
    Ok(Found { tables, json, note: None, sentence: None, rows, used, worst, lost, apart })
}
