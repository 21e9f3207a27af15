//! The commands of the program, and its `main`.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;
use judge_cli::args::bars;
use judge_cli::args::files::{CarryArgs, InputArgs};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::terminal::console;
use judge_cli::terminal::options::quoted;
use judge_cli::terminal::tables::{TableFormat, write_as};
use judge_data::{DatasetFormat, DecisionRecords, RagRecords, Records, RerankRecords};

use crate::figures::{agree, bench, bias, calibrate, drift, fit, report};
use crate::inspector::{self, ProbeArgs};
use crate::models::{doctor, merge, probe, sft_evaluate, speed, trial, tune};
use crate::rows::shards::command::{Commands, Reading};
use crate::rows::{
    checklist, compare, decide, emotion, exercises, knowledge, label, logits, rag, rank, rerank, reward, score, select,
    shards, states, stream,
};
use judge_grade as grade;
use judge_serve as serve;

/// Turn a local language model into a measuring instrument for text.
///
/// Rows come in as JSON lines, scores go out as JSON lines with a record of the run beside them;
/// an interrupted run resumes when the same command is given again. Without --model, a small
/// embedded model reads, which judges nothing but the exercises of `judge rows`; other rows are refused.
#[derive(Parser)]
#[command(name = "judge", version = console::VERSION, propagate_version = true, help_template = help())]
struct Judge {
    /// How tables are written on stdout
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORM", help_heading = "Run")]
    tables: TableFormat,
    #[command(subcommand)]
    command: Command,
}

/// The commands by what they are for, as `judge help` has them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Judge texts", &["score", "compare", "decide", "checklist", "rag", "rank", "rerank", "reward", "label"]),
    ("See what a judge is worth", &["grade", "try", "agree", "report", "calibrate", "drift", "bench", "bias"]),
    ("Use a judge", &["select", "serve", "emotion", "knowledge"]),
    ("Make a judge better", &["fit", "probe", "tune", "sft-evaluate", "merge"]),
    ("Read a model", &["logits", "states", "speed"]),
    ("Work at scale, and try things out", &["shards", "stream", "rows", "doctor", "completions", "man"]),
];

/// The template of the program's own help: clap lists commands in one row.
fn help() -> String {
    let all = Command::augment_subcommands(clap::Command::new("judge"));
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups += &format!("{title}:\n");
        for name in names {
            let about = all.find_subcommand(name).and_then(|command| command.get_about());
            groups += &format!("  {name:<13} {}\n", about.map(ToString::to_string).unwrap_or_default());
        }
        groups.push('\n');
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}\n\n\
         `judge COMMAND --help` has the options of a command. Begin with docs/first-steps.md.\n"
    )
}

/// The commands.
#[derive(Subcommand)]
enum Command {
    Score(Box<score::Cli>),
    Compare(Box<compare::Cli>),
    Rag(Box<rag::Cli>),
    Rerank(Box<rerank::Cli>),
    Rank(Box<rank::Cli>),
    Reward(Box<reward::Cli>),
    Decide(Box<decide::Cli>),
    Checklist(Box<checklist::Cli>),
    Label(Box<label::Cli>),
    Logits(Box<logits::Cli>),
    States(Box<states::Cli>),
    Tune(Box<tune::Cli>),
    SftEvaluate(Box<sft_evaluate::Cli>),
    Fit(Box<fit::Cli>),
    Grade(Box<grade::Cli>),
    Try(Box<trial::Cli>),
    Agree(Box<agree::Cli>),
    Drift(Box<drift::Cli>),
    Calibrate(Box<calibrate::Cli>),
    Report(Box<report::Cli>),
    Bench(Box<bench::Cli>),
    Bias(Box<bias::Cli>),
    Select(Box<select::Cli>),
    Emotion(Box<emotion::Cli>),
    Knowledge(Box<knowledge::Cli>),
    Shards(Box<shards::Cli>),
    Stream(Box<stream::Cli>),
    Merge(Box<merge::Cli>),
    Speed(Box<speed::Cli>),
    Serve(Box<serve::Cli>),
    Rows(Box<exercises::Cli>),
    Doctor(Box<doctor::Cli>),
    /// Small classifiers on the states of a model (INSPECTOR): train, import, apply
    #[command(subcommand)]
    Probe(probe::Probe),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, which has every command with its options
    Man,
}

