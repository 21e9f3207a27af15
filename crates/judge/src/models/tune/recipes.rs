//! Settings of published judges, as defaults of the options.
//!
//! A row says what a paper or its repository says, and leaves open what it does not. What is known to be a defect of a published run is
//! not copied: a loss over the prompt, a warm-up that is longer than the run, rows in both halves of a split, cut texts. Here labels or
//! replies alone count, the warm-up is a share of the steps, and nothing is cut. Dropout is not part of this trainer.

use judge_models::train::Course;

use super::cli::{Method, Objective, Recipe};

/// What a recipe says; what it leaves open is the command's default.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Row {
    pub(super) objective: Option<Objective>,
    pub(super) method: Option<Method>,
    pub(super) rank: Option<usize>,
    pub(super) alpha: Option<f64>,
    pub(super) targets: Option<&'static [&'static str]>,
    pub(super) epochs: Option<u32>,
    pub(super) batch_size: Option<usize>,
    pub(super) lr: Option<f64>,
    pub(super) schedule: Option<Course>,
    pub(super) warmup: Option<f64>,
    pub(super) weight_decay: Option<f64>,
    pub(super) beta2: Option<f64>,
}

impl Recipe {
    /// The settings.
    pub(super) fn row(self) -> Row {
        match self {
            Self::Pandalm => PANDALM,
            Self::Judgelm => JUDGELM,
            Self::AutoJ => AUTO_J,
            Self::Prometheus => PROMETHEUS,
            Self::LagerSft => LAGER_SFT,
            Self::Inspector => INSPECTOR,
        }
    }
}

/// What the judges that write have in common: replies, all tensors, a rate that falls as a cosine.
const WRITTEN: Row = Row {
    objective: Some(Objective::Completion),
    method: Some(Method::Full),
    rank: None,
    alpha: None,
    targets: None,
    epochs: None,
    batch_size: None,
    lr: None,
    schedule: Some(Course::Cosine),
    warmup: Some(0.03),
    weight_decay: Some(0.0),
    beta2: None,
};

/// PandaLM (Wang et al., arXiv 2306.05087; WeOpenML/PandaLM, `pandalm/scripts/inst-tune.sh`). A step has 16 rows on each GPU there; the
/// number of GPUs is not written.
const PANDALM: Row = Row { epochs: Some(3), batch_size: Some(16), lr: Some(2e-5), ..WRITTEN };

/// JudgeLM (Zhu, Wang and Wang, arXiv 2310.17631; baaivision/JudgeLM, README). Its exchange of the two answers is the rows' matter here.
const JUDGELM: Row = Row { epochs: Some(3), batch_size: Some(128), lr: Some(2e-5), ..WRITTEN };

/// Auto-J (Li et al., arXiv 2310.05470; GAIR-NLP/auto-j, README). Rows come in both orders there, made before the training.
const AUTO_J: Row = Row {
    epochs: Some(5),
    batch_size: Some(64),
    lr: Some(1e-5),
    weight_decay: Some(0.1),
    beta2: Some(0.95),
    ..WRITTEN
};

/// Prometheus 2 (Kim et al., arXiv 2405.01535; prometheus-eval/prometheus-eval, `train/recipes/prometheus-v2.0/sft`). A step has 4 rows on
/// each GPU there; the number of GPUs is not written, so the size of a step is the command's.
const PROMETHEUS: Row = Row { epochs: Some(1), lr: Some(1e-5), warmup: Some(0.1), ..WRITTEN };

/// Tuning on selected instructions in LAGER's paper (arXiv 2508.03550).
const LAGER_SFT: Row = Row { epochs: Some(3), batch_size: Some(64), lr: Some(2e-5), ..WRITTEN };

/// The LoRA baseline of INSPECTOR (arXiv 2601.22588; repository Representation-as-a-judge, `tuning_lora.py`). There all tokens of a prompt count and the
/// warm-up has 100 steps, mostly more than the run; here the label counts, and the warm-up is the command's share.
const INSPECTOR: Row = Row {
    objective: Some(Objective::Mark),
    method: Some(Method::Lora),
    rank: Some(16),
    alpha: Some(32.0),
    targets: Some(&["q_proj", "v_proj"]),
    epochs: Some(8),
    batch_size: Some(32),
    lr: Some(1e-4),
    schedule: Some(Course::Linear),
    warmup: None,
    weight_decay: Some(0.01),
    beta2: None,
};
