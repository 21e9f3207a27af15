use std::collections::{BTreeMap, HashMap};

use super::turns::{Line, PASS, Turns};
use crate::{
    Prompt, Reading, Request, Want,
    reading::{LabelLogits, LabelStep},
    request::LabelRead,
};

/// What one judge wants of a pass about one item, and where its outcome goes.
#[derive(Clone)]
pub(super) struct Question {
    /// Number of the item in the run.
    pub(super) item: usize,
    pub(super) judge: usize,
    /// Place in the judge's round.
    pub(super) place: usize,
    pub(super) want: Want,
}

/// One pass over a prompt and the questions that it answers.
pub(super) struct Pass {
    pub(super) request: Request,
    pub(super) questions: Vec<Question>,
    /// Of its prompt, where it may be shared.
    hash: Option<[u8; 32]>,
    /// Bytes of its text, and [`PASS`].
    bytes: usize,
}

/// Passes that wait for the model, by the [source](super::JudgeQueue::submit_from) of their items. Who goes first: [`Turns`].
#[derive(Default)]
pub(super) struct Waiting {
    /// No source without a pass.
    sources: BTreeMap<u64, Line<Pass>>,
    len: usize,
    /// Number of the next pass, counted from the run's first.
    next: usize,
    /// Numbers of those that may be shared, by source and the hash of their prompt.
    by_prompt: HashMap<(u64, [u8; 32]), Vec<usize>>,
    turns: Turns,
}

