//! Tokenizers of folders that have SentencePiece's own file and no `tokenizer.json`.
//!
//! transformers makes the tokenizer of that file and of the class that the folder names, and so does this module: it gives
//! the `tokenizer.json` that stands for both, without special tokens, and adds to [`SpecialTokens`] those that the file
//! and the class know.
//!
//! | class | file | vocabulary and merges | rules |
//! |---|---|---|---|
//! | Llama, Gemma | `tokenizer.model` | BPE; merges in the order of the pieces that they make | those of the class (`class.rs`) |
//! | none | `tokenizer.model` | BPE, merges by the scores of plain pieces; or unigram | those of the file |
//! | XLM-RoBERTa | `sentencepiece.bpe.model`, `tokenizer.model` | unigram, numbered as fairseq does | those of the class |
//! | DeBERTa v2 | `spm.model`, `tokenizer.model` | unigram | those of the class |
//!
//! A folder of the first three rows must say whether a BOS goes before a text (`add_bos_token`): where it does not,
//! releases 4 and 5 of transformers differ.

mod proto;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::PathBuf;

use judge_weights::error::Error as WeightsError;
use judge_weights::read::{names, refuse_stand_in};
use serde_json::{Value, json};
use tokenizers::{AddedToken, Tokenizer};

use self::proto::{Kind, ModelProto};
use super::class::{Class, Maker};
use super::special_tokens::SpecialTokens;
use crate::error::Error;
use crate::file;
use crate::files::Files;
use crate::made::{self, Bpe, Part, SPACE, metaspace, precompiled, replace, replace_all, tokenizer};

