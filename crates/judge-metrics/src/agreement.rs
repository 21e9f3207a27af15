//! How far labels and ratings agree: of a judge with people, of people with one another.
//!
//! | data | statistics |
//! |---|---|
//! | two columns of labels | [`ConfusionMatrix`]: accuracy, precision, recall, F1, Matthews, Cohen's kappa |
//! | several raters, labels | [`RatingTable`]: Fleiss' kappa, Gwet's AC1 and AC2 |
//! | several raters, any scale, gaps | [`krippendorff_alpha`], [`RatedUnits`] for resamples of it |
//! | several raters, numbers, no gaps | [`IntraclassCorrelations`] |
//! | which of two judges is right more often, item by item | [`mcnemar`], [`clustered_mcnemar`] |
//! | several annotators and a judge that may take their place | [`AlternativeAnnotatorTest`] |

mod alternative_annotator;
mod averages;
mod confusion;
mod icc;
mod influence;
mod kappa;
mod krippendorff;
mod mcnemar;
mod rating_table;
mod weights;

pub use alternative_annotator::{AlternativeAnnotatorTest, AlternativeAnnotators, LeftOut};
pub use averages::{Average, AverageScores, ZeroDivision};
pub use confusion::{ClassScores, ConfusionMatrix};
pub(crate) use confusion::{check_labels, place};
pub(crate) use icc::McGrawWong;
pub use icc::{FTest, IntraclassCorrelations};
pub use krippendorff::{Measurement, RatedUnits, krippendorff_alpha};
pub use mcnemar::{McNemar, McNemarTest, clustered_mcnemar, mcnemar};
pub use rating_table::RatingTable;
pub use weights::AgreementWeights;
