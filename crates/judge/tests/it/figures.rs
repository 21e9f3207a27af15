//! The tables of experiments in docs/training.md have the figures that the experiments are checked against (`--check`).

use serde_json::Value;

const TRAINING: &str = include_str!("../../../../docs/training.md");

/// Each experiment's expected figures, and how the head of its table begins.
const EXPERIMENTS: [(&str, &str); 3] = [
    (include_str!("../../../../scripts/trained/expected/swap.json"), "| judge | accuracy, mean of both orders |"),
    (include_str!("../../../../scripts/trained/expected/filtered.json"), "| chosen by | mean quality |"),
    (include_str!("../../../../scripts/trained/expected/baselines.json"), "| aspect | rows | judge |"),
];

/// The decimal numbers of a text, as they are written.
fn decimals(text: &str) -> Vec<&str> {
    let numbers = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '−'));
    numbers.filter(|number| number.contains('.') && number.contains(|c: char| c.is_ascii_digit())).collect()
}

#[test]
fn tables_have_the_figures_that_experiments_are_checked_against() {
    for (expected, head) in EXPERIMENTS {
        let expected: Value = serde_json::from_str(expected).unwrap();
        let rows = expected["rows"].as_array().unwrap();
        let (_, table) = TRAINING.split_once(head).unwrap_or_else(|| panic!("docs/training.md has no table {head}"));
        let lines: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
        assert_eq!(lines.len(), rows.len(), "{head}");
        for (line, row) in lines.iter().zip(rows) {
            let row = row.to_string();
            // Columns may be left out, and keep their order.
            let (found, mut known) = (decimals(line), decimals(&row).into_iter());
            assert!(!found.is_empty(), "{line}");
            for number in found {
                assert!(
                    known.any(|known| known == number),
                    "{number} of\n{line}\nis none of\n{row}, or not in this order"
                );
            }
        }
    }
}
