use std::collections::{HashMap, VecDeque};

use crate::{
    Prompt, Reading, Request, Want,
    reading::{LabelLogits, LabelStep},
    request::{LabelRead, ReadAt},
};

/// One judge's request about one item, and where its outcome goes.
#[derive(Clone)]
pub(super) struct Question {
    /// Number of the item in the run.
    pub(super) item: usize,
    pub(super) judge: usize,
    /// Place in the judge's round.
    pub(super) place: usize,
    pub(super) request: Request,
}

/// One pass over a prompt and the questions that it answers.
pub(super) struct Pass {
    pub(super) request: Request,
    pub(super) questions: Vec<Question>,
}

/// Passes that wait for the model, in the order of their first question.
#[derive(Default)]
pub(super) struct Waiting {
    passes: VecDeque<Pass>,
    /// Number of the first one, counted from the run's first pass.
    first: usize,
    /// Numbers of those that may be shared, by the hash of their prompt.
    by_prompt: HashMap<[u8; 32], Vec<usize>>,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.passes.len()
    }

    /// Adds a question to a waiting pass over the same prompt, or as a pass of its own. Says whether there is one pass more.
    ///
    /// Only what cannot change an answer is shared: the generation must be the same, or there is none in one of the two. Whether the pass
    /// fails for what another question wants of it is seen when it is answered. A request that contradicts itself is not shared, so that it
    /// is refused in company as it is alone.
    pub(super) fn push(&mut self, question: Question) -> bool {
        if contradictory(&question.request.want) {
            self.push_alone(question);
            return true;
        }
        let hash = hash(&question.request.prompt);
        let candidates = self.by_prompt.entry(hash).or_default();
        for &number in candidates.iter() {
            let pass = &mut self.passes[number - self.first]; // numbers of taken passes are removed from the map
            if shareable(&pass.request, &question.request) {
                unite(&mut pass.request.want, &question.request.want);
                pass.questions.push(question);
                return false;
            }
        }
        candidates.push(self.first + self.passes.len());
        self.passes.push_back(Pass { request: question.request.clone(), questions: vec![question] });
        true
    }

    /// Adds a question as a pass that is not shared.
    pub(super) fn push_alone(&mut self, question: Question) {
        self.passes.push_back(Pass { request: question.request.clone(), questions: vec![question] });
    }

    /// The next pass.
    pub(super) fn pop(&mut self) -> Option<Pass> {
        let pass = self.passes.pop_front()?;
        let hash = hash(&pass.request.prompt);
        if let Some(numbers) = self.by_prompt.get_mut(&hash) {
            numbers.retain(|&number| number != self.first);
            if numbers.is_empty() {
                self.by_prompt.remove(&hash);
            }
        }
        self.first += 1;
        Some(pass)
    }
}

fn hash(prompt: &Prompt) -> [u8; 32] {
    // Equal prompts print equally; different prompts that print equally are told apart by `shareable`.
    match prompt {
        Prompt::Raw(text) => *blake3::hash(text.as_bytes()).as_bytes(),
        chat @ (Prompt::Chat { .. } | Prompt::Whole(_)) => *blake3::hash(format!("{chat:?}").as_bytes()).as_bytes(),
    }
}

fn shareable(a: &Request, b: &Request) -> bool {
    let one_text = match (&a.want.generate, &b.want.generate) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    one_text && a.prompt == b.prompt
}

fn unite(into: &mut Want, from: &Want) {
    for read in &from.labels {
        match into.labels.iter_mut().find(|known| known.same_place(read)) {
            Some(known) => {
                known.layers.extend(&read.layers);
                known.layers.sort_unstable();
                known.layers.dedup();
                known.label_mass |= read.label_mass;
            }
            None => into.labels.push(read.clone()),
        }
    }
    extend(&mut into.pooled, &from.pooled);
    extend(&mut into.reply, &from.reply);
    extend(&mut into.continuations, &from.continuations);
    into.attention_entropy.extend(&from.attention_entropy);
    into.attention_entropy.sort_unstable();
    into.attention_entropy.dedup();
    into.prompt_log_probs |= from.prompt_log_probs;
    if into.generate.is_none() {
        into.generate.clone_from(&from.generate);
    }
}

