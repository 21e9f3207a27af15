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
    cli.lager.check_condition()?;
    tuning(cli, chosen)?;
    model(cli)?;
    asked(cli, chosen.objective)?;
    if cli.plot.is_some() && cli.dry_run {
        return no_effect("--plot", "with --dry-run, which takes one step");
    }
    Ok(())
}

fn no_effect(option: &str, why: &str) -> Result<()> {
    Err(usage(format!("{option} has no effect {why}")))
}

/// The first of these options that is given has no effect.
fn first(given: &[(bool, &str)], why: &str) -> Result<()> {
    given.iter().find(|(given, _)| *given).map_or(Ok(()), |(_, option)| no_effect(option, why))
}

fn tuning(cli: &Cli, chosen: &Chosen) -> Result<()> {
    if chosen.method == Method::Lora {
        return Ok(());
    }
    let given = [
        (cli.rank.is_some(), "--rank"),
        (cli.alpha.is_some(), "--alpha"),
        (!cli.targets.is_empty(), "--targets"),
        (cli.top_blocks.is_some(), "--top-blocks"),
        (cli.rslora, "--rslora"),
    ];
    let by = if cli.method.is_none() { " (the recipe's; --method lora)" } else { "" };
    first(&given, &format!("with --method full, which learns everything{by}"))
}

fn model(cli: &Cli) -> Result<()> {
    let model = &cli.model;
    let given = [
        (model.devices != [Device::Cpu], "--device"),
        (model.dtype.is_some(), "--dtype"),
        (model.weight_form != WeightForm::default(), "--weight-form"),
        (model.kernel.is_some(), "--kernel"),
        (model.packed_cache.is_some(), "--packed-cache"),
        (model.max_batch_tokens.is_some(), "--max-batch-tokens"),
    ];
    first(&given, "here: a model is trained on the CPU in f32")?;
    if !model.adapters.is_empty() {
        return Err(usage(
            "--adapter: a tuned model starts from a folder as it is; `judge merge` merges adapters into one",
        ));
    }
    Ok(())
}

/// Options of how a judge is asked and read.
fn asked(cli: &Cli, objective: Objective) -> Result<()> {
    let Cli { lager, model, .. } = cli;
    match objective {
        Objective::Mark | Objective::Preference => {}
        Objective::Verdict => {
            let given = [(lager.asked.points.is_some(), "--points"), (lager.asked.prefill.is_some(), "--prefill")];
            first(&given, "with --objective verdict, whose labels and opening are the family's")?;
        }
        Objective::Decision => {
            let given = [
                (lager.asked.template.is_some(), "--template"),
                (lager.asked.rubric.is_some(), "--rubric"),
                (lager.asked.prefill.is_some(), "--prefill"),
                (lager.asked.points.is_some(), "--points"),
            ];
            first(&given, "with --objective decision; --decision-prompt or --decision-template has the prompt")?;
            refuse_dressing(model)?;
        }
        Objective::Reward | Objective::Class | Objective::Ordinal | Objective::Completion => {
            let has_classes = matches!(objective, Objective::Class | Objective::Ordinal);
            let given = [
                (lager.asked.template.is_some(), "--template"),
                (lager.asked.rubric.is_some(), "--rubric"),
                (lager.asked.prefill.is_some(), "--prefill"),
                (model.raw_prompt, "--raw-prompt"),
                (lager.asked.points.is_some() && !has_classes, "--points"),
            ];
            first(&given, "with this --objective, which reads whole conversations")?;
        }
    }
    if objective != Objective::Decision {
        let given = [
            (cli.questions.is_some(), "--questions"),
            (cli.decisions.given().is_some(), cli.decisions.given().unwrap_or_default()),
        ];
        first(&given, "but with --objective decision")?;
    }
    if cli.swap.is_some() && objective != Objective::Verdict {
        return no_effect("--swap", "but with --objective verdict");
    }
    if cli.cross_entropy != 1.0 && objective != Objective::Mark {
        return no_effect("--cross-entropy", "but with --objective mark");
    }
    if cli.learn_weights && !matches!(objective, Objective::Mark | Objective::Preference) {
        return no_effect("--learn-weights", "but with --objective mark or preference");
    }
    if !cli.learn_weights {
        let given = [
            (lager.states.is_some(), "--states"),
            (lager.asked.lens() != Lens::Raw, "--lens"),
            (lager.weights.is_some(), "--weights"),
        ];
        first(&given, "without --learn-weights: the last layer is trained, as it is read")?;
    }
    if lager.variant.is_some() || lager.condition != ConditionArg::PromptEnd {
        return Err(usage("--variant and --condition: a judge is tuned where it reads a prompt's end"));
    }
    Ok(())
}
