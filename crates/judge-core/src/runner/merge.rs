use std::collections::HashMap;

use crate::{LabelRead, Request, Want};

/// One pass over a prompt and the requests (indices) that it answers.
pub(super) struct Pass {
    pub(super) request: Request,
    pub(super) answers: Vec<usize>,
}

/// Requests with equal prompts become one pass that brings all they want, in the order of first appearance.
///
/// Only what cannot change an answer is put together: the generation must be the same (it decides the length, and with it what is too long), and
/// label reads the same but for their layers. Requests marked `alone` are left as they are.
pub(super) fn merge<'r>(requests: impl IntoIterator<Item = (&'r Request, bool)>) -> Vec<Pass> {
    let mut passes: Vec<Pass> = Vec::new();
    let mut by_prompt: HashMap<[u8; 32], Vec<usize>> = HashMap::new();
    for (index, (request, alone)) in requests.into_iter().enumerate() {
        if !alone {
            let candidates = by_prompt.entry(digest(request)).or_default();
            if let Some(&pass) = candidates.iter().find(|&&pass| compatible(&passes[pass].request, request)) {
                unite(&mut passes[pass].request.want, &request.want);
                passes[pass].answers.push(index);
                continue;
            }
            candidates.push(passes.len());
        }
        passes.push(Pass { request: request.clone(), answers: vec![index] });
    }
    passes
}

fn digest(request: &Request) -> [u8; 32] {
    // Equal prompts print equally; different prompts that print equally are told apart by `compatible`.
    *blake3::hash(format!("{:?}", request.prompt).as_bytes()).as_bytes()
}

fn compatible(a: &Request, b: &Request) -> bool {
    let same_labels = match (&a.want.labels, &b.want.labels) {
        (Some(a), Some(b)) => a.tokens == b.tokens && a.lens == b.lens && a.at == b.at,
        _ => true,
    };
    same_labels && a.want.generate == b.want.generate && a.prompt == b.prompt
}

fn unite(into: &mut Want, from: &Want) {
    match (&mut into.labels, &from.labels) {
        (Some(LabelRead { layers, .. }), Some(more)) => {
            layers.extend(&more.layers);
            layers.sort_unstable();
            layers.dedup();
        }
        (none @ None, Some(labels)) => *none = Some(labels.clone()),
        (_, None) => {}
    }
    for pair in &from.pooled {
        if !into.pooled.contains(pair) {
            into.pooled.push(*pair);
        }
    }
    into.attention_entropy.extend(&from.attention_entropy);
    into.attention_entropy.sort_unstable();
    into.attention_entropy.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generation, Layer, Lens, Pooling, Prompt, ReadAt, Sampling};

    fn labels(tokens: &[u32], layers: &[usize]) -> Want {
        let layers = layers.iter().map(|&l| Layer(l)).collect();
        let labels = LabelRead { tokens: tokens.to_vec(), layers, lens: Lens::Raw, at: ReadAt::PromptEnd };
        Want { labels: Some(labels), ..Want::default() }
    }

    fn request(text: &str, want: Want) -> Request {
        Request { prompt: Prompt::user(text), want }
    }

    fn passes(requests: &[Request]) -> Vec<Pass> {
        merge(requests.iter().map(|request| (request, false)))
    }

    #[test]
    fn layers_and_signals_are_united() {
        let pooled = |pairs: &[(usize, Pooling)]| Want {
            pooled: pairs.iter().map(|&(l, p)| (Layer(l), p)).collect(),
            ..Want::default()
        };
        let entropies = |layers: &[usize]| Want {
            attention_entropy: layers.iter().map(|&l| Layer(l)).collect(),
            ..Want::default()
        };
        let requests = [
            request("a", pooled(&[(1, Pooling::Mean)])),
            request("b", labels(&[1, 2], &[0])),
            request("a", labels(&[1, 2], &[3, 5])),
            request("a", labels(&[1, 2], &[0, 5])),
            request("a", pooled(&[(2, Pooling::Mean), (1, Pooling::Mean)])),
            request("a", entropies(&[2, 4])),
            request("a", entropies(&[1, 2])),
        ];
        let found = passes(&requests);
        assert_eq!(found.iter().map(|p| p.answers.clone()).collect::<Vec<_>>(), [vec![0, 2, 3, 4, 5, 6], vec![1]]);
        let mut want = labels(&[1, 2], &[0, 3, 5]);
        want.pooled = vec![(Layer(1), Pooling::Mean), (Layer(2), Pooling::Mean)];
        want.attention_entropy = vec![Layer(1), Layer(2), Layer(4)];
        assert_eq!(found[0].request, request("a", want));
    }

    #[test]
    fn what_could_change_an_answer_stays_apart() {
        let mut generates = labels(&[1, 2], &[0]);
        generates.generate = Some(Generation { max_new_tokens: 1, sampling: Sampling::Greedy });
        let mut normed = labels(&[1, 2], &[0]);
        if let Some(read) = &mut normed.labels {
            read.lens = Lens::Normed;
        }
        let requests = [
            request("a", labels(&[1, 2], &[0])),
            request("a", labels(&[2, 1], &[0])),
            request("a", normed),
            request("a", generates),
            Request { prompt: Prompt::Raw("a".into()), want: labels(&[1, 2], &[0]) },
            Request { prompt: Prompt::user("a").with_template_arg("k", true.into()), want: labels(&[1, 2], &[0]) },
        ];
        assert_eq!(passes(&requests).len(), requests.len());
        assert_eq!(merge([(&requests[0], false), (&requests[0], true), (&requests[0], false)]).len(), 2);
    }
}
