//! Sorting of values that may have no order.
//!
//! Python compares what it has to compare, and raises at the first two values that it cannot. The standard library's sorts take a
//! comparison that never fails and is a total order, and panic where it is none; so nothing here goes through them.

use std::cmp::Ordering;

use super::fault::{Result, refuse};
use super::value::Value;

/// The items by their keys, smallest first, or largest first with `reverse`. Equal keys keep their order, backwards too, as in Python.
///
/// # Errors
/// Two keys without an order (a number and a text, an undefined value, a number that is not a number), and a spent budget. Where two
/// kinds of keys are among the items, every way to sort them compares two of different kinds, so it does not matter which pairs Python
/// would compare.
pub(crate) fn sorted<T>(items: Vec<T>, key: impl Fn(&T) -> &Value, reverse: bool) -> Result<Vec<T>> {
    sort(items, &|a, b| {
        let Some(order) = key(a).order(key(b))? else { return refuse("sorting what is not a number") };
        Ok(if reverse { order.reverse() } else { order })
    })
}

/// A merge sort whose comparison may fail. It is stable, and ends at the first error.
fn sort<T>(mut items: Vec<T>, order: &impl Fn(&T, &T) -> Result<Ordering>) -> Result<Vec<T>> {
    if items.len() < 2 {
        return Ok(items);
    }
    let right = items.split_off(items.len() / 2);
    let mut left = sort(items, order)?.into_iter().peekable();
    let mut right = sort(right, order)?.into_iter().peekable();
    let mut all = Vec::with_capacity(left.len() + right.len());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        all.extend(if order(a, b)?.is_le() { left.next() } else { right.next() });
    }
    all.extend(left);
    all.extend(right);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::fault;

    #[test]
    fn equal_keys_keep_their_order_and_the_first_error_ends_it() {
        let items: Vec<(u64, usize)> = (0..200).map(|i| ((i * 7919) % 13, i as usize)).collect();
        let mut expected = items.clone();
        expected.sort_by_key(|item| item.0);
        assert_eq!(sort(items.clone(), &|a, b| Ok(a.0.cmp(&b.0))).unwrap(), expected);
        expected.sort_by_key(|item| std::cmp::Reverse(item.0));
        assert_eq!(sort(items.clone(), &|a, b| Ok(b.0.cmp(&a.0))).unwrap(), expected);
        assert!(sort(items, &|a, b| if a.0 == 12 || b.0 == 12 { fault("no order") } else { Ok(a.cmp(b)) }).is_err());
    }
}
