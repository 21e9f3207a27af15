//! Advice that names options, for errors of crates that know nothing of any: a sentence is given only where this program has every
//! option in it.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::sync::OnceLock;

use clap::{ArgMatches, Command, ValueEnum};
use judge_core::decision::DecisionProblem;
use judge_core::model::BackboneError;
use judge_data::Field;
use judge_models::{ApiError, ApiProblem, TextError};

/// The long options that the command line of this process may have, with their dashes. Nothing before [`know`].
static ACCEPTED: OnceLock<BTreeSet<String>> = OnceLock::new();

/// Takes note of the options of the program that runs, and of the subcommand that was chosen.
pub fn know(command: &Command, matches: &ArgMatches) {
    let mut accepted = BTreeSet::new();
    let (mut command, mut matches) = (command, matches);
    loop {
        // What is hidden is of no use here.
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let names = argument.get_long().into_iter().chain(argument.get_all_aliases().into_iter().flatten());
            accepted.extend(names.map(|name| format!("--{name}")));
        }
        let Some((name, inner)) = matches.subcommand() else { break };
        let Some(chosen) = command.find_subcommand(name) else { break };
        (command, matches) = (chosen, inner);
    }
    // A second start in one process, which only a test has, is of the same program.
    let _ = ACCEPTED.set(accepted);
}

/// The first of these sentences of which this program has every option.
#[must_use]
pub fn offered(sentences: impl IntoIterator<Item = String>) -> Option<String> {
    let has = |option: &str| ACCEPTED.get().is_some_and(|accepted| accepted.contains(option));
    sentences.into_iter().find(|sentence| named(sentence).all(has))
}

