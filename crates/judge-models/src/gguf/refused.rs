//! GGUF files that are no models of text, or more than that: refused by name, whatever lies beside them.

use judge_weights::gguf::header::Header;
use judge_weights::gguf::problem::GgufProblem;

/// Fails if a file is not a model by itself: an adapter, the part of a model that sees, statistics for
/// quantising, or a model with a head that is read in a way of its own.
///
/// # Errors
/// [`GgufProblem::NotRead`].
pub(crate) fn refuse_others(header: &Header) -> Result<(), GgufProblem> {
    let refused = |what: String, read| Err(GgufProblem::NotRead { what, read });
    match header.text("general.type") {
        "" | "model" => {}
        "adapter" => {
            return refused(
                "an adapter in GGUF (general.type \"adapter\")".to_owned(),
                "models: give the adapter as PEFT saves it, beside its base model",
            );
        }
        other => return refused(format!("a file of general.type {other:?}"), "models"),
    }
    if header.text("general.architecture") == "clip" {
        return refused("the part of a model that sees or hears (mmproj)".to_owned(), "the model of text beside it");
    }
    if let Some(key) = header.find_key(|key| key.ends_with(".decision.type")) {
        return refused(format!("a decision model ({key})"), "models of text without a head of decisions");
    }
    Ok(())
}
