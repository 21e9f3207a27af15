//! Says from which commit the programs are built: `JUDGE_COMMIT` where the source is a git checkout, and `JUDGE_VERSION` always.
//!
//! The commit is 12 hexadecimal digits, with `-dirty` after them if a tracked file that goes into a program differs from it. Outside a
//! checkout, or without git, only the version is known, which is no error.

use std::env;
use std::path::Path;
use std::process::Command;

/// What goes into a program, seen from the top of the repository.
const SOURCES: [&str; 6] = [":/Cargo.lock", ":/Cargo.toml", ":/crates", ":/examples", ":/models", ":/third_party"];

fn main() {
    watch("build.rs");
    // Whatever makes the tree clean or dirty is a change of one of these.
    for source in git(&[&["ls-files", "--"][..], &SOURCES].concat()).unwrap_or_default().lines() {
        watch(source);
    }
    // In a linked worktree these lie elsewhere, so git is asked. A commit writes the log even where it leaves the others alone.
    let branch = git(&["symbolic-ref", "-q", "HEAD"]);
    for name in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        if let Some(path) = git(&["rev-parse", "--git-path", name]) {
            watch(&path);
        }
    }
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    match commit() {
        Some(commit) => {
            println!("cargo::rustc-env=JUDGE_COMMIT={commit}");
            println!("cargo::rustc-env=JUDGE_VERSION={version} ({commit})");
        }
        None => println!("cargo::rustc-env=JUDGE_VERSION={version}"),
    }
}

fn commit() -> Option<String> {
    // An unpacked archive may lie in a checkout of something else.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let status = ["status", "--porcelain", "--untracked-files=no", "--"];
    let clean = git(&[&status[..], &SOURCES].concat())?.is_empty();
    Some(if clean { commit } else { commit + "-dirty" })
}

/// What git says, run in this package's folder; `None` if there is no git or it fails.
fn git(args: &[&str]) -> Option<String> {
    // Looking must not write: another git may be at work in the same checkout.
    let output = Command::new("git").args(args).env("GIT_OPTIONAL_LOCKS", "0").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

/// Has this run again when the file changes. Cargo takes a path that does not exist for one that always changes.
fn watch(path: &str) {
    if Path::new(path).exists() {
        println!("cargo::rerun-if-changed={path}");
    }
}
