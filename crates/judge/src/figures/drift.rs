//! Whether a judge still says what it said: a run on an anchor set of rows beside an earlier run on the same rows.
//!
//! `judge drift --input now.jsonl --against before.jsonl --require 'spearman>=0.99'`

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use judge_core::ItemId;
use judge_data::{
    Difference, Outputs, RunRecord, ScoredFile, ScoredRow, Settings, Unread, load, record_path, with_variant,
};
use judge_metrics::comparison::{
    ComparedItem, Comparison, ComparisonSettings, Comparisons, Rating, Reported, STATISTICS, Statistic,
};
use judge_metrics::decimals;
use judge_metrics::resampling::Bootstrap;
use serde_json::{Value, json};

use judge_cli::args::bars::{BarArgs, Lost, Measured, first_names, rows_used, rows_used_in_words};
use judge_cli::args::files::{OverwriteArgs, program, row_limit};
use judge_cli::args::numbers::{at_least, part};
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::ratings::{rating, ratings, text};
use judge_cli::report::{BOOTSTRAP, p_in_words, percent, undefined, write_json_if};
use judge_cli::sampling::{SAMPLING_PROBABILITY, probability, tell_weighted};
use judge_cli::terminal::console::{counted, counted_that, say, say_table, tell};

/// The name in reports.
const PROGRAM: &str = "drift";

/// What is said of the change: of the scores now as a judge, and of those before as people's.
const CHANGE: [&str; 5] = ["bias", "mae", "spearman", "pearson", "accuracy"];

/// What the names of differences between two judges begin with: now less before.
const DIFFERENCE: &str = "difference_";

/// Compare a run with an earlier run on the same rows.
///
/// Both files are what `judge score`, `judge compare` or another judge has written, {"id", "score"}; rows are joined by id. Of the change:
/// `bias`, the mean of the scores now less those before, with its test, `mae`, how far they are apart, `spearman` and `pearson`, whether the
/// order is the same, and `accuracy`, how many whole scores or verdicts are the same. Where people have graded the rows, `difference_…`:
/// whether the judge agrees with them better or worse than before, rows weighted by their `sampling_probability` where they have one.
/// `coverage` is the share of all rows of either run that both have scored. What the two run records do not have in common is said.
#[derive(Args)]
pub(crate) struct Cli {
    /// The rows of the run now
    #[arg(long, value_name = "FILE")]
    pub(crate) input: PathBuf,
    /// The rows of the earlier run
    #[arg(long, value_name = "FILE")]
    against: PathBuf,
    /// Field of the judge's score in both files [default: predicted, score, verdict or faithfulness.mean]
    #[arg(long, value_name = "FIELD")]
    predicted: Option<String>,
    /// Field of what people said, of the run now [default: human or scores, where there is one]
    #[arg(long, value_name = "FIELD")]
    human: Option<String>,
    /// Where the report goes
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    bars: BarArgs,
    /// Field of the run now that says which rows belong together, such as a question's id: intervals then draw whole clusters
    #[arg(long, value_name = "FIELD")]
    cluster: Option<String>,
    /// Coverage of the intervals
    #[arg(long, default_value_t = BOOTSTRAP.level, value_name = "SHARE", value_parser = part)]
    level: f64,
    /// Resamples of each bootstrap
    #[arg(long, default_value_t = BOOTSTRAP.resamples, value_name = "N", value_parser = at_least::<usize>(1))]
    resamples: usize,
    /// Compare at most this many rows, the first of the run now
    #[arg(long, value_name = "ROWS", value_parser = row_limit)]
    limit: Option<usize>,
    #[command(flatten)]
    write: OverwriteArgs,
}

/// A row that both runs have scored: what is said now is the prediction, and what was said before is a second judge's.
struct Anchor {
    id: String,
    item: ComparedItem,
}

impl Anchor {
    /// By how much the score has changed; `None` for verdicts in words.
    fn change(&self) -> Option<f64> {
        Some(self.item.predicted.number()? - self.item.second.as_ref()?.number()?)
    }
}

/// Rows that are not compared, by id: those that the run now has alone, those of the run before, and those without a score in one.
type LeftOut = [Vec<ItemId>; 3];

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.bars.gate(PROGRAM, || measured(cli))
}

