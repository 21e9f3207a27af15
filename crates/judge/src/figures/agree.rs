//! How a judge's scores agree with people's: every statistic that the data define, with its uncertainty.
//!
//! `judge agree --input pairs.jsonl`

mod cli;
mod figures;
mod judges;
mod means;
mod pairs;
mod plan;
mod print;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, ensure};
use judge_cli::args::bars::{Measured, first_names, rows_used, rows_used_in_words};
use judge_cli::args::files::program;
use judge_cli::preferences::Worth;
use judge_cli::reliability;
use judge_cli::report::{name_columns, thinned, write_json_if, write_marked};
use judge_cli::terminal::console::{counted, say, usage};
use judge_cli::terminal::progress::Progress;
use judge_data::Outputs;
use judge_metrics::agreement::AlternativeAnnotatorTest;
use judge_metrics::comparison::{ComparisonSettings, Comparisons, Labels, STATISTICS, Statistic};
use judge_metrics::multiplicity::Adjustment;
use judge_metrics::resampling::{Bootstrap, BootstrapMethod};
use serde_json::{Value, json};

use self::judges::{Judges, judge_of, statistic_of};
use self::pairs::{Pairs, furthest};
use self::plan::Plan;

use self::cli::ADJUSTMENTS;
pub(crate) use self::cli::Cli;

/// The name of the command.
const COMMAND: &str = "agree";

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.bars.gate(COMMAND, || measured(cli))
}