/// What goes around a text, and around the two of a pair: names of special tokens, and `A` and `B` for the texts, each
/// with the type of its tokens.
type Around = Vec<(&'static str, u8)>;

/// A tokenizer without its special tokens.
pub(super) struct Made {
    /// The file that it was made of.
    pub(super) path: PathBuf,
    /// Its `tokenizer.json`.
    pub(super) json: Value,
    /// Around one text.
    single: Around,
    /// Around two.
    pair: Around,
}

impl Made {
    /// Makes the tokenizer of a folder without `tokenizer.json`. `special` has what the folder's JSON files say, and gets what
    /// the file and the class add.
    ///
    /// # Errors
    /// `WeightsError::Unsupported` for a class whose tokenizers are not made here, or a setting that is missing or not read;
    /// `WeightsError::MissingFile` where the class's file is absent; `WeightsError::Read`, and [`Error::SentencePiece`] for a damaged
    /// file.
    pub(super) fn of(files: &Files, settings: &Value, special: &mut SpecialTokens) -> Result<Self, Error> {
        let maker = Maker::of_folder(files, settings)?;
        let wanted: &[&'static str] = match maker {
            Maker::XlmRoberta => &[file::SENTENCEPIECE_XLM_R, file::SENTENCEPIECE],
            Maker::DebertaV2 => &[file::SENTENCEPIECE_DEBERTA, file::SENTENCEPIECE],
            Maker::File | Maker::Class(_) => &[file::SENTENCEPIECE],
        };
        let Some(&name) = wanted.iter().find(|name| files.file(name).is_file()) else {
            let (folder, found) = (files.folder().to_owned(), names(files.folder())?);
            return Err(WeightsError::MissingFile { folder, wanted: wanted[0], found }.into());
        };
        let path = files.file(name);
        let bytes = files.bytes(name)?.unwrap_or_default();
        refuse_stand_in(&path, &bytes)?;
        let fault = |problem| Error::SentencePiece { path: path.clone(), problem };
        let model = ModelProto::read(&bytes).map_err(fault)?;
        if model.treat_whitespace_as_suffix {
            let supported = "false: spaces belong to the word behind them";
            return Err(
                WeightsError::unsupported(path, "trainer_spec.treat_whitespace_as_suffix", "true", supported).into()
            );
        }
        if !matches!(model.model_type, 1 | 2) {
            let (found, supported) = (model.model_type.to_string(), "1 (unigram) and 2 (BPE)");
            return Err(WeightsError::unsupported(path, "trainer_spec.model_type", found, supported).into());
        }
        let (json, single, pair) = match maker {
            Maker::File => of_file(&model, settings, special).map_err(fault)?,
            Maker::Class(class) => of_class(&model, class, settings, special),
            Maker::XlmRoberta => xlm_roberta(&model, settings, special).map_err(fault)?,
            Maker::DebertaV2 => deberta_v2(&model, settings, special).map_err(fault)?,
        };
        let (single, pair) = match single {
            Some(single) => (single, pair),
            None => around_as_stated(files, settings)?,
        };
        Ok(Self { path, json, single, pair })
    }

    /// Tells the tokenizer, which has all of its special tokens by now, what goes around a text.
    pub(super) fn surround(&self, tokenizer: &mut Tokenizer, special: &SpecialTokens) -> tokenizers::Result<()> {
        let part = |&(name, kind): &(&'static str, u8)| -> tokenizers::Result<Part<'_>> {
            if matches!(name, "A" | "B") {
                return Ok(Part::Text(name, kind));
            }
            let text = special.named().get(name).ok_or_else(|| format!("there is no {name}"))?;
            let id = tokenizer.token_to_id(text).ok_or_else(|| format!("{name} {text:?} is no token"))?;
            Ok(Part::Token(id.into(), text, kind))
        };
        let parts = |around: &Around| around.iter().map(part).collect::<tokenizers::Result<Vec<_>>>();
        let json = made::around(&parts(&self.single)?, &parts(&self.pair)?);
        tokenizer.with_post_processor(Some(serde_json::from_value::<tokenizers::PostProcessorWrapper>(json)?));
        Ok(())
    }
}

/// BOS and EOS around a text as `tokenizer_config.json` says.
fn around_as_stated(files: &Files, settings: &Value) -> Result<(Around, Around), Error> {
    let flag = |name: &str| settings.get(name).and_then(Value::as_bool);
    let Some(has_bos) = flag("add_bos_token") else {
        return Err(WeightsError::unsupported(
            files.file(file::TOKENIZER_CONFIG),
            "add_bos_token",
            settings.get("add_bos_token").map_or_else(|| "nothing".to_owned(), Value::to_string),
            "true and false beside a SentencePiece model without tokenizer.json: write true to put a BOS before a \
                text, as releases of transformers before 5 did where nothing was said",
        )
        .into());
    };
    let one = |text: &'static str, kind: u8| {
        let bos = has_bos.then_some(("bos_token", kind));
        let eos = flag("add_eos_token").unwrap_or(false).then_some(("eos_token", kind));
        bos.into_iter().chain([(text, kind)]).chain(eos)
    };
    Ok((one("A", 0).collect(), one("A", 0).chain(one("B", 1)).collect()))
}

/// What [`Made`] is made of; `None` around a text where the folder says it.
type Parts = (Value, Option<Around>, Around);

/// A tokenizer by the settings of the file.
fn of_file(model: &ModelProto, settings: &Value, special: &mut SpecialTokens) -> Result<Parts, String> {
    for (name, id, text) in [
        ("bos_token", model.bos_id, &model.bos_piece),
        ("eos_token", model.eos_id, &model.eos_piece),
        ("unk_token", model.unk_id, &model.unk_piece),
    ] {
        if id >= 0 {
            special.default_names(&[(name, text.as_str())]);
        }
    }
    special.default_extra(extra(model, &[Kind::Control]));
    let is_legacy = settings.get("legacy").is_none_or(|legacy| legacy.as_bool() == Some(true));
    if model.add_dummy_prefix {
        special.match_raw_text();
    }
    let texts = if model.model_type == 2 { renamed(model, special) } else { texts(model) };
    let user_defined: Vec<&str> = of_kind(model, Kind::UserDefined).map(|id| texts[id].as_str()).collect();
    let json = if model.model_type == 2 {
        if !texts.contains(&model.unk_piece) {
            return Err(format!("unk_piece is {}, expected the text of a piece", model.unk_piece));
        }
        let rules = Bpe {
            unknown: Some(&model.unk_piece),
            fuses_unknown: true,
            falls_back: model.byte_fallback,
            ignores_merges: !user_defined.is_empty(),
            ..Bpe::default()
        };
        let normal = of_kind(model, Kind::Normal).map(|id| (id, texts[id].as_str(), model.pieces[id].score));
        rules.model(made::numbered(&texts), json!(made::by_score_and_number(&normal.collect::<Vec<_>>())))
    } else {
        unigram(scored(model), model.unk_id, model.byte_fallback)?
    };
    let mut normalizers = Vec::new();
    normalizers.extend(precompiled(&model.precompiled_charsmap));
    if model.remove_extra_whitespaces {
        normalizers.push(replace_all(r"\A +| +\z", ""));
        normalizers.push(replace_all(" {2,}", " "));
    }
    if model.escape_whitespaces {
        normalizers.push(replace(" ", SPACE));
    }
    let mut cuts = Vec::new();
    if model.add_dummy_prefix {
        if is_legacy {
            normalizers.push(replace_all(r"\A▁", "▁▁"));
        }
        cuts.push(metaspace(if is_legacy { "always" } else { "first" }, false));
    }
    if !user_defined.is_empty() {
        let mut longest = user_defined;
        longest.sort_by_key(|text| std::cmp::Reverse(text.chars().count()));
        let pattern = longest.iter().map(|text| escaped(text)).collect::<Vec<_>>().join("|");
        cuts.push(made::split(&pattern));
    }
    let pre_tokenizer =
        if cuts.is_empty() { Value::Null } else { json!({ "type": "Sequence", "pretokenizers": cuts }) };
    let normalizer = json!({ "type": "Sequence", "normalizers": normalizers });
    let decoder = made::decoder_of_spaces(model.byte_fallback, model.add_dummy_prefix);
    Ok((tokenizer(json, normalizer, pre_tokenizer, decoder), None, Around::new()))
}

/// A tokenizer by the rules of a class, which takes every vocabulary for one of BPE.
fn of_class(model: &ModelProto, class: Class, settings: &Value, special: &mut SpecialTokens) -> Parts {
    special.default_names(class.names());
    special.default_extra(extra(model, &[Kind::Control, Kind::UserDefined]));
    let texts = texts(model);
    let bpe = json!({ "type": "BPE", "vocab": made::numbered(&texts), "merges": made::by_order(&texts) });
    let mut json = tokenizer(bpe, Value::Null, Value::Null, Value::Null);
    class.rewrite(&mut json, settings);
    (json, None, Around::new())
}

/// The tokenizer of XLM-RoBERTa. fairseq puts its special tokens before the pieces and leaves out the first three of the
/// file, which are the same ones in another order.
fn xlm_roberta(model: &ModelProto, settings: &Value, special: &mut SpecialTokens) -> Result<Parts, String> {
    special.default_names(&[
        ("bos_token", "<s>"),
        ("eos_token", "</s>"),
        ("unk_token", "<unk>"),
        ("sep_token", "</s>"),
        ("pad_token", "<pad>"),
        ("cls_token", "<s>"),
        ("mask_token", "<mask>"),
    ]);
    special.default_extra(extra(model, &[Kind::Control, Kind::UserDefined]));
    if let Some((id, piece)) = model.pieces.iter().enumerate().take(3).find(|(_, piece)| piece.kind == Kind::Normal) {
        let expected = "of the unknown piece or a control one, as the first three of XLM-RoBERTa are";
        return Err(format!("piece {id} is {:?}, expected {expected}", piece.text));
    }
    // Python's text of a token that is null.
    let own = |name: &str| (special.named().get(name).cloned().unwrap_or_else(|| "None".to_owned()), 0.0);
    let before = ["bos_token", "pad_token", "eos_token", "unk_token"].map(own);
    let pieces = before.into_iter().chain(scored(model).into_iter().skip(3)).chain([own("mask_token")]).collect();
    let scheme = if settings.get("add_prefix_space") == Some(&json!(false)) { "never" } else { "always" };
    let json = made::unigram_of_words(unigram(pieces, 3, false)?, &model.precompiled_charsmap, scheme);
    let single = vec![("bos_token", 0), ("A", 0), ("eos_token", 0)];
    let pair = single.iter().copied().chain([("eos_token", 0), ("B", 0), ("eos_token", 0)]).collect();
    Ok((json, Some(single), pair))
}

/// The tokenizer of DeBERTa v2 and v3. transformers' class normalises in its own way, whatever the file says.
fn deberta_v2(model: &ModelProto, settings: &Value, special: &mut SpecialTokens) -> Result<Parts, String> {
    special.default_names(&[
        ("bos_token", "[CLS]"),
        ("eos_token", "[SEP]"),
        ("unk_token", "[UNK]"),
        ("sep_token", "[SEP]"),
        ("pad_token", "[PAD]"),
        ("cls_token", "[CLS]"),
        ("mask_token", "[MASK]"),
    ]);
    special.default_extra(extra(model, &[Kind::Control, Kind::UserDefined]));
    let flag = |name: &str, default: bool| settings.get(name).and_then(Value::as_bool).unwrap_or(default);
    let mut normalizers = Vec::new();
    if flag("do_lower_case", false) {
        normalizers.push(json!({ "type": "Lowercase" }));
    }
    normalizers.extend([
        replace_all(r"\s{2,}|[\n\r\t]", " "),
        json!({ "type": "NFC" }),
        json!({ "type": "Strip", "strip_left": false, "strip_right": true }),
    ]);
    let mut cuts = Vec::new();
    if flag("split_by_punct", false) {
        cuts.push(json!({ "type": "Punctuation", "behavior": "Isolated" }));
    }
    let scheme = if flag("add_prefix_space", true) { "always" } else { "first" };
    cuts.push(metaspace(scheme, true));
    let pieces = scored(model);
    let unknown = special.named().get("unk_token");
    let unknown = pieces.iter().position(|(text, score)| Some(text) == unknown && *score == 0.0);
    let unknown = unknown.and_then(|id| i32::try_from(id).ok()).unwrap_or(model.unk_id);
    let json = tokenizer(
        unigram(pieces, unknown, false)?,
        json!({ "type": "Sequence", "normalizers": normalizers }),
        json!({ "type": "Sequence", "pretokenizers": cuts }),
        metaspace(scheme, true),
    );
    let single = vec![("cls_token", 0), ("A", 0), ("sep_token", 0)];
    let pair = single.iter().copied().chain([("B", 1), ("sep_token", 1)]).collect();
    Ok((json, Some(single), pair))
}

/// A vocabulary of unigrams. A number of the unknown piece that is none of it is an error here: the crate `tokenizers`
/// would fail on a text.
fn unigram(pieces: Vec<(String, f64)>, unknown: i32, falls_back: bool) -> Result<Value, String> {
    let Some(id) = usize::try_from(unknown).ok().filter(|&id| id < pieces.len()) else {
        return Err(format!("unk_id is {unknown}, expected the number of a piece"));
    };
    Ok(made::unigram(&pieces, id, falls_back))
}

/// The texts of pieces.
fn texts(model: &ModelProto) -> Vec<String> {
    model.pieces.iter().map(|piece| piece.text.clone()).collect()
}

/// The same with their scores.
fn scored(model: &ModelProto) -> Vec<(String, f64)> {
    model.pieces.iter().map(|piece| (piece.text.clone(), f64::from(piece.score))).collect()
}

/// The same with the names that `added_tokens_decoder` has for the numbers of some, unless another piece keeps that name.
fn renamed(model: &ModelProto, special: &SpecialTokens) -> Vec<String> {
    let mut texts = texts(model);
    let renamed = special.added_texts();
    let kept: HashSet<String> =
        texts.iter().enumerate().filter(|(id, _)| !renamed.contains_key(id)).map(|(_, text)| text.clone()).collect();
    for (id, name) in renamed {
        if let Some(text) = texts.get_mut(id).filter(|_| !kept.contains(&name)) {
            *text = name;
        }
    }
    texts
}

/// The numbers of the pieces of a kind.
fn of_kind(model: &ModelProto, kind: Kind) -> impl Iterator<Item = usize> {
    model.pieces.iter().enumerate().filter(move |(_, piece)| piece.kind == kind).map(|(id, _)| id)
}

/// Pieces of some kinds as tokens that are matched whole; those of control are special.
fn extra(model: &ModelProto, kinds: &[Kind]) -> Vec<AddedToken> {
    let pieces = model.pieces.iter().filter(|piece| kinds.contains(&piece.kind));
    pieces.map(|piece| AddedToken::from(&*piece.text, piece.kind == Kind::Control).normalized(false)).collect()
}

/// A text as a regular expression that matches it alone.
fn escaped(text: &str) -> String {
    let escape = |c: char| [(r"\.+*?()|[]{}^$".contains(c)).then_some('\\'), Some(c)];
    text.chars().flat_map(escape).flatten().collect()
}