impl Command {
    fn run(&self) -> Result<()> {
        match self {
            Self::Score(cli) => score::run(cli),
            Self::Compare(cli) => compare::run(cli),
            Self::Rag(cli) => rag::run(cli),
            Self::Rerank(cli) => rerank::run(cli),
            Self::Rank(cli) => rank::run(cli),
            Self::Reward(cli) => reward::run(cli),
            Self::Decide(cli) => decide::run(cli),
            Self::Checklist(cli) => checklist::run(cli),
            Self::Label(cli) => label::run(cli),
            Self::Logits(cli) => logits::run(cli),
            Self::States(cli) => states::run(cli),
            Self::Tune(cli) => tune::run(cli),
            Self::SftEvaluate(cli) => sft_evaluate::run(cli),
            Self::Fit(cli) => fit::run(cli),
            Self::Grade(cli) => grade::run(cli),
            Self::Try(cli) => trial::run(cli),
            Self::Agree(cli) => agree::run(cli),
            Self::Drift(cli) => drift::run(cli),
            Self::Calibrate(cli) => calibrate::run(cli),
            Self::Report(cli) => report::run(cli),
            Self::Bench(cli) => bench::run(cli),
            Self::Bias(cli) => bias::run(cli),
            Self::Select(cli) => select::run(cli),
            Self::Emotion(cli) => emotion::run(cli),
            Self::Knowledge(cli) => knowledge::run(cli),
            Self::Shards(cli) => shards::run(cli, &OfProgram),
            Self::Stream(cli) => stream::run(cli),
            Self::Merge(cli) => merge::run(cli),
            Self::Speed(cli) => speed::run(cli),
            Self::Serve(cli) => serve::run(cli),
            Self::Rows(cli) => exercises::run(cli),
            Self::Doctor(cli) => doctor::run(cli),
            Self::Probe(probe) => probe.run(),
            Self::Completions { shell } => {
                let mut text = Vec::new();
                clap_complete::generate(*shell, &mut Judge::command(), "judge", &mut text);
                console::print(String::from_utf8(text)?.trim_end())
            }
            Self::Man => console::print(manual()?.trim_end()),
        }
    }
}

/// The manual page: the program, and behind it each command with its options.
fn manual() -> Result<String> {
    let mut judge = Judge::command();
    judge.build();
    let (mut page, man) = (Vec::new(), Man::new(judge.clone()));
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut page = String::from_utf8(page)?;
    add_commands(&judge, &mut page)?;
    Ok(page)
}

/// Adds a section for each command within this one.
fn add_commands(command: &clap::Command, page: &mut String) -> Result<()> {
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        let (mut parts, man) = (Vec::new(), Man::new(inner.clone()));
        man.render_description_section(&mut parts)?;
        man.render_options_section(&mut parts)?;
        // What is a section of a page of its own is a part here.
        let parts = String::from_utf8(parts)?.replace("\n.SH ", "\n.SS ");
        *page += &format!(".SH \"{}\"\n{parts}", inner.get_bin_name().unwrap_or_default());
        add_commands(inner, page)?;
    }
    Ok(())
}

/// The commands that make rows of rows, for shards of them.
struct OfProgram;

impl OfProgram {
    fn command(words: &[String]) -> Result<Command> {
        let words = std::iter::once("judge".to_owned()).chain(words.iter().cloned());
        Ok(console::read_line::<Judge>(&todays(words.map(OsString::from).collect()))?.command)
    }
}

impl Commands for OfProgram {
    fn run(&self, words: &[String]) -> Result<()> {
        Self::command(words)?.run()
    }

