//! What every command does alike: version, exit codes, signals, streams that take nothing, hints.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use half::bf16;
use judge_cli::terminal::console::commit;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::json;

use crate::program::{Desk, finished, judge, ran, refused, succeed, words, write_rows};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Three prompts, one of them empty.
fn write_prompts(folder: &Path) {
    let rows = ["Is it?", "", "Why?"].iter().enumerate().map(|(id, text)| json!({"id": id, "prompt": text}));
    write_rows(folder.join("in.jsonl"), &rows.collect::<Vec<_>>());
}

#[test]
fn every_command_has_a_version_with_its_commit() {
    let folder = &Desk::new();
    let number = env!("CARGO_PKG_VERSION");
    let version = commit().map_or_else(|| number.to_owned(), |at| format!("{number} ({at})"));
    for (args, name) in
        [("--version", "judge"), ("score --version", "judge-score"), ("lager_pointwise -V", "judge-score")]
    {
        let args = words(args);
        assert_eq!(succeed(args[0], folder, &args[1..]), format!("{name} {version}\n"));
    }
}

#[test]
fn the_commit_is_the_checkouts() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| stdout(&output).trim().to_owned())
    };
    let tracked = git(&["ls-files", "--error-unmatch", "../judge-cli/build.rs"]).is_some();
    let head = if tracked { git(&["rev-parse", "--short=12", "HEAD"]) } else { None };
    assert_eq!(commit().map(|commit| commit.trim_end_matches("-dirty").to_owned()), head);
}

#[test]
fn wrong_usage_is_said_the_same_way_everywhere() {
    let folder = &Desk::new();
    write_prompts(folder);
    for (name, args, said) in [
        ("throughput", &["--input", "in.jsonl", "--template", "t.json"][..], "--template needs graded rows"),
        ("throughput", &["--input", "in.jsonl", "--seed", "3"], "--seed"),
        ("throughput", &["--input", "in.jsonl", "--read", "text"], "give --max-new-tokens"),
        ("throughput", &["--input", "in.jsonl", "--layer", "99", "--quiet"], "the model has the layers 0 to 6"),
    ] {
        let told = refused(name, folder, args, 2, &[said]);
        assert!(told.starts_with("error: "), "{name} {args:?}: {told}");
    }
}

#[test]
fn speed_says_what_is_faster_on_this_processor() {
    let folder = &Desk::new();
    write_prompts(folder);
    let said = succeed("throughput", folder, &["--input", "in.jsonl", "--others", "--json", "speed.json"]);
    assert!(said.contains("\nfaster here    "), "{said}");
    let found = folder.json("speed.json");
    // At least weights of eight bits with the kernel that is chosen.
    let others = found["others"].as_array().expect("others");
    assert!(others.iter().any(|other| other["weight_form"] == "int8"), "{others:?}");
    for other in others {
        let ratio = found["read_s"].as_f64().expect("read_s") / other["read_s"].as_f64().expect("read_s");
        assert!((other["ratio"].as_f64().expect("ratio") - ratio).abs() < 1e-9 * ratio, "{other}");
    }
}

#[test]
fn help_begins_with_the_files_and_ends_with_the_model_and_the_run() {
    let folder = &Desk::new();
    let help = succeed("throughput", folder, &["-h"]);
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text:?} is not in\n{help}"));
    assert!(at("--input") < at("\nModel:"), "{help}");
    assert!(at("\nModel:") < at("--device") && at("--device") < at("\nRun:") && at("\nRun:") < at("--limit"), "{help}");
}

