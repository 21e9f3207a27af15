use super::{PromptFamily, Task};
use crate::{reading::Generated, scale::ScoreDistribution};

impl PromptFamily {
    /// What the model might have written in place of its grade: the probabilities of the scale's labels at the grade's token, renormalised
    /// over the labels, and the share of the model's probability that lay on them. A label that is not among the
    /// [alternatives](Generated::alternatives) counts 0, so the share is a lower bound. White space around a token is passed over.
    ///
    /// This is how LAGER's evaluation reads models behind services. `None` where it cannot be read:
    /// for a pair, for a text without a grade or without alternatives, where the grade is not
    /// one token of its own, and on scales on which one label begins another (`1` and `10`), because the token `1` may then begin either.
    pub fn grade_distribution(&self, generated: &Generated) -> Option<(ScoreDistribution, f64)> {
        let Task::Single(convention) = self.task() else { return None };
        let labels: Vec<&str> = self.scale().labels().collect();
        let begins_another = |label: &&str| labels.iter().any(|other| other != label && other.starts_with(*label));
        if labels.iter().any(begins_another) {
            return None;
        }
        let (_, number) = convention.find(&generated.text)?;
        let written =
            generated.alternatives.iter().find(|token| token.start <= number.start && number.end <= token.end)?;
        if generated.text.get(written.start..written.end)?.trim() != generated.text.get(number)? {
            return None;
        }
        let share = |label: &&str| -> f64 {
            let same = written.top.iter().filter(|(text, _)| text.trim() == *label);
            same.fold(0.0, |sum, (_, log_prob)| sum + f64::from(*log_prob).exp()) // `sum` of none is -0.0
        };
        let shares: Vec<f64> = labels.iter().map(share).collect();
        let distribution = ScoreDistribution::from_weights(self.scale(), &shares).ok()?;
        // Rounding may take a sum of probabilities past 1.
        Some((distribution, shares.iter().sum::<f64>().min(1.0)))
    }
}
