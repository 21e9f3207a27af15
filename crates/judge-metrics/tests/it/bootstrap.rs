//! The bootstrap against NumPy and SciPy on shared resamples (`scripts/metrics/resampling_fixtures.py`), and what it refuses.

use judge_metrics::Error;
use judge_metrics::correlation::{pearson, spearman};
use judge_metrics::resampling::{Bootstrap, BootstrapMethod, RankedPair, quantile};
use serde_json::Value;

use crate::fixtures::{count, counts, fixture, list, numbers};

fn rho(x: &[f64], y: &[f64]) -> Result<f64, Error> {
    Ok(spearman(x, y)?.estimate)
}

/// Of rows given by their indices.
type Statistic<'a> = dyn Fn(&[usize]) -> Result<f64, Error> + Sync + 'a;

const X: [f64; 8] = [3.1, 4.7, 1.2, 2.8, 4.9, 2.0, 3.6, 1.9];
const Y: [f64; 8] = [3.0, 5.0, 1.0, 2.0, 4.0, 2.0, 4.0, 3.0];

#[test]
fn intervals_equal_numpys_on_the_same_resamples() {
    let fixture = fixture("bootstrap");
    let (mut refused, mut accelerated) = (0, 0);
    for case in list(&fixture["cases"]) {
        let (x, y) = (numbers(&case["x"]), numbers(&case["y"]));
        let bootstrap = Bootstrap {
            resamples: count(&case["resamples"]),
            level: case["level"].as_f64().unwrap(),
            seed: case["seed"].as_u64().unwrap(),
            method: BootstrapMethod::Percentile,
        };
        for pair in list(&case["rows"]).chunks(2) {
            let rows = bootstrap.rows(x.len(), count(&pair[0]));
            assert_eq!(rows, counts(&pair[1]));
        }
        let r = |x: &[f64], y: &[f64]| Ok(pearson(x, y)?.estimate);
        // Fewer than six units, or more undefined resamples than a tail holds: NumPy has quantiles of the rest, and here there is no
        // interval.
        let few = |units: usize, undefined: &Value| {
            let tail = (1.0 - bootstrap.level) / 2.0 * bootstrap.resamples as f64;
            units < 6 || undefined.as_f64().unwrap() > tail
        };
        for (name, ours) in [("pearson", bootstrap.paired(&x, &y, r)), ("spearman", bootstrap.paired(&x, &y, rho))] {
            let expected = &case[name];
            if few(x.len(), &expected["undefined"]) {
                assert!(ours.unwrap_err().is_undefined(), "{name}");
                refused += 1;
                continue;
            }
            let ours = ours.unwrap();
            let [low, high] = ["low", "high"].map(|end| expected[end].as_f64().unwrap());
            assert!((ours.interval.low - low).abs() <= 1e-12, "{name}: {ours:?}, not {low}");
            assert!((ours.interval.high - high).abs() <= 1e-12, "{name}: {ours:?}, not {high}");
            assert_eq!(ours.undefined as u64, expected["undefined"].as_u64().unwrap(), "{name}");
            assert_eq!((ours.resamples, ours.interval.level), (bootstrap.resamples, bootstrap.level));
        }
        // `scipy.stats._resampling._bca_interval` 1.17.1, and clusters drawn as `Bootstrap::clustered` says.
        let ranked = RankedPair::new(&x, &y).unwrap();
        let of_rows = |rows: &[usize]| {
            let (x, y): (Vec<f64>, Vec<f64>) = rows.iter().map(|&row| (x[row], y[row])).unzip();
            Ok(pearson(&x, &y)?.estimate)
        };
        let statistics: [(&str, &Statistic<'_>); 2] =
            [("pearson", &of_rows), ("spearman", &|rows| ranked.spearman(rows))];
        let groups = counts(&case["groups"]);
        let n_groups = groups.iter().collect::<std::collections::BTreeSet<_>>().len();
        for (name, statistic) in statistics {
            let expected = &case[name];
            let few_rows = few(x.len(), &expected["undefined"]);
            let few_groups = few(n_groups, &expected["clustered_undefined"]);
            let bca = Bootstrap { method: BootstrapMethod::BiasCorrectedAccelerated, ..bootstrap };
            let intervals = [
                ("bca", few_rows, bca.interval(x.len(), statistic)),
                ("clustered_bca", few_groups, bca.clustered(&groups, statistic)),
            ];
            for (kind, few, ours) in intervals {
                match ours {
                    Ok(_) if expected.get(kind).is_none() => {}
                    Ok(ours) => {
                        let ends = numbers(&expected[kind]);
                        assert!((ours.interval.low - ends[0]).abs() <= 1e-10, "{name}, {kind}: {ours:?}, not {ends:?}");
                        assert!(
                            (ours.interval.high - ends[1]).abs() <= 1e-10,
                            "{name}, {kind}: {ours:?}, not {ends:?}"
                        );
                        accelerated += 1;
                    }
                    Err(error) => {
                        assert!(error.is_undefined() && (few || expected[kind].is_null()), "{name}, {kind}: {error}");
                    }
                }
            }
            let ours = bootstrap.clustered(&groups, statistic);
            if few_groups {
                assert!(ours.unwrap_err().is_undefined(), "{name}");
                refused += 1;
                continue;
            }
            let ours = ours.unwrap();
            let ends = numbers(&expected["clustered"]);
            assert!((ours.interval.low - ends[0]).abs() <= 1e-12, "{name}: {ours:?}, not {ends:?}");
            assert!((ours.interval.high - ends[1]).abs() <= 1e-12, "{name}: {ours:?}, not {ends:?}");
            assert_eq!(ours.undefined as u64, expected["clustered_undefined"].as_u64().unwrap(), "{name}");
        }
    }
    assert_eq!((refused, accelerated), (6, 10), "intervals are missing");
}

#[test]
fn the_seed_decides_and_nothing_else() {
    let bootstrap = Bootstrap { resamples: 500, ..Bootstrap::default() };
    let first = bootstrap.paired(&X, &Y, rho).unwrap();
    assert_eq!(bootstrap.paired(&X, &Y, rho).unwrap(), first);
    assert_ne!(Bootstrap { seed: 1, ..bootstrap }.paired(&X, &Y, rho).unwrap().interval, first.interval);
    // A resample does not depend on how many there are: what threads share out is a range of numbers.
    assert_eq!(Bootstrap { resamples: 1, ..bootstrap }.rows(8, 300), bootstrap.rows(8, 300));
    assert_ne!(bootstrap.rows(8, 300), bootstrap.rows(8, 301));
}

#[test]
fn two_resamples_are_the_least_interval() {
    let bootstrap = Bootstrap { resamples: 1, ..Bootstrap::default() };
    let mean = |rows: &[usize]| Ok(rows.iter().map(|&row| X[row]).sum::<f64>() / rows.len() as f64);
    // One has no width, which is not to say that the statistic does not vary; 40 that are equal say so, at any level.
    let few = bootstrap.interval(X.len(), mean).unwrap_err();
    assert!(few.is_undefined() && few.to_string().contains("too few"), "{few}");
    for (resamples, level, says_so) in [(39, 0.95, false), (40, 0.95, true), (40, 0.999, true)] {
        let equal = Bootstrap { resamples, level, ..bootstrap }.interval(X.len(), |_| Ok(1.0)).unwrap_err();
        assert_eq!(matches!(equal, Error::NoVariation { .. }), says_so, "{equal}");
    }
    let ours = Bootstrap { resamples: 2, ..bootstrap }.interval(X.len(), mean).unwrap();
    let [one, other] = [0, 1].map(|resample| mean(&bootstrap.rows(X.len(), resample)).unwrap());
    let (low, reach) = (one.min(other), (one - other).abs());
    assert!((ours.interval.low - (low + 0.025 * reach)).abs() < 1e-12);
    assert!((ours.interval.high - (low + 0.975 * reach)).abs() < 1e-12);
    assert_eq!(ours.estimate, X.iter().sum::<f64>() / 8.0);
}

#[test]
fn bad_settings_and_statistics_are_refused() {
    let default = Bootstrap { resamples: 200, ..Bootstrap::default() };
    for level in [0.0, 1.0, -0.5, 95.0, f64::INFINITY] {
        let refused = Bootstrap { level, ..default }.paired(&X, &Y, rho).unwrap_err();
        assert_eq!(refused, Error::LevelOutOfRange { level });
    }
    let nan = Bootstrap { level: f64::NAN, ..default }.paired(&X, &Y, rho);
    assert!(matches!(nan, Err(Error::LevelOutOfRange { .. })));
    assert_eq!(Bootstrap { resamples: 0, ..default }.paired(&X, &Y, rho), Err(Error::NoResamples));
    let empty = Err(Error::TooFewItems { required: 1, found: 0 });
    assert_eq!(default.interval(0, |_| Ok(1.0)), empty);
    assert_eq!(default.clustered(&[] as &[u8], |_| Ok(1.0)), empty);
    assert_eq!(
        default.paired(&X, &Y[1..], rho),
        Err(Error::LengthMismatch { argument: "y", found: 7, other: "x", expected: 8 })
    );
    assert_eq!(default.paired(&X, &[2.0; 8], rho), Err(Error::Constant { argument: "y", value: 2.0 }));

    let infinite = default.interval(8, |_| Ok(f64::INFINITY));
    assert_eq!(infinite, Err(Error::NonFiniteStatistic { resample: None, value: f64::INFINITY }));
    let first_bad = (0..default.resamples).find(|&resample| default.rows(8, resample)[0] == 3).unwrap();
    let sometimes = default.interval(8, |rows| Ok(if rows[0] == 3 { f64::NEG_INFINITY } else { 1.0 }));
    let expected = Error::NonFiniteStatistic { resample: Some(first_bad), value: f64::NEG_INFINITY };
    assert_eq!(sometimes, Err(expected));

    // Defined on the rows as given, where all eight differ, but on no resample.
    let distinct = default.interval(8, |rows| {
        if rows.is_sorted_by(|a, b| a < b) { Ok(1.0) } else { Err(Error::Constant { argument: "rows", value: 0.0 }) }
    });
    assert_eq!(distinct, Err(Error::UndefinedResamples { undefined: 200, resamples: 200 }));
}

/// An interval of no width would look like certainty.
#[test]
fn few_rows_or_clusters_have_no_interval() {
    let mean = |rows: &[usize]| Ok(rows.iter().map(|&row| X[row]).sum::<f64>() / rows.len() as f64);
    for method in [BootstrapMethod::Percentile, BootstrapMethod::BiasCorrectedAccelerated] {
        let bootstrap = Bootstrap { resamples: 50, method, ..Bootstrap::default() };
        for (found, reason) in [
            (bootstrap.interval(1, mean), "only one row"),
            (bootstrap.clustered(&["q"; 8], mean), "one cluster"),
            (bootstrap.interval(5, mean), "fewer than six"),
        ] {
            let error = found.unwrap_err();
            assert!(error.is_undefined() && error.to_string().contains(reason), "{error}");
        }
        let six = bootstrap.clustered(&["q", "q", "r", "r", "s", "t", "u", "v"], mean).unwrap();
        assert!(six.interval.low < six.interval.high);
    }
}

#[test]
fn ranked_pairs_have_the_bits_of_spearman() {
    let bootstrap = Bootstrap { seed: 3, ..Bootstrap::default() };
    for (n, levels) in [(2, 2), (7, 3), (50, 5), (400, 400), (3_000, 40)] {
        let column = |a: usize| -> Vec<f64> { (0..n).map(|i| ((i * a + i * i / 3) % levels) as f64 - 1.5).collect() };
        let (x, y) = (column(7), column(31));
        let Ok(ranked) = RankedPair::new(&x, &y) else { continue };
        for resample in 0..20 {
            let rows = bootstrap.rows(n, resample);
            let (x, y): (Vec<f64>, Vec<f64>) = rows.iter().map(|&row| (x[row], y[row])).unzip();
            match rho(&x, &y) {
                Ok(expected) => assert_eq!(ranked.spearman(&rows).unwrap().to_bits(), expected.to_bits()),
                Err(error) => assert!(error.is_undefined() && ranked.spearman(&rows).unwrap_err().is_undefined()),
            }
        }
    }
    let ranked = RankedPair::new(&X, &Y).unwrap();
    assert_eq!(ranked.spearman(&[3]), Err(Error::TooFewItems { required: 2, found: 1 }));
    assert!(matches!(ranked.spearman(&[3, 8]), Err(Error::OutOfRange { argument: "rows", index: Some(1), .. })));
    assert_eq!(RankedPair::new(&X, &[2.0; 8]).unwrap_err(), Error::Constant { argument: "y", value: 2.0 });
    assert!(matches!(RankedPair::new(&[1.0, f64::NAN], &[1.0, 2.0]), Err(Error::NonFinite { argument: "x", .. })));
}

#[test]
fn clusters_are_drawn_whole() {
    let groups = ["b", "a", "b", "c", "a", "d", "e", "f"];
    let bootstrap = Bootstrap { resamples: 50, ..Bootstrap::default() };
    let seen = |rows: &[usize]| {
        // Rows of "b" are 0 and 2, of "a" 1 and 4: they come together and as often.
        let count = |row: usize| rows.iter().filter(|&&drawn| drawn == row).count();
        assert_eq!((count(0), count(1)), (count(2), count(4)));
        assert_eq!(count(0) + count(1) + [3, 5, 6, 7].map(count).iter().sum::<usize>(), 6);
        Ok(rows.len() as f64)
    };
    let ours = bootstrap.clustered(&groups, seen).unwrap();
    assert_eq!(ours.estimate, 8.0);
    // Each row a cluster of its own is the plain bootstrap.
    let each: Vec<usize> = (0..8).collect();
    let ranked = RankedPair::new(&X, &Y).unwrap();
    let plain = bootstrap.interval(8, |rows| ranked.spearman(rows)).unwrap();
    assert_eq!(bootstrap.clustered(&each, |rows| ranked.spearman(rows)).unwrap(), plain);
}

#[test]
fn bca_says_when_it_is_undefined() {
    let bca = Bootstrap { resamples: 100, method: BootstrapMethod::BiasCorrectedAccelerated, ..Bootstrap::default() };
    // The rows as given are ascending, no resample is: the estimate is larger than all of them.
    let ascending = |rows: &[usize]| Ok(if rows.is_sorted_by(|a, b| a < b) { 2.0 } else { rows[0] as f64 / 100.0 });
    assert!(bca.interval(20, ascending).unwrap_err().is_undefined());
    assert!(bca.interval(20, |_| Ok(1.0)).unwrap_err().is_undefined());

    // One enormous row makes the acceleration nearly 1/6: towards a level of 1 the correction passes its pole.
    let outlier = |rows: &[usize]| Ok(rows.iter().filter(|&&row| row == 0).count() as f64 / rows.len() as f64);
    assert!(bca.interval(2_000, outlier).is_ok());
    assert!(Bootstrap { level: 1.0 - 1e-10, ..bca }.interval(2_000, outlier).unwrap_err().is_undefined());
}

#[test]
fn no_size_of_the_statistic_is_lost() {
    let bca = Bootstrap { resamples: 400, method: BootstrapMethod::BiasCorrectedAccelerated, ..Bootstrap::default() };
    // Powers of two: scaling rounds nothing.
    for exponent in [-600, 0, 600, 1_010] {
        let scale = 2_f64.powi(exponent);
        let mean = |rows: &[usize]| Ok(rows.iter().map(|&row| X[row].powi(3) * scale / 8.0).sum::<f64>());
        let ours = bca.interval(8, mean).unwrap().interval;
        let expected =
            bca.interval(8, |rows| Ok(rows.iter().map(|&row| X[row].powi(3) / 8.0).sum::<f64>())).unwrap().interval;
        assert_eq!((ours.low / scale, ours.high / scale), (expected.low, expected.high), "2^{exponent}");
    }
    // Two neighbouring resamples whose difference is no finite number.
    let huge = |rows: &[usize]| Ok(if rows[0].is_multiple_of(2) { 1.7e308 } else { -1.7e308 });
    let refused = Bootstrap { resamples: 4, level: 0.5, ..Bootstrap::default() }.interval(10, huge).unwrap_err();
    assert!(matches!(refused, Error::Undefined { statistic: "quantile", .. }));
}

#[test]
fn quantiles_are_numbers_or_an_error() {
    assert_eq!(quantile(&[1.0, 1.0, 2.0], 0.5), Ok(1.0));
    for bad in [f64::NAN, f64::INFINITY] {
        assert!(matches!(quantile(&[1.0, bad], 0.5), Err(Error::NonFinite { argument: "sorted", index: 1, .. })));
    }
    assert_eq!(quantile(&[3.0, 1.0], 0.0), Err(Error::NotAscending { argument: "sorted", index: 1 }));
    assert!(quantile(&[-1e308, 1e308], 0.5).unwrap_err().is_undefined());
}