/// The options that a text names: `--columns` of `--columns id=`.
pub fn named(text: &str) -> impl Iterator<Item = &str> {
    let starts = text.match_indices("--").map(|(at, _)| at);
    // In the middle of a word, or of a longer dash, it is no option.
    let starts = starts.filter(|&at| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-'));
    starts.filter_map(|at| {
        let name = &text[at + 2..];
        let end = name.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(name.len());
        name.starts_with(|c: char| c.is_ascii_lowercase()).then(|| &text[at..at + 2 + end])
    })
}

/// A word as shells read it.
#[must_use]
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:=@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The name of a value of an option, as the command line has it.
#[must_use]
pub fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// What to do about an error or one of its causes, as far as this program has options for it.
#[must_use]
pub fn hint(error: &(dyn Error + 'static)) -> Option<String> {
    // A transparent error does not show what it holds among its causes.
    let backbone = match error.downcast_ref() {
        Some(judge_core::Error::Backbone(held)) => Some(held),
        _ => error.downcast_ref(),
    };
    if let Some(backbone) = backbone {
        return offered(of_backbone(backbone));
    }
    if let Some(error) = error.downcast_ref() {
        return offered(of_models(error));
    }
    if let Some(error) = error.downcast_ref() {
        return offered(of_service(error));
    }
    if let Some(judge_core::Error::Decision(DecisionProblem::Labels { .. })) = error.downcast_ref() {
        return offered(sentences([
            "labels must be single tokens: name others in a file, with --decision-config FILE",
        ]));
    }
    if let Some(judge_probe::SavedProbeError::Pickle) = error.downcast_ref() {
        return Some("`judge probe import` converts it".to_owned());
    }
    offered(of_data(error.downcast_ref()?))
}

fn sentences<const N: usize>(sentences: [&str; N]) -> Vec<String> {
    sentences.map(str::to_owned).to_vec()
}

fn of_backbone(error: &BackboneError) -> Vec<String> {
    match error {
        BackboneError::Label { .. } => sentences([
            "labels must be single tokens: give a scale whose numbers are (--points 5 or 9), or letters as --labels",
            "labels must be single tokens: give a scale whose numbers are (--points 5 or 9)",
            "labels must be single tokens: give others as --labels",
            "labels must be single tokens of this model's tokenizer",
        ]),
        BackboneError::NoLogits { .. } => sentences([
            "such a model learns grades by a head of classes: --objective class",
            "of such a model only states are read: give it to `judge states` or `judge probe train`, a reward model to `judge reward`",
        ]),
        _ => Vec::new(),
    }
}

fn of_models(error: &judge_models::Error) -> Vec<String> {
    match error {
        judge_models::Error::Text(TextError::NoChatTemplate { .. }) => sentences([
            "for a model without one, give --raw-prompt: the words of the prompt, without roles",
            "take a folder with its chat template",
        ]),
        judge_models::Error::NotInBuild { device } => {
            let feature = if matches!(device, judge_models::Device::Wgpu(_)) { "wgpu" } else { "cuda" };
            vec![format!("build the program with its Cargo feature `{feature}`: docs/gpu.md says how")]
        }
        judge_models::Error::Api(error) => of_service(error),
        _ => Vec::new(),
    }
}

fn of_service(error: &ApiError) -> Vec<String> {
    match error {
        ApiError::Service { problem: ApiProblem::Status { status: 400 | 422, said }, .. } => of_refusal(said),
        ApiError::Service { problem: ApiProblem::InARow { last, .. }, .. } => of_refusal(&last.to_string()),
        _ => Vec::new(),
    }
}

/// What options may change where a service refuses a request in these words.
pub fn of_refusal(said: &str) -> Vec<String> {
    let options = [
        ("logprob", "the service refuses log-probabilities: give --top-log-probs 0, or the number that it allows"),
        (
            "max_completion_tokens",
            "the service has another name for the bound: give --max-tokens-field max_completion_tokens",
        ),
        ("temperature", "the service refuses the temperature: give the one that it allows, e.g. --temperature 1"),
    ];
    options.into_iter().filter(|(word, _)| said.contains(word)).map(|(_, option)| option.to_owned()).collect()
}

fn of_data(error: &judge_data::Error) -> Vec<String> {
    match error {
        judge_data::Error::MissingField { field: Some(field), .. } => {
            let mut advice = format!("if it has another name: --columns {field}=NAME");
            if *field == Field::Id {
                let _ = write!(advice, "; to number the rows: --columns id=");
            }
            vec![advice, "this program knows the field under these names alone: rename the column".to_owned()]
        }
        judge_data::Error::InFile { source, .. } | judge_data::Error::InBatch { source, .. } => of_data(source),
        judge_data::Error::NoItemColumn { field, .. } => {
            vec![format!("if it has another name: --columns {field}=NAME")]
        }
        judge_data::Error::WrongType { field: Some(field), .. } => {
            vec![format!("if this is not the {field}: --columns {field}=NAME, or {field}= for none")]
        }
        judge_data::Error::AmbiguousColumns { field, first, second, .. } => ambiguous(field.as_str(), first, second),
        judge_data::Error::AmbiguousItemColumn { field, first, second } if first != second => {
            ambiguous(field, first, second)
        }
        judge_data::Error::ColumnMoved { field, column, before, .. } => {
            vec![format!("if both are meant: --columns {}", quoted(&format!("{field}={before}|{column}")))]
        }
        judge_data::Error::UnknownFormat { .. } => sentences([
            "if the columns have other names: --columns instruction=NAME,response=NAME",
            "this program knows fields under these names alone: rename the columns",
        ]),
        judge_data::Error::FractionalId { .. }
        | judge_data::Error::IdTooLarge { .. }
        | judge_data::Error::DuplicateId { .. } => sentences(["to number the rows instead: --columns id="]),
        judge_data::Error::NoVerdict { .. } => sentences([
            "if they are of a run with --limit N: --verdicts FILE with the same --limit N takes the pairs that it judged",
        ]),
        judge_data::Error::FieldClash { .. } => {
            sentences(["to leave it out: --carry none, or the names of the others"])
        }
        judge_data::Error::Content { found, .. } if found == "a folder" => of_files(),
        judge_data::Error::Io { path, source, .. }
            if source.kind() == ErrorKind::NotFound && path.to_string_lossy().contains('*') =>
        {
            of_files()
        }
        judge_data::Error::OutputExists { .. } => sentences(["to replace it: --overwrite"]),
        judge_data::Error::NoLocks { .. } => sentences(["to write without a lock: --no-lock"]),
        judge_data::Error::NoIdColumn { .. } => sentences(["if it has another name: --id NAME"]),
        // A type with arguments is another one, such as a dictionary of texts.
        judge_data::Error::IdColumn { found, .. } if found.contains("Int") && !found.contains('(') => {
            sentences(["for whole numbers: --id-type int64"])
        }
        judge_data::Error::IdColumn { found, .. } if found.contains("Utf8") && !found.contains('(') => {
            sentences(["for texts: --id-type string"])
        }
        judge_data::Error::IdColumn { .. } => sentences(["write the ids as texts or as whole numbers"]),
        _ => Vec::new(),
    }
}

/// Of a folder or a pattern where one file is read.
fn of_files() -> Vec<String> {
    sentences(["for all files of a folder or a pattern: `judge shards plan` with a command of rows (docs/clusters.md)"])
}

fn ambiguous(field: &str, first: &str, second: &str) -> Vec<String> {
    let [first, second] = [first, second].map(|column| quoted(&format!("{field}={column}")));
    vec![
        format!("choose: --columns {first} or --columns {second}"),
        "this program cannot be told which: leave one of the two out of the file".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_text_are_found() {
        let found: Vec<&str> =
            named("give --points 5, --no-lock; or --columns 'a=b' -- and (--on). A--b, ---c, --9").collect();
        assert_eq!(found, ["--points", "--no-lock", "--columns", "--on"]);
    }

    #[test]
    fn advice_can_be_copied() {
        assert_eq!(
            ambiguous("human", "human score", "grade")[0],
            "choose: --columns 'human=human score' or --columns human=grade"
        );
    }
}
