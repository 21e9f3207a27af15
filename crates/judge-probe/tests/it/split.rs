//! Splits index for index as scikit-learn 1.9.1 makes them, by the fixture of `scripts/probe/split_fixtures.py` and by the published
//! splits of INSPECTOR's GSM8K probing set.

#![allow(clippy::print_stderr)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::fixtures::{cases, count, list};
use judge_probe::{Error, GroupKFold, KFold, Split, StratifiedGroupKFold, StratifiedKFold, TestSize, TrainTestSplit};
use proptest::prelude::*;
use serde_json::Value;

/// The formula of `mixed` in the script.
fn mixed(n: usize, factor: usize, modulus: usize) -> impl Iterator<Item = usize> {
    (0..n).map(move |row| (row * row + factor * row) % 10007 % modulus)
}

fn fold_of_row(splits: &[Split], n_rows: usize) -> Vec<usize> {
    let mut folds = vec![usize::MAX; n_rows];
    for (fold, split) in splits.iter().enumerate() {
        assert!(split.test.is_sorted() && split.train.is_sorted());
        assert_eq!(split.test.len() + split.train.len(), n_rows);
        split.test.iter().for_each(|&row| folds[row] = fold);
        assert!(split.train.iter().all(|&row| folds[row] != fold));
    }
    folds
}

fn size(case: &Value) -> TestSize {
    let size = &case["test_size"];
    size.as_u64().map_or_else(|| TestSize::Fraction(size.as_f64().unwrap()), |count| TestSize::Count(count as usize))
}

#[test]
fn folds_and_splits_equal_scikit_learns() {
    for case in cases::<Value>("split", 8) {
        let (n, n_splits) = (count(&case["n"]), count(&case["n_splits"]));
        let seed = count(&case["seed"]) as u32;
        let labels: Vec<i64> = mixed(n, 31, count(&case["n_classes"])).map(|label| label as i64).collect();
        let groups: Vec<usize> = mixed(n, 57, count(&case["n_groups"])).collect();
        for (name, shuffle) in [("plain", None), ("shuffled", Some(seed))] {
            let equal = |splitter: &str, splits: Result<Vec<Split>, Error>| {
                let expected: Vec<usize> = list(&case[name][splitter]);
                assert_eq!(fold_of_row(&splits.unwrap(), n), expected, "{splitter} {name}, {n} rows");
            };
            equal("k_fold", KFold { n_splits, shuffle }.split(n));
            equal("stratified", StratifiedKFold { n_splits, shuffle }.split(&labels));
            equal("group", GroupKFold { n_splits, shuffle }.split(&groups));
            equal("stratified_group", StratifiedGroupKFold { n_splits, shuffle }.split(&labels, &groups));
        }
        let equal = |expected: &Value, split: &dyn Fn(TrainTestSplit) -> Result<Split, Error>| {
            let split = split(TrainTestSplit { test_size: size(expected), seed }).unwrap();
            assert_eq!(split, Split { train: list(&expected["train"]), test: list(&expected["test"]) });
        };
        for expected in case["train_test"].as_array().unwrap() {
            equal(expected, &|settings| settings.split(n));
        }
        for expected in case["train_test_stratified"].as_array().unwrap() {
            equal(expected, &|settings| settings.stratified(&labels));
        }
        equal(&case["train_test_grouped"], &|settings| settings.grouped(&groups));
    }
}

/// The scores of each aspect's rows in INSPECTOR's GSM8K probing set.
fn published_scores(folder: &Path) -> BTreeMap<String, Vec<i64>> {
    let file = std::fs::read(folder.join("gsm8k_roscoe5dim_probing.json")).unwrap();
    let aspects: BTreeMap<String, Vec<Value>> = serde_json::from_slice(&file).unwrap();
    let scores = |rows: Vec<Value>| rows.iter().map(|row| row["score"].as_i64().unwrap()).collect();
    aspects.into_iter().map(|(aspect, rows)| (aspect, scores(rows))).collect()
}

fn pick(rows: &[usize], from: &[usize]) -> Vec<usize> {
    rows.iter().map(|&row| from[row]).collect()
}