#[test]
fn a_graded_file_is_measured_and_the_rest_estimated() {
    let folder = &Desk::new();
    let row =
        |id| json!({"id": id, "instruction": "What is 1 + 1?", "response": "2", "rubric": "Right?", "scores": [5]});
    folder.write("in.jsonl", &(0..8).map(row).collect::<Vec<_>>());
    let figures = |more: &[&str]| {
        let args = [&["--input", "in.jsonl", "--json", "out.json"], more].concat();
        let (said, log) = finished("throughput", folder, &args);
        (said, log, folder.json("out.json"))
    };
    let (said, log, part) = figures(&["--limit", "2"]);
    assert!(said.contains("whole file     about ") && said.contains(" for 8 rows"), "{said}");
    assert!(!log.contains("reading"), "a short run leaves no progress in a log: {log}");
    let (read, whole) = (part["read_s"].as_f64().expect("seconds"), part["whole_file_s"].as_f64().expect("seconds"));
    assert!((whole / read - 4.0).abs() < 1e-9, "eight rows of the same length: {part}");
    assert_eq!((&part["prompts"], &part["rows"]), (&json!(2), &json!(8)));
    let (said, _, all) = figures(&[]);
    assert!(!said.contains("whole file") && all["whole_file_s"].is_null(), "{said}");
    assert_eq!((&all["prompts"], &all["rows"]), (&json!(8), &json!(8)));

    folder.put("t.json", r#"{"raw": "{response}"}"#);
    let (_, _, short) = figures(&["--template", "t.json"]);
    assert!(short["prompt_tokens"].as_u64() < all["prompt_tokens"].as_u64(), "{short}");
}

#[test]
fn a_run_that_scored_nothing_failed() {
    let folder = &Desk::new();
    write_prompts(folder);
    succeed("throughput", folder, &["--input", "in.jsonl"]); // two of the three prompts are scored
    for (input, said) in [
        ("{\"id\": 1, \"prompt\": \"\"}\n{\"id\": 2, \"prompt\": \"\"}\n", "no row was scored: 2 empty_prompt"),
        ("", "in.jsonl has no rows"),
    ] {
        folder.put("in.jsonl", input);
        refused("throughput", folder, &["--input", "in.jsonl"], 1, &[said]);
    }
}

/// The embedded model in f32, without a chat template.
fn plain_model(folder: &Path) {
    fs::create_dir(folder).expect("folder");
    tiny_judge::write(folder).expect("embedded model");
    fs::remove_file(folder.join("chat_template.jinja")).expect("removed");
    let bytes = fs::read(folder.join("model.safetensors")).expect("weights");
    let stored = SafeTensors::deserialize(&bytes).expect("weights");
    let wide: HashMap<String, (Vec<usize>, Vec<u8>)> = stored
        .iter()
        .map(|(name, view)| {
            assert_eq!(view.dtype(), Dtype::BF16);
            let values = view.data().chunks_exact(2).map(|pair| bf16::from_le_bytes([pair[0], pair[1]]).to_f32());
            (name.to_owned(), (view.shape().to_vec(), values.flat_map(f32::to_le_bytes).collect()))
        })
        .collect();
    let views = wide.iter().map(|(name, (shape, data))| {
        (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), data).expect("a tensor"))
    });
    let bytes = safetensors::serialize(views, None).expect("weights");
    fs::write(folder.join("model.safetensors"), bytes).expect("written");
}

#[test]
fn a_model_that_needs_options_says_which() {
    let folder = &Desk::new();
    write_prompts(folder);
    plain_model(&folder.join("plain"));
    let read = |more: &[&str]| {
        let (code, _, said) = ran("throughput", folder, &[&["--input", "in.jsonl", "--model", "plain"], more].concat());
        (code, said)
    };
    let faster = "note: the checkpoint is f32; --dtype bf16 takes half the memory, and less time where the processor multiplies bf16";
    let (code, said) = read(&[]);
    assert!(code == Some(1) && said.contains("no chat template") && said.contains("give --raw-prompt"), "{said}");
    assert!(said.contains(faster), "{said}");
    for chosen in ["f32", "bf16"] {
        let (code, said) = read(&["--raw-prompt", "--dtype", chosen]);
        assert!(code == Some(0) && !said.contains(faster), "{said}");
    }
    let (code, said) = read(&["--raw-prompt", "--quiet"]);
    assert!(code == Some(0) && said.is_empty(), "{said}");
}

