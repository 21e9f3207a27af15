//! Every page runs without arguments, prints what it printed before, is short, and needs no crate but ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How far a number may be from the expected one: kernels of other processors sum in another order.
const TOLERANCE: f64 = 0.015;

/// The most lines of a page.
const MOST_LINES: usize = 80;

/// The one page with more: it prints a table for each of two splits, and writes the figures that other programs read.
const LONGER: (&str, usize) = ("quickstart", 120);

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder of its own for the files of one test.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a page, which must succeed and say nothing on stderr; what it prints.
fn printed(page: &str, args: &[&str]) -> String {
    // target/PROFILE/deps/this-test -> target/PROFILE/examples/PAGE
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let program = profile.join("examples").join(page).with_extension(std::env::consts::EXE_EXTENSION);
    let output = Command::new(&program).args(args).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; `cargo test` builds it", program.display()));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && stderr.is_empty(), "{page} {args:?}: {stdout}{stderr}");
    stdout
}

/// A text as its words and numbers; white space only divides.
fn tokens(text: &str) -> Vec<&str> {
    let numeric = |c: char| c.is_ascii_digit() || c == '.';
    let mut tokens = Vec::new();
    for word in text.split_whitespace() {
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| numeric(c) != numeric(first)).unwrap_or(rest.len());
            tokens.push(&rest[..end]);
            rest = &rest[end..];
        }
    }
    tokens
}

/// Whether two tokens are equal: text and whole numbers exactly, other numbers within the tolerance, which for large ones is a share.
fn alike(found: &str, expected: &str) -> bool {
    match (found.parse::<f64>(), expected.parse::<f64>()) {
        (Ok(a), Ok(b)) if expected.contains('.') => (a - b).abs() <= TOLERANCE * b.abs().max(1.0),
        _ => found == expected,
    }
}

fn assert_prints(page: &str, args: &[&str], expected: &str) {
    let found = printed(page, args);
    let same = {
        let (found, expected) = (tokens(&found), tokens(expected));
        found.len() == expected.len() && found.iter().zip(&expected).all(|(found, expected)| alike(found, expected))
    };
    assert!(same, "{page} {args:?} prints\n{found}\nexpected\n{expected}");
}

/// The names of all pages, as the manifest has them.
fn pages() -> BTreeSet<String> {
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    let examples = manifest.split("[[example]]").skip(1);
    examples.map(|entry| entry.split('"').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn every_folder_with_a_main_is_a_page_of_the_manifest() {
    let folders = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap());
    let with_main = folders.filter(|entry| entry.path().join("main.rs").exists());
    let names: BTreeSet<String> = with_main.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert_eq!(names, pages());
}

#[test]
fn a_page_is_short_and_says_what_it_shows_and_how_to_run_it() {
    for page in pages() {
        let text = fs::read_to_string(folder().join(&page).join("main.rs")).unwrap();
        let most = if page == LONGER.0 { LONGER.1 } else { MOST_LINES };
        assert!(text.lines().count() <= most, "{page}: {} lines, expected at most {most}", text.lines().count());
        let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let command = format!("`cargo run --release --example {page}");
        assert!(head.len() >= 3 && head.iter().any(|line| line.contains(&command)), "{page}: {head:?}");
    }
}

/// A page can be copied: its crates are ours, what comes with Rust, and serde_json; it has no module that it shares.
#[test]
fn a_page_needs_no_crate_but_ours() {
    let known = ["judge_core", "judge_data", "judge_metrics", "judge_models", "judge_probe", "serde_json", "std"];
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    let (_, after) = manifest.split_once("[dependencies]").unwrap();
    let dependencies = after.split("\n[").next().unwrap().lines().filter(|line| !line.trim().is_empty());
    for line in dependencies {
        let name = line.split(['.', ' ', '=']).next().unwrap().replace('-', "_");
        assert!(known.contains(&name.as_str()), "{line}");
        assert!(!line.contains("features"), "{line}: the pages run with what the crates bring by default");
    }
    for page in pages() {
        let text = fs::read_to_string(folder().join(&page).join("main.rs")).unwrap();
        for line in text.lines() {
            let line = line.trim_start();
            assert!(!line.starts_with("mod ") && !line.starts_with("#[path"), "{page}: {line}");
            let root = line.strip_prefix("use ").and_then(|path| path.split("::").next());
            assert!(root.is_none_or(|root| known.contains(&root)), "{page}: {line}");
        }
    }
}
