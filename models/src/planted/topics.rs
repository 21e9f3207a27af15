//! What the questions are about: for each topic its wordings and what fills them.

use super::draw::Draw;
use super::values::{self, Values};
use super::words::Words;

/// The wordings of a topic. `{name}` is filled from the task's values; each list is one place in the text, and one entry is drawn.
#[derive(Debug)]
pub(super) struct Wordings {
    pub(super) questions: &'static [&'static str],
    /// A harmless sentence that may come first in a good answer.
    pub(super) openings: &'static [&'static str],
    /// The first step of the working: what is given.
    pub(super) givens: &'static [&'static str],
    /// The second step: how the result follows.
    pub(super) workings: &'static [&'static str],
    pub(super) conclusions: &'static [&'static str],
    /// A harmless sentence that may come last in a good answer.
    pub(super) closings: &'static [&'static str],
}

/// A kind of question.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) name: &'static str,
    pub(super) wordings: Wordings,
    pub(super) values: fn(&mut Draw, Words) -> Values,
}

/// The topics of the training, validation and test splits.
pub(super) const TRAINED: &[Topic] = &[
    Topic {
        name: "market",
        values: values::sum,
        wordings: Wordings {
            questions: &[
                "{n} buys {a} {x} and {b} {y}. How many things does {n} buy?",
                "{n} has {a} {x} and gets {b} more. How many {x} does {n} have now?",
                "There are {a} {x} and {b} {y} on the table. How many is that in all?",
                "{n} finds {a} {x}, then {b} {y}. What is the total?",
                "A shop still has {a} {x} and {b} {y}. How many things are for sale?",
            ],
            openings: &[
                "We look for a total.",
                "This is about {x}.",
                "We have to add here.",
                "We put the {x} together.",
                "Here two parts make the whole.",
            ],
            givens: &["There are {a} and {b}.", "First there are {a}, then {b} more.", "The numbers are {a} and {b}."],
            workings: &["{a} + {b} = {r}.", "We add: {a} + {b} = {r}.", "So {a} + {b} = {r}."],
            conclusions: &["The answer is {r}.", "It is {r} in all.", "That makes {r}."],
            closings: &[
                "So {b} and {a} give {r}.",
                "Nothing is left out.",
                "All of them are counted.",
                "We can also count them one by one.",
                "Both parts are in it.",
            ],
        },
    },
    Topic {
        name: "sharing",
        values: values::difference,
        wordings: Wordings {
            questions: &[
                "{n} has {a} {x} and gives {b} to {m}. How many {x} are left?",
                "There were {a} {x}. {n} took {b} away. How many are left?",
                "{n} had {a} {x} but lost {b} of them. How many does {n} have now?",
                "Out of {a} {x}, {n} sold {b}. How many {x} stay?",
                "{n} walks home with {a} {x} and drops {b} on the way. How many come home?",
            ],
            openings: &[
                "We look for the rest.",
                "This is about {x}.",
                "We have to take away here.",
                "Some of the {x} are gone.",
                "Not all of them stay here.",
            ],
            givens: &[
                "There were {a} and {b} are gone.",
                "At first there are {a}, then {b} go.",
                "The numbers are {a} and {b}.",
                "We start with {a} and lose {b}.",
            ],
            workings: &["{a} - {b} = {r}.", "We take away: {a} - {b} = {r}.", "So {a} - {b} = {r}."],
            conclusions: &["The answer is {r}.", "There are {r} left.", "That leaves {r}."],
            closings: &[
                "So {r} and {b} give {a}.",
                "Nothing is left out.",
                "The others are gone.",
                "We can also count them one by one.",
            ],
        },
    },
    Topic {
        name: "packing",
        values: values::product,
        wordings: Wordings {
            questions: &[
                "There are {a} boxes with {b} {x} each. How many {x} are there?",
                "{n} packs {b} {x} into each of {a} bags. How many {x} is that?",
                "{n} has {a} rows of {b} {x}. How many {x} does {n} have?",
                "Each of {a} friends brings {b} {x}. How many {x} is that in all?",
                "A train has {a} parts with {b} places each. How many people can it take?",
            ],
            openings: &[
                "We look for a total.",
                "This is about {x}.",
                "We have to multiply here.",
                "All groups are the same.",
            ],
            givens: &["There are {a} times {b}.", "We have {a} groups of {b}.", "The numbers are {a} and {b}."],
            workings: &["{a} x {b} = {r}.", "We multiply: {a} x {b} = {r}.", "So {a} x {b} = {r}."],
            conclusions: &["The answer is {r}.", "It is {r} in all.", "That makes {r}."],
            closings: &[
                "So {b} x {a} gives {r}.",
                "Nothing is left out.",
                "All of them are counted.",
                "We can also count them one by one.",
            ],
        },
    },
    Topic {
        name: "units",
        values: values::units,
        wordings: Wordings {
            questions: &[
                "How many {w} are {a} {v}?",
                "{n} waits for {a} {v} of {w}. How many {w} is that?",
                "Turn {a} {v} into {w}.",
                "{n} has {a} {v}. How many {w} does that make?",
            ],
            openings: &["We go from {v} to {w}.", "This is about {w}.", "We have to multiply here."],
            givens: &["Each of the {v} makes {k} {w}.", "We count {k} {w} each time.", "There are {a} times {k}."],
            workings: &["{a} x {k} = {r}.", "We multiply: {a} x {k} = {r}.", "So {a} x {k} = {r}."],
            conclusions: &["The answer is {r}.", "It is {r} {w}.", "That makes {r}."],
            closings: &["So {k} x {a} gives {r}.", "Nothing is left out.", "The {v} are now {w}."],
        },
    },
    Topic {
        name: "days",
        values: values::days,
        wordings: Wordings {
            questions: &[
                "Today is {d}. Which day is it in {a} days?",
                "{n} leaves on {d} and comes back {a} days later. On which day?",
                "It is {d} now. What day comes {a} days later?",
            ],
            openings: &[
                "We count the days.",
                "This is about the week.",
                "We start from {d}.",
                "We go on day by day.",
                "Here the order of the days matters.",
            ],
            givens: &["The day after {d} is {e}.", "After {d} comes {e}.", "One day later it is {e}."],
            workings: &[
                "{a} days after {d} is {r}.",
                "{d} and {a} days gives {r}.",
                "Going on {a} days from {d} we get to {r}.",
            ],
            conclusions: &["The answer is {r}.", "It is {r}.", "So the day is {r}."],
            closings: &["A week has 7 days.", "No day is left out.", "So from {d} we come to {r}."],
        },
    },
    Topic {
        name: "ages",
        values: values::larger,
        wordings: Wordings {
            questions: &[
                "{n} is {a} years old and {m} is {b}. Who is older?",
                "{n} has {a} {x} and {m} has {b}. Who has more?",
                "{n} scored {a} points, {m} scored {b}. Who scored more?",
                "{n} ran {a} miles and {m} ran {b} miles. Who ran more?",
                "The house of {n} is {a} feet high, the house of {m} is {b}. Whose is higher?",
            ],
            openings: &[
                "We look at two numbers.",
                "We compare {n} and {m}.",
                "The larger number counts.",
                "There are two people here.",
            ],
            givens: &[
                "{n} has {a} and {m} has {b}.",
                "It is {a} for {n} and {b} for {m}.",
                "The numbers are {a} and {b}.",
            ],
            workings: &["{h} is more than {l}.", "{l} is less than {h}.", "Of the two, {h} is more."],
            conclusions: &["The answer is {r}.", "It is {r}.", "So {r} has more."],
            closings: &[
                "The other one has less.",
                "They are not the same.",
                "So {r} is ahead.",
                "No one else is asked for.",
            ],
        },
    },
    Topic {
        name: "lists",
        values: values::neighbour,
        wordings: Wordings {
            questions: &[
                "The list is {list}. Which word comes right after {w}?",
                "In the list {list}, what comes next after {w}?",
                "{n} reads: {list}. Which word does {n} read after {w}?",
                "These stand in a long row: {list}. What is next to {w} on the right?",
            ],
            openings: &[
                "We go along the list.",
                "This is about a list.",
                "We start from {w}.",
                "There are four words.",
                "We need the place of {w}.",
            ],
            givens: &["First we find {w}.", "We look for {w} in the list.", "{w} is in the list."],
            workings: &["After {w} comes {r}.", "{w} is followed by {r}.", "Next to {w} there is {r}."],
            conclusions: &["The answer is {r}.", "It is {r}.", "So the word is {r}."],
            closings: &["The other words do not matter.", "No word is left out.", "So {r} is what we want."],
        },
    },
    Topic {
        name: "boxes",
        values: values::stored,
        wordings: Wordings {
            questions: &[
                "The {c} box holds {x}, the {d} box holds {y} and the {e} box holds {z}. What is in the {q} box?",
                "There are {x} in the {c} bag, {y} in the {d} bag and {z} in the {e} bag. What does the {q} bag hold?",
                "{n} keeps {x} in the {c} jar, {y} in the {d} jar and {z} in the {e} jar. What is in the {q} jar?",
                "The {c} shop sells {x}, the {d} shop {y} and the {e} shop {z}. What can we get in the {q} shop?",
            ],
            openings: &[
                "We read the text again.",
                "This is about the {q} one.",
                "There are three of them.",
                "We only need the {q} one.",
                "Look at the {q} one.",
            ],
            givens: &["We look for the word {q}.", "The colour is {q}.", "We are asked for the {q} one."],
            workings: &["The {q} one holds {r}.", "In the {q} one there are {r}.", "The text says {q} and {r}."],
            conclusions: &["The answer is {r}.", "It is {r}.", "So we find {r}."],
            closings: &["The other colours do not matter.", "Nothing else is in it.", "So {q} goes with {r}."],
        },
    },
];

