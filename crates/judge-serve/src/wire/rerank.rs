//! Requests for scores of documents, in the forms of Cohere, text-embeddings-inference, vLLM and SGLang, told apart by their fields.
//!
//! | form | has | answer |
//! |---|---|---|
//! | Cohere, Jina, vLLM, llama.cpp | `query`, `documents` | `results`, the best first |
//! | text-embeddings-inference | `query`, `texts` | a list, the best first |
//! | vLLM | `text_1`, `text_2` | `data`, in the order of the request |
//! | SGLang, vLLM | `query`, `items`, `label_token_ids` | `scores`, or `data` with the probability of the first label |

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::StatusCode;
use judge_core::rerank::{Activation, RerankItem};
use judge_core::{Reason, Unscored};
use serde_json::{Map, Value, json};

use super::super::paths::GENERATIVE_SCORING;
use super::super::refusal::{Problem, Refusal};
use super::super::reranker::{NextTokens, Scored};
use super::Asked;
use super::fields::{Fields, Problems, each};

/// A request has at most so many documents, as Cohere's.
const DOCUMENTS: usize = 1000;
/// And so many labels.
const LABELS: usize = 128;

/// Of what scores are.
pub(in super::super) enum ScoresOf {
    Documents(Vec<RerankItem>),
    Tokens(NextTokens),
}

/// What of a request its answer is written with.
pub(in super::super) enum ScoreForm {
    Cohere {
        top: usize,
        /// The list of documents as the request has it, where they are returned.
        documents: Option<Value>,
        /// Tokens that a document keeps.
        most_tokens: Option<usize>,
        /// Tokens that each document lost to that.
        lost: Vec<usize>,
    },
    Tei {
        top: usize,
        raw: bool,
        texts: Option<Vec<String>>,
        may_cut: bool,
    },
    Score,
    /// SGLang's, and vLLM's of the same request if `first`.
    Labels {
        first: bool,
    },
}

/// Reads a body in the form that its fields say.
pub(in super::super) fn read(path: &str, body: Map<String, Value>) -> Result<Asked<ScoresOf, ScoreForm>, Refusal> {
    let mut problems = Problems::default();
    let asked = if body.contains_key("items") {
        labels(path, body, &mut problems)
    } else if body.contains_key("texts") {
        tei(body, &mut problems)
    } else if body.contains_key("text_1") || body.contains_key("text_2") {
        pairs(body, &mut problems)
    } else {
        cohere(body, &mut problems)
    };
    problems.or(asked)
}

fn cohere(body: Map<String, Value>, problems: &mut Problems) -> Option<Asked<ScoresOf, ScoreForm>> {
    // Those behind `return_documents` are settings of others' engines, and say nothing of what is scored.
    const KNOWN: [&str; 11] = [
        "model",
        "query",
        "documents",
        "top_n",
        "return_documents",
        "max_chunks_per_doc",
        "max_tokens_per_doc",
        "rank_fields",
        "priority",
        "user",
        "truncate_prompt_tokens",
    ];
    let returned = body.get("documents").filter(|_| body.get("return_documents") == Some(&Value::Bool(true))).cloned();
    let mut fields = Fields::new(body, &[], &KNOWN, problems);
    let model = fields.optional_text("model");
    let query = fields.text("query");
    let documents = texts(&mut fields, "documents");
    let top = whole(&mut fields, "top_n");
    flag(&mut fields, "return_documents", false);
    let most_tokens = whole(&mut fields, "max_tokens_per_doc");
    if let Some(found) = fields.optional("rank_fields").filter(|found| *found != json!(["text"])) {
        fields.wrong("rank_fields", "value_error", "[\"text\"]: of an object, its `text` is read", &found);
    }
    if let Some(found) = fields.optional("truncate_prompt_tokens") {
        let why = "nothing: prompts are cut to what the model reads; max_tokens_per_doc cuts documents";
        fields.wrong("truncate_prompt_tokens", "value_error", why, &found);
    }
    let (query, documents) = (query?, documents?);
    let of = ScoresOf::Documents(vec![RerankItem::new(query, documents)]);
    let form = ScoreForm::Cohere { top: top.unwrap_or(usize::MAX), documents: returned, most_tokens, lost: Vec::new() };
    Some(Asked { model, of, form })
}