#[test]
fn published_splits_are_reproduced() {
    let Some(folder) = std::env::var_os("JUDGE_TEST_DATA").map(|data| PathBuf::from(data).join("inspector")) else {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
        return;
    };
    let published: BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>> =
        serde_json::from_slice(&std::fs::read(folder.join("splits.json")).unwrap()).unwrap();
    let scores = published_scores(&folder);
    assert_eq!(published.keys().collect::<Vec<_>>(), ["gsm8k"]);
    let fifth = |seed| TrainTestSplit { test_size: TestSize::Fraction(0.2), seed };
    let mut compared = 0;
    for (aspect, entries) in &published["gsm8k"] {
        let scores = &scores[aspect];
        for (name, entry) in entries {
            let labels: Vec<i64> = match name.rsplit('_').next() {
                Some("binary") => scores.iter().map(|&score| i64::from(score >= 4)).collect(),
                _ => scores.clone(),
            };
            let of = |rows: &[usize]| rows.iter().map(|&row| labels[row]).collect::<Vec<_>>();
            let mut parts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
            match name.as_str() {
                "multi" | "binary" => {
                    let split = fifth(731).stratified(&labels).unwrap();
                    let folds = StratifiedKFold::default().split(&of(&split.train)).unwrap();
                    let scan = StratifiedKFold { n_splits: 5, shuffle: Some(42) }.split(&labels).unwrap();
                    parts.insert("gridsearch_fold_of_train_position", fold_of_row(&folds, split.train.len()));
                    parts.insert("layer_scan_fold_of_row", fold_of_row(&scan, labels.len()));
                    parts.extend([("train", split.train), ("test", split.test)]);
                }
                "lora_unstratified" => {
                    let split = fifth(731).split(labels.len()).unwrap();
                    parts.extend([("train", split.train), ("val", split.test)]);
                }
                "roberta_multi" | "roberta_binary" => {
                    let outer = fifth(42).stratified(&labels).unwrap();
                    let inner = fifth(42).stratified(&of(&outer.train)).unwrap();
                    parts.insert("train", pick(&inner.train, &outer.train));
                    parts.insert("val", pick(&inner.test, &outer.train));
                    parts.insert("test", outer.test);
                }
                unknown => panic!("no rule for {unknown}"),
            }
            assert_eq!(parts.len(), entry.as_object().unwrap().len(), "{aspect} {name}");
            for (part, rows) in parts {
                assert_eq!(rows, list::<usize>(&entry[part]), "{aspect} {name} {part}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 5 * (4 + 4 + 2 + 3 + 3));
}

#[test]
fn what_cannot_be_split_is_refused() {
    let folds = |n_splits| StratifiedKFold { n_splits, shuffle: None };
    assert_eq!(folds(1).split(&[0, 1]), Err(Error::FewSplits { n_splits: 1 }));
    let unit = "rows of the largest class";
    assert_eq!(folds(3).split(&[0, 1, 0, 1]), Err(Error::ManySplits { n_splits: 3, unit, n_units: 2 }));
    let many = Error::ManySplits { n_splits: 3, unit, n_units: 0 };
    assert!(many.to_string().ends_with("found 0; take fewer splits, or give more rows"), "{many}");
    assert_eq!(folds(3).split(&[]), Err(many));
    assert_eq!(KFold::default().split(4), Err(Error::ManySplits { n_splits: 5, unit: "rows", n_units: 4 }));
    let groups = GroupKFold { n_splits: 3, shuffle: None };
    assert_eq!(groups.split(&["a", "b", "a"]), Err(Error::ManySplits { n_splits: 3, unit: "groups", n_units: 2 }));
    let both = StratifiedGroupKFold { n_splits: 2, shuffle: None };
    assert_eq!(both.split(&[0, 1, 0], &["a", "b"]), Err(Error::RowCount { n_rows: 3, what: "groups", found: 2 }));
    assert_eq!(both.split(&[0, 1, 0], &["a"; 3]), Err(Error::ManySplits { n_splits: 2, unit: "groups", n_units: 1 }));

    let part = |test_size| TrainTestSplit { test_size, seed: 0 };
    for fraction in [0.0, 1.0, -0.5, f64::INFINITY] {
        let (setting, range) = ("the share tested on", "lie strictly between 0 and 1");
        let refused = Err(Error::OutOfRange { setting, range, found: fraction });
        assert_eq!(part(TestSize::Fraction(fraction)).split(9), refused);
    }
    assert!(part(TestSize::Fraction(f64::NAN)).split(9).is_err());
    for (test_size, n, n_test) in [
        (TestSize::Count(0), 9, 0),
        (TestSize::Count(9), 9, 9),
        (TestSize::Fraction(0.9), 1, 1),
        (TestSize::Fraction(0.5), 0, 0),
    ] {
        assert_eq!(part(test_size).split(n), Err(Error::TestCount { n_test, n }));
    }
    let half = part(TestSize::Fraction(0.5));
    assert_eq!(half.stratified(&[0, 0, 7, 0]), Err(Error::SmallClass { class: 7, n_rows: 1, required: 2 }));
    assert_eq!(
        part(TestSize::Count(1)).stratified(&[0, 0, 7, 7]),
        Err(Error::SmallPart { part: "test", n_rows: 1, n_classes: 2 })
    );
    assert_eq!(half.grouped(&["a"; 5]), Err(Error::TestCount { n_test: 1, n: 1 }));
}

proptest! {
    #[test]
    fn every_row_is_on_one_side(labels in prop::collection::vec(0_i64..6, 0..80), seed: u32, fraction in 0.01..0.99) {
        let settings = TrainTestSplit { test_size: TestSize::Fraction(fraction), seed };
        for split in [settings.split(labels.len()), settings.stratified(&labels), settings.grouped(&labels)].into_iter().flatten() {
            let mut rows = [split.train, split.test].concat();
            rows.sort_unstable();
            prop_assert!(rows.into_iter().eq(0..labels.len()));
        }
    }

    #[test]
    fn folds_share_classes_evenly_and_groups_not_at_all(
        rows in prop::collection::vec((0_i64..4, 0_u8..12), 8..120), n_splits in 2_usize..6, shuffle: Option<u32>,
    ) {
        let (labels, groups): (Vec<i64>, Vec<u8>) = rows.iter().copied().unzip();
        if let Ok(splits) = (StratifiedKFold { n_splits, shuffle }).split(&labels) {
            for class in 0..4 {
                let counts = splits.iter().map(|split| split.test.iter().filter(|&&row| labels[row] == class).count());
                prop_assert!(counts.clone().max().unwrap() - counts.min().unwrap() <= 1);
            }
        }
        let grouped = [
            GroupKFold { n_splits, shuffle }.split(&groups),
            StratifiedGroupKFold { n_splits, shuffle }.split(&labels, &groups),
        ];
        for split in grouped.into_iter().flatten().flatten() {
            prop_assert!(split.test.iter().all(|&test| split.train.iter().all(|&train| groups[train] != groups[test])));
        }
    }
}