impl Waiting {
    /// Passes of several sources, which take turns; without that, all are of one source and go in their order.
    pub(super) fn in_turns() -> Self {
        Self { turns: Turns::of_several(), ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a question to a waiting pass over the same prompt, or as a pass of its own. Says whether there is one pass more.
    ///
    /// Only what cannot change an answer is shared: the generation must be the same, or there is none in one of the two. Whether the pass
    /// fails for what another question wants of it is seen when it is answered. A request that contradicts itself is not shared, so that it
    /// is refused in company as it is alone.
    pub(super) fn push(&mut self, source: u64, question: Question, prompt: Prompt) -> bool {
        if question.want.check().is_err() {
            self.push_alone(source, question, prompt);
            return true;
        }
        let hash = hash(&prompt);
        let candidates = self.by_prompt.entry((source, hash)).or_default();
        let line = self.sources.entry(source).or_default();
        for number in candidates.iter() {
            // Numbers of passes that have left are removed from the map.
            let Some(pass) = line.passes.get_mut(number) else { continue };
            if shareable(&pass.request, &prompt, &question.want) {
                unite(&mut pass.request.want, &question.want);
                pass.questions.push(question);
                return false;
            }
        }
        candidates.push(self.next);
        self.add(source, question, prompt, Some(hash));
        true
    }

    /// Adds a question as a pass that is not shared.
    pub(super) fn push_alone(&mut self, source: u64, question: Question, prompt: Prompt) {
        self.add(source, question, prompt, None);
    }

    fn add(&mut self, source: u64, question: Question, prompt: Prompt, hash: Option<[u8; 32]>) {
        let bytes = PASS + prompt.text_bytes();
        let request = Request { prompt, want: question.want.clone() };
        let line = self.sources.entry(source).or_default();
        line.bytes += bytes;
        line.passes.insert(self.next, Pass { request, questions: vec![question], hash, bytes });
        self.next += 1;
        self.len += 1;
    }

    /// The next pass, with its source; none if the turn is over, which [`end_turn`](Self::end_turn) begins anew.
    pub(super) fn pop(&mut self) -> Option<(u64, Pass)> {
        let source = self.turns.next(&self.sources)?;
        let line = self.sources.get_mut(&source)?;
        let (number, pass) = line.passes.pop_first()?;
        line.bytes -= pass.bytes;
        if line.passes.is_empty() {
            self.sources.remove(&source);
        }
        self.forget(source, number, pass.hash);
        self.turns.took(&pass.request.prompt, pass.bytes);
        Some((source, pass))
    }

    /// The model has answered something, or has nothing under way: it may take more.
    pub(super) fn end_turn(&mut self) {
        self.turns.end();
    }

    /// Drops the questions about items that are not kept, and the passes that have no others.
    pub(super) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut gone = Vec::new();
        for (&source, line) in &mut self.sources {
            line.passes.retain(|&number, pass| {
                pass.questions.retain(|question| keep(question.item));
                let stays = !pass.questions.is_empty();
                if !stays {
                    line.bytes -= pass.bytes;
                    gone.push((source, number, pass.hash));
                }
                stays
            });
        }
        self.sources.retain(|_, line| !line.passes.is_empty());
        for (source, number, hash) in gone {
            self.forget(source, number, hash);
        }
    }

    fn forget(&mut self, source: u64, number: usize, hash: Option<[u8; 32]>) {
        self.len -= 1;
        let Some(key) = hash.map(|hash| (source, hash)) else { return };
        if let Some(numbers) = self.by_prompt.get_mut(&key) {
            numbers.retain(|&known| known != number);
            if numbers.is_empty() {
                self.by_prompt.remove(&key);
            }
        }
    }
}

fn hash(prompt: &Prompt) -> [u8; 32] {
    // Equal prompts print equally; different prompts that print equally are told apart by `shareable`.
    match prompt {
        Prompt::Raw(text) => *blake3::hash(text.as_bytes()).as_bytes(),
        chat @ (Prompt::Chat { .. } | Prompt::Whole(_)) => *blake3::hash(format!("{chat:?}").as_bytes()).as_bytes(),
    }
}

fn shareable(pass: &Request, prompt: &Prompt, want: &Want) -> bool {
    let one_text = match (&pass.want.generate, &want.generate) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    one_text && pass.prompt == *prompt
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

/// What a pass brought of what `want` names, as a pass for this alone would have brought it: nothing else, in the order asked for.
pub(super) fn cut(reading: &Reading, want: &Want) -> Reading {
    // Without `..`, so that nothing that a request or a reading gains later can be forgotten here.
    let Want { labels, pooled, attention_entropy, prompt_log_probs, continuations, generate, reply } = want;
    Reading {
        prompt_tokens: reading.prompt_tokens,
        cut_tokens: reading.cut_tokens,
        labels: labels.iter().filter_map(|read| Some(cut_labels(reading.labels(read).ok()?, read))).collect(),
        pooled: picked(pooled, &reading.pooled, |state, wanted| (state.layer, state.pooling) == *wanted),
        attention_entropy: picked(attention_entropy, &reading.attention_entropy, |heads, layer| heads.layer == *layer),
        prompt_log_probs: reading.prompt_log_probs.clone().filter(|_| *prompt_log_probs),
        continuations: picked(continuations, &reading.continuations, |found, text| found.text == *text),
        generated: reading.generated.clone().filter(|_| generate.is_some()),
        reply: picked(reply, &reading.reply, |state, wanted| (state.layer, state.pooling) == *wanted),
    }
}

/// What was read of each that is wanted, in their order.
fn picked<W, R: Clone>(wanted: &[W], read: &[R], is: impl Fn(&R, &W) -> bool) -> Vec<R> {
    wanted.iter().filter_map(|wanted| read.iter().find(|&found| is(found, wanted)).cloned()).collect()
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
            let question = Question { item, judge: 0, place: 0, want: request.want.clone() };
            waiting.push(0, question, request.prompt.clone());
        }
        std::iter::from_fn(|| waiting.pop()).map(|(_, pass)| pass).collect()
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
        let question = |item| Question { item, judge: 0, place: 0, want: labels(&[1], &[0]) };
        let mut waiting = Waiting::default();
        let push = |waiting: &mut Waiting, item| waiting.push(0, question(item), Prompt::user("a"));
        let pop = |waiting: &mut Waiting| waiting.pop().map(|(_, pass)| items(&pass));
        assert!(push(&mut waiting, 0));
        waiting.push_alone(0, question(1), Prompt::user("a"));
        assert!(!push(&mut waiting, 2));
        assert_eq!(pop(&mut waiting), Some(vec![0, 2]));
        assert!(push(&mut waiting, 3));
        assert_eq!(pop(&mut waiting), Some(vec![1]));
        assert!(!push(&mut waiting, 4));
        assert_eq!(pop(&mut waiting), Some(vec![3, 4]));
        assert!(pop(&mut waiting).is_none() && waiting.by_prompt.is_empty());
    }

    #[test]
    fn passes_about_items_that_are_given_up_leave_and_shared_ones_stay_for_the_others() {
        let question = |item| Question { item, judge: 0, place: 0, want: labels(&[1], &[0]) };
        let mut waiting = Waiting::default();
        for (item, text) in [(0, "a"), (1, "a"), (1, "b"), (2, "c")] {
            waiting.push(0, question(item), Prompt::user(text));
        }
        waiting.retain(|item| item != 1);
        assert_eq!(waiting.len(), 2);
        // What left is not joined.
        assert!(waiting.push(0, question(3), Prompt::user("b")));
        let left: Vec<Vec<usize>> = std::iter::from_fn(|| waiting.pop()).map(|(_, pass)| items(&pass)).collect();
        assert_eq!(left, [vec![0], vec![2], vec![3]]);
        assert!(waiting.len() == 0 && waiting.by_prompt.is_empty() && waiting.sources.is_empty());
    }
}
