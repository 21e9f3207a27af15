//! What else a model could be read with on this processor: other kernels, and weights of eight bits.

use anyhow::Result;
use judge_models::{Device, Kernel, Model, WeightForm};
use serde_json::{Value, json};

use judge_cli::args::model_args::ModelArgs;
use judge_cli::terminal::console::usage;

/// A kernel and a form of the weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Way {
    kernel: Kernel,
    weight_form: WeightForm,
}

impl Way {
    /// Those that might be faster than what the options name: kernels of floats with vectors as wide, kernels of integers where the model
    /// keeps codes, and otherwise weights of eight bits with each of these.
    ///
    /// # Errors
    /// A usage error where the model does not run on the processor.
    pub(super) fn others(args: &ModelArgs, model: &Model) -> Result<Vec<Self>> {
        if args.devices.iter().any(|&device| device != Device::Cpu) {
            return Err(usage("--others is for --device cpu: kernels and forms of weights are the processor's"));
        }
        let available = Kernel::available();
        // The one that is named, or else the fastest.
        let Some(current) = args.kernel.or_else(|| available.first().copied()) else { return Ok(Vec::new()) };
        let has = |wider| available.contains(&wider);
        let [has_floats, has_integers] = [has(Kernel::Avx512), has(Kernel::Avx512Vnni)];
        let is_narrow = |kernel: &Kernel| match kernel {
            Kernel::Avx2 => has_floats,
            Kernel::Avx2Int8 => has_integers,
            other => *other == Kernel::Portable,
        };
        let (integers, floats): (Vec<Kernel>, Vec<Kernel>) =
            available.into_iter().filter(|kernel| !is_narrow(kernel)).partition(|kernel| kernel.multiplies_integers());
        let keeps_codes = current.multiplies_integers() || model.kernel_of_integers().is_some();
        let weight_form = args.weight_form;
        let mut ways: Vec<Self> = floats.into_iter().map(|kernel| Self { kernel, weight_form }).collect();
        if keeps_codes {
            ways.extend(integers.into_iter().map(|kernel| Self { kernel, weight_form }));
        } else {
            let kernels = [current].into_iter().chain(integers);
            ways.extend(kernels.map(|kernel| Self { kernel, weight_form: WeightForm::Int8 }));
        }
        ways.retain(|&way| way != Self { kernel: current, weight_form });
        Ok(ways)
    }

    /// The options of a model that is read in this way.
    pub(super) fn args(self, args: &ModelArgs) -> ModelArgs {
        let mut args = args.clone();
        (args.kernel, args.weight_form, args.quiet) = (Some(self.kernel), self.weight_form, true);
        args
    }

    /// The options as they are written.
    fn text(self) -> String {
        match self.weight_form {
            WeightForm::Int8 => format!("--weight-form int8 --kernel {}", self.kernel),
            _ => format!("--kernel {}", self.kernel),
        }
    }
}

/// A way, and how many times as fast it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) way: Way,
    pub(super) read_s: f64,
    pub(super) ratio: f64,
}

impl Measured {
    /// For machines.
    pub(super) fn json(&self) -> Value {
        let Way { kernel, weight_form } = self.way;
        json!({"kernel": kernel.to_string(), "weight_form": weight_form.to_string(), "read_s": self.read_s, "ratio": self.ratio})
    }
}

/// Differences below this are not told apart from those between two readings.
const SAME: f64 = 1.05;

/// The line that says what is faster.
pub(super) fn line(mut measured: Vec<Measured>) -> String {
    measured.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let said = |one: &Measured| format!("{} ({:.2} times as fast)", one.way.text(), one.ratio);
    let faster: Vec<String> = measured.iter().filter(|one| one.ratio > SAME).map(said).collect();
    match (measured.first(), faster.is_empty()) {
        (None, _) => "nothing: there is no other way on this processor".to_owned(),
        (Some(best), true) => format!("nothing; next is {}", said(best)),
        (Some(_), false) => faster.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faster_ways_are_named_by_speed_and_others_are_not() {
        let measured = |kernel, weight_form, ratio| Measured { way: Way { kernel, weight_form }, read_s: 1.0, ratio };
        let slow = measured(Kernel::Avx512, WeightForm::AsStored, 0.5);
        let same = measured(Kernel::Avx512Bf16, WeightForm::AsStored, 1.04);
        let fast = measured(Kernel::Avx512Vnni, WeightForm::AsStored, 1.5);
        let fastest = measured(Kernel::AmxInt8, WeightForm::Int8, 2.0);
        assert_eq!(
            line(vec![slow, fast, same, fastest]),
            "--weight-form int8 --kernel amx-int8 (2.00 times as fast), --kernel avx512-vnni (1.50 times as fast)"
        );
        assert_eq!(line(vec![slow, same]), "nothing; next is --kernel avx512-bf16 (1.04 times as fast)");
        assert_eq!(line(Vec::new()), "nothing: there is no other way on this processor");
    }
}
