//! The rows and the program of the README get the scores that it prints.

use serde_json::Value;

use crate::program::{Desk, succeed};

const README: &str = include_str!("../../../../README.md");

/// Kernels differ in the last printed digit.
const LAST_DIGIT: f64 = 0.015;

/// The blocks of a language, in order.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let opened = README.split(opening.as_str()).skip(1);
    opened.map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

#[test]
fn the_readmes_rows_get_the_scores_that_it_prints() {
    let folder = &Desk::new();
    let json = blocks("json").into_iter().find(|block| block.starts_with("{\"id\"")).expect("rows");
    let given: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).expect("a row")).collect();
    folder.write("rows.jsonl", &given);
    succeed("lager_pointwise", folder, &["--input", "rows.jsonl", "--output", "scores.jsonl", "--quiet"]);
    let scored = folder.rows("scores.jsonl");
    let score =
        |id: &str| scored.iter().find(|row| row["id"] == id).expect("the row")["score"].as_f64().expect("a score");

    // The table: an id, what people gave, the score.
    let table = blocks("text").into_iter().find(|block| block.starts_with("id ")).expect("the table");
    let lines: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), given.len());
    for (line, row) in lines.iter().zip(&given) {
        assert_eq!(row["id"], line[0]);
        let printed: f64 = line[line.len() - 1].parse().expect("a score");
        assert!((score(line[0]) - printed).abs() < LAST_DIGIT, "{line:?}: {}", score(line[0]));
        // A good row gets a good score, and a bad one a bad one.
        let raters = row["scores"].as_array().expect("raters");
        let human = raters.iter().filter_map(Value::as_f64).sum::<f64>() / raters.len() as f64;
        assert!((score(line[0]) - human).abs() < 1.0, "{row}");
    }

    // The program judges the first two of them.
    let program = blocks("rust").into_iter().find(|block| block.contains("fn main")).expect("the program");
    let printed = blocks("text").into_iter().find(|block| block.starts_with("test-")).expect("its output");
    for (line, row) in printed.lines().zip(&given) {
        for field in ["instruction", "response", "rubric"] {
            assert!(program.contains(row[field].as_str().expect("text")), "{field} of {row}");
        }
        let (id, value) = line.split_once(": ").expect("a score");
        let found = score(id);
        assert_eq!(row["id"], id);
        assert!((value.parse::<f64>().expect("a number") - found).abs() < LAST_DIGIT, "{line}: {found}");
    }
    assert_eq!(printed.lines().count(), 2);
}
