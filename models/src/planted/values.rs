//! What fills the wordings of a task: its givens, its right result and a plausible wrong one.

use super::draw::Draw;
use super::words::Words;

/// Names and texts for the `{name}` places of a wording.
pub(super) type Filling = Vec<(&'static str, String)>;

/// The givens of a task, and what depends on its result, once right and once wrong.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) given: Filling,
    pub(super) right: Filling,
    pub(super) wrong: Filling,
}

const DAYS: &[&str] = &["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// One many, its parts, and how many parts one makes.
const UNITS: &[(&str, &str, i64)] = &[
    ("weeks", "days", 7),
    ("years", "months", 12),
    ("pairs", "shoes", 2),
    ("yards", "feet", 3),
    ("hands", "fingers", 5),
    ("tables", "legs", 4),
    ("dozens", "eggs", 12),
];

/// Whether a result hangs on what a word means: no other word can stand for it.
pub(super) fn has_meaning(word: &str) -> bool {
    DAYS.contains(&word) || UNITS.iter().any(|(many, parts, _)| word == *many || word == *parts)
}

/// `{a}` and `{b}`, result their sum.
pub(super) fn sum(draw: &mut Draw, words: Words) -> Values {
    let (a, b) = (draw.between(2, 9), draw.between(2, 9));
    arithmetic(draw, words, a, b, a + b)
}

/// `{a}` and a smaller `{b}`, result their difference.
pub(super) fn difference(draw: &mut Draw, words: Words) -> Values {
    let (b, r) = (draw.between(2, 9), draw.between(1, 9));
    arithmetic(draw, words, r + b, b, r)
}

/// `{a}` and `{b}`, result their product.
pub(super) fn product(draw: &mut Draw, words: Words) -> Values {
    let (a, b) = (draw.between(2, 6), draw.between(2, 6));
    arithmetic(draw, words, a, b, a * b)
}

fn arithmetic(draw: &mut Draw, words: Words, a: i64, b: i64, result: i64) -> Values {
    let (names, things) = (words.names(draw, 2), words.things(draw, 2));
    let mut given = number_and(&[("a", a), ("b", b)]);
    given.extend(["n", "m"].into_iter().zip(names));
    given.extend(["x", "y"].into_iter().zip(things));
    numbers(draw, given, result)
}

/// `{a}` of the unit `{v}`, `{k}` `{w}` each.
pub(super) fn units(draw: &mut Draw, words: Words) -> Values {
    let (many, parts, each) = UNITS[draw.below(UNITS.len())];
    let count = draw.between(2, 9);
    let mut given = number_and(&[("a", count), ("k", each)]);
    given.push(("v", many.to_owned()));
    given.push(("w", parts.to_owned()));
    given.extend(["n"].into_iter().zip(words.names(draw, 1)));
    numbers(draw, given, count * each)
}

/// The day `{d}`, the next day `{e}`, and the day `{a}` days later.
pub(super) fn days(draw: &mut Draw, words: Words) -> Values {
    let (start, later) = (draw.below(7), 1 + draw.below(4));
    let off = 1 + draw.below(6);
    let day = |steps: usize| DAYS[(start + steps) % 7].to_owned();
    let mut given = vec![("d", day(0)), ("a", later.to_string())];
    given.extend(["n"].into_iter().zip(words.names(draw, 1)));
    Values {
        given,
        right: vec![("e", day(1)), ("r", day(later))],
        wrong: vec![("e", day(1 + off)), ("r", day(later + off))],
    }
}

/// `{n}` has `{a}`, `{m}` has `{b}`: the higher `{h}`, the lower `{l}`, and who has more.
pub(super) fn larger(draw: &mut Draw, words: Words) -> Values {
    let low = draw.between(2, 19);
    let high = low + draw.between(1, 12);
    let first_is_higher = draw.chance(0.5);
    let (a, b) = if first_is_higher { (high, low) } else { (low, high) };
    let mut names = words.names(draw, 2);
    let mut given = number_and(&[("a", a), ("b", b)]);
    given.extend(["n", "m"].into_iter().zip(names.clone()));
    given.extend(["x"].into_iter().zip(words.things(draw, 1)));
    if !first_is_higher {
        names.reverse();
    }
    let told = |h: i64, l: i64, r: &str| vec![("h", h.to_string()), ("l", l.to_string()), ("r", r.to_owned())];
    Values { given, right: told(high, low, &names[0]), wrong: told(low, high, &names[1]) }
}

/// Four words `{list}`, one of them `{w}`; result the word after it.
pub(super) fn neighbour(draw: &mut Draw, words: Words) -> Values {
    let list = Words::listed(draw, 4);
    let name = words.names(draw, 1);
    following(draw, list, name)
}

/// Four people `{list}`, one of them `{w}`; result the one after.
pub(super) fn queue(draw: &mut Draw, words: Words) -> Values {
    let list = words.names(draw, 4);
    following(draw, list, Vec::new())
}

fn following(draw: &mut Draw, list: Vec<String>, name: Vec<String>) -> Values {
    let at = draw.below(3);
    let mut others: Vec<usize> = (0..4).filter(|&i| i != at && i != at + 1).collect();
    draw.shuffle(&mut others);
    let mut given = vec![("list", list.join(" ")), ("w", list[at].clone())];
    given.extend(["n"].into_iter().zip(name));
    Values { given, right: vec![("r", list[at + 1].clone())], wrong: vec![("r", list[others[0]].clone())] }
}

/// Three colours `{c}`, `{d}`, `{e}` with the things `{x}`, `{y}`, `{z}`; result the things of the colour `{q}`.
pub(super) fn stored(draw: &mut Draw, words: Words) -> Values {
    let keys = Words::colours(draw, 3);
    let name = words.names(draw, 1);
    looked_up(draw, words, keys, name)
}

/// Three people `{c}`, `{d}`, `{e}` with the things `{x}`, `{y}`, `{z}`; result the things of `{q}`.
pub(super) fn owned(draw: &mut Draw, words: Words) -> Values {
    let keys = words.names(draw, 3);
    looked_up(draw, words, keys, Vec::new())
}

fn looked_up(draw: &mut Draw, words: Words, keys: Vec<String>, name: Vec<String>) -> Values {
    let things = words.things(draw, 3);
    let asked = draw.below(3);
    let other = (asked + 1 + draw.below(2)) % 3;
    let mut given = vec![("q", keys[asked].clone())];
    given.extend(["n"].into_iter().zip(name));
    given.extend(["c", "d", "e"].into_iter().zip(keys));
    given.extend(["x", "y", "z"].into_iter().zip(things.clone()));
    Values { given, right: vec![("r", things[asked].clone())], wrong: vec![("r", things[other].clone())] }
}

/// A numeric result, and a wrong one within five of it.
fn numbers(draw: &mut Draw, given: Filling, result: i64) -> Values {
    let by = draw.between(1, 5);
    let wrong = if draw.chance(0.5) && result > by { result - by } else { result + by };
    Values { given, right: vec![("r", result.to_string())], wrong: vec![("r", wrong.to_string())] }
}

fn number_and(numbers: &[(&'static str, i64)]) -> Filling {
    numbers.iter().map(|&(name, number)| (name, number.to_string())).collect()
}