#[test]
fn a_reader_that_closed_stdout_has_seen_enough() {
    let folder = &Desk::new();
    for args in ["--schema", "--help", "--version"] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = judge("score_stream").arg(args).current_dir(folder).stdout(writer).output().expect("it starts");
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error_and_no_panic() {
    let folder = &Desk::new();
    let full = || fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    for args in ["--schema", "--help", "--version"] {
        let output = judge("score_stream").arg(args).current_dir(folder).stdout(full()).output().expect("it starts");
        let said = stderr(&output);
        assert!(
            output.status.code() == Some(1) && said.starts_with("error: cannot write to stdout"),
            "{args:?}: {said}"
        );
    }
    // What cannot be said on stderr changes neither the work nor its exit code.
    let mute = |name: &str, args: &[&str]| {
        let output = judge(name).args(args).current_dir(folder).stderr(full()).output().expect("it starts");
        output.status.code()
    };
    write_prompts(folder);
    assert_eq!(mute("throughput", &["--input", "in.jsonl"]), Some(0));
    assert_eq!(mute("throughput", &["--input", "missing.jsonl"]), Some(1));
    assert_eq!(mute("throughput", &["--runs", "3"]), Some(2));
}

#[cfg(target_os = "linux")]
mod signals {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Child;

    use judge_cli::terminal::interrupt::{Interrupts, Signal};
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::low_level::raise;

    use super::*;

    /// Starts a command, sends it SIGINT once it catches both, and waits for its end.
    fn interrupt(name: &str, folder: &Path, args: &[&str]) -> Output {
        let mut child = judge(name)
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        while !catches(&child, SIGTERM) {
            assert!(child.try_wait().expect("status").is_none(), "it ended before it could be stopped");
        }
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
        assert!(sent.success());
        child.wait_with_output().expect("output")
    }

    /// Whether the process has a handler for the signal. SIGTERM's is the last one, so SIGINT's is there by then.
    fn catches(child: &Child, signal: i32) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).expect("a mask") >> (signal - 1) & 1 == 1)
    }

    #[test]
    fn a_run_stops_between_rows_with_exit_code_130() {
        let folder = &Desk::new();
        write_prompts(folder);
        let endless = ["--input", "in.jsonl", "--repeat", "1000000000", "--json", "out.json"];
        let output = interrupt("throughput", folder, &endless);
        let said = stderr(&output);
        assert!(output.status.code() == Some(130) && said.contains("of 3 rows; nothing was written"), "{said}");
        assert!(!said.contains("error"), "{said}");
        let names: Vec<_> =
            fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").file_name()).collect();
        assert_eq!(names, ["in.jsonl"], "nothing is left behind");
    }

    /// This test's own name: it starts itself, because a signal ends the whole process.
    const SECOND: &str = "console::signals::a_second_signal_and_one_that_nobody_waits_for_end_the_program";
    const ROLE: &str = "JUDGE_TEST_SIGNALS";

    #[test]
    fn a_second_signal_and_one_that_nobody_waits_for_end_the_program() {
        match std::env::var(ROLE).as_deref() {
            Ok("second") => {
                let stop = Interrupts::catch().expect("handlers");
                assert_eq!(stop.interrupted(), None);
                raise(SIGTERM).expect("raised");
                assert_eq!(stop.interrupted(), Some(Signal::Terminate));
                assert_eq!((Signal::Interrupt.exit_code(), Signal::Terminate.exit_code()), (130, 143));
                println!("noted");
                raise(SIGINT).expect("raised");
                println!("survived");
            }
            Ok("dropped") => {
                drop(Interrupts::catch().expect("handlers"));
                let stop = Interrupts::catch().expect("again");
                raise(SIGINT).expect("raised");
                assert_eq!(stop.interrupted(), Some(Signal::Interrupt));
                println!("noted");
                drop(stop);
                raise(SIGTERM).expect("raised");
                println!("survived");
            }
            _ => {
                for (role, by) in [("second", SIGINT), ("dropped", SIGTERM)] {
                    let mut this = Command::new(std::env::current_exe().expect("path of this test"));
                    let output =
                        this.args(["--exact", SECOND, "--nocapture"]).env(ROLE, role).output().expect("it starts");
                    let said = stdout(&output);
                    assert_eq!(output.status.signal(), Some(by), "{said}{}", stderr(&output));
                    assert!(said.contains("noted") && !said.contains("survived"), "{said}");
                }
            }
        }
    }
}