fn tei(body: Map<String, Value>, problems: &mut Problems) -> Option<Asked<ScoresOf, ScoreForm>> {
    // `top_n` is LiteLLM's.
    const KNOWN: [&str; 8] =
        ["model", "query", "texts", "top_n", "raw_scores", "return_text", "truncate", "truncation_direction"];
    let mut fields = Fields::new(body, &[], &KNOWN, problems);
    let model = fields.optional_text("model");
    let query = fields.text("query");
    let found = texts(&mut fields, "texts");
    let top = whole(&mut fields, "top_n").unwrap_or(usize::MAX);
    let raw = flag(&mut fields, "raw_scores", false);
    let returns = flag(&mut fields, "return_text", false);
    let may_cut = flag(&mut fields, "truncate", false);
    if let Some(direction) =
        fields.optional_text("truncation_direction").filter(|direction| !direction.eq_ignore_ascii_case("right"))
    {
        fields.wrong("truncation_direction", "value_error", "Right: a text loses its end", &Value::String(direction));
    }
    let (query, found) = (query?, found?);
    let of = ScoresOf::Documents(vec![RerankItem::new(query, found.clone())]);
    Some(Asked { model, of, form: ScoreForm::Tei { top, raw, texts: returns.then_some(found), may_cut } })
}

fn pairs(body: Map<String, Value>, problems: &mut Problems) -> Option<Asked<ScoresOf, ScoreForm>> {
    const KNOWN: [&str; 5] = ["model", "text_1", "text_2", "priority", "user"];
    let mut fields = Fields::new(body, &[], &KNOWN, problems);
    let model = fields.optional_text("model");
    let first = one_or_many(&mut fields, "text_1");
    let second = one_or_many(&mut fields, "text_2");
    let (first, second) = (first?, second?);
    let items = match (&first[..], second.len()) {
        ([query], _) => vec![RerankItem::new(query.clone(), second)],
        (queries, others) if queries.len() == others => {
            first.into_iter().zip(second).map(|(query, document)| RerankItem::new(query, [document])).collect()
        }
        (queries, others) => {
            let loc = fields.at("text_2");
            let msg = format!("expected as many texts as text_1 has, {}, or one text_1, found {others}", queries.len());
            fields.problems().add(&loc, "value_error", msg);
            return None;
        }
    };
    Some(Asked { model, of: ScoresOf::Documents(items), form: ScoreForm::Score })
}

fn labels(path: &str, body: Map<String, Value>, problems: &mut Problems) -> Option<Asked<ScoresOf, ScoreForm>> {
    const KNOWN: [&str; 6] = ["model", "query", "items", "label_token_ids", "apply_softmax", "item_first"];
    let mut fields = Fields::new(body, &[], &KNOWN, problems);
    let model = fields.optional_text("model");
    let query = fields.text("query");
    let items = texts(&mut fields, "items");
    let tokens: Option<Vec<u32>> = fields.list("label_token_ids", 1, LABELS).and_then(|list| {
        let mut tokens = Vec::new();
        for found in list {
            match found.as_u64().and_then(|token| u32::try_from(token).ok()) {
                Some(token) => tokens.push(token),
                None => {
                    fields.wrong("label_token_ids", "int_type", "numbers of tokens", &found);
                    return None;
                }
            }
        }
        Some(tokens)
    });
    let first = path == GENERATIVE_SCORING;
    // As vLLM has it there, and SGLang elsewhere.
    let among = flag(&mut fields, "apply_softmax", first);
    let item_first = flag(&mut fields, "item_first", false);
    let (query, items, tokens) = (query?, items?, tokens?);
    let of = ScoresOf::Tokens(NextTokens { query, items, item_first, tokens, among });
    Some(Asked { model, of, form: ScoreForm::Labels { first } })
}