fn measured(cli: &Cli) -> Result<Measured> {
    let reports = [&cli.json, &cli.plot, &cli.scores_plot, &cli.risk_plot, &cli.comparison_plot].into_iter().flatten();
    let outputs = Outputs::new([&cli.input]).reports("agreement", reports).reports(COMMAND, cli.bars.reports());
    outputs.overwrite(cli.write.overwrite).check()?;
    cli.check()?;
    let pairs = Pairs::read(cli)?;
    let rows = pairs.rows();
    let (predicted, human, drawn) = (&pairs.predicted, &pairs.human, &pairs.sampling_probability);
    let n_excluded: usize = pairs.excluded.values().sum();
    ensure!(
        !pairs.items.is_empty(),
        "{}: no row has both a prediction ({predicted}) and a human score ({human})",
        cli.input.display()
    );
    let numeric = pairs.items[0].predicted.number().is_some();
    if let Some(names) = &cli.labels {
        Labels::named(names, numeric).map_err(|error| usage(format!("--labels: {error}")))?;
    }
    ensure!(
        drawn.is_none() || [&cli.plot, &cli.scores_plot, &cli.risk_plot].iter().all(|plot| plot.is_none()),
        "--plot, --scores-plot and --risk-plot take rows as drawn alike, and these have a sampling probability: leave them out"
    );
    for (plot, option) in [(&cli.plot, "--plot"), (&cli.scores_plot, "--scores-plot")] {
        ensure!(plot.is_none() || numeric, "{option} needs scores that are numbers; {} has texts", cli.input.display());
    }
    let bootstrap =
        Bootstrap { resamples: cli.resamples, level: cli.level, seed: cli.seed, method: BootstrapMethod::Percentile };
    // A bar needs its statistic, whatever else is asked for.
    let wanted_statistics: Option<Vec<String>> = cli
        .statistics
        .as_ref()
        .map(|names| names.iter().cloned().chain(cli.bars.statistics().map(str::to_owned)).collect());
    let only = wanted_statistics.as_ref().map(|names| {
        names
            .iter()
            .map(|name| statistic_of(name))
            .filter(|name| STATISTICS.contains(name))
            .map(str::to_owned)
            .collect()
    });
    let alternative = AlternativeAnnotatorTest { epsilon: cli.epsilon, ..AlternativeAnnotatorTest::default() };
    let settings = ComparisonSettings { bootstrap, labels: cli.labels.clone(), alternative, only };
    let off_scale = pairs.off_scale.as_deref();
    let others = cli.second.iter().cloned().zip(pairs.others).collect();
    let adjusts = |(_, known): &(&str, Adjustment)| cli.adjust == Some(*known);
    let (adjust, adjustment) = ADJUSTMENTS.into_iter().find(adjusts).unwrap_or(ADJUSTMENTS[0]);
    let judges = Judges::new(pairs.items, others, &settings, adjustment)?;
    let comparison = judges.first();
    // What the preferences of pairs are worth takes pairs as drawn alike; verdicts are weighted.
    let preferences =
        pairs.preferences.compared(bootstrap).filter(|_| cli.sampling_probability.is_some() || drawn.is_none());
    ensure!(
        preferences.is_none() || cli.sampling_probability.is_none(),
        "--sampling-probability: what preferences are worth takes pairs as drawn alike; judge agree reads rows of scores with it"
    );
    let all: Vec<usize> = (0..comparison.items().len()).collect();
    // What the surest rows cost takes rows as drawn alike.
    let risk = comparison.selective_risk(&all).filter(|_| drawn.is_none());
    ensure!(
        cli.risk_plot.is_none() || risk.is_some(),
        "--risk-plot: nothing says how sure the judge is of a row; name a field with --confidence"
    );
    // Where losses overflow its statistic is undefined and says so; a picture that was asked for is refused.
    let risk = risk.filter(|risk| cli.risk_plot.is_some() || risk.curve().is_ok());

    let mut rows_of: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    if let Some(field) = &cli.group {
        let none = format!("(no {field})");
        ensure!(
            !pairs.groups.iter().flatten().any(|group| *group == none),
            "a group is called {none:?}, as rows without one are"
        );
        for (row, group) in pairs.groups.into_iter().enumerate() {
            rows_of.entry(group.unwrap_or_else(|| none.clone())).or_default().push(row);
        }
    }
    let bar = Progress::new("comparing sets of rows", rows_of.len() + 1, cli.quiet);
    // Of a difference from several judges all, or those that are named; a bar sees what there is.
    let named = cli.statistics.iter().flatten().map(String::as_str).chain(cli.bars.statistics().map(statistic_of));
    let named: Vec<&str> = named.collect();
    let is_named = |name: &str| named.iter().any(|known| *known == name || *known == statistic_of(name));
    let statistics = |rows: &[usize]| {
        let computed = |observer: &dyn Fn(String)| {
            judges.statistics(rows, &|started| {
                observer(format!("computing {} ({} of {})", started.name, started.number, started.of));
            })
        };
        let mut found = bar.tell_of_slow_steps(computed);
        found.statistics.retain(|(name, _)| cli.statistics.is_none() || judge_of(name).is_none() || is_named(name));
        name_columns(found.statistics.iter_mut().map(|(_, known)| known), predicted, human);
        found
    };
    let mut overall = statistics(&all);
    let wanted = |name: &String| wanted_statistics.as_ref().is_none_or(|names| names.contains(name));
    let means = means::means(comparison.items(), &pairs.unlabelled, cli.labels.as_deref(), cli.level);
    overall.statistics.extend(means.into_iter().filter(|(name, _)| wanted(name)));
    let mut worth = preferences.map(|preferences| preferences.whole()).transpose()?;
    if let Some(worth) = &mut worth {
        worth.statistics.retain(|known| wanted(&known.name.to_owned()));
    }
    for name in wanted_statistics.iter().flatten() {
        let of_preferences = worth.as_ref().is_some_and(|worth| worth.get(name).is_some());
        let is_there = |(known, _): &(String, Statistic)| known == name || statistic_of(known) == name;
        // A difference from a judge that is not there is no statistic, and bars refuse it.
        let is_own = statistic_of(name) == name;
        let is_counted = rows_used(0, 0).iter().any(|(known, _)| known == name);
        if is_own && !is_counted && !overall.statistics.iter().any(is_there) && !of_preferences {
            let reason = "it takes what these rows lack: more raters, labels, a second judge, clusters, confidences or rows without a human score";
            overall.statistics.push((name.clone(), Statistic::Undefined { reason: reason.to_owned() }));
        }
    }
    bar.inc(1);
    let of_group = |(group, rows): (String, Vec<usize>)| {
        let found = statistics(&rows);
        bar.inc(1);
        (group, found)
    };
    let groups: Vec<(String, Comparisons)> = rows_of.into_iter().map(of_group).collect();
    bar.finish_and_clear();

    let mut found = json!(by_name(&overall, worth.as_ref()));
    let has_bars = cli.bars.statistics().next().is_some();
    for (name, known) in rows_used(overall.n, rows) {
        if has_bars || wanted(&name.to_owned()) {
            found[name] = json!(known);
        }
    }
    let plan = Plan::new(&overall, cli.level, cli.width, cli.cluster.is_none() && drawn.is_none());
    write_json_if(cli.json.as_deref(), "agreement", || {
        Ok(json!({
            "program": program("agreement"), "n": overall.n, "excluded": n_excluded, "excluded_by_reason": pairs.excluded, "predicted": predicted, "human": human,
            "level": cli.level, "resamples": cli.resamples, "seed": cli.seed, "statistics": found,
            "adjustment": judges.adjusted().map(|others| json!({"method": adjust, "judges": others})),
            "planning": plan.json(),
            "layers": worth.as_ref().map(Worth::layers_json),
            "risk_coverage": risk.as_ref().map(|risk| risk.curve()).transpose()?.map(|curve| thinned(&curve, figures::POINTS)),
            "groups": groups.iter().map(|(group, found)| (group.clone(), json!({"n": found.n, "statistics": by_name(found, None)})))
                .collect::<BTreeMap<_, _>>(),
        }))
    })?;
    let counts: Vec<String> = pairs.excluded.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let mut left_out =
        if counts.is_empty() { String::new() } else { format!(", {n_excluded} left out ({})", counts.join(", ")) };
    if overall.n < rows {
        left_out += &format!("; {}", rows_used_in_words(overall.n, rows));
    }
    let title = format!("{predicted} against {human}: {}{left_out}", counted(overall.n, "row"));
    print::whole(&title, &overall, numeric, off_scale, risk.as_ref(), cli.methods)?;
    plan.print()?;
    if let Some(worth) = worth.filter(|worth| !worth.statistics.is_empty()) {
        say("")?;
        worth.print(None)?;
    }
    print_groups(cli, &groups, numeric, off_scale)?;
    let furthest = furthest(comparison.items());
    if cli.statistics.is_none() && !furthest.is_empty() {
        say("")?;
        print::furthest(comparison.items(), &pairs.names, &furthest)?;
    }
    // What cannot be drawn costs no figures.
    let mut pictures: Vec<(&PathBuf, String)> = Vec::new();
    if let Some(path) = &cli.plot {
        let bins = reliability::bins(comparison.items(), cli.level);
        pictures.push((path, reliability::svg(comparison.items(), &bins, predicted, human, cli.level)?));
    }
    if let Some(path) = &cli.scores_plot {
        pictures.push((path, figures::scores(comparison.items(), predicted, human)?));
    }
    if let (Some(path), Some(risk)) = (&cli.risk_plot, &risk) {
        pictures.push((path, figures::risk(risk, predicted)?));
    }
    if let Some(path) = &cli.comparison_plot {
        let others = judges.others(&figures::COMPARED, &settings)?;
        pictures.push((path, figures::comparison((predicted, &overall), &others, &groups, cli.level)?));
    }
    for (path, svg) in pictures {
        write_marked(path, "agreement", &svg)?;
    }
    let worst = first_names("furthest from people", furthest.iter().map(|&place| &pairs.names[place]));
    Ok(Measured { statistics: found, worst, lost: pairs.lost, apart: Vec::new() })
}