fn measured(cli: &Cli) -> Result<Measured> {
    let outputs = Outputs::new([&cli.input, &cli.against]).reports(PROGRAM, cli.json.iter().chain(cli.bars.reports()));
    outputs.overwrite(cli.write.overwrite).check()?;
    let (anchors, left_out) = anchors(cli)?;
    let [now_alone, before_alone, unscored] = left_out.each_ref().map(Vec::len);
    let (n, all) = (anchors.len(), anchors.len() + now_alone + before_alone + unscored);
    let differs = records(&cli.input, &cli.against)?;
    let (found, used) = (statistics(&anchors, cli)?, rows_used(n, all));
    let by_name = found.iter().map(|(name, known)| (name.as_str(), known));
    let by_name = by_name.chain(used.iter().map(|(name, known)| (*name, known))).collect::<BTreeMap<_, _>>();
    let by_name = json!(by_name);
    let changed = changed(&anchors);
    let largest = changed.first().and_then(|anchor| Some((anchor, anchor.change()?)));
    let text = |value: &Option<Value>| value.as_ref().map_or_else(|| "absent".to_owned(), Value::to_string);
    let records = differs.iter().map(|differs| (&differs.key, [&differs.now, &differs.before].map(text)));
    write_json_if(cli.json.as_deref(), PROGRAM, || {
        Ok(json!({
            "program": program(PROGRAM), "n": n, "now_alone": now_alone, "before_alone": before_alone,
            "unscored": unscored, "statistics": by_name, "changed": changed.len(),
            "largest_change": largest.map(|(anchor, change)| json!({"id": anchor.id, "change": change})),
            "records": records.collect::<BTreeMap<_, _>>(),
        }))
    })?;
    say(sentence(&found, n, changed.len()))?;
    say(format_args!("  {}.\n", rows_used_in_words(n, all)))?;
    let level = format!("estimate [{}]", percent(cli.level));
    let head = [format!("now against before, {}", counted(n, "row")), level, "p".to_owned()];
    let lines = found.iter().filter_map(|(name, known)| {
        let Reported { p, p_at_most, .. } = known.defined()?;
        let p = p.map_or_else(String::new, |p| p_in_words(p, *p_at_most));
        Some(vec![format!("  {name}"), format!("{known:.4}"), p])
    });
    say_table(head, lines)?;
    for (reason, names) in undefined(found.iter().map(|(name, known)| (name.as_str(), known))) {
        say(format_args!("undefined ({}): {reason}", names.join(", ")))?;
    }
    if let Some((anchor, change)) = largest {
        let sign = if change < 0.0 { "" } else { "+" };
        say(format_args!("largest change: {sign}{}, of {}", decimals(change, 4), anchor.id))?;
    }
    if n < all {
        tell(format_args!(
            "note: left out: {} that the run now has alone, {before_alone} of the run before, {unscored} without a score in one",
            counted(now_alone, "row")
        ));
    }
    for differs in &differs {
        tell(format_args!("note: {differs}"));
    }
    let worst = first_names("changed most", changed.iter().map(|anchor| &anchor.id));
    let mut lost = Lost::default();
    lost.extend(left_out.iter().flatten());
    Ok(Measured { statistics: by_name, worst, lost, apart: Vec::new() })
}

/// Whether anything has changed, before all figures.
fn sentence(found: &[(String, Statistic)], n: usize, changed: usize) -> String {
    if changed == 0 {
        let rows = counted(n, "row");
        return format!("Nothing has changed: what the judge says of {rows} is the same, to the bit.");
    }
    let known = |name: &str| found.iter().find(|(known, _)| known == name).and_then(|(_, known)| known.defined());
    let rows = format!("{changed} of {} changed", counted_that(n, "row", ["has", "have"]));
    let (Some(bias), Some(mae)) = (known("bias"), known("mae")) else { return format!("{rows}.") };
    let way = if bias.estimate < 0.0 { "lower" } else { "higher" };
    let number = |x: f64| decimals(x, 2);
    let ends = bias.interval.map(|interval| format!(" [{}, {}]", number(interval.low), number(interval.high)));
    let (ends, by, off) = (ends.unwrap_or_default(), number(bias.estimate.abs()), number(mae.estimate));
    let size = format!("{by} {way} on average{ends}; a score is {off} off");
    // One amount on every row is a shift as well, which has no interval.
    let is_shift = bias.interval.map_or(bias.no_variation, |interval| interval.low > 0.0 || interval.high < 0.0);
    match is_shift && bias.estimate != 0.0 {
        true => format!("Scores have shifted: they are {size}; {rows}."),
        false => format!("No shift can be shown: scores are {size}; {rows}."),
    }
}

