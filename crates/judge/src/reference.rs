//! The tables of the documentation that follow from the program: commands and their options, columns, benchmarks, reasons, models.
//!
//! `scripts/docs/generate` writes them into the regions that are marked in the pages; the test below finds a region that is not current.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::{Arg, Command};
use judge_cli::terminal::console::counted;
use judge_core::Reason;
use judge_core::prompted::{GradeConvention, PairConvention};
use judge_data::{Benchmark, Field};
use judge_models::KnownModel;
use serde_json::Value;

/// Set to have regions written rather than compared.
const WRITE: &str = "JUDGE_WRITE_REFERENCE";

/// What usually helps against a reason for which rows have no score.
const REMEDIES: [(&str, &str); Reason::ALL.len()] = [
    ("empty_prompt", "look at the row; where all rows have it, at the chat template"),
    ("too_long", "shorten the row; lower `--max-new-tokens`; another model"),
    ("no_label", "`--condition prompt-end`, or more `--max-new-tokens`"),
    ("no_marker", "more `--max-new-tokens`, another `--marker`"),
    ("template", "look at the roles and their order"),
    ("non_finite", "`--dtype f32`; report it"),
    ("missing", "fill the field, or give the template a default"),
    ("unparsed", "a clearer prompt; look at the text"),
    ("off_scale", "the same; fewer options"),
    ("refused", "look at the row"),
    ("no_answer", "run it again; fix the row if the service names it"),
    ("worker_died", "score the row alone; report it"),
    ("tokenizer", "look at the row"),
    ("other_text", "train on the machine that judged"),
];

/// The pages with regions, and what stands in each.
fn regions() -> Vec<(&'static str, &'static str, String)> {
    vec![
        ("docs/models.md", "decoders", models("what is special", KnownModel::decoders())),
        ("docs/models.md", "vision-language", models("family of the text model", KnownModel::vision_language())),
        ("docs/models.md", "encoders", models("what is special", KnownModel::encoders())),
        ("docs/models.md", "gguf", architectures()),
        ("docs/models.md", "gguf-types", types()),
        ("docs/models.md", "quantised", quantised()),
        ("docs/models.md", "adapters", table(["adapter", "in its folder", "`judge tune`"], KnownModel::adapters())),
        ("docs/files.md", "columns", columns()),
        ("docs/prompted.md", "benchmarks", benchmarks()),
        ("docs/prompted.md", "conventions", conventions()),
        ("docs/glossary.md", "reasons", reasons()),
        ("docs/commands.md", "commands", commands()),
        ("docs/benchmarks.md", "cpu", on_cpus()),
        ("docs/benchmarks.md", "weights", weights()),
        ("docs/benchmarks.md", "llama", beside_llama()),
        ("docs/benchmarks.md", "statistics", statistics()),
    ]
}

/// A table in Markdown.
fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ")).replace("|  |", "| |");
    let mut text = line(&head.map(str::to_owned)) + "|" + &"---|".repeat(N) + "\n";
    rows.into_iter().for_each(|row| text += &line(&row));
    text
}

fn code(name: &str) -> String {
    format!("`{name}`")
}

fn models(notes: &str, known: Vec<KnownModel>) -> String {
    let rows = known.into_iter().map(|known| [code(known.model_type), known.models.to_owned(), known.notes]);
    table(["`model_type`", "models", notes], rows)
}

fn architectures() -> String {
    let rows = KnownModel::of_gguf().into_iter().map(|(name, families, changed)| {
        let families: Vec<String> = families.iter().map(|family| code(family)).collect();
        [code(name), families.join(", "), changed]
    });
    table(["`general.architecture`", "read as", "what the converter changed, and is undone"], rows)
}

fn types() -> String {
    let rows =
        KnownModel::gguf_types().into_iter().map(|(name, block, bits)| [name, block.to_string(), bits.to_string()]);
    table(["type", "numbers in a block", "bits a number"], rows)
}

fn quantised() -> String {
    let rows =
        KnownModel::quantised().into_iter().map(|[name, read, notes]| [code(name), read.to_owned(), notes.to_owned()]);
    table(["`quant_method`", "read", "notes"], rows)
}

