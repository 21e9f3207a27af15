//! What programs say names only options that they have: messages of libraries name none, and those of programs are compared with `--help`.

mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use judge_examples::options::named;
use serde_json::json;
use tempfile::TempDir;

use program::{ran, run, write_rows};

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All programs, by their folders.
fn programs() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(examples())
        .expect("examples")
        .map(|entry| entry.expect("entry"))
        .filter(|entry| entry.path().join("main.rs").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The options that a program lists, those of its subcommands among them.
fn accepted(name: &str, folder: &Path) -> BTreeSet<String> {
    let help = |args: &[&str]| String::from_utf8_lossy(&run(name, folder, args).stdout).into_owned();
    let whole = help(&["--help"]);
    let mut texts = vec![whole.clone()];
    if let Some((_, commands)) = whole.split_once("Commands:\n") {
        let commands = commands.lines().take_while(|line| line.starts_with("  "));
        let names = commands.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        texts.extend(names.map(|command| help(&[command, "--help"])));
    }
    let listed = texts.iter().flat_map(|text| text.lines()).filter(|line| line.trim_start().starts_with('-'));
    listed.filter_map(|line| named(line).next()).map(str::to_owned).collect()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("folder") {
        let path = entry.expect("entry").path();
        match path.is_dir() {
            true => found.extend(sources(&path)),
            false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            false => {}
        }
    }
    found.sort();
    found
}

/// A source without comments, attributes of the command line and tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("source");
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut is_attribute = false;
    let mut kept = String::new();
    for line in text.lines() {
        let line = line.trim_start();
        is_attribute |= line.starts_with("#[arg(") || line.starts_with("#[command(");
        if !is_attribute && !line.starts_with("//") {
            kept += line;
            kept.push('\n');
        }
        is_attribute &= !line.ends_with(")]");
    }
    kept
}

/// The texts in quotes.
fn literals(code: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), code);
    while let Some(start) = rest.find('"') {
        if rest[..start].ends_with('\'') {
            rest = &rest[start + 1..]; // a quote as a character
            continue;
        }
        let body = &rest[start + 1..];
        let mut escaped = false;
        let end = body.char_indices().find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let Some((end, _)) = end else { break };
        found.push(body[..end].to_owned());
        rest = &body[end + 1..];
    }
    found
}

/// The options that a text advises: not the one that it begins with, which is told as given, and for none of the other programs that
/// it names.
fn advised<'t>(text: &'t str, programs: &[String]) -> Vec<&'t str> {
    // A page's styles have variables.
    if programs.iter().any(|program| text.contains(program.as_str())) || text.contains("var(--") {
        return Vec::new();
    }
    let given = named(text).next().filter(|option| text.starts_with(option));
    named(text).filter(|option| given != Some(*option)).collect()
}

