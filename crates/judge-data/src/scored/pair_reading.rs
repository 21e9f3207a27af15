//! What a finished row of pairs says in each order, read back.

use std::cmp::Ordering;

use judge_core::Layer;
use serde::Deserialize;

use crate::results::pair_table::PairLogits;
use crate::results::verdict_row::PairProbabilities;
use crate::{Error, PairVerdict, Row};

const EXPECTED: &str = "a list of \"order\" \"given\" and perhaps \"swapped\" after it, each with \"verdict\": \"A\", \"B\", \"tie\" or null, \"probabilities\" in [0, 1], and as many \"logits\" of A and B as \"layers\"";

/// What a judge said in one order of a pair, in the letters of the pair as it is given: an entry of the `orders` of a
/// [`PairRow`](crate::PairRow).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OrderReading {
    /// `Greater`: the first response is better; `None` where the text holds no verdict.
    pub verdict: Option<Ordering>,
    /// The probability of each verdict, where it was read.
    pub probabilities: Option<PairProbabilities>,
    /// The log-odds of the first response at each layer (its logit less that of the second one), where layers were read.
    pub layers: Vec<(Layer, f64)>,
}

/// An entry as it is written.
#[derive(Deserialize)]
struct Entry {
    order: String,
    verdict: Option<PairVerdict>,
    probabilities: Option<PairProbabilities>,
    layers: Option<Vec<Layer>>,
    logits: Option<PairLogits>,
}

impl OrderReading {
    /// The `orders` of a row, the given one first; none where the pair could not be asked about.
    ///
    /// # Errors
    /// [`Error::MissingField`] and [`Error::WrongType`], the latter also for orders of other names, and for logits that are not
    /// one for each layer.
    pub fn of_row(row: &Row) -> Result<Vec<Self>, Error> {
        let entries: Vec<Entry> = row.required("orders", EXPECTED)?;
        Self::of_entries(entries).ok_or_else(|| row.wrong("orders", EXPECTED))
    }

    /// The same of the JSON text of a row's `orders`; `None` if it is something else.
    pub fn of_json(orders: &str) -> Option<Vec<Self>> {
        Self::of_entries(serde_json::from_str(orders).ok()?)
    }

    fn of_entries(entries: Vec<Entry>) -> Option<Vec<Self>> {
        let names: Vec<&str> = entries.iter().map(|entry| entry.order.as_str()).collect();
        if !matches!(names[..], [] | ["given"] | ["given", "swapped"]) {
            return None;
        }
        entries.into_iter().map(Self::of_entry).collect()
    }

    fn of_entry(entry: Entry) -> Option<Self> {
        let Entry { verdict, probabilities, layers, logits, .. } = entry;
        let verdict = match verdict {
            None => None,
            Some(verdict) => Some(verdict.ordering()?),
        };
        let in_range = |p: &PairProbabilities| [p.first, p.second, p.tie].iter().all(|p| (0.0..=1.0).contains(p));
        if probabilities.as_ref().is_some_and(|p| !in_range(p)) {
            return None;
        }
        let layers = match (layers, logits) {
            (None, None) => Vec::new(),
            (Some(layers), Some(PairLogits { first, second, .. })) => {
                if layers.len() != first.len() || layers.len() != second.len() {
                    return None;
                }
                let odds = first.into_iter().zip(second).map(|(a, b)| f64::from(a) - f64::from(b));
                layers.into_iter().zip(odds).collect()
            }
            _ => return None,
        };
        Some(Self { verdict, probabilities, layers })
    }
}