fn print_groups(cli: &Cli, groups: &[(String, Comparisons)], numeric: bool, off_scale: Option<&str>) -> Result<()> {
    if groups.len() > print::FEW_GROUPS || (cli.statistics.is_some() && !groups.is_empty()) {
        let names: Vec<&str> = match &cli.statistics {
            Some(names) => names.iter().map(String::as_str).collect(),
            None if numeric => vec!["spearman", "mae", "bias"],
            None => vec!["accuracy", "cohen_kappa", "gwet_ac1"],
        };
        let lines: Vec<_> = groups.iter().map(|(group, found)| (group.as_str(), found)).collect();
        say("")?;
        return print::compact(cli.group.as_deref().unwrap_or_default(), &lines, &names);
    }
    groups.iter().try_for_each(|(group, found)| {
        let title = format!("\n{group}: {}", counted(found.n, "row"));
        print::whole(&title, found, numeric, off_scale, None, cli.methods)
    })
}

/// As the contract has it.
fn by_name<'f>(found: &'f Comparisons, worth: Option<&Worth>) -> BTreeMap<&'f str, Value> {
    let found = found.statistics.iter().map(|(name, statistic)| (name.as_str(), json!(statistic)));
    let worth = worth.into_iter().flat_map(Worth::beside_verdicts);
    found.chain(worth.map(|(name, value)| -> (&'f str, Value) { (name, value) })).collect()
}
