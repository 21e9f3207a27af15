//! Any bytes are read or refused as a pickle and as a classifier, without panic and in little memory.
#![no_main]

use judge_probe::pickle::Limits;
use judge_probe::{FittedClassifier, FittedEstimator, Matrix, Precision, SklearnProbe};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(imported) = SklearnProbe::from_pickle(bytes, &Limits::default(), Precision::F16) else { return };
    let probe = imported.probe;
    let features = Matrix::new(vec![0.5; probe.n_features()], probe.n_features()).unwrap();
    if let Ok(classes) = probe.predict(&features) {
        assert!(probe.classes().contains(&classes[0]));
    }
});