#[test]
fn a_library_names_no_option() {
    let crates = examples().join("../crates");
    let mut wrong = Vec::new();
    for name in ["judge-core", "judge-data", "judge-metrics", "judge-models", "judge-probe"] {
        let of_tests = |path: &PathBuf| path.to_string_lossy().contains("tests");
        for path in sources(&crates.join(name).join("src")).iter().filter(|path| !of_tests(path)) {
            let texts = literals(&code(path));
            // One of llama.cpp's programs is not ours.
            let ours = texts.iter().filter(|text| !text.contains("`gguf-split --merge"));
            let told = ours.filter(|text| text.contains(' ') && named(text).next().is_some());
            wrong.extend(told.map(|text| format!("{}: {text}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_program_advises_options_that_it_has() {
    let folder = TempDir::new().expect("folder");
    let programs = programs();
    let mut wrong = Vec::new();
    for name in &programs {
        let accepted = accepted(name, folder.path());
        let own: String = sources(&examples().join(name)).iter().map(|path| code(path)).collect();
        for text in literals(&own) {
            let lacking = advised(&text, &programs).into_iter().filter(|option| !accepted.contains(*option));
            wrong.extend(lacking.map(|option| format!("{name} has no {option}: {text:?}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The options that the arguments of a source define.
fn defined(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut attribute = String::new();
    for line in source.lines().map(str::trim_start) {
        if line.starts_with("#[arg(") || !attribute.is_empty() && !attribute.ends_with(")]") {
            attribute += line;
            continue;
        }
        let is_plain = line.starts_with("//") || line.starts_with("#[");
        if attribute.ends_with(")]") && attribute.contains("long") && !is_plain {
            let field = line.trim_start_matches("pub ").split(':').next().unwrap_or_default().replace('_', "-");
            let renamed = attribute.split_once("long = \"").and_then(|(_, rest)| rest.split('"').next());
            found.insert(format!("--{}", renamed.unwrap_or(&field)));
        }
        if !is_plain {
            attribute.clear();
        }
    }
    found
}

/// What several programs share does not know which of them runs: a text of it names options that its own arguments define, or those
/// that it takes from another
/// module, or it passes through `offered`, which leaves out what the program lacks.
#[test]
fn shared_messages_name_options_of_their_own_arguments() {
    let shared = examples().join("src");
    let texts: BTreeMap<String, String> = sources(&shared)
        .iter()
        .map(|path| {
            (
                path.strip_prefix(&shared).expect("shared").display().to_string(),
                fs::read_to_string(path).expect("source"),
            )
        })
        .collect();
    let module = |file: &str| file.split(['/', '.']).next().expect("a module").to_owned();
    let of_module = |name: &str| -> BTreeSet<String> {
        texts.iter().filter(|(file, _)| module(file) == name).flat_map(|(_, text)| defined(text)).collect()
    };
    assert!(of_module("prompted").contains("--max-new-tokens") && of_module("model_args").contains("--template-arg"));
    let programs = programs();
    let mut wrong = Vec::new();
    for (file, text) in texts.iter().filter(|(file, _)| *file != "options.rs") {
        let mut known = of_module(&module(file));
        for line in text.lines().filter(|line| line.starts_with("use crate::") && line.contains("Args")) {
            known.extend(of_module(line["use crate::".len()..].split("::").next().expect("a module")));
        }
        // What one program alone uses may name all that it has.
        let used = |name: &&String| {
            let texts = sources(&examples().join(name));
            texts.iter().any(|path| code(path).contains(&format!("judge_examples::{}::", module(file))))
        };
        let users: Vec<&String> = programs.iter().filter(used).collect();
        if let [program] = users[..] {
            let texts = sources(&examples().join(program));
            known.extend(texts.iter().flat_map(|path| defined(&fs::read_to_string(path).expect("source"))));
        }
        let code = code(&shared.join(file));
        // Sentences that are offered are left out where an option is lacking.
        let kept: String = code
            .split("offered(")
            .enumerate()
            .map(|(at, part)| if at == 0 { part } else { part.split_once(';').map_or("", |(_, rest)| rest) })
            .collect();
        for literal in literals(&kept) {
            let lacking = advised(&literal, &programs).into_iter().filter(|option| !known.contains(*option));
            wrong.extend(lacking.map(|option| format!("{file}: {option} in {literal:?}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a row without an id leads to in programs that can number rows, and in one that cannot.
#[test]
fn a_hint_names_the_options_of_the_program_that_runs() {
    let folder = TempDir::new().expect("folder");
    write_rows(folder.path().join("rows.jsonl"), &[json!({"frage": "2 + 2?", "response": "4"})]);
    write_rows(folder.path().join("no_id.jsonl"), &[json!({"instruction": "2 + 2?", "response": "4"})]);
    let pair = json!({"instruction": "2 + 2?", "old": "4", "new": "5", "human": "A"});
    write_rows(folder.path().join("pairs.jsonl"), &[pair]);
    for (line, advice) in [
        ("lager_pointwise --input no_id.jsonl --output o.jsonl", "--columns id="),
        ("throughput --input no_id.jsonl", "--columns id="),
        ("throughput --input rows.jsonl", "--columns instruction=NAME,response=NAME"),
        ("pairwise_benchmark --benchmark pairs --data pairs.jsonl --output o.jsonl", "--columns"),
        ("bias_report --benchmark pairs --data pairs.jsonl --write-perturbed o.jsonl", "--columns"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (code, stdout, stderr) = ran(words[0], folder.path(), &words[1..]);
        assert!(code != Some(0) && stderr.contains(advice), "{line}: {stdout}{stderr}");
    }
    // What is advised works.
    let columns = "id=,response_a=old,response_b=new";
    let line = [
        "--benchmark",
        "pairs",
        "--data",
        "pairs.jsonl",
        "--columns",
        columns,
        "--output",
        "o.jsonl",
        "--apart",
        "--verdict",
        "logits",
    ];
    let (code, stdout, stderr) = ran("pairwise_benchmark", folder.path(), &line);
    assert!(code == Some(0), "{stdout}{stderr}");
    let (code, _, stderr) = ran("throughput", folder.path(), &["--input", "no_id.jsonl", "--columns", "id="]);
    assert!(code == Some(0), "{stderr}");
    // Published files have columns of their own.
    let line = ["--benchmark", "pandalm", "--data", "pairs.jsonl", "--columns", "id=", "--output", "o.jsonl"];
    let (code, _, stderr) = ran("pairwise_benchmark", folder.path(), &line);
    assert!(code == Some(2) && stderr.contains("--columns is for --benchmark pairs"), "{stderr}");
}