/// The rows of a file with their ids, one at a time: with its texts a row is far larger than what is compared of it.
struct Scored {
    rows: Box<dyn Iterator<Item = Result<(ItemId, ScoredRow)>>>,
    /// The field of the scores.
    predicted: String,
    /// Whether any row has what people said.
    has_people: bool,
    /// Whether any row says which chance it had of being graded.
    is_sampled: bool,
}

/// Reads a file.
fn rows(path: &Path, predicted: Option<&str>, human: Option<&str>, limit: Option<usize>) -> Result<Scored> {
    let file = ScoredFile::open(judge_cli::args::files::open(path)?, limit)?.with_unique_ids()?;
    let fields = file.fields(predicted, human);
    let known = |field: &Option<String>| field.clone().filter(|field| file.has(field));
    let Some(found) = known(&fields.predicted) else {
        let looked = predicted.map_or_else(|| ScoredFile::predicted_names().join(", "), str::to_owned);
        bail!("{}: no row has a score: looked for {looked}; name it with --predicted", path.display());
    };
    if let Some(field) = human.filter(|field| !file.has(field)) {
        bail!("{}: no row has the field {field:?} that --human names", path.display());
    }
    let with_id = |row: Result<ScoredRow, judge_data::Error>| -> Result<(ItemId, ScoredRow)> {
        let row = row?;
        let id =
            row.id.clone().with_context(|| format!("{}: the row has no id, by which runs are joined", row.place()));
        Ok((id?, row))
    };
    let rows = Box::new(file.rows(&fields)?.map(with_id));
    let (has_people, is_sampled) = (known(&fields.human).is_some(), file.has(SAMPLING_PROBABILITY));
    Ok(Scored { rows, predicted: found, has_people, is_sampled })
}

/// What both runs have scored, in the order of the run now.
fn anchors(cli: &Cli) -> Result<(Vec<Anchor>, LeftOut)> {
    let Scored { rows: now, predicted, has_people, is_sampled } =
        rows(&cli.input, cli.predicted.as_deref(), cli.human.as_deref(), cli.limit)?;
    // The same field in both: one that only one file has is another score.
    let before = rows(&cli.against, Some(&predicted), None, None)?.rows.enumerate();
    let before = before.map(|(place, row)| row.map(|(id, row)| (id, (place, row.predicted))));
    let mut before = before.collect::<Result<HashMap<_, _>>>()?;
    let (mut anchors, [mut now_alone, mut before_alone, mut unscored]) = (Vec::new(), LeftOut::default());
    let (mut unread, mut odd_raters) = (Unread::default(), Unread::default());
    for row in now {
        let (id, row) = row?;
        let Some((_, earlier)) = before.remove(&id) else {
            now_alone.push(id);
            continue;
        };
        let said = [row.predicted.clone(), earlier];
        unread.note(row.place(), said.iter().find_map(|said| said.as_ref().err().cloned()));
        let [Some(predicted), Some(before)] = said.map(|said| said.ok().flatten().map(rating)) else {
            unscored.push(id);
            continue;
        };
        if predicted.number().is_some() != before.number().is_some() {
            let [now, before] = [&predicted, &before].map(|rating| match rating {
                Rating::Number(number) => number.to_string(),
                Rating::Text(text) => format!("{text:?}"),
            });
            bail!(
                "{}: expected a number in both runs or a text in both, found {now} now and {before} before",
                row.place()
            );
        }
        odd_raters.note(row.place(), row.no_grade.clone());
        let human = if has_people { ratings(row.human.clone()) } else { Vec::new() };
        let cluster = match &cli.cluster {
            None => None,
            Some(field) => Some(text(&row, field).with_context(|| {
                format!(
                    "{}: --cluster: the row has no {field:?}, so it is not known which rows it belongs to",
                    row.place()
                )
            })?),
        };
        let is_weighted = is_sampled && human.iter().any(Option::is_some);
        let drawn = is_weighted.then(|| probability(&row, None)).transpose();
        let sampling_probability = drawn.with_context(|| row.place().to_string())?;
        let second = Some(before);
        let item = ComparedItem { predicted, second, human, confidence: None, cluster, sampling_probability };
        anchors.push(Anchor { id: id.to_string(), item });
    }
    // Of a part of the run now, the rest of the run before is not missing.
    if cli.limit.is_none() {
        let mut alone: Vec<(usize, ItemId)> = before.into_iter().map(|(id, (place, _))| (place, id)).collect();
        alone.sort_unstable_by_key(|(place, _)| *place);
        before_alone = alone.into_iter().map(|(_, id)| id).collect();
    }
    if anchors.is_empty() {
        let first = unread.first().map(|(place, why)| format!("; the first that cannot be read is {place}: {why}"));
        bail!(
            "{} and {} have no row in common with a score in both; rows are joined by id{}",
            cli.input.display(),
            cli.against.display(),
            first.unwrap_or_default()
        );
    }
    tell_unread_that(&unread, "have a score that cannot be read and count as unscored");
    tell_unread_that(&odd_raters, "have a rater whose grade is none and is left out");
    Ok((anchors, [now_alone, before_alone, unscored]))
}