fn columns() -> String {
    let rows = Field::ALL.into_iter().map(|field| {
        let columns: Vec<String> = field.aliases().iter().map(|name| code(name)).collect();
        [code(field.as_str()), columns.join(", "), field.about().to_owned()]
    });
    table(["field", "columns, the first that is there", "what it holds"], rows)
}

fn benchmarks() -> String {
    let row = |known: Benchmark| [code(known.as_str()), known.about().to_owned(), known.groups().to_owned()];
    table(["`--benchmark`", "file", "groups"], Benchmark::ALL.into_iter().map(row))
}

fn conventions() -> String {
    let plain = |form: &str| form.replace('\\', "\\\\").replace('<', "\\<");
    let row = |rows: &str, name: &str, [origin, form, rule]: [&str; 3]| {
        [rows.to_owned(), code(name), origin.to_owned(), plain(form), rule.to_owned()]
    };
    let pairs = PairConvention::ALL.map(|of| row("pairs", of.as_str(), [of.origin(), of.form(), of.rule()]));
    let grades = GradeConvention::ALL.map(|of| row("one response", of.as_str(), [of.origin(), of.form(), of.rule()]));
    let head = ["rows", "`--convention`", "whose form", "what is looked for", "where, and which counts"];
    table(head, pairs.into_iter().chain(grades))
}

fn reasons() -> String {
    let rows = Reason::ALL.into_iter().map(|reason| {
        let remedy = REMEDIES.iter().find(|(name, _)| *name == reason.as_str()).expect("each reason has a remedy").1;
        [code(reason.as_str()), reason.about().to_owned(), remedy.to_owned()]
    });
    table(["reason", "meaning", "usual remedy"], rows)
}

/// Figures on CPUs: the rows of one part of their files, each with its machine.
fn of_machines<R: serde::de::DeserializeOwned>(part: &str) -> Vec<(String, R)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let files = fs::read_dir(folder).expect("results").map(|file| file.expect("a file").path());
    let is_of_cpu = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cpu-"));
    let mut files: Vec<PathBuf> = files.filter(is_of_cpu).collect();
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let mut file: Value = serde_json::from_str(&fs::read_to_string(&path).expect("a file")).expect("figures");
        let rows: Option<Vec<R>> = serde_json::from_value(file[part]["rows"].take()).expect("rows");
        let machine = file["machine"].as_str().expect("a machine");
        found.extend(rows.unwrap_or_default().into_iter().map(|row| (machine.to_owned(), row)));
    }
    found
}

/// A table whose first cells are machines: each is named in the first of its lines.
fn by_machine<const N: usize>(head: [&str; N], mut rows: Vec<[String; N]>) -> String {
    for at in (1..rows.len()).rev() {
        if rows[at][0] == rows[at - 1][0] {
            rows[at][0].clear();
        }
    }
    table(head, rows)
}

fn times(ratio: f64) -> String {
    if ratio < 1.05 { format!("{ratio:.2}") } else { format!("{ratio:.1}") }
}

fn on_cpus() -> String {
    let rows = of_machines("reading").into_iter().map(|(machine, row): (String, CpuRow)| {
        let [theirs, here] = [row.theirs, row.here].map(|rate| rate.to_string());
        let theirs = if row.their_dtype == "bf16" { theirs } else { format!("{theirs} ({})", row.their_dtype) };
        let memory = row.peak_mb.map(|[theirs, here]| format!("{theirs} / {here}")).unwrap_or_default();
        let floor = row.of_floor.map(|share| format!("{:.0} %", 100.0 * share)).unwrap_or_default();
        let difference = row.difference.map(|difference| format!("{difference:.1e}")).unwrap_or_default();
        let of = format!("{}, {}", row.workload, counted(row.prompts, "prompt"));
        [machine, row.model, of, row.date, theirs, here, times(row.ratio), floor, difference, memory]
    });
    let head = [
        "machine",
        "model",
        "workload",
        "date",
        "transformers",
        "here",
        "ratio",
        "of the floor",
        "largest difference",
        "peak MB, theirs / here",
    ];
    by_machine(head, rows.collect())
}

