//! Results as records of serde.

#![cfg(feature = "serde")]

use judge_metrics::agreement::MixedIntraclass;
use judge_metrics::bias::{scale_use::ScaleUse, verbosity::LengthPreference};
use judge_metrics::calibration::{FittedOrdinalConformal, FittedSplitConformal};
use judge_metrics::preference::{QuestionAgreement, VoteAgreement};
use judge_metrics::ranking::FittedBradleyTerry;
use judge_metrics::sampling::{Drawn, draw_alike};

#[test]
fn results_are_records() {
    fn is_record<T: serde::Serialize>() {}
    is_record::<MixedIntraclass>();
    is_record::<LengthPreference>();
    is_record::<FittedOrdinalConformal>();
    is_record::<FittedSplitConformal>();
    is_record::<QuestionAgreement<'_>>();
    is_record::<VoteAgreement<'_>>();
    is_record::<FittedBradleyTerry>();
    is_record::<Drawn>();
    let uses = ScaleUse { counts: vec![1, 2] };
    assert_eq!(serde_json::to_string(&uses).unwrap(), r#"{"counts":[1,2]}"#);
    assert_eq!(serde_json::to_string(&draw_alike(1, 1, 0)).unwrap(), r#"[{"item":0,"probability":1.0}]"#);
}