/// The topics of the shifted split: the same kinds of reasoning about other things, in other sentences.
pub(super) const SHIFTED: &[Topic] = &[
    Topic {
        name: "travel",
        values: values::sum,
        wordings: Wordings {
            questions: &[
                "A train goes {a} miles in the sun and {b} miles in the rain. How many miles does it go?",
                "{n} walks {a} miles to the lake, then {b} to the hill. How long is the way in all?",
            ],
            openings: &["Here we need the whole way.", "The way has two parts."],
            givens: &["One part is {a}, the other part is {b}.", "It goes {a} miles, then {b}."],
            workings: &["The parts are {a} + {b} = {r}.", "In miles: {a} + {b} = {r}."],
            conclusions: &["The way is {r} miles.", "It goes {r} in all."],
            closings: &["No part of the way is left out.", "Then the train is there."],
        },
    },
    Topic {
        name: "shop",
        values: values::difference,
        wordings: Wordings {
            questions: &[
                "A shop has {a} {x} and sells {b} of them. How many {x} does the shop still have?",
                "{n} opens a bag with {a} {x} and loses {b} on the way. How many come home?",
            ],
            openings: &["Here we need what is still there.", "Not all the {x} are there now."],
            givens: &["We start from {a}, and {b} are not there now.", "Of the {a}, there go {b}."],
            workings: &["What is left: {a} - {b} = {r}.", "Still there are {a} - {b} = {r}."],
            conclusions: &["The shop still has {r}.", "Now there are {r}."],
            closings: &["The others are sold or lost.", "No more of them go."],
        },
    },
    Topic {
        name: "queue",
        values: values::queue,
        wordings: Wordings {
            questions: &[
                "These people stand in a row: {list}. Who is right after {w}?",
                "At the lake, {list} go by. Who goes by after {w}?",
            ],
            openings: &["We go along the row of people.", "Here the order of the people counts."],
            givens: &["Look for {w} in the row.", "{w} has a place in the row."],
            workings: &["The one after {w} is {r}.", "Then, after {w}, we see {r}."],
            conclusions: &["The next one is {r}.", "We get to {r}."],
            closings: &["The other people do not count.", "So {r} goes after {w}."],
        },
    },
    Topic {
        name: "owners",
        values: values::owned,
        wordings: Wordings {
            questions: &[
                "{c} has the {x}, {d} has the {y} and {e} has the {z}. What does {q} have?",
                "{c} sells {x}, {d} sells {y} and {e} sells {z}. What can we get from {q}?",
            ],
            openings: &["Here we need to look at {q}.", "There are three people in this."],
            givens: &["The name is {q}.", "Look for {q} in the text."],
            workings: &["The text puts {q} and {r} together.", "From {q} we get {r}."],
            conclusions: &["We find the {r}.", "Those are the {r}."],
            closings: &["The other people have other things.", "So the {r} go with {q}."],
        },
    },
    Topic {
        name: "prices",
        values: values::larger,
        wordings: Wordings {
            questions: &[
                "{n} paid {a} coins and {m} paid {b} coins. Who paid more?",
                "The tree of {n} is {a} feet, and that of {m} is {b}. Who has the larger one?",
            ],
            openings: &["Here we look for the larger of two.", "Two people are in this."],
            givens: &["We look at {a} for {n}, and at {b} for {m}.", "{a} goes with {n} and {b} with {m}."],
            workings: &["The larger is {h}, not {l}.", "From {l} up to {h} it is more."],
            conclusions: &["We find that it is {r}.", "The one we look for is {r}."],
            closings: &["For the other one it is less.", "No one else is in this."],
        },
    },
];