fn weights() -> String {
    let rows = of_machines("weights").into_iter().map(|(machine, row): (String, WeightsRow)| {
        let [one, eight, prompts] = [0, 1, 2].map(|at| format!("{:.1} s ({:.2})", row.seconds[at], row.ratios[at]));
        let distance = row.distances.map(|distance| format!("{:.1} %", 100.0 * distance)).join(", ");
        [machine, row.model, row.form, row.date, one, eight, prompts, row.peak_mb.to_string(), distance]
    });
    let head = ["machine", "model", "form", "date", "one text", "eight texts", "eight prompts", "peak MB", "distances"];
    by_machine(head, rows.collect())
}

fn beside_llama() -> String {
    let mut lines: BTreeMap<[String; 4], (BTreeSet<u64>, Vec<String>)> = BTreeMap::new();
    for (machine, row) in of_machines::<LlamaRow>("llama") {
        let (theirs, here) = lines.entry([machine, row.file, row.workload, row.date]).or_default();
        theirs.insert(row.theirs);
        here.push(format!("`{}` {} ({})", row.kernel, row.here, times(row.ratio)));
    }
    let rows = lines.into_iter().map(|([machine, file, workload, date], (theirs, here))| {
        let theirs: Vec<String> = theirs.iter().map(u64::to_string).collect();
        [machine, file, workload, date, theirs.join(", "), here.join(", ")]
    });
    by_machine(["machine", "file", "workload", "date", "llama.cpp", "here, by kernel"], rows.collect())
}

fn statistics() -> String {
    let rows = of_machines("statistics").into_iter().map(|(machine, row): (String, StatisticsRow)| {
        let [theirs, here] = [row.theirs_ms, row.here_ms].map(|ms| ms.to_string());
        [machine, row.workload, row.date, theirs, here, row.ratio.to_string()]
    });
    by_machine(["machine", "workload", "date", "SciPy, ms", "here, ms", "ratio"], rows.collect())
}

#[derive(serde::Deserialize)]
struct StatisticsRow {
    workload: String,
    date: String,
    theirs_ms: f64,
    here_ms: f64,
    ratio: f64,
}

#[derive(serde::Deserialize)]
struct CpuRow {
    model: String,
    workload: String,
    prompts: usize,
    their_dtype: String,
    date: String,
    theirs: u64,
    here: u64,
    ratio: f64,
    of_floor: Option<f64>,
    difference: Option<f64>,
    peak_mb: Option<[u64; 2]>,
}

#[derive(serde::Deserialize)]
struct WeightsRow {
    model: String,
    form: String,
    date: String,
    seconds: [f64; 3],
    ratios: [f64; 3],
    peak_mb: u64,
    distances: [f64; 2],
}

#[derive(serde::Deserialize)]
struct LlamaRow {
    file: String,
    workload: String,
    kernel: String,
    date: String,
    theirs: u64,
    here: u64,
    ratio: f64,
}

/// All commands with their options. What several commands have alike stands once, behind them.
fn commands() -> String {
    let mut judge = crate::commands::command();
    judge.build();
    let mut all = Vec::new();
    leaves(&judge, "judge", &mut all);
    let mut users: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, command) in &all {
        for option in options(command) {
            users.entry(described(option).join("|")).or_default().push(name);
        }
    }
    let is_shared = |option: &Arg| users[&described(option).join("|")].len() >= SHARED;
    // Those that stand apart, by the heading that they have in a command's help.
    let mut apart: BTreeMap<&str, Vec<[String; 3]>> = BTreeMap::new();
    for option in all.iter().flat_map(|(_, command)| options(command)).filter(|option| is_shared(option)) {
        let (rows, row) = (apart.entry(heading(option)).or_default(), described(option));
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let mut text = String::new();
    for (name, command) in &all {
        let about = command.get_about().map(StyledStr::to_string).unwrap_or_default();
        let stop = if about.ends_with('?') { "" } else { "." };
        text += &format!("### `{name}`\n\n{about}{stop}\n\n");
        let own: Vec<&Arg> = options(command).filter(|option| !is_shared(option)).collect();
        if !own.is_empty() {
            text += &(table(HEAD, own.into_iter().map(described)) + "\n");
        }
        let mut shared = Vec::new();
        for (heading_of, rows) in &apart {
            let here = options(command).filter(|option| is_shared(option) && heading(option) == *heading_of);
            let here: Vec<String> = here.map(named).collect();
            match here.len() == rows.len() && here.len() >= SHARED {
                true => shared.push(format!("all of [{heading_of}](#{})", anchor(heading_of))),
                false => shared.extend(here),
            }
        }
        if !shared.is_empty() {
            text += &wrapped(&format!("Also {}.", shared.join(", ")));
            text += "\n\n";
        }
    }
    text += "### Options of several commands\n";
    for (heading_of, rows) in apart {
        text += &format!("\n#### {heading_of}\n\n{}", table(HEAD, rows));
    }
    text += "\n### Options of every command\n\n";
    text + &table(HEAD, judge.get_arguments().filter(|option| option.is_global_set()).map(described))
}