/// A list of texts, or of objects with one.
fn texts(fields: &mut Fields<'_>, name: &str) -> Option<Vec<String>> {
    let list = fields.list(name, 1, DOCUMENTS)?;
    let at = fields.at(name);
    each(&at, list, |loc, found| {
        let text = match found {
            Value::Object(mut object) => object.shift_remove("text"),
            other => Some(other),
        };
        match text {
            Some(Value::String(text)) => Some(text),
            _ => {
                fields.problems().add(&loc, "string_type", "expected text, or an object with a `text`");
                None
            }
        }
    })
}

fn one_or_many(fields: &mut Fields<'_>, name: &str) -> Option<Vec<String>> {
    match fields.required(name)? {
        Value::String(text) => Some(vec![text]),
        Value::Array(list) if list.iter().all(Value::is_string) => {
            let texts: Vec<String> = list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect();
            fields.is_in(name, texts.len(), 1, DOCUMENTS).then_some(texts)
        }
        found => {
            fields.wrong(name, "string_type", "text or a list of texts", &found);
            None
        }
    }
}

fn flag(fields: &mut Fields<'_>, name: &str, default: bool) -> bool {
    match fields.optional(name) {
        None => default,
        Some(Value::Bool(flag)) => flag,
        Some(found) => {
            fields.wrong(name, "bool_type", "true or false", &found);
            default
        }
    }
}

fn whole(fields: &mut Fields<'_>, name: &str) -> Option<usize> {
    let found = fields.optional(name)?;
    let number = found.as_u64().and_then(|number| usize::try_from(number).ok()).filter(|&number| number > 0);
    if number.is_none() {
        fields.wrong(name, "int_type", "a whole number above 0", &found);
    }
    number
}

