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
    if programs.iter().any(|program| text.contains(program.as_str())) {
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
            let told = texts.iter().filter(|text| text.contains(' ') && named(text).next().is_some());
            wrong.extend(told.map(|text| format!("{}: {text}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_program_advises_options_that_it_has() {
    let folder = TempDir::new().expect("folder");
    let programs = programs();
    let accepted: BTreeMap<&str, BTreeSet<String>> =
        programs.iter().map(|name| (name.as_str(), accepted(name, folder.path()))).collect();
    assert!(accepted["prompt_judge"].contains("--columns") && accepted["score_files"].contains("--plan"));

    // Which modules of the shared library each program uses, directly or through others.
    let shared = examples().join("src");
    let module = |path: &Path| {
        let inner = path.strip_prefix(&shared).expect("shared").with_extension("");
        inner.components().next().expect("module").as_os_str().to_string_lossy().into_owned()
    };
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for path in sources(&shared) {
        *texts.entry(module(&path)).or_default() += &code(&path);
    }
    let uses = |code: &str, root: &str| -> BTreeSet<String> {
        texts.keys().filter(|name| code.contains(&format!("{root}::{name}::"))).cloned().collect()
    };
    let mut wrong = Vec::new();
    for name in &programs {
        let own: String = sources(&examples().join(name)).iter().map(|path| code(path)).collect();
        let mut modules = uses(&own, "judge_examples");
        loop {
            let further: BTreeSet<String> = modules.iter().flat_map(|module| uses(&texts[module], "crate")).collect();
            let before = modules.len();
            modules.extend(further);
            if modules.len() == before {
                break;
            }
        }
        // Sentences of this one are given only where the program has their options.
        modules.remove("options");
        let of_modules = modules.iter().map(|module| (module.as_str(), &texts[module]));
        for (place, code) in of_modules.chain([(name.as_str(), &own)]) {
            for text in literals(code) {
                let lacking: Vec<&str> = advised(&text, &programs)
                    .into_iter()
                    .filter(|option| !accepted[name.as_str()].contains(*option))
                    .collect();
                if !lacking.is_empty() {
                    wrong.push(format!("{name} has no {}, which {place} names: {text:?}", lacking.join(", ")));
                }
            }
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