/// The heading of an option in a command's help.
fn heading(option: &Arg) -> &str {
    option.get_help_heading().unwrap_or("Options")
}

/// Where a page shows a heading.
fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

/// A paragraph in lines of the pages' width.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("one at least");
        match line.len() {
            0 => line.push_str(word),
            taken if taken + word.len() < WIDTH => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// Columns of a page.
const WIDTH: usize = 140;

/// From so many commands on, an option stands apart.
const SHARED: usize = 3;

const HEAD: [&str; 3] = ["option", "default", "what it says"];

/// The commands that do something, by their whole names.
fn leaves<'c>(command: &'c Command, name: &str, found: &mut Vec<(String, &'c Command)>) {
    let inner: Vec<&Command> = command.get_subcommands().filter(|inner| inner.get_name() != "help").collect();
    if inner.is_empty() {
        found.push((name.to_owned(), command));
    }
    for command in inner {
        leaves(command, &format!("{name} {}", command.get_name()), found);
    }
}

fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let known = |option: &&Arg| {
        let is_of_all = option.is_global_set() || ["help", "version"].contains(&option.get_id().as_str());
        !option.is_hide_set() && !is_of_all
    };
    command.get_arguments().filter(known)
}

/// `--name`, or what stands in its place.
fn named(option: &Arg) -> String {
    match option.get_long() {
        Some(long) => code(&format!("--{long}")),
        None => code(option.get_id().as_str()),
    }
}

/// An option with its value, its default, and its help.
fn described(option: &Arg) -> [String; 3] {
    let takes = option.get_action().takes_values();
    let bar = |text: String| text.replace('|', "\\|"); // a cell ends at one
    let names: Vec<&str> = option.get_value_names().into_iter().flatten().map(|name| name.as_str()).collect();
    let possible = option.get_possible_values();
    let possible: Vec<&str> = possible.iter().map(|value| value.get_name()).collect();
    let value = match () {
        () if !takes => String::new(),
        () if possible.is_empty() => names.join(" "),
        () => possible.join("|"),
    };
    let name = option.get_long().map(|long| format!("--{long}")).unwrap_or_default();
    let name = bar(format!("{name} {value}").trim().to_owned());
    let default: Vec<String> = option
        .get_default_values()
        .iter()
        .filter(|_| takes && !option.is_hide_default_value_set())
        .map(|value| code(&value.to_string_lossy()))
        .collect();
    let default = default.into_iter().filter(|value| value != "``").collect::<Vec<_>>().join(" ");
    let help = option.get_help().map(StyledStr::to_string).unwrap_or_default();
    let help = bar(help.split_whitespace().collect::<Vec<_>>().join(" ")).replace('<', "\\<");
    [code(&name), default, help]
}

#[test]
fn tables_of_the_documentation_are_those_of_the_program() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut stale = Vec::new();
    for (page, name, text) in regions() {
        let path = root.join(page);
        let found = fs::read_to_string(&path).expect("a page");
        let [begin, end] = [format!("<!-- generated: {name} -->\n"), format!("<!-- end of {name} -->")];
        let (before, rest) = found.split_once(&begin).unwrap_or_else(|| panic!("{page} has no region {name}"));
        let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{page}: the region {name} has no end"));
        let now = format!("{before}{begin}\n{}\n\n{end}{after}", text.trim_end());
        if now == found {
            continue;
        }
        match std::env::var_os(WRITE) {
            Some(_) => fs::write(&path, now).expect("a page that can be written"),
            None => stale.push(format!("{page}, {name}")),
        }
    }
    assert!(stale.is_empty(), "not as the program says, run scripts/docs/generate: {}", stale.join("; "));
}