    fn reading(&self, words: &[String]) -> Result<Option<Reading>> {
        use DatasetFormat::{Answers, Emotion, Graded, Pairs, Prompts};
        let of = |input: &InputArgs, format: Option<DatasetFormat>, carry: &CarryArgs, model: Option<&ModelArgs>| {
            let input = input.clone();
            Reading::of(move |file| input.source(&file, format, None), carry, model)
        };
        // These carry all fields, or none.
        let as_is = &CarryArgs::default();
        let probes = |probes: &ProbeArgs| -> Result<Reading> {
            let columns = probes.input.columns.clone().unwrap_or_default();
            let options = inspector::options(&columns, usize::MAX)?;
            let source = move |input| Records::new(input, options.clone());
            Ok(Reading { has_ids: false, ..Reading::of(source, as_is, Some(&probes.model)) })
        };
        Ok(Some(match Self::command(words)? {
            Command::Score(cli) => of(&cli.input, cli.format, &cli.carry, Some(&cli.model)),
            Command::Compare(cli) => of(&cli.input, cli.is_of_pairs().then_some(Pairs), &cli.carry, Some(&cli.model)),
            Command::Rank(cli) => of(&cli.input, Some(Answers), &cli.carry, Some(&cli.model)),
            Command::Reward(cli) => of(&cli.input, None, &cli.carry, Some(&cli.model)),
            Command::Checklist(cli) => of(&cli.input, Some(Graded), &cli.carry, Some(&cli.model)),
            Command::Label(cli) => of(&cli.input, Some(Graded), &cli.carry, None),
            Command::Decide(cli) => {
                let columns = cli.input.columns.clone().unwrap_or_default();
                let source = move |input| DecisionRecords { input, columns: columns.clone(), max_rows: None };
                Reading::of(source, &cli.carry, Some(&cli.model))
            }
            Command::Rag(cli) => {
                let columns = cli.input.columns.clone().unwrap_or_default();
                let source = move |input| RagRecords { input, columns: columns.clone(), max_rows: None };
                Reading::of(source, &cli.carry, Some(&cli.model))
            }
            Command::Rerank(cli) => {
                let columns = cli.input.columns.clone().unwrap_or_default();
                let source = move |input| RerankRecords { input, columns: columns.clone(), max_rows: None };
                Reading::of(source, &cli.carry, Some(&cli.model))
            }
            Command::Logits(cli) => of(&cli.input, Some(Prompts), &cli.carry, Some(&cli.model)),
            Command::States(cli) => {
                Reading { extension: ".safetensors", ..of(&cli.input, Some(Prompts), as_is, Some(&cli.model)) }
            }
            Command::Emotion(cli) => of(&cli.input, Some(Emotion), &cli.carry, Some(&cli.model)),
            Command::Knowledge(cli) => {
                let input = InputArgs { columns: Some(cli.columns()?), ..cli.input.clone() };
                of(&input, Some(Prompts), &cli.carry, Some(&cli.model))
            }
            Command::Select(cli) => {
                cli.check_parts()?;
                let options = select::options(&cli.input, None);
                Reading::of(move |input| Records::new(input, options.clone()), as_is, Some(&cli.model))
            }
            Command::Probe(probe::Probe::Evaluate(cli)) => probes(&cli.probes)?,
            Command::Probe(probe::Probe::Filter(cli)) => probes(&cli.probes)?,
            _ => return Ok(None),
        }))
    }
}

/// What was a program of its own, and the command that it is now, with the same options. Clap does not know these names, so it suggests
/// none of them.
const FORMER: [(&str, &[&str]); 25] = [
    ("lager_pointwise", &["score"]),
    ("prompt_judge", &["compare"]),
    ("rank_answers", &["rank"]),
    ("reward_scores", &["reward"]),
    ("label_with_api", &["label"]),
    ("layer_logits", &["logits"]),
    ("hidden_states", &["states"]),
    ("lager_evaluate", &["fit"]),
    ("agreement", &["agree"]),
    ("pairwise_benchmark", &["bench"]),
    ("bias_report", &["bias"]),
    ("data_selection", &["select"]),
    ("emotional_understanding", &["emotion"]),
    ("self_knowledge", &["knowledge"]),
    ("score_files", &["shards"]),
    ("score_stream", &["stream"]),
    ("merge_adapter", &["merge"]),
    ("finetune", &["tune"]),
    ("throughput", &["speed"]),
    ("generate_rows", &["rows"]),
    ("inspector_train", &["probe", "train"]),
    ("probe_import", &["probe", "import"]),
    ("probe_apply", &["probe", "apply"]),
    ("inspector_evaluate", &["probe", "evaluate"]),
    ("inspector_filter", &["probe", "filter"]),
];

