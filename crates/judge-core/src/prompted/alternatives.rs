use super::{PromptFamily, Task};
use crate::{
    reading::{Generated, TokenAlternatives},
    scale::ScoreDistribution,
};

impl PromptFamily {
    /// What the model might have written in place of its grade: the probabilities of the scale's labels at the grade's token, renormalised
    /// over the labels, and the share of the model's probability that lay on them. A label that is not among the
    /// [alternatives](Generated::alternatives) counts 0, so the share is a lower bound. White space around a token is passed over.
    ///
    /// Where one label begins another (`1` and `10`), the token `1` may begin either. It is 1 where some token at the grade's place is a
    /// longer label, which shows that such a label is one token of the model's. Otherwise the alternatives to the token behind it say how
    /// much of it goes on, which are there if the model wrote it; a label of several tokens has the product of their probabilities.
    ///
    /// This is how LAGER's evaluation reads models behind services. `None` where it cannot be read:
    /// for a pair, for a text without a grade or without alternatives, where the grade's tokens are not its own alone, and where a
    /// token among the alternatives may begin several labels and nothing says which.
    pub fn grade_distribution(&self, generated: &Generated) -> Option<(ScoreDistribution, f64)> {
        let Task::Single(convention) = self.task() else { return None };
        let (_, number) = convention.find(&generated.text)?;
        let first =
            generated.alternatives.iter().position(|token| token.start <= number.start && number.start < token.end)?;
        let labels: Vec<&str> = self.scale().labels().collect();
        let tokens = generated.alternatives.get(first..)?;
        let mut read =
            Read { labels: &labels, shares: vec![0.0; labels.len()], has_long: has_long(&labels, tokens.first()?) };
        read.walk(generated.text.get(number.clone())?, number.end, &generated.text, tokens)?;
        let distribution = ScoreDistribution::from_weights(self.scale(), &read.shares).ok()?;
        // Rounding may take a sum of probabilities past 1.
        Some((distribution, read.shares.iter().sum::<f64>().min(1.0)))
    }
}

/// Whether one of these alternatives is a label that another label begins.
fn has_long(labels: &[&str], token: &TokenAlternatives) -> bool {
    let is_long =
        |text: &str| labels.contains(&text) && labels.iter().any(|other| *other != text && text.starts_with(other));
    token.top.iter().any(|(text, _)| is_long(text.trim()))
}

/// The probabilities of labels, read from the alternatives to one token after another.
struct Read<'l> {
    labels: &'l [&'l str],
    shares: Vec<f64>,
    /// Whether labels that another label begins are single tokens.
    has_long: bool,
}

impl Read<'_> {
    /// Follows the tokens of the grade, which stands in the text; `None` where they do not say which label is meant.
    fn walk(&mut self, grade: &str, end: usize, text: &str, tokens: &[TokenAlternatives]) -> Option<()> {
        let (mut before, mut reached) = (String::new(), 1.0);
        for token in tokens {
            let written = text.get(token.start..token.end)?.trim();
            let is_behind = token.start >= end;
            let rest = &grade[before.len()..];
            if !is_behind && (written.is_empty() || !rest.starts_with(written)) {
                return None;
            }
            let mut goes_on = None;
            for (text, log_prob) in &token.top {
                let p = reached * f64::from(*log_prob).exp();
                // White space in front of a number is passed over; behind a part of one it ends it.
                let text = if before.is_empty() { text.trim() } else { text.trim_end() };
                match self.goes_to(&before, text) {
                    Goes::Nowhere => {}
                    Goes::Label(place) => self.shares[place] += p,
                    Goes::On if !is_behind && text == written => goes_on = Some(p),
                    Goes::On => return None,
                }
            }
            match goes_on {
                Some(p) => reached = p,
                None => return (is_behind || rest == written).then_some(()),
            }
            before += written;
        }
        None
    }

    /// What a token means behind a part of a number.
    fn goes_to(&self, before: &str, text: &str) -> Goes {
        let label = |text: &str| self.labels.iter().position(|label| *label == text);
        let begins_longer = |text: &str| self.labels.iter().any(|label| *label != text && label.starts_with(text));
        let whole = format!("{before}{text}");
        let is_next = text.starts_with(|first: char| first.is_ascii_digit());
        if !before.is_empty() && !is_next {
            // What is no digit ends the number.
            return if begins_longer(&whole) { Goes::On } else { label(before).map_or(Goes::Nowhere, Goes::Label) };
        }
        match (label(&whole), begins_longer(&whole)) {
            (Some(place), false) => Goes::Label(place),
            (Some(place), true) if self.has_long && before.is_empty() => Goes::Label(place),
            (_, true) if !text.is_empty() => Goes::On,
            _ if before.is_empty() => Goes::Nowhere,
            // `0]]` behind `1`: a number and what follows it.
            _ => {
                let digits = text.len() - text.trim_start_matches(|found: char| found.is_ascii_digit()).len();
                label(&format!("{before}{}", &text[..digits])).map_or(Goes::Nowhere, Goes::Label)
            }
        }
    }
}

/// What a token means.
enum Goes {
    /// To no label.
    Nowhere,
    /// To this one.
    Label(usize),
    /// To one of several, as the next token says.
    On,
}
