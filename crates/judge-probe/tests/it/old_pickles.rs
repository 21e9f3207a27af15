//! Pickles of other machines and of old releases.

use judge_probe::pickle::{Limits, Value, read};
use judge_probe::{Error, FittedEstimator, Matrix};

use crate::pickles::{global, honest, import, program, text};

/// An array of 64-bit floats in this byte order, as protocol 5 writes it.
fn array(order: &str, bytes: &[u8]) -> Vec<u8> {
    let dtype = [
        global("numpy", "dtype"),
        text("f8"),
        b"\x89\x88\x87R(K\x03".to_vec(),
        text(order),
        b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb".to_vec(),
    ];
    let begin =
        [global("numpy._core.numeric", "_frombuffer"), b"(".to_vec(), vec![b'C', bytes.len() as u8], bytes.to_vec()];
    let end = [vec![b'K', (bytes.len() / 8) as u8, 0x85], text("C"), b"tR".to_vec()];
    program(&[begin.concat(), dtype.concat(), end.concat()].concat())
}

/// https://github.com/joblib/joblib/issues/403: arrays that a big-endian machine wrote.
#[test]
fn big_endian_arrays_are_the_same_numbers() {
    let numbers = [1.5_f64, -2.0, 1e-300];
    let little = array("<", &numbers.map(f64::to_le_bytes).concat());
    let big = array(">", &numbers.map(f64::to_be_bytes).concat());
    let limits = Limits::default();
    let (little, big) = (read(&little, &limits).unwrap(), read(&big, &limits).unwrap());
    assert_eq!(little, big);
    let wrong = array(">", &numbers.map(f64::to_le_bytes).concat());
    assert_ne!(read(&wrong, &limits).unwrap(), little);
    assert!(matches!(little, Value::Array(_)));
}

/// https://github.com/joblib/joblib/issues/1233, https://github.com/scikit-learn/scikit-learn/issues/30744: scikit-learn before 0.22 had its
/// classes in modules without an underscore.
#[test]
fn classes_are_found_where_old_releases_had_them() {
    let renamed = |pickle: &[u8], from: &str, to: &str| {
        let at = pickle.windows(from.len()).position(|bytes| bytes == from.as_bytes())?;
        Some([&pickle[..at], to.as_bytes(), &pickle[at + from.len()..]].concat())
    };
    // Protocols 2 and 3 write a name as lines, without its length.
    let is_of_lines = |pickle: &&Vec<u8>| matches!(pickle[..], [0x80, 2 | 3, ..]);
    let mut found = 0;
    for (now, before) in [
        (
            "csklearn.linear_model._logistic\nLogisticRegression\n",
            "csklearn.linear_model.logistic\nLogisticRegression\n",
        ),
        ("csklearn.svm._classes\nLinearSVC\n", "csklearn.svm.classes\nLinearSVC\n"),
        ("csklearn.preprocessing._data\n", "csklearn.preprocessing.data\n"),
        ("csklearn.decomposition._pca\n", "csklearn.decomposition.pca\n"),
    ] {
        for pickle in honest().iter().filter(is_of_lines) {
            let Some(old) = renamed(pickle, now, before) else { continue };
            found += 1;
            let (ours, old) = (import(pickle).unwrap().probe, import(&old).unwrap().probe);
            let row = Matrix::from_rows([vec![0.25; ours.n_features()]]).unwrap();
            assert_eq!(ours.predictions(&row).unwrap(), old.predictions(&row).unwrap(), "{before}");
        }
    }
    assert!(found > 2, "{found}");

    // What has changed since is refused by the release.
    let svc = program(&[global("sklearn.svm.classes", "SVC"), b")\x81".to_vec()].concat());
    let Err(Error::Pickle(error)) = import(&svc) else { panic!("read") };
    assert!(error.to_string().contains("SVC is of scikit-learn before 0.22"), "{error}");
    assert!(error.to_string().contains("save it anew"), "{error}");
}
