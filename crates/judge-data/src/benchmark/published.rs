use super::{Benchmark, PairVote};

/// Names and values, each a share from 0 to 1.
pub type Statistics = &'static [(&'static str, f64)];

/// What others report of a judge on a benchmark, to be shown beside one's own figures.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Published {
    /// The judge.
    pub judge: &'static str,
    /// The benchmark's group; `None` for all of it.
    pub group: Option<&'static str>,
    /// By the names of `judge_metrics::comparison::PairComparison`.
    pub statistics: Statistics,
    /// Where the figures are from, and in what they differ from what this project computes under the same names.
    pub source: &'static str,
}

const fn row(
    judge: &'static str,
    group: Option<&'static str>,
    statistics: Statistics,
    source: &'static str,
) -> Published {
    Published { judge, group, statistics, source }
}

const EMPIRICAL: &str = "An Empirical Study of LLM-as-a-Judge (2024)";
const EMPIRICAL_PANDALM: &str =
    "An Empirical Study of LLM-as-a-Judge (2024); gold labels differ on 11 items, and the prompt leaves out the input";
const EMPIRICAL_MTBENCH: &str = "An Empirical Study of LLM-as-a-Judge (2024); how votes became labels is not stated";
const RELEASED: &str = "PandaLM's repository, on its released verdicts; texts without a verdict count as ties";
const AUTOJ: &str = "Auto-J's repository, on its released verdicts";

static PANDALM: [Published; 7] = [
    row(
        "PandaLM-7B",
        None,
        &[("accuracy", 0.6677), ("precision_macro", 0.5738), ("recall_macro", 0.5750), ("f1_macro", 0.5743)],
        RELEASED,
    ),
    row(
        "GPT-3.5",
        None,
        &[("accuracy", 0.7107), ("precision_macro", 0.5879), ("recall_macro", 0.5736), ("f1_macro", 0.5755)],
        RELEASED,
    ),
    row("GPT-3.5", None, &[("accuracy", 0.6296), ("f1_macro", 0.5820)], EMPIRICAL_PANDALM),
    row("GPT-4-0613", None, &[("accuracy", 0.7868), ("f1_macro", 0.7324)], EMPIRICAL_PANDALM),
    row("JudgeLM-7B", None, &[("accuracy", 0.7097), ("f1_macro", 0.6759)], EMPIRICAL_PANDALM),
    row("PandaLM-7B", None, &[("accuracy", 0.6757), ("f1_macro", 0.5749)], EMPIRICAL_PANDALM),
    row("Auto-J-13B", None, &[("accuracy", 0.7147), ("f1_macro", 0.6101)], EMPIRICAL_PANDALM),
];

static AUTO_J: [Published; 6] = [
    row("Auto-J-13B", None, &[("pair_agreement", 0.5496), ("consistency", 0.8341), ("accuracy", 0.5999)], AUTOJ),
    row("GPT-3.5", None, &[("pair_agreement", 0.427)], EMPIRICAL),
    row("GPT-4-0613", None, &[("pair_agreement", 0.563)], EMPIRICAL),
    row("JudgeLM-7B", None, &[("pair_agreement", 0.466)], EMPIRICAL),
    row("PandaLM-7B", None, &[("pair_agreement", 0.400)], EMPIRICAL),
    row("Auto-J-13B", None, &[("pair_agreement", 0.546)], EMPIRICAL),
];

static MT_BENCH: [Published; 5] = [
    row(
        "GPT-4-0613",
        None,
        &[("accuracy", 0.669), ("precision_macro", 0.638), ("recall_macro", 0.622), ("f1_macro", 0.619)],
        EMPIRICAL_MTBENCH,
    ),
    row(
        "JudgeLM-7B",
        None,
        &[("accuracy", 0.487), ("precision_macro", 0.520), ("recall_macro", 0.497), ("f1_macro", 0.487)],
        EMPIRICAL_MTBENCH,
    ),
    row(
        "PandaLM-7B",
        None,
        &[("accuracy", 0.552), ("precision_macro", 0.526), ("recall_macro", 0.494), ("f1_macro", 0.468)],
        EMPIRICAL_MTBENCH,
    ),
    row(
        "Auto-J-13B",
        None,
        &[("accuracy", 0.517), ("precision_macro", 0.502), ("recall_macro", 0.468), ("f1_macro", 0.437)],
        EMPIRICAL_MTBENCH,
    ),
    row(
        "Prometheus-13B",
        None,
        &[("accuracy", 0.532), ("precision_macro", 0.496), ("recall_macro", 0.484), ("f1_macro", 0.471)],
        EMPIRICAL_MTBENCH,
    ),
];

const ZHENG: &str = "Zheng et al. (2023), table 5, without the authors' votes; the paper gives whole percents";

/// Turns are groups.
static MT_BENCH_AGREEMENT: [Published; 6] = [
    row(
        "GPT-4, pairs",
        Some("1"),
        &[("agreement_s1:gpt4_pair:human", 0.66), ("agreement_s2:gpt4_pair:human", 0.85)],
        ZHENG,
    ),
    row(
        "GPT-4, pairs",
        Some("2"),
        &[("agreement_s1:gpt4_pair:human", 0.66), ("agreement_s2:gpt4_pair:human", 0.85)],
        ZHENG,
    ),
    row(
        "GPT-4, single grades",
        Some("1"),
        &[("agreement_s1:gpt4_single:human", 0.60), ("agreement_s2:gpt4_single:human", 0.85)],
        ZHENG,
    ),
    row(
        "GPT-4, single grades",
        Some("2"),
        &[("agreement_s1:gpt4_single:human", 0.59), ("agreement_s2:gpt4_single:human", 0.84)],
        ZHENG,
    ),
    row("human", Some("1"), &[("agreement_s1:human:human", 0.63), ("agreement_s2:human:human", 0.81)], ZHENG),
    row("human", Some("2"), &[("agreement_s1:human:human", 0.67), ("agreement_s2:human:human", 0.82)], ZHENG),
];