/// Whether a model must refuse this, and might not if it were united with another: what is read twice, in no order or
/// of no layer becomes orderly, and there are steps to read if another question generates.
fn contradictory(want: &Want) -> bool {
    let ascending = |layers: &[crate::Layer]| layers.is_sorted_by(|a, b| a < b);
    let twice = |place: usize, read: &LabelRead| want.labels[..place].iter().any(|before| before.same_place(read));
    let label = |(place, read): (usize, &LabelRead)| {
        let steps_of_nothing = read.at != ReadAt::PromptEnd && want.generate.is_none();
        steps_of_nothing || read.layers.is_empty() || !ascending(&read.layers) || twice(place, read)
    };
    let reply_of_nothing = !want.reply.is_empty() && want.generate.is_none();
    !ascending(&want.attention_entropy) || reply_of_nothing || want.labels.iter().enumerate().any(label)
}

/// What a pass brought of what `want` names, as a pass for this alone would have brought it: nothing else, in the order asked for.
pub(super) fn cut(reading: &Reading, want: &Want) -> Reading {
    // Without `..`, so that nothing that a request or a reading gains later can be forgotten here.
    let Want { labels, pooled, attention_entropy, prompt_log_probs, continuations, generate, reply } = want;
    let entropies =
        |layer: &crate::Layer| reading.attention_entropy.iter().find(|heads| heads.layer == *layer).cloned();
    Reading {
        prompt_tokens: reading.prompt_tokens,
        labels: labels.iter().filter_map(|read| Some(cut_labels(reading.labels(read).ok()?, read))).collect(),
        pooled: pooled
            .iter()
            .filter_map(|&(layer, pooling)| {
                reading.pooled.iter().find(|state| (state.layer, state.pooling) == (layer, pooling)).cloned()
            })
            .collect(),
        attention_entropy: attention_entropy.iter().filter_map(entropies).collect(),
        prompt_log_probs: reading.prompt_log_probs.clone().filter(|_| *prompt_log_probs),
        continuations: continuations
            .iter()
            .filter_map(|text| reading.continuations.iter().find(|found| found.text == *text).cloned())
            .collect(),
        generated: reading.generated.clone().filter(|_| generate.is_some()),
        reply: reply
            .iter()
            .filter_map(|&(layer, pooling)| {
                reading.reply.iter().find(|state| (state.layer, state.pooling) == (layer, pooling)).cloned()
            })
            .collect(),
    }
}

/// The layers that were asked for, and the mass if it was.
fn cut_labels(found: &LabelLogits, read: &LabelRead) -> LabelLogits {
    let step = |step: &LabelStep| LabelStep {
        step: step.step,
        token: step.token,
        logits: read.layers.iter().filter_map(|&layer| found.row(step, layer)).flatten().copied().collect(),
        label_mass: step.label_mass.filter(|_| read.label_mass),
    };
    LabelLogits {
        tokens: found.tokens.clone(),
        layers: read.layers.clone(),
        lens: found.lens,
        at: found.at,
        steps: found.steps.iter().map(step).collect(),
    }
}

