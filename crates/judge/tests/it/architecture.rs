//! The crate map in `docs/architecture.md` is what Cargo sees.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

type Map = BTreeMap<String, BTreeSet<String>>;

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo writes JSON")
}

/// Normal dependencies of every member, by name.
fn dependencies() -> Map {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let names = package["dependencies"]
                .as_array()
                .expect("dependencies")
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
                .collect();
            (package["name"].as_str().expect("name").to_owned(), names)
        })
        .collect()
}

fn documented() -> Map {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/architecture.md");
    let text = std::fs::read_to_string(path).expect("docs/architecture.md");
    let (_, rest) = text.split_once("<!-- crate map: begin -->").expect("begin");
    let (table, _) = rest.split_once("<!-- crate map: end -->").expect("end");
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    table
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').collect();
            (quoted(cells[1])[0].clone(), quoted(cells[2]).into_iter().collect())
        })
        .collect()
}

#[test]
fn the_documented_crate_map_is_the_real_one() {
    let dependencies = dependencies();
    let members: BTreeSet<&String> = dependencies.keys().collect();
    let real: Map = dependencies
        .iter()
        .map(|(name, all)| (name.clone(), all.iter().filter(|d| members.contains(d)).cloned().collect()))
        .collect();
    assert_eq!(real, documented(), "left: cargo metadata, right: docs/architecture.md");
}

#[test]
fn one_crate_alone_knows_the_network() {
    let clients = ["curl", "hf-hub", "hyper", "reqwest", "ureq"];
    for (name, all) in dependencies() {
        let found: Vec<&str> = clients.into_iter().filter(|client| all.contains(*client)).collect();
        // The page for grading and the service have hyper's server, not its client.
        let expected: &[&str] = match name.as_str() {
            "judge-hub" => &["ureq"],
            "judge-grade" | "judge-serve" => &["hyper"],
            _ => &[],
        };
        assert_eq!(found, expected, "network clients of {name}");
        if name.starts_with("judge-") && name != "judge-examples" {
            let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates").join(&name).join("src");
            for (path, text) in rust_files(&sources) {
                // Tests serve models, or a proxy, on the loopback interface; the page and the service listen, and an option names where
                // one is.
                let place = path.replace('\\', "/");
                let is_served = ["judge-models/src/hub/tests.rs", "judge-hub/src/api/transport.rs"]
                    .iter()
                    .any(|file| place.ends_with(file))
                    || ["judge-cli", "judge-grade", "judge-serve"].contains(&name.as_str());
                for named in ["ureq::", "std::net"] {
                    let allowed = name == "judge-hub" && named == "ureq::" || is_served && named == "std::net";
                    assert!(allowed || !text.contains(named), "{path} uses {named}");
                }
            }
        }
    }
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let serving =
        packages.iter().filter(|package| package["name"] == "judge-grade" || package["name"] == "judge-serve");
    for dependency in serving.flat_map(|package| package["dependencies"].as_array().expect("dependencies")) {
        if dependency["name"].as_str().is_some_and(|name| name.starts_with("hyper")) {
            let features = dependency["features"].as_array().expect("features");
            assert!(
                dependency["uses_default_features"] == false && !features.iter().any(|name| name == "client"),
                "{dependency}"
            );
        }
    }
    // Whoever takes a crate gets a network client only by asking for it.
    for name in ["judge-hub", "judge-models"] {
        let asked = packages.iter().find(|package| package["name"] == name).expect("a member");
        for dependency in asked["dependencies"].as_array().expect("dependencies") {
            let is_client = clients.iter().any(|client| dependency["name"] == *client);
            let brings = dependency["name"] == "judge-hub" && dependency["features"] != serde_json::json!([]);
            assert!(!brings && (!is_client || dependency["optional"] == true), "{dependency}");
        }
        assert_eq!(asked["features"]["default"], serde_json::json!([]));
    }
}

#[test]
fn the_leaves_have_neither_burn_nor_files_nor_network() {
    let dependencies = dependencies();
    let heavy = ["burn", "memmap2", "safetensors", "tempfile", "tokenizers", "ureq"];
    for leaf in ["judge-core", "judge-metrics"] {
        for name in &dependencies[leaf] {
            assert!(!heavy.contains(&name.as_str()), "{leaf} must not depend on {name}");
        }
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates").join(leaf).join("src");
        for (path, text) in rust_files(&sources) {
            for forbidden in ["std::fs", "std::net", "std::process", "std::env"] {
                assert!(!text.contains(forbidden), "{path} uses {forbidden}");
            }
        }
    }
    assert!(dependencies["judge-models"].contains("burn"), "the check above looks at the right names");
}

fn rust_files(folder: &Path) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("source folder") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push((path.display().to_string(), std::fs::read_to_string(&path).expect("source")));
        }
    }
    assert!(!files.is_empty(), "no source in {}", folder.display());
    files
}

/// A page that names a file which is no more sends its reader astray.
#[test]
fn files_that_the_documentation_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])
        .current_dir(&root)
        .output()
        .expect("git runs");
    let listed = String::from_utf8(listed.stdout).expect("names in UTF-8");
    let files: Vec<&str> = listed.lines().collect();
    if files.is_empty() {
        eprintln!("skipped: this is no checkout, so nothing lists its files");
        return;
    }
    let mut pages: Vec<_> =
        std::fs::read_dir(root.join("docs")).expect("docs").map(|page| page.expect("a page").path()).collect();
    pages.extend(["README.md", "CONTRIBUTING.md"].map(|page| root.join(page)));
    let mut lost = Vec::new();
    for page in pages.iter().filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        let text = std::fs::read_to_string(page).expect("a page");
        for name in text.split('`').skip(1).step_by(2) {
            let is_path = name.ends_with(".rs") && !name.contains([' ', '*', '{', '\n']);
            if is_path && !files.iter().any(|file| *file == name || file.ends_with(&format!("/{name}"))) {
                lost.push(format!("{}: {name}", page.display()));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:#?}");
}