/// Where the name of the command is in a command line, program first: behind the option that all commands have.
fn command_at(words: &[OsString]) -> usize {
    match words.get(1).map(|word| word.to_string_lossy()) {
        Some(word) if word == "--tables" => 3,
        Some(word) if word.starts_with("--tables=") => 2,
        _ => 1,
    }
}

/// A command line, program first, with today's name of its command; behind `--` is that of the parts of `shards plan`, which is read by
/// itself.
fn todays(mut words: Vec<OsString>) -> Vec<OsString> {
    let former = |word: &OsString| FORMER.iter().find(|(former, _)| word == former).map(|(_, today)| *today);
    let at = command_at(&words);
    let at = if words.get(at).is_some_and(|word| word == "help") { at + 1 } else { at };
    if let Some(today) = words.get(at).and_then(former) {
        words.splice(at..=at, today.iter().map(OsString::from));
    }
    words
}

/// What clap says of a command line, in the words that it was given in: `judge compare --old` lacks `--new`, which is `--input` there, and
/// what stands behind an option that takes a value is this value.
fn in_its_words(mut error: clap::Error, command: &clap::Command, words: &[OsString]) -> clap::Error {
    let given = |option: &str| words.iter().any(|word| word.to_string_lossy().split('=').next() == Some(option));
    if given("--old")
        && error.kind() == ErrorKind::MissingRequiredArgument
        && let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg)
    {
        let named = missing.iter().map(|name| name.replace("--input <FILE>", "--new <FILE>")).collect();
        error.insert(ContextKind::InvalidArg, ContextValue::Strings(named));
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg)
        && let Some((option, value)) = dashed_value(command, words, unknown)
    {
        let tip = format!("a value that begins with a dash stands behind an equals sign: {option}={}", quoted(value));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    if error.kind() == ErrorKind::InvalidUtf8 {
        // Clap does not say where.
        let odd = words.windows(2).filter(|pair| pair[1].to_str().is_none());
        let odd = odd.map(|pair| format!("{} {}", pair[0].to_string_lossy(), pair[1].to_string_lossy()));
        let odd: Vec<String> = odd.collect();
        return clap::Error::raw(error.kind(), format!("expected text in UTF-8, found {}\n", odd.join(", ")));
    }
    error
}