/// A number that no other answer of this service has.
fn id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("rerank-{}-{}", now(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn usage(tokens: usize) -> Value {
    json!({"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens})
}

/// vLLM's answer.
fn listed(model: &str, data: Vec<Value>, tokens: usize) -> Value {
    let usage = usage(tokens);
    json!({"id": id(), "object": "list", "created": now(), "model": model, "data": data, "usage": usage})
}

/// Why a document without a score has none, in a form that has no place for it.
fn refused(index: usize, unscored: &Unscored) -> Refusal {
    Refusal::not_answered(&[unscored.reason], format!("document {index}: {unscored}"))
}

/// Documents with a number, the best first, and of equal ones the earlier.
fn ranked(documents: &[Result<f64, Unscored>]) -> Vec<(usize, f64)> {
    let numbered = documents.iter().enumerate();
    let mut ranked: Vec<(usize, f64)> = numbered.filter_map(|(at, found)| Some((at, *found.as_ref().ok()?))).collect();
    ranked.sort_by(|(_, a), (_, b)| (b + 0.0).total_cmp(&(a + 0.0)));
    ranked
}

impl ScoreForm {
    /// An answer with scores of documents.
    pub(in super::super) fn write(
        self,
        model: &str,
        scored: &Scored,
        activation: Activation,
    ) -> Result<Value, Refusal> {
        let Scored { documents, cut, tokens } = scored;
        let lost = |tokens: &[usize], index: usize| tokens.get(index).copied().unwrap_or_default();
        let cut = |index: usize| lost(cut, index);
        let (ranked, all) = (ranked(documents), documents.iter().enumerate());
        let unscored: Vec<(usize, &Unscored)> =
            all.filter_map(|(at, found)| Some((at, found.as_ref().err()?))).collect();
        if let Some((_, why)) = unscored.first().filter(|(_, why)| !self.may_cut() && why.reason == Reason::TooLong) {
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "context_length_exceeded", &why.detail));
        }
        // Only Cohere's form has a place for documents without a score, beside others.
        if let Some(&(index, why)) = unscored.first()
            && (ranked.is_empty() || !matches!(self, Self::Cohere { .. }))
        {
            return Err(refused(index, why));
        }
        match self {
            Self::Cohere { top, documents, most_tokens: _, lost: before } => {
                let cut = |index: usize| cut(index) + lost(&before, index);
                let result = |&(index, raw): &(usize, f64)| {
                    let mut result = json!({"index": index, "relevance_score": activation.at(raw)});
                    if let Some(document) = documents.as_ref().and_then(|documents| documents.get(index)) {
                        // An object keeps all of its fields.
                        result["document"] =
                            if document.is_object() { document.clone() } else { json!({"text": document}) };
                    }
                    if cut(index) > 0 {
                        result["cut_tokens"] = json!(cut(index));
                    }
                    result
                };
                let results: Vec<Value> = ranked.iter().take(top).map(result).collect();
                let mut body = json!({"id": id(), "model": model, "results": results, "usage": usage(*tokens)});
                if !unscored.is_empty() {
                    let why = unscored
                        .iter()
                        .map(|(index, why)| json!({"index": index, "reason": why.reason, "detail": why.detail}));
                    body["unscored"] = Value::Array(why.collect());
                }
                Ok(body)
            }
            Self::Tei { top, raw, texts, .. } => {
                // Whatever the folder says, as there.
                let over = if raw { Activation::Identity } else { Activation::Sigmoid };
                let result = |&(index, number): &(usize, f64)| {
                    let mut result = json!({"index": index, "score": over.at(number)});
                    if let Some(text) = texts.as_ref().and_then(|texts| texts.get(index)) {
                        result["text"] = json!(text);
                    }
                    result
                };
                Ok(Value::Array(ranked.iter().take(top).map(result).collect()))
            }
            Self::Score | Self::Labels { .. } => {
                let score = |(index, raw): (usize, &f64)| {
                    let mut score = json!({"index": index, "object": "score", "score": activation.at(*raw)});
                    if cut(index) > 0 {
                        score["cut_tokens"] = json!(cut(index));
                    }
                    score
                };
                let data: Vec<Value> = documents.iter().flatten().enumerate().map(score).collect();
                Ok(listed(model, data, *tokens))
            }
        }
    }

    /// An answer with probabilities of tokens behind texts.
    pub(in super::super) fn write_labels(
        self,
        model: &str,
        found: Vec<Result<Vec<f64>, Unscored>>,
        tokens: usize,
    ) -> Result<Value, Refusal> {
        let found = found.into_iter().enumerate();
        let rows = found
            .map(|(index, row)| row.map_err(|why| refused(index, &why)))
            .collect::<Result<Vec<Vec<f64>>, Refusal>>()?;
        let Self::Labels { first: true } = self else {
            return Ok(json!({"scores": rows, "model": model, "usage": usage(tokens), "object": "scoring"}));
        };
        let data = rows.iter().enumerate();
        let data: Vec<Value> =
            data.map(|(index, row)| json!({"index": index, "object": "score", "score": row.first()})).collect();
        Ok(listed(model, data, tokens))
    }

    /// Whether what is too long may be cut.
    pub(in super::super) fn may_cut(&self) -> bool {
        !matches!(self, Self::Tei { may_cut: false, .. })
    }
}

/// What is wrong with the numbers of labels, where the vocabulary does not have one.
pub(in super::super) fn check_tokens(tokens: &NextTokens, d_vocab: usize) -> Result<(), Refusal> {
    match tokens.tokens.iter().find(|&&token| token as usize >= d_vocab) {
        None => Ok(()),
        Some(token) => {
            let msg = format!("expected numbers of tokens below {d_vocab}, found {token}");
            Err(Refusal::invalid(vec![Problem::new(&[json!("label_token_ids")], "value_error", msg)]))
        }
    }
}