/// A kill leaves what was unpacked; the next start removes it, but nothing that a process still uses. The files have one time, so that packed
/// weights are found again.
#[test]
fn an_embedded_model_that_a_kill_has_left_goes_with_the_next_start() {
    let folder = &Desk::new();
    write_prompts(folder);
    let tmp = folder.join("tmp");
    let [left, used] = ["judge-embedded-left", "judge-embedded-used"].map(|name| tmp.join(name));
    for unpacked in [&left, &used] {
        fs::create_dir_all(unpacked).expect("folder");
        fs::write(unpacked.join("lock"), "").expect("a lock");
    }
    let lock = fs::File::open(used.join("lock")).expect("a lock");
    lock.try_lock().expect("nobody else has it");
    for _ in 0..2 {
        let mut command = judge("throughput");
        command.args(["--input", "in.jsonl", "--packed-cache", "packed", "--quiet"]).env("TMPDIR", &tmp);
        let output = command.current_dir(folder).output().expect("it starts");
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let names = |folder: &Path| fs::read_dir(folder).expect("folder").map(|entry| entry.expect("entry").file_name());
    assert!(names(&tmp).eq(["judge-embedded-used"]), "{:?}", names(&tmp).collect::<Vec<_>>());
    assert_eq!(names(&folder.join("packed")).count(), 1);
}

/// One option for the tables of all commands.
#[test]
fn tables_are_written_in_the_form_that_is_asked_for() {
    let path = &Desk::new();
    succeed("rows", path, &["--rows", "12", "--split", "test", "--output", "rows.jsonl"]);
    succeed("score", path, &["--input", "rows.jsonl", "--output", "scores.jsonl", "--quiet"]);
    let fitted = |more: &[&str]| {
        let fit = ["--valid", "scores.jsonl", "--input", "scores.jsonl", "--variants", "direct_score,e_score"];
        succeed("fit", path, &[&fit[..], more].concat())
    };
    let plain = fitted(&[]);
    assert_eq!(fitted(&["--tables", "plain"]), plain);
    let csv = fitted(&["--tables", "csv"]);
    let line = csv.lines().find(|line| line.starts_with("e_score,")).expect("a row of the variant");
    // An interval is two columns, and stdout has tables alone.
    let head = csv.lines().next().expect("a head");
    assert_eq!(head, "variant,Spearman,Spearman low,Spearman high,Pearson,Pearson low,Pearson high,bias");
    assert!(line.split(',').skip(1).all(|cell| cell.parse::<f64>().is_ok()), "{line}");
    assert_eq!(csv.lines().count(), 3, "{csv}");
    let (_, _, prose) = ran("fit", path, &["--valid", "scores.jsonl", "--input", "scores.jsonl", "--tables", "csv"]);
    assert!(prose.contains("12 items scored and graded"), "{prose}");
    let agreed = succeed("agree", path, &["--input", "scores.jsonl", "--tables", "csv"]);
    let [figures, furthest] = agreed.split("\n\n").collect::<Vec<_>>()[..] else { panic!("{agreed}") };
    let head = "score against human: 12 rows,estimate,low,high,p\npearson,";
    assert!(figures.starts_with(head) && furthest.starts_with("furthest"), "{agreed}");
    let described = succeed("doctor", path, &["--tables", "csv"]);
    assert!(described.starts_with("field,value\njudge,") && described.contains("\nmemory,"), "{described}");
    let markdown = fitted(&["--tables", "markdown"]);
    assert!(markdown.lines().any(|line| line.starts_with("|---|---:")), "{markdown}");
    let latex = fitted(&["--tables", "latex"]);
    assert!(latex.contains("\\begin{tabular}{l") && latex.contains("e\\_score & "), "{latex}");
    refused("fit", path, &["--tables", "html"], 2, &["plain, csv, markdown, latex"]);
}