/// The statistics that the rows define, by name: of the change, and of the agreement with people.
fn statistics(anchors: &[Anchor], cli: &Cli) -> Result<Vec<(String, Statistic)>> {
    let compared = |items: Vec<ComparedItem>, names: Vec<String>| -> Result<Comparisons> {
        let all: Vec<usize> = (0..items.len()).collect();
        let bootstrap = Bootstrap { level: cli.level, resamples: cli.resamples, ..BOOTSTRAP };
        let settings = ComparisonSettings { bootstrap, only: Some(names), ..ComparisonSettings::default() };
        Ok(Comparison::new(items, settings)?.statistics(&all))
    };
    // Before in the place of people: of all rows, whoever graded them.
    let before = |item: &ComparedItem| ComparedItem {
        human: vec![item.second.clone()],
        second: None,
        sampling_probability: None,
        ..item.clone()
    };
    let change = anchors.iter().map(|anchor| before(&anchor.item)).collect();
    let mut found = compared(change, CHANGE.map(str::to_owned).to_vec())?.statistics;
    let graded = anchors.iter().map(|anchor| &anchor.item).filter(|item| item.human.iter().any(Option::is_some));
    let graded: Vec<ComparedItem> = graded.cloned().collect();
    if !graded.is_empty() {
        if graded[0].sampling_probability.is_some() {
            tell_weighted("in the agreement with people rows");
        }
        let names = STATISTICS.iter().filter(|name| name.starts_with(DIFFERENCE)).map(|name| (*name).to_owned());
        found.extend(compared(graded, names.collect())?.statistics);
    }
    Ok(found)
}

/// The rows of which the judge says something else, the largest change first; of equal ones in the order of the run now.
fn changed(anchors: &[Anchor]) -> Vec<&Anchor> {
    let mut changed: Vec<&Anchor> =
        anchors.iter().filter(|anchor| Some(&anchor.item.predicted) != anchor.item.second.as_ref()).collect();
    let size = |anchor: &Anchor| anchor.change().map_or(0.0, f64::abs);
    changed.sort_by(|one, other| size(other).total_cmp(&size(one)));
    changed
}

/// What differs between the records of the two runs, where both have one: what decides about scores, and not when they were made.
fn records(now: &Path, before: &Path) -> Result<Vec<Difference>> {
    let paths = [now, before].map(record_path);
    if let Some(path) = paths.iter().find(|path| !path.exists()) {
        tell(format_args!("note: {} is not there, so models and settings are not compared", path.display()));
        return Ok(Vec::new());
    }
    let [now, before] = paths.map(|path| load::<RunRecord>(&path).map(|record| facts(&record)));
    Ok(Difference::between(&before?, &now?))
}

fn facts(record: &RunRecord) -> Settings {
    let RunRecord { program, model, template, settings, resolved, .. } = record;
    let facts = [
        ("program", json!(program)),
        ("model", json!(model)),
        ("template", json!(template)),
        ("settings", json!(with_variant(settings.clone()))),
        ("resolved", json!(resolved)),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