fn extend<T: Clone + PartialEq>(into: &mut Vec<T>, from: &[T]) {
    for one in from {
        if !into.contains(one) {
            into.push(one.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Layer, Lens,
        request::{Generation, LabelRead, Pooling, ReadAt},
    };

    fn labels(tokens: &[u32], layers: &[usize]) -> Want {
        let layers = layers.iter().map(|&l| Layer(l)).collect();
        let read =
            LabelRead { tokens: tokens.to_vec(), layers, lens: Lens::Raw, at: ReadAt::PromptEnd, label_mass: false };
        Want { labels: vec![read], ..Want::default() }
    }

    fn request(text: &str, want: Want) -> Request {
        Request { prompt: Prompt::user(text), want }
    }

    fn passes(requests: &[Request]) -> Vec<Pass> {
        let mut waiting = Waiting::default();
        for (item, request) in requests.iter().enumerate() {
            waiting.push(Question { item, judge: 0, place: 0, request: request.clone() });
        }
        std::iter::from_fn(|| waiting.pop()).collect()
    }

    fn items(pass: &Pass) -> Vec<usize> {
        pass.questions.iter().map(|question| question.item).collect()
    }

    #[test]
    fn all_that_is_wanted_of_a_prompt_is_united() {
        let pooled = |pairs: &[(usize, Pooling)]| Want {
            pooled: pairs.iter().map(|&(l, p)| (Layer(l), p)).collect(),
            ..Want::default()
        };
        let entropies = |layers: &[usize]| Want {
            attention_entropy: layers.iter().map(|&l| Layer(l)).collect(),
            ..Want::default()
        };
        let mut with_mass = labels(&[1, 2], &[3]);
        with_mass.labels[0].label_mass = true;
        let mut normed = labels(&[1, 2], &[0]);
        normed.labels[0].lens = Lens::Normed;
        let likely = Want { prompt_log_probs: true, continuations: vec!["10".into()], ..Want::default() };
        let text = Want { generate: Some(Generation::default()), ..Want::default() };
        let requests = [
            request("a", pooled(&[(1, Pooling::Mean)])),
            request("b", labels(&[1, 2], &[0])),
            request("a", labels(&[1, 2], &[3, 5])),
            request("a", labels(&[1, 2], &[0, 5])),
            request("a", pooled(&[(2, Pooling::Mean), (1, Pooling::Mean)])),
            request("a", entropies(&[2, 4])),
            request("a", entropies(&[1, 2])),
            request("a", with_mass),
            request("a", normed.clone()),
            request("a", labels(&[2, 1], &[0])),
            request("a", likely.clone()),
            request("a", text.clone()),
        ];
        let found = passes(&requests);
        assert_eq!(found.iter().map(items).collect::<Vec<_>>(), [vec![0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], vec![1]]);
        let mut want = labels(&[1, 2], &[0, 3, 5]);
        want.labels[0].label_mass = true;
        want.labels.extend(normed.labels);
        want.labels.extend(labels(&[2, 1], &[0]).labels);
        want.pooled = vec![(Layer(1), Pooling::Mean), (Layer(2), Pooling::Mean)];
        want.attention_entropy = vec![Layer(1), Layer(2), Layer(4)];
        want = Want { generate: text.generate, ..want };
        want = Want { prompt_log_probs: true, continuations: likely.continuations, ..want };
        assert_eq!(found[0].request, request("a", want));
    }

    #[test]
    fn what_could_change_an_answer_stays_apart() {
        let text = |max_new_tokens| Want {
            generate: Some(Generation { max_new_tokens, ..Generation::default() }),
            ..Want::default()
        };
        let requests = [
            request("a", text(1)),
            request("a", text(2)),
            Request { prompt: Prompt::Raw("a".into()), want: text(1) },
            Request { prompt: Prompt::user("a").with_template_arg("k", true.into()), want: text(1) },
        ];
        assert_eq!(passes(&requests).len(), requests.len());
    }

    #[test]
    fn what_is_taken_or_alone_is_not_joined() {
        let question = |item| Question { item, judge: 0, place: 0, request: request("a", labels(&[1], &[0])) };
        let mut waiting = Waiting::default();
        assert!(waiting.push(question(0)));
        waiting.push_alone(question(1));
        assert!(!waiting.push(question(2)));
        assert_eq!(waiting.pop().map(|pass| items(&pass)), Some(vec![0, 2]));
        assert!(waiting.push(question(3)));
        assert_eq!(waiting.pop().map(|pass| items(&pass)), Some(vec![1]));
        assert!(!waiting.push(question(4)));
        assert_eq!(waiting.pop().map(|pass| items(&pass)), Some(vec![3, 4]));
        assert!(waiting.pop().is_none() && waiting.by_prompt.is_empty());
    }
}
