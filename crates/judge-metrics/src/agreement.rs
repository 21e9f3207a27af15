//! How far labels and ratings agree: of a judge with people, of people with one another.
//!
//! | data | statistics |
//! |---|---|
//! | two columns of labels | [`ConfusionMatrix`]: accuracy, precision, recall, F1, Matthews, Cohen's kappa |
//! | several raters, labels | [`RatingTable`]: Fleiss' kappa, Gwet's AC1 and AC2 |
//! | several raters, any scale, gaps | [`krippendorff_alpha`], [`RatedUnits`] for resamples of it |
//! | several raters, numbers, no gaps | [`IntraclassCorrelations`] |
//! | several raters, numbers, gaps | [`MixedRatings`] |
//! | which of two judges is right more often, item by item | [`mcnemar`], [`clustered_mcnemar`] |
//! | several annotators and a judge that may take their place | [`AlternativeAnnotatorTest`] |
//! | the same, and how well people agree by the judge's own measure | [`HumanCeiling`] |
//! | people's and the judge's distributions over labels | [`SoftLabels`] |
//!
//! What annotators say together, each weighed by skill, is in [`aggregation`](crate::aggregation).

mod alternative_annotator;
mod averages;
mod ceiling;
mod confusion;
mod icc;
mod influence;
mod kappa;
mod krippendorff;
mod labels;
mod leave_one_out;
mod mcnemar;
mod mean_squares;
mod mixed_icc;
mod placed;
mod rating_table;
mod soft_labels;
mod weights;

pub use alternative_annotator::{AlternativeAnnotatorTest, AlternativeAnnotators, LeftOut};
pub(crate) use alternative_annotator::{closeness, share_of_equals};
pub use averages::{Average, AverageScores, ZeroDivision};
pub use ceiling::{AnnotatorCeiling, HumanCeiling, ItemCeiling};
pub use confusion::{ClassScores, ConfusionMatrix};

pub use icc::IntraclassCorrelations;
pub(crate) use icc::RatedSubjects;
pub(crate) use krippendorff::two_raters_vary;
pub use krippendorff::{Measurement, RatedUnits, krippendorff_alpha};
pub(crate) use labels::{check_labels, place};
pub use mcnemar::{McNemar, McNemarTest, clustered_mcnemar, mcnemar};
pub use mean_squares::IntraclassForm;
pub(crate) use mean_squares::McGrawWong;
pub use mixed_icc::{MixedIntraclass, MixedRatings};
pub(crate) use placed::PlacedRatings;
pub(crate) use rating_table::CountedSubjects;
pub use rating_table::RatingTable;
pub use soft_labels::{SoftLabels, SoftMeasure};
pub use weights::AgreementWeights;
