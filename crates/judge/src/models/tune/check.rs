//! Refusals of options that cannot work together, or would have no effect.

use anyhow::Result;
use judge_cli::args::decisions::refuse_dressing;
use judge_cli::args::lager::ConditionArg;
use judge_cli::terminal::console::usage;
use judge_core::Lens;
use judge_models::{Device, WeightForm};

use super::Cli;
use super::cli::{Method, Objective};
use super::settings::Chosen;

/// Refuses what cannot work, or would have no effect.
pub(super) fn check(cli: &Cli, chosen: &Chosen) -> Result<()> {
    use Objective::{Class, Completion, Decision, Mark, Ordinal, Preference, Reward, Verdict};
    let Cli { lager, model, .. } = cli;
    let (asked, objective) = (&lager.asked, chosen.objective);
    lager.check_condition()?;
    let by = if cli.method.is_none() { " (the recipe's; --method lora)" } else { "" };
    let full = format!("with --method full, which learns everything{by}");
    let full = full.as_str();
    let here = "here: a model is trained on the CPU in f32";
    let verdict = "with --objective verdict, whose labels and opening are the family's";
    let decision = "with --objective decision; --decision-prompt or --decision-template has the prompt";
    let whole = "with this --objective, which reads whole conversations";
    let last = "without --learn-weights: the last layer is trained, as it is read";
    let dry = "with --dry-run, which writes nothing";
    let is_full = chosen.method == Method::Full;
    let [is_verdict, is_decision] = [Verdict, Decision].map(|known| objective == known);
    let has_classes = matches!(objective, Class | Ordinal);
    let is_whole = has_classes || matches!(objective, Reward | Completion);
    let is_weighed = matches!(objective, Mark | Preference);
    let of_decisions = cli.decisions.given();
    // Where an option has no effect, whether it is given, its name, and why.
    let without_effect = [
        (is_full, cli.rank.is_some(), "--rank", full),
        (is_full, cli.alpha.is_some(), "--alpha", full),
        (is_full, !cli.targets.is_empty(), "--targets", full),
        (is_full, cli.top_blocks.is_some(), "--top-blocks", full),
        (is_full, cli.rslora, "--rslora", full),
        (true, model.devices != [Device::Cpu], "--device", here),
        (true, model.dtype.is_some(), "--dtype", here),
        (true, model.weight_form != WeightForm::default(), "--weight-form", here),
        (true, model.kernel.is_some(), "--kernel", here),
        (true, model.packed_cache.is_some(), "--packed-cache", here),
        (true, model.max_batch_tokens.is_some(), "--max-batch-tokens", here),
        (is_verdict, asked.points.is_some(), "--points", verdict),
        (is_verdict, asked.prefill.is_some(), "--prefill", verdict),
        (is_decision, asked.template.is_some(), "--template", decision),
        (is_decision, asked.rubric.is_some(), "--rubric", decision),
        (is_decision, asked.prefill.is_some(), "--prefill", decision),
        (is_decision, asked.points.is_some(), "--points", decision),
        (is_whole, asked.template.is_some(), "--template", whole),
        (is_whole, asked.rubric.is_some(), "--rubric", whole),
        (is_whole, asked.prefill.is_some(), "--prefill", whole),
        (is_whole, model.raw_prompt, "--raw-prompt", whole),
        (is_whole && !has_classes, asked.points.is_some(), "--points", whole),
        (!is_decision, cli.questions.is_some(), "--questions", "but with --objective decision"),
        (!is_decision, of_decisions.is_some(), of_decisions.unwrap_or_default(), "but with --objective decision"),
        (!is_verdict, cli.swap.is_some(), "--swap", "but with --objective verdict"),
        (objective != Mark, cli.cross_entropy != 1.0, "--cross-entropy", "but with --objective mark"),
        (!is_weighed, cli.learn_weights, "--learn-weights", "but with --objective mark or preference"),
        (!cli.learn_weights, lager.states.is_some(), "--states", last),
        (!cli.learn_weights, asked.lens() != Lens::Raw, "--lens", last),
        (!cli.learn_weights, lager.weights.is_some(), "--weights", last),
        (cli.dry_run, cli.plot.is_some(), "--plot", dry),
        (cli.dry_run, cli.json.is_some(), "--json", dry),
    ];
    if let Some((.., option, why)) = without_effect.into_iter().find(|(is_idle, given, ..)| *is_idle && *given) {
        return Err(usage(format!("{option} has no effect {why}")));
    }
    if is_decision {
        refuse_dressing(model)?;
    }
    if !model.adapters.is_empty() {
        return Err(usage(
            "--adapter: a tuned model starts from a folder as it is; `judge merge` merges adapters into one",
        ));
    }
    if lager.variant.is_some() || lager.condition != ConditionArg::PromptEnd {
        return Err(usage("--variant and --condition: a judge is tuned where it reads a prompt's end"));
    }
    Ok(())
}
