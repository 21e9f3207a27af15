//! What programs say names only options that they have: messages of libraries name none, and those of programs are compared with `--help`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use judge_cli::terminal::options::named;
use serde_json::json;

use crate::program::{COMMANDS, Desk, fails, refused, run, succeed, words};

fn source() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The sources of another crate.
fn source_of(name: &str) -> PathBuf {
    source().join("../..").join(name).join("src")
}

/// The folders of commands, by what these are over. The page where people grade and the service are crates.
fn of_commands() -> Vec<PathBuf> {
    ["rows", "figures", "models"].map(|folder| source().join(folder)).to_vec()
}

/// The sources of a command: its file, and those in its folder.
fn sources_of(command: &str) -> Vec<PathBuf> {
    if let "grade" | "serve" = command {
        return sources(&source_of(&format!("judge-{command}")));
    }
    let path = match command {
        "rows" => "exercises".to_owned(),
        "try" => "trial".to_owned(),
        _ => command.replace(' ', "/").replace('-', "_"),
    };
    let files = of_commands().into_iter().chain([source()]).map(|folder| folder.join(&path));
    let file = files.into_iter().find(|file| file.with_extension("rs").exists()).expect("the command has a file");
    let mut found = if file.is_dir() { sources(&file) } else { Vec::new() };
    found.push(file.with_extension("rs"));
    found
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
fn advised(text: &str) -> Vec<&str> {
    // A page's styles have variables.
    if COMMANDS.iter().any(|(command, former)| text.contains(former) || text.contains(&format!("judge {command}")))
        || text.contains("var(--")
    {
        return Vec::new();
    }
    let given = named(text).next().filter(|option| text.starts_with(option));
    named(text).filter(|option| given != Some(*option)).collect()
}

#[test]
fn a_library_names_no_option() {
    let mut wrong = Vec::new();
    for name in ["judge-arch", "judge-core", "judge-data", "judge-metrics", "judge-models", "judge-probe", "judge-text"]
    {
        let of_tests = |path: &PathBuf| path.to_string_lossy().contains("tests");
        for path in sources(&source_of(name)).iter().filter(|path| !of_tests(path)) {
            let texts = literals(&code(path));
            let told = texts.iter().filter(|text| text.contains(' ') && named(text).next().is_some());
            wrong.extend(told.map(|text| format!("{}: {text}", path.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_program_advises_options_that_it_has() {
    let folder = &Desk::new();
    let mut wrong = Vec::new();
    for (name, _) in COMMANDS {
        let accepted = accepted(name, folder);
        let own: String = sources_of(name).iter().map(|path| code(path)).collect();
        for text in literals(&own) {
            let lacking = advised(&text).into_iter().filter(|option| !accepted.contains(*option));
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

/// What several programs share does not know which of them runs: a text of it names options that its own arguments define, or those that it
/// takes from another module, or it passes through `offered`, which leaves out what the program lacks.
#[test]
fn shared_messages_name_options_of_their_own_arguments() {
    let commands = of_commands();
    let is_of = |folder: &PathBuf, path: &PathBuf| path.starts_with(folder) || *path == folder.with_extension("rs");
    let is_shared = |path: &PathBuf| !commands.iter().any(|folder| is_of(folder, path));
    let shared = sources(&source()).into_iter().filter(is_shared).chain(sources(&source_of("judge-cli")));
    let texts: BTreeMap<String, (PathBuf, String)> = shared
        .map(|path| {
            let module = path.file_stem().expect("a file").to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).expect("source");
            (module, (path, text))
        })
        .collect();
    let of_module = |name: &str| texts.get(name).map(|(_, text)| defined(text)).unwrap_or_default();
    assert!(
        of_module("prompt_judge").contains("--max-new-tokens") && of_module("model_args").contains("--template-arg")
    );
    let mut wrong = Vec::new();
    // `reference` is in no program: it writes pages, which are about all options.
    for (module, (path, text)) in
        texts.iter().filter(|(module, _)| !["options", "reference"].contains(&module.as_str()))
    {
        let mut known = of_module(module);
        known.insert("--help".to_owned()); // of every command
        let args = |line: &&str| line.contains("Args");
        let modules = text.lines().filter(args).filter_map(|line| {
            let path = line.strip_prefix("use ")?;
            path.strip_prefix("crate::args::").or(path.strip_prefix("judge_cli::args::"))?.split("::").next()
        });
        known.extend(modules.flat_map(of_module));
        // What one command alone uses may name all that it has.
        let names = |path: &PathBuf| code(path).contains(&format!("::{module}::"));
        let users: Vec<&str> =
            COMMANDS.iter().map(|(name, _)| *name).filter(|name| sources_of(name).iter().any(names)).collect();
        if let [command] = users[..] {
            known.extend(
                sources_of(command).iter().flat_map(|path| defined(&fs::read_to_string(path).expect("source"))),
            );
        }
        // Sentences that are offered are left out where an option is lacking.
        let kept: String = code(path)
            .split("offered(")
            .enumerate()
            .map(|(at, part)| if at == 0 { part } else { part.split_once(';').map_or("", |(_, rest)| rest) })
            .collect();
        for literal in literals(&kept) {
            let lacking = advised(&literal).into_iter().filter(|option| !known.contains(*option));
            wrong.extend(lacking.map(|option| format!("{module}: {option} in {literal:?}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a row without an id leads to in programs that can number rows, and in one that cannot.
#[test]
fn a_hint_names_the_options_of_the_program_that_runs() {
    let folder = &Desk::new();
    folder.write("rows.jsonl", &[json!({"frage": "2 + 2?", "response": "4"})]);
    folder.write("no_id.jsonl", &[json!({"instruction": "2 + 2?", "response": "4"})]);
    let pair = json!({"instruction": "2 + 2?", "old": "4", "new": "5", "human": "A"});
    folder.write("pairs.jsonl", &[pair]);
    for (line, advice) in [
        ("lager_pointwise --input no_id.jsonl --output o.jsonl", "--columns id="),
        ("throughput --input no_id.jsonl", "--columns id="),
        ("throughput --input rows.jsonl", "--columns instruction=NAME,response=NAME"),
        ("pairwise_benchmark --benchmark pairs --data pairs.jsonl --output o.jsonl", "--columns"),
        ("bias_report --benchmark pairs --data pairs.jsonl --write-perturbed o.jsonl", "--columns"),
    ] {
        let words = words(line);
        fails(words[0], folder, &words[1..], &[advice]);
    }
    // What is advised works.
    let columns = words("--columns id=,response_a=old,response_b=new");
    let line = words("--benchmark pairs --data pairs.jsonl --output o.jsonl --apart --verdict logits");
    succeed("pairwise_benchmark", folder, &[line, columns].concat());
    succeed("throughput", folder, &["--input", "no_id.jsonl", "--columns", "id="]);
    // Published files have columns of their own.
    let line = ["--benchmark", "pandalm", "--data", "pairs.jsonl", "--columns", "id=", "--output", "o.jsonl"];
    refused("pairwise_benchmark", folder, &line, 2, &["--columns is for --benchmark pairs"]);
}
