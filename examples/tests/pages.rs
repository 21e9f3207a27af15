//! Every page runs without arguments, prints what it printed before, is short, and needs no crate but ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// How far a number may be from the expected one: kernels of other processors sum in another order.
const TOLERANCE: f64 = 0.015;

/// The most lines of a page.
const MOST_LINES: usize = 80;

/// The one page with more: it prints a table for each of two splits, and writes the figures that other programs read.
const LONGER: (&str, usize) = ("quickstart", 100);

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

/// A command that runs a page.
fn example(page: &str) -> Command {
    // target/PROFILE/deps/this-test -> target/PROFILE/examples/PAGE
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let program = profile.join("examples").join(page).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.is_file(), "{} is not built; `cargo test -p judge-examples` builds it", program.display());
    Command::new(program)
}

/// Runs a page, which must succeed and say nothing on stderr; what it prints.
fn printed(page: &str, args: &[&str]) -> String {
    let output = example(page).args(args).stdin(Stdio::null()).output().unwrap();
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

fn assert_alike(found: &str, expected: &str, page: &str) {
    let (tokens_found, tokens_expected) = (tokens(found), tokens(expected));
    let same = tokens_found.iter().zip(&tokens_expected).all(|(found, expected)| alike(found, expected));
    assert!(same && tokens_found.len() == tokens_expected.len(), "{page} prints\n{found}\nexpected\n{expected}");
}

fn assert_prints(page: &str, args: &[&str], expected: &str) {
    assert_alike(&printed(page, args), expected, page);
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

#[test]
fn lager_reads_all_layers_and_fits_their_weights() {
    let expected = r#"
        weights of layers 0 to 6: [0.025, 0.022, 0.022, 0.021, 0.034, 0.035, 0.841]
        Spearman with people on 300 rows:
        direct_score   0.756
        e_score        0.821
        lager_wo       0.660
        lager_w        0.817
        one answer more: 4.74
    "#;
    assert_prints("lager", &[], expected);
}

#[test]
fn a_probe_grades_what_it_has_not_seen() {
    let expected = r#"
        trained on 600 rows, layer 4 of 6
        accuracy of the grade on 300 rows: 0.470
        Spearman of the expected grade: 0.641
    "#;
    assert_prints("inspector", &[], expected);
}

#[test]
fn pairs_are_compared_and_graded() {
    let expected = r#"
        compared in both orders: agrees with people on 0.43 [0.34, 0.53]
        graded one by one: agrees with people on 0.88 [0.80, 0.93]
        the first pair, preference for A: 0.95
    "#;
    assert_prints("pairwise", &[], expected);
}

#[test]
fn a_reference_is_compared_with() {
    let expected = r#"
        "right": 4.24, likeliest 5
        "wrong": 2.92, likeliest 2
        "no reference": no grade, missing
    "#;
    assert_prints("reference_guided", &[], expected);
}

#[test]
fn conversations_are_graded_by_their_last_answer() {
    let expected = r#"
        "talk-0", 2 turns before: 1.63
        "talk-1", 1 turns before: 1.47
        "talk-2", 1 turns before: 1.22
        "talk-3", 1 turns before: 1.58
        "talk-4": no grade, missing
    "#;
    assert_prints("multi_turn", &[], expected);
}

#[test]
fn a_panel_of_three_rubrics() {
    let expected = r#"
        0.818  From 1 to 5, is the answer correct, to the point and well written?
        0.822  Is it right and well put? Use 5 for a perfect answer, 1 for a bad one.
        0.821  Give a number from 1 to 5, where 5 is the best.
        0.820  their mean (Spearman with people on 300 rows)
    "#;
    assert_prints("panel", &[], expected);
}

#[test]
fn the_order_of_two_answers_sways_the_judge() {
    let expected = r#"
        100 pairs
        both orders agree:           0.18
        the one shown first gains:   0.56
        the one shown second gains:  0.26
        preference fairness:         -0.30 (-1: always the first, 0: fair)
        by chance (McNemar, exact):  p = 0.001
    "#;
    assert_prints("bias", &[], expected);
}

#[test]
fn questions_that_can_be_answered() {
    let expected = r#"
        48 questions, AUROC 0.458 [0.301, 0.624]
        declining at 2.07 and below: precision 0.500, recall 1.000
        mean risk of the surest: 0.577 (0.5 by chance)
    "#;
    assert_prints("self_knowledge", &[], expected);
}

#[test]
fn emotions_of_characters() {
    let expected = r#"
        Mara, joy: 7.16, people say 9
        Mara, surprise: 7.02, people say 5
        Jon, pride: 7.16, people say 8
        Jon, envy: 7.19, people say 2
        e_score   Spearman 0.026 [-0.260, 0.308]
        e_score   mean score +1.75 from the mean of people's
        lager_wo  Spearman -0.064 [-0.342, 0.224]
        lager_wo  mean score +1.66 from the mean of people's
    "#;
    assert_prints("emotion", &[], expected);
}

#[test]
fn scores_come_with_an_interval_on_the_human_scale() {
    let expected = r#"
        score 1.28: people say 1.18, between 1.00 and 2.65
        0.913 of 300 human scores lie in their interval (aim 0.90)
        mean width: 2.41
    "#;
    assert_prints("calibrated", &[], expected);
}

#[test]
fn a_judge_of_your_own() {
    let expected = r#"
        "test-0": 1.26
        "test-1": 1.90
        "test-2": 1.77
        "test-3": 4.75
        "test-4": 3.18
        Spearman with people: 0.821 (300 items)
    "#;
    assert_prints("custom_judge", &[], expected);
}

#[test]
fn states_of_all_layers_are_written_and_read_back() {
    let output = scratch("hidden_states").join("states.safetensors");
    let expected = r#"
        300 rows, 7 layers, 128 numbers each
        layer 0: mean norm 0.191
        layer 1: mean norm 2.065
        layer 2: mean norm 4.125
        layer 3: mean norm 5.826
        layer 4: mean norm 7.648
        layer 5: mean norm 10.580
        layer 6: mean norm 7.627
    "#;
    assert_prints("hidden_states", &[output.to_str().unwrap()], expected);
}

#[test]
fn a_file_is_judged_resumed_and_recognised() {
    let output = scratch("resume").join("scores.jsonl");
    let expected = r#"
        100 more rows judged; 100 scored, 0 not
        200 more rows judged; 300 scored, 0 not
        0 more rows judged; 300 scored, 0 not
    "#;
    assert_prints("resume", &[output.to_str().unwrap()], expected);
}

/// Which of two rows of nearly equal score comes first is a matter of rounding, so rows are compared by their scores, but for the best.
#[test]
fn the_best_quarter_of_a_data_set() {
    let found = printed("data_selection", &[]);
    let without_ids: String = found.lines().map(|line| line.rsplit("\": ").next().unwrap().to_owned() + "\n").collect();
    let expected = r#"
        8 of 32 rows chosen, 0 without a score
        mean score: 1.582 of the chosen, 1.424 of all
        1.690 1.635 1.594 1.579 1.558 1.549 1.524 1.524
    "#;
    assert_alike(&without_ids, expected, "data_selection");
    assert!(found.lines().nth(2).unwrap().starts_with("\"ex-0\": "), "{found}");
}

#[test]
fn quickstart_compares_the_model_with_baselines() {
    let expected = r#"

        test: 300 rows, 0 unscored; Spearman with people [95 %]
          direct         0.756 [0.695, 0.811]
          expected       0.821 [0.772, 0.858]
          lager_wo       0.660 [0.590, 0.725]
          lager_w        0.817 [0.769, 0.854]
          length         0.061 [-0.036, 0.163]
          word_overlap   0.247 [0.145, 0.349]
          surface_ridge  0.302 [0.196, 0.400]

        shifted: 300 rows, 0 unscored; Spearman with people [95 %]
          direct         0.425 [0.321, 0.519]
          expected       0.576 [0.488, 0.650]
          lager_wo       0.406 [0.316, 0.500]
          lager_w        0.570 [0.481, 0.645]
          length         -0.031 [-0.155, 0.084]
          word_overlap   0.197 [0.083, 0.306]
          surface_ridge  0.309 [0.200, 0.408]

        fitted layer weights: [0.025, 0.022, 0.022, 0.021, 0.034, 0.035, 0.841]
        With rows and a model of your own: cargo run --release --example lager VALIDATION TEST MODEL
    "#;
    assert_prints("quickstart", &[], expected);
}

/// The file that other programs read: its fields, and that its numbers are those that are printed.
#[test]
fn quickstart_writes_its_figures() {
    let file = scratch("quickstart").join("figures.json");
    let found = printed("quickstart", &["--json", file.to_str().unwrap()]);
    let figures: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&figures), "model layer_weights splits");
    assert_eq!(keys(&figures["splits"]), "test shifted");
    assert_eq!(figures["model"]["n_layers"], 6);
    let weights = figures["layer_weights"].as_array().unwrap();
    assert_eq!((weights.len(), keys(&weights[6])), (7, "layer weight".to_owned()));
    for split in figures["splits"].as_object().unwrap().values() {
        assert_eq!(keys(split), "n unscored variants baselines per_layer");
        assert_eq!((&split["n"], &split["unscored"]), (&json!(300), &json!(0)));
        assert_eq!(keys(&split["variants"]), "direct expected lager_wo lager_w");
        assert_eq!(keys(&split["baselines"]), "length word_overlap surface_ridge");
        for named in [&split["variants"], &split["baselines"]] {
            for (name, value) in named.as_object().unwrap() {
                assert_eq!(keys(value), "spearman pearson");
                assert_eq!(keys(&value["spearman"]), "estimate low high p method");
                let spearman = ["estimate", "low", "high"].map(|key| value["spearman"][key].as_f64().unwrap());
                let [estimate, low, high] = spearman.map(|number| format!("{number:.3}"));
                let line = format!("{name:<14} {estimate} [{low}, {high}]");
                assert!(found.contains(&line), "{line} is not in\n{found}");
            }
        }
        let layers = split["per_layer"].as_array().unwrap();
        assert_eq!(layers.len(), 7);
        let last = &layers[6];
        assert_eq!(keys(last), "layer direct expected");
        assert_eq!(
            (&last["direct"], &last["expected"]),
            (&split["variants"]["direct"], &split["variants"]["expected"])
        );
        // The embedding of the prompt's last token is the same for every row: its score is constant and has no correlation.
        assert_eq!(keys(&layers[0]["expected"]["spearman"]), "undefined");
    }
}

#[test]
fn an_argument_that_quickstart_does_not_have_is_refused() {
    let page = example("quickstart").arg("--jsno").output().unwrap();
    assert!(!page.status.success());
    assert!(String::from_utf8_lossy(&page.stderr).contains("usage: quickstart [--json FILE]"));
}