/// The option that takes a value and the word behind it that clap takes for an unknown option.
fn dashed_value<'w>(mut command: &clap::Command, words: &'w [OsString], unknown: &str) -> Option<(&'w str, &'w str)> {
    for word in words {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    let takes_value = |option: &str| {
        let mut known = command.get_arguments().filter(|known| known.get_action().takes_values());
        known.any(|known| option.strip_prefix("--").is_some_and(|name| known.get_long() == Some(name)))
    };
    let mut pairs = words.windows(2).filter_map(|pair| Some((pair[0].to_str()?, pair[1].to_str()?)));
    pairs.find(|(option, value)| value.starts_with(unknown) && takes_value(option))
}

/// The command line.
#[cfg(test)]
pub(crate) fn command() -> clap::Command {
    Judge::command()
}

/// The whole `main` of the program.
#[must_use]
pub fn main() -> ExitCode {
    let words = todays(std::env::args_os().collect());
    let refused = |command: &clap::Command, error| {
        let error = in_its_words(error, command, &words);
        if let Some([name, after @ ..]) = words.get(command_at(&words)..)
            && error.use_stderr()
            && let Some(named) = command.find_subcommand(name)
        {
            bars::note_usage_error(named, after, &error.to_string());
        }
        error
    };
    console::start(&words, refused, |judge: &Judge| {
        write_as(judge.tables);
        judge.command.run()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Id;

    use super::*;
    use judge_cli::args::bars::BarArgs;
    use judge_cli::args::ids_of;
    use judge_cli::args::model_args::ModelArgs;
    use judge_cli::args::service::ServiceArgs;

    /// An option that stands for a whole way of working, and all options of its command that have an effect beside it. Clap knows all of a
    /// command's, so a new one is refused with it or listed here.
    fn ways() -> [(&'static str, &'static str, Vec<Id>); 5] {
        fn ids(all: &[&'static str]) -> Vec<Id> {
            all.iter().map(|id| Id::from(*id)).collect()
        }
        // `k` needs --run, which is refused.
        let of_pairs =
            ids(&["benchmark", "data", "columns", "unparsed", "json", "convention", "quiet", "overwrite", "k"]);
        let of_verdicts = [of_pairs.clone(), ids(&["plot", "limit"])].concat();
        let of_rankings = ids(&["benchmark", "data", "json", "against", "quiet", "overwrite", "k"]);
        let of_rows = ids(&["input", "columns", "output", "overwrite", "no_lock", "carry", "json"]);
        // `fit_…` need --fit, which is refused.
        let of_service =
            ids(&["questions", "api_model", "route", "limit", "quiet", "fit_temperature", "fit_steps", "fit_lr"]);
        // `points` and `place` are refused with a word of their own.
        let of_reward = ids(&["part", "old", "graded", "task", "orders", "points", "place", "cuts"]);
        [
            ("bench", "verdicts", [of_verdicts, ids_of::<BarArgs>(&[]), ids(&["against"])].concat()),
            ("bench", "votes", of_pairs),
            ("bench", "run", [of_rankings, ids_of::<BarArgs>(&[])].concat()),
            (
                "decide",
                "base_url",
                [of_rows.clone(), of_service, ids_of::<ServiceArgs>(&[]), ids_of::<BarArgs>(&[])].concat(),
            ),
            ("compare", "reward", [of_rows, of_reward, ids_of::<BarArgs>(&[]), ids_of::<ModelArgs>(&[])].concat()),
        ]
    }

    #[test]
    fn options_have_an_effect_or_are_refused() {
        let mut judge = Judge::command();
        judge.build();
        for (command, way, effective) in ways() {
            let command = judge.find_subcommand(command).expect("a command");
            let argument = |id: &str| command.get_arguments().find(|argument| argument.get_id() == id);
            let conflicts = |id: &str| -> BTreeSet<String> {
                let found = argument(id).map(|argument| command.get_arg_conflicts_with(argument));
                found.into_iter().flatten().map(|argument| argument.get_id().to_string()).collect()
            };
            let refused = conflicts(way);
            // Options of the program have an effect on every command.
            let own = command.get_arguments().filter(|argument| !argument.is_global_set());
            for id in own.map(|argument| argument.get_id().as_str()) {
                if [way, "help", "version"].contains(&id) {
                    continue;
                }
                let is_refused = refused.contains(id) || conflicts(id).contains(way);
                let is_listed = effective.iter().any(|listed| listed == id);
                assert!(is_refused != is_listed, "{} --{way}: {id}", command.get_name());
            }
            let unknown: Vec<_> = effective.iter().filter(|id| argument(id.as_str()).is_none()).collect();
            assert!(unknown.is_empty(), "{} has no {unknown:?}", command.get_name());
        }
    }

    /// A command line, cut at spaces, program first.
    fn words(line: &str) -> Vec<OsString> {
        std::iter::once("judge").chain(line.split(' ')).map(OsString::from).collect()
    }

    fn read(line: &str) -> Result<(), clap::Error> {
        console::read_line::<Judge>(&words(line)).map(|_| ())
    }

    /// What is required cannot be given here, so the option would have no effect.
    #[test]
    fn an_option_without_the_one_that_it_requires_is_refused_whatever_stands_beside_it() {
        for (line, required) in [
            ("fit --input s --weights w --weights-out z", "--valid"),
            ("fit --input s --weights w --learning-plot l.svg", "--valid"),
            ("fit --input s --weights w --layer 3", "--weights-out"),
            ("bench --benchmark pairs --data p --verdicts v --k 3", "--run"),
            ("decide --input s --output o --layers all --fit-steps 3", "--fit"),
            ("decide --input s --output o --base-url u --api-model m --fit-steps 3", "--fit"),
            ("rag --input s --output o --probe p --fit-steps 3", "--fit"),
            ("rerank --input s --output o --weights w --fit-steps 3", "--fit"),
            ("grade --input s --output o --rows 3 --question q", "--import"),
            ("compare --input s --output o --part 0..1 --graded g", "--old"),
            ("probe train --input s --output o --binary --within 1", "--verdicts"),
            ("probe train --input s --output o --verdicts v --tuned-epochs 2", "--tuned-baseline"),
            ("probe train --input s --output o --verdicts v --threshold 2", "--binary"),
        ] {
            let error = read(line).expect_err(line);
            assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument, "{line}: {error}");
            let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { panic!("{error}") };
            assert!(missing.iter().any(|name| name.split(' ').next() == Some(required)), "{line}: {error}");
        }
    }

    #[test]
    fn what_begins_with_a_dash_is_the_value_of_the_option_before_it() {
        for line in ["agree --input s --labels -2,-1,0", "score --input s --output o --rubric -short", "man"] {
            assert!(read(line).is_ok(), "{line}");
        }
        for (line, expected) in [
            ("score --input s --output o --limit -1", "expected a number of rows"),
            ("speed --input s --max-new-tokens 2 --temperature -1", "expected a number of at least 0"),
            ("agree --input s --seed -1", "expected a whole number of at least 0"),
            ("agree --input s --predicted -x,-y", "--predicted='-x,-y'"),
        ] {
            let error = in_its_words(read(line).expect_err(line), &Judge::command(), &words(line));
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn the_help_has_every_command_once() {
        let mut judge = Judge::command();
        let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let known: Vec<&str> = judge.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(listed.iter().collect::<BTreeSet<_>>(), known.iter().collect::<BTreeSet<_>>());
        assert_eq!(listed.len(), known.len());
        let help = judge.render_help().to_string();
        for (title, names) in GROUPS {
            assert!(help.contains(&format!("{title}:\n")), "{help}");
            let has =
                |name: &&str| help.lines().any(|line| line.split_whitespace().next() == Some(name) && line.len() > 20);
            assert!(names.iter().all(has), "{names:?}: {help}");
        }
        assert!(help.contains("--version") && !help.contains('{'), "{help}");
    }

    /// What people look for first: an example to change, and the page that says more.
    #[test]
    fn help_ends_with_examples_that_parse_and_a_page() {
        let mut judge = Judge::command();
        judge.build();
        for name in ["score", "compare", "decide", "agree", "report"] {
            let command = judge.find_subcommand_mut(name).expect("a command");
            for help in [command.render_help(), command.render_long_help()].map(|help| help.to_string()) {
                let (_, end) = help.split_once("Examples:\n").expect("examples");
                let lines: Vec<&str> = end.lines().map(str::trim).filter(|line| line.starts_with("judge ")).collect();
                assert_eq!(lines.len(), 2, "{name}: {end}");
                for line in lines {
                    let words = line.split(' ').map(|word| word.trim_matches('\''));
                    assert!(Judge::try_parse_from(words).is_ok(), "{line}");
                }
                let page = end.split_whitespace().find(|word| word.starts_with("docs/")).expect("a page");
                let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
                assert!(docs.is_file(), "{page}");
            }
        }
        // The model that reads stands beside what it reads.
        let help = judge.find_subcommand_mut("score").expect("score").render_help().to_string();
        let at = |option: &str| help.find(option).expect(option);
        assert!(at("--input") < at("--model") && at("--model") < at("--carry"), "{help}");
    }

    #[test]
    fn a_former_name_is_a_command_and_no_suggestion() {
        for (former, today) in FORMER {
            let line = ["judge", former, "--nonsense"].map(OsString::from).to_vec();
            let words = todays(line);
            assert_eq!(words[1..=today.len()], today.iter().map(OsString::from).collect::<Vec<_>>());
            let error = Judge::try_parse_from(words).err().expect("no such option");
            assert_eq!(error.kind(), ErrorKind::UnknownArgument, "{former}");
        }
        let said = Judge::try_parse_from(["judge", "scor"]).err().expect("no such command").to_string();
        assert!(said.contains("'score'") && !said.contains('_'), "{said}");
        let line = ["judge", "compare", "--old", "a", "--output", "b"];
        let error = Judge::try_parse_from(line).err().expect("half of it");
        let said = in_its_words(error, &Judge::command(), &line.map(OsString::from)).to_string();
        assert!(said.contains("--new <FILE>") && !said.contains("  --input"), "{said}");
    }
}
