use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::Path;

use judge_core::{ItemId, prompted::PairConvention};

use super::judgebench::{Released, released};
use super::pair::BenchmarkPair;
use crate::rows::ids::{UniqueIds, id_of, plain};
use crate::{Error, OrderReading, Row, Rows, Unread};

/// What a judge said of each pair of a benchmark, in the order of the pairs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PairVerdicts {
    /// Whether the exchanged order was judged.
    pub both_orders: bool,
    /// The verdict in the given order and in the exchanged one, both about the responses as they are given; `None` for a text without one.
    pub orders: Vec<[Option<Ordering>; 2]>,
    /// What was read in either order, probabilities included; `None` for an order that is not there, and in files of what a judge
    /// wrote elsewhere.
    pub readings: Vec<[Option<OrderReading>; 2]>,
    /// Texts that the convention was to find a verdict in; none of rows that have verdicts.
    pub texts: usize,
    /// Those of them in which it found none, besides those that are `null`.
    pub unparsed: usize,
    /// JudgeBench's released rows, and those of them with a decision of another form, which is no verdict.
    pub decisions: Unread,
}

impl PairVerdicts {
    /// Reads verdicts: JSON lines `{"id", "given", "swapped"?}`, of which the latter two are what a judge wrote in either order, sides
    /// named as it saw them; or [`PairRow`](crate::PairRow)s, which have `orders` with verdicts instead, and to which no convention
    /// applies; or JudgeBench's released verdicts, `{"pair_id", "judgments": [{"decision"}, {"decision"}]}`, the second with the answers
    /// exchanged, if there is one. Rows are matched by id, in any order; `1` and `"1"` name the same pair, unless there is one of each. A
    /// text that is `null` has no verdict.
    ///
    /// # Errors
    /// [`Error::At`] for an id that no pair has or that two rows have, [`Error::NoVerdict`] for pairs that no row has;
    /// [`Error::MissingField`] for a row without `given`, or without `swapped` where other rows have it; and whatever is wrong with the
    /// file.
    pub fn read(path: impl AsRef<Path>, pairs: &[BenchmarkPair], convention: PairConvention) -> Result<Self, Error> {
        Self::read_beside(path, pairs, &[], convention)
    }

    /// Reads verdicts as [`read`](Self::read) does, from a file that may have some on `others` too: these are passed over.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_beside(
        path: impl AsRef<Path>,
        pairs: &[BenchmarkPair],
        others: &[BenchmarkPair],
        convention: PairConvention,
    ) -> Result<Self, Error> {
        let path = path.as_ref();
        let of_pairs = pairs.iter().enumerate().map(|(number, pair)| (&pair.id, Some(number)));
        let known: HashMap<&ItemId, Option<usize>> =
            of_pairs.chain(others.iter().map(|pair| (&pair.id, None))).collect();
        let alike: HashMap<String, &ItemId> = known.keys().map(|&id| (plain(id), id)).collect();
        let mut found: Vec<Option<Said>> = vec![None; pairs.len()];
        let (mut ids, mut both_orders) = (UniqueIds::default(), None);
        let (mut texts, mut unparsed, mut decisions) = (0, 0, Unread::default());
        for row in Rows::open(path)? {
            let row = row?;
            let released = released(&row)?;
            let id = released.as_ref().map_or_else(|| id_of(&row), |found| Ok(found.id.clone()))?;
            // `1` and `"1"` are one pair, unless the benchmark has both.
            let named = known.get_key_value(&id).map(|(&id, _)| id).or_else(|| alike.get(&plain(&id)).copied());
            let Some(named) = named else {
                let known = pairs.first().map_or(String::new(), |pair| pair.id.to_string());
                let known = format!("the benchmark has {} pairs, the first is {known}", pairs.len());
                return Err(Error::at(row.place(), format!("no pair has the id {id}; {known}")));
            };
            if let Some(first_line) = ids.first(named, row.place().line) {
                let problem = format!("the pair {named} has a verdict on line {first_line}");
                return Err(Error::at(row.place(), format!("{problem}; each pair has one row: leave one out")));
            }
            let Some(number) = known[named] else { continue };
            if let Some(Released { orders, both_orders: both, odd, .. }) = released {
                if *both_orders.get_or_insert(both) != both {
                    return Err(row.wrong("judgments", "of as many orders as on the rows before"));
                }
                decisions.note(&pairs[number].id, odd);
                found[number] = Some((orders, [None, None]));
                continue;
            }
            if row.has("orders") {
                let orders = OrderReading::of_row(&row)?;
                // A pair that could not be asked about has none.
                if !orders.is_empty() && *both_orders.get_or_insert(orders.len() != 1) != (orders.len() != 1) {
                    return Err(row.wrong("orders", "as many as on the rows before"));
                }
                let mut orders = orders.into_iter();
                let readings = [orders.next(), orders.next()];
                found[number] = Some((readings.each_ref().map(|order| order.as_ref()?.verdict), readings));
                continue;
            }
            let has = |field: &str| row.keys().any(|key| key == field);
            let both = *both_orders.get_or_insert(has("swapped"));
            for field in ["given", "swapped"].into_iter().take(1 + usize::from(both)) {
                if !has(field) {
                    return Err(row.missing(field));
                }
            }
            if !both && has("swapped") {
                return Err(row.wrong("swapped", "absent, as it is on the rows before"));
            }
            let mut verdict = |field| {
                let text = text(&row, field)?;
                let found = text.as_deref().and_then(|text| convention.parse(text));
                unparsed += usize::from(text.is_some() && found.is_none());
                Ok::<_, Error>(found)
            };
            found[number] = Some(([verdict("given")?, verdict("swapped")?.map(Ordering::reverse)], [None, None]));
            texts += 1 + usize::from(both);
        }
        let missing = found.iter().filter(|orders| orders.is_none()).count();
        if let Some((pair, _)) = pairs.iter().zip(&found).find(|(_, orders)| orders.is_none()) {
            let (path, first) = (path.to_path_buf(), pair.id.to_string());
            return Err(Error::NoVerdict { path, missing, pairs: pairs.len(), first });
        }
        let (orders, readings) = found.into_iter().flatten().unzip();
        Ok(Self { both_orders: both_orders.unwrap_or(false), orders, readings, texts, unparsed, decisions })
    }
}

/// The verdict and the reading of each order of a pair.
type Said = ([Option<Ordering>; 2], [Option<OrderReading>; 2]);

/// What a judge wrote; numbers are rendered.
fn text(row: &Row, field: &'static str) -> Result<Option<String>, Error> {
    let Some(json) = row.value(field) else { return Ok(None) };
    let text = crate::rows::row::rendered(json).ok_or_else(|| row.wrong(field, "a string, a number or null"))?;
    Ok(Some(text.into_owned()))
}