static LLM_BAR: [Published; 25] = [
    row("GPT-4-0613", Some("Natural"), &[("accuracy_mean", 0.935)], EMPIRICAL),
    row("GPT-4-0613", Some("Neighbor"), &[("accuracy_mean", 0.642)], EMPIRICAL),
    row("GPT-4-0613", Some("GPTInst"), &[("accuracy_mean", 0.766)], EMPIRICAL),
    row("GPT-4-0613", Some("GPTOut"), &[("accuracy_mean", 0.766)], EMPIRICAL),
    row("GPT-4-0613", Some("Manual"), &[("accuracy_mean", 0.750)], EMPIRICAL),
    row("JudgeLM-7B", Some("Natural"), &[("accuracy", 0.620)], EMPIRICAL),
    row("JudgeLM-7B", Some("Neighbor"), &[("accuracy", 0.231)], EMPIRICAL),
    row("JudgeLM-7B", Some("GPTInst"), &[("accuracy", 0.261)], EMPIRICAL),
    row("JudgeLM-7B", Some("GPTOut"), &[("accuracy", 0.468)], EMPIRICAL),
    row("JudgeLM-7B", Some("Manual"), &[("accuracy", 0.283)], EMPIRICAL),
    row("PandaLM-7B", Some("Natural"), &[("accuracy", 0.590)], EMPIRICAL),
    row("PandaLM-7B", Some("Neighbor"), &[("accuracy", 0.165)], EMPIRICAL),
    row("PandaLM-7B", Some("GPTInst"), &[("accuracy", 0.217)], EMPIRICAL),
    row("PandaLM-7B", Some("GPTOut"), &[("accuracy", 0.426)], EMPIRICAL),
    row("PandaLM-7B", Some("Manual"), &[("accuracy", 0.261)], EMPIRICAL),
    row("Auto-J-13B", Some("Natural"), &[("accuracy", 0.700)], EMPIRICAL),
    row("Auto-J-13B", Some("Neighbor"), &[("accuracy", 0.209)], EMPIRICAL),
    row("Auto-J-13B", Some("GPTInst"), &[("accuracy", 0.217)], EMPIRICAL),
    row("Auto-J-13B", Some("GPTOut"), &[("accuracy", 0.468)], EMPIRICAL),
    row("Auto-J-13B", Some("Manual"), &[("accuracy", 0.239)], EMPIRICAL),
    row("Prometheus-7B", Some("Natural"), &[("accuracy", 0.530)], EMPIRICAL),
    row("Prometheus-7B", Some("Neighbor"), &[("accuracy", 0.224)], EMPIRICAL),
    row("Prometheus-7B", Some("GPTInst"), &[("accuracy", 0.174)], EMPIRICAL),
    row("Prometheus-7B", Some("GPTOut"), &[("accuracy", 0.277)], EMPIRICAL),
    row("Prometheus-7B", Some("Manual"), &[("accuracy", 0.326)], EMPIRICAL),
];

const JUDGEBENCH_RELEASED: &str = "JudgeBench's repository, on its released verdicts of the 350 pairs of GPT-4o";

static JUDGE_BENCH: [Published; 3] = [
    row("Skywork-Reward-Gemma-2-27B", None, &[("accuracy_net", 0.6429)], JUDGEBENCH_RELEASED),
    row("GRM-Gemma-2B", None, &[("accuracy_net", 0.5943)], JUDGEBENCH_RELEASED),
    row("o1-mini-2024-09-12", None, &[("accuracy_net", 0.6571)], JUDGEBENCH_RELEASED),
];

const QWEN: &str = "Qwen2.5's technical report (arXiv 2412.15115), table 15, on the votes of people";

static PPE: [Published; 4] = [
    row("Nemotron-4-340B-Reward", None, &[("accuracy", 0.5928)], QWEN),
    row("Llama-3.1-Nemotron-70B-Reward", None, &[("accuracy", 0.6432)], QWEN),
    row("Athene-RM-70B", None, &[("accuracy", 0.6648)], QWEN),
    row("Qwen2.5-RM-72B", None, &[("accuracy", 0.6480)], QWEN),
];

impl PairVote {
    /// What MT-bench's authors report of the agreement of votes, by turn.
    /// Names are `agreement_s1:JUDGE:JUDGE` with all votes and `agreement_s2:JUDGE:JUDGE` without ties, each judge a
    /// [`kind`](PairVote::kind).
    pub fn published_agreement() -> &'static [Published] {
        &MT_BENCH_AGREEMENT
    }
}

impl Benchmark {
    /// What others report on it. Not all of it is like for like: see each row's [`source`](Published::source).
    pub fn published(self) -> &'static [Published] {
        match self {
            Self::PandaLm => &PANDALM,
            Self::AutoJ => &AUTO_J,
            Self::MtBench => &MT_BENCH,
            Self::LlmBar => &LLM_BAR,
            Self::JudgeBench => &JUDGE_BENCH,
            Self::Ppe => &PPE,
            Self::Hhh | Self::RmBench | Self::RubricBench | Self::HelpSteer3 | Self::Pairs => &[],
        }
    }
}
