//! The command line, and what of it a training and its results depend on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, builder::ArgPredicate};
use judge_cli::args::decisions::DecisionPromptArgs;
use judge_cli::args::layers::LayerList;
use judge_cli::args::model_args::{ModelArgs, SeedArgs};
use judge_cli::args::numbers::{at_least, number, part, positive};
use judge_cli::args::one_of;
use judge_cli::prompts::read_by;
use judge_cli::terminal::console::usage;
use judge_core::ModelInfo;
use judge_data::{Columns, Input, InputFile};
use judge_probe::DataHash;
use judge_probe::training::{GradeScale, GradedRow, Grading, ProbeClassifier, ProbeTraining, View};
use serde_json::json;

use super::rows::{Data, Written};
use super::settings::Settings;

/// The program and its version, which results name.
pub const PROGRAM: &str = concat!("inspector_train ", env!("CARGO_PKG_VERSION"));

/// Train probing judges (INSPECTOR).
///
/// Input: JSON lines {"id", "score"} with "question" and "response", or "prompt", or "messages"; "aspect" and "split" are optional (rows
/// with split "train" are trained on, all others tested on). Or a probing file {"ASPECT": [{"id", "eval_prompt", "score"}, ...]}. Rows
/// without a grade are skipped and counted. Without --input, generated questions and answers with planted defects are judged.
///
/// For each aspect the states of all layers are read once, layers and poolings are chosen by cross-validation on the training rows, and the
/// probe is compared on the other rows with the majority class, surface features, TF-IDF and the same model's prompted score.
/// Output: a folder with ASPECT.safetensors, ASPECT.svg and report.json. It resumes if interrupted, and recognises a finished run.
#[derive(Args)]
pub(crate) struct Cli {
    /// Graded prompts, or question and answer pairs [default: generated ones]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Train a probe of whether a judge is right: its output of `judge compare` on the rows of --input, which people have judged. Read are
    /// the states in which it came to each verdict; compared with is the verdict's own probability
    #[arg(long, value_name = "FILE", requires = "input", conflicts_with_all = ["template", "aspect", "source", "tuned_baseline", "binary"])]
    pub verdicts: Option<PathBuf>,
    /// How far a grade of --verdicts may be from people's mean and still be right [default: 0.5]
    #[arg(long, value_name = "GRADES", value_parser = positive, requires = "verdicts")]
    pub within: Option<f64>,
    /// Train a probe of whether contexts support a sentence, for `judge rag --probe`: the rows of --input are answers whose `sentences` people
    /// have marked, and the states those in which the model is asked about each
    #[arg(long, requires = "input", conflicts_with_all = ["verdicts", "template", "aspect", "source", "tuned_baseline", "binary"])]
    pub rag: bool,
    #[command(flatten)]
    pub decisions: DecisionPromptArgs,
    /// Folder for probes, figures and the report
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace probes of other settings in the output folder
    #[arg(long)]
    pub overwrite: bool,
    /// Folder for the states, which another run can reuse [default: OUTPUT/states]
    #[arg(long, value_name = "DIR")]
    pub states: Option<PathBuf>,
    /// Aspects to train on (repeatable) [default: all]. Built-in prompts exist for semantic_consistency, logicality, informativeness,
    /// fluency and factuality
    #[arg(long, value_name = "NAME")]
    pub aspect: Vec<String>,
    /// Prompt of rows with question and response [default: the aspect's own, for grades from 1 to 5; without an aspect what
    /// `judge score` asks, by judge_template.json of the model folder if --scale is 1-5, else by the built-in prompt for --scale]
    #[arg(long, value_name = "FILE.json")]
    pub template: Option<PathBuf>,
    /// Columns that hold the fields, e.g. response=completion,human=grade [default: the names listed in docs/files.md]
    #[arg(long, value_name = "FIELD=COLUMN,...", default_value = "", hide_default_value = true)]
    pub columns: Columns,
    /// Field whose rows stay on one side of every split [default: the question, nearly equal texts, and a field whose values repeat as
    /// those of a question's number do, which a note names]
    #[arg(long, value_name = "FIELD")]
    pub group: Option<String>,
    /// Field that says where a row comes from, for the report of artefacts
    #[arg(long, value_name = "FIELD")]
    pub source: Option<String>,

    /// Lowest and highest grade; a grade outside is an error. Grades between whole ones are rounded (2.5 to 3), and counted. Of --verdicts
    /// and --rag they are 0-1
    #[arg(
        long,
        value_name = "LOW-HIGH",
        default_value = "1-5",
        default_value_if("verdicts", ArgPredicate::IsPresent, "0-1"),
        default_value_if("rag", ArgPredicate::Equals("true".into()), "0-1"),
        allow_hyphen_values = true,
        help_heading = "Training"
    )]
    pub scale: GradeScale,
    /// Two classes, grades of at least --threshold and those below, instead of one for each whole grade
    #[arg(long, help_heading = "Training")]
    pub binary: bool,
    /// Lowest grade of the upper class (only with --binary)
    #[arg(long, value_name = "GRADE", value_parser = number, requires = "binary", help_heading = "Training")]
    pub threshold: Option<f64>,
    /// Layers to choose from: all, last, or a list such as 0,5,12-16; blocks above the highest are not run
    #[arg(long, default_value = "all", value_name = "LIST", help_heading = "Training")]
    pub layers: LayerList,
    /// Poolings to choose from, several as last,mean: of the prompt first, last, mean, min, max, or concat (min, max and mean side by side);
    /// of what the judge of --verdicts wrote reply_last, reply_mean, or thought_end (where its thought ends) [default: last,mean; of
    /// --verdicts in words reply_last,reply_mean]
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Training")]
    pub pooling: Vec<View>,
    /// Add the attention entropy of each head to the states of its layer
    #[arg(long, help_heading = "Training")]
    pub attention_entropy: bool,
    /// Logistic regression or a linear support vector machine (svm), with balanced classes; or brier, for probabilities: logistic regression
    /// trained by the Brier score, rows counting alike, and chosen by it. Of --verdicts and --rag brier unless it is named
    #[arg(
        long,
        value_parser = one_of(&[("logistic", ProbeClassifier::Logistic), ("brier", ProbeClassifier::Brier), ("svm", ProbeClassifier::LinearKernelSvc)]),
        default_value = "logistic",
        default_value_if("verdicts", ArgPredicate::IsPresent, "brier"),
        default_value_if("rag", ArgPredicate::Equals("true".into()), "brier"),
        help_heading = "Training"
    )]
    pub classifier: ProbeClassifier,
    /// Values of C (inverse regularisation strength, as in scikit-learn) to choose from
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = positive,
        default_value = "0.001,0.01,0.1,1",
        help_heading = "Training"
    )]
    pub c: Vec<f64>,
    /// Most layers that a probe may read
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(1), default_value_t = 5, help_heading = "Training")]
    pub top_k: usize,
    /// Folds of the cross-validation
    #[arg(long, value_name = "N", value_parser = at_least::<usize>(2), default_value_t = 5, help_heading = "Training")]
    pub folds: usize,
    /// Share of rows to test on, where no split is given
    #[arg(long, value_name = "SHARE", value_parser = part, default_value_t = 0.2, help_heading = "Training")]
    pub test_share: f64,
    /// Seed of the choice of rows to test on
    #[arg(long, value_name = "SEED", value_parser = at_least::<u32>(0), default_value_t = 731, help_heading = "Training")]
    pub split_seed: u32,
    /// Split rows as the published protocol does, so that a question may be on both sides
    #[arg(long, help_heading = "Training")]
    pub ungrouped: bool,

    /// Compare the probe with the same model tuned on the same rows too: an adapter (LoRA) that learns their grades where the prompt asks for
    /// them, on the CPU in f32
    #[arg(long, help_heading = "Tuned baseline")]
    pub tuned_baseline: bool,
    /// How often the tuned baseline sees each row
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = at_least::<u32>(1),
        requires = "tuned_baseline",
        help_heading = "Tuned baseline"
    )]
    pub tuned_epochs: u32,
    /// The tuned baseline's highest learning rate
    #[arg(
        long,
        value_name = "RATE",
        default_value_t = 2e-4,
        value_parser = positive,
        requires = "tuned_baseline",
        help_heading = "Tuned baseline"
    )]
    pub tuned_lr: f64,
    /// How many of the last blocks get an adapter [default: all]; the blocks below run once for each row
    #[arg(long, value_name = "K", value_parser = at_least::<usize>(1), requires = "tuned_baseline", help_heading = "Tuned baseline")]
    pub tuned_top_blocks: Option<usize>,

    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub seed: SeedArgs,
}

impl Cli {
    /// What clap cannot check.
    pub fn check(&self) -> Result<()> {
        if (self.verdicts.is_some() || self.rag) && self.classifier == ProbeClassifier::LinearKernelSvc {
            return Err(usage(
                "--classifier svm gives no probabilities: of --verdicts and --rag it is brier or logistic",
            ));
        }
        if let Some(option) = self.decisions.given().filter(|_| !self.rag) {
            return Err(usage(format!("{option} has no effect without --rag")));
        }
        Ok(())
    }

    /// Where states are kept.
    pub fn states_folder(&self) -> PathBuf {
        self.states.clone().unwrap_or_else(|| self.output.join("states"))
    }

    /// The poolings to choose from, which suit what is read.
    fn views(&self, data: &Data) -> Result<Vec<View>> {
        if let Some(view) = self.pooling.iter().find(|view| view.is_of_reply() && data.written.is_none()) {
            return Err(usage(format!("--pooling {view} is of what a judge writes: it needs --verdicts in words")));
        }
        Ok(match (self.pooling.as_slice(), &data.written) {
            ([], None) => vec![View::Last, View::Mean],
            ([], Some(_)) => vec![View::ReplyLast, View::ReplyMean],
            (chosen, _) => chosen.to_vec(),
        })
    }

    /// The settings of the training, but for the layers, whose number the model knows.
    ///
    /// # Errors
    /// A usage error for a pooling of texts where none is written.
    pub fn training(&self, data: &Data) -> Result<ProbeTraining> {
        Ok(ProbeTraining {
            grading: if self.binary { Grading::AtLeast(self.threshold.unwrap_or(4.0)) } else { Grading::Whole },
            scale: self.scale,
            views: self.views(data)?,
            attention_entropy: self.attention_entropy,
            classifier: self.classifier,
            c: self.c.clone(),
            top_k: self.top_k,
            folds: self.folds,
            test_share: self.test_share,
            split_seed: self.split_seed,
            grouped: !self.ungrouped,
            ..ProbeTraining::default()
        })
    }

    /// What results depend on and is known before the model is loaded.
    pub fn settings(&self, input: Option<&Input>, data: &Data) -> Result<Settings> {
        let training = self.training(data)?;
        let input = input.map(|input| input.identity().map(|file| file.blake3)).transpose()?;
        let verdicts = self.verdicts.as_ref().map(InputFile::of).transpose()?;
        let templates: BTreeMap<&String, &str> = data.templates.iter().map(|(name, of)| (name, of.id())).collect();
        let settings = json!({
            "program": PROGRAM,
            "input_blake3": input,
            "verdicts_blake3": verdicts.as_ref().map(|file| &file.blake3),
            "within": self.within,
            "rag": self.rag,
            "limit": self.model.limit,
            "seed": self.seed.seed,
            "aspects": data.rows.keys().collect::<Vec<_>>(),
            "templates": templates,
            "raw_prompt": self.model.raw_prompt,
            "template_args": self.model.template_args,
            "date": self.model.date.to_string(),
            "columns": self.columns.to_string(),
            "group": self.group,
            "source": self.source,
            "scale": training.scale,
            "grading": training.grading,
            "layers": self.layers.to_string(),
            "pooling": training.views,
            "attention_entropy": training.attention_entropy,
            "classifier": training.classifier,
            "c": training.c,
            "top_k": training.top_k,
            "folds": training.folds,
            "test_share": training.test_share,
            "split_seed": training.split_seed,
            "grouped": training.grouped,
            "tuned_baseline": self.tuned_baseline.then(|| json!([self.tuned_epochs, self.tuned_lr, self.tuned_top_blocks])),
            "calibration": training.calibration.map(|calibrator| calibrator.level),
        });
        Ok(serde_json::from_value(settings)?)
    }

    /// What results depend on besides.
    pub fn model_settings(&self, model: &ModelInfo) -> Settings {
        let fields = [("model_fingerprint", &model.fingerprint), ("dtype", &model.dtype), ("device", &model.device)];
        fields.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
    }

    /// What the states of an aspect depend on.
    pub fn states_settings(
        &self,
        model: &ModelInfo,
        rows: &[GradedRow],
        written: Option<&Written>,
    ) -> Result<BTreeMap<String, String>> {
        let mut hash = DataHash::new();
        for row in rows {
            hash.add(&serde_json::to_vec(&row.prompt)?);
        }
        if let Some(written) = written {
            hash.add(&serde_json::to_vec(&written.generation)?);
            written.texts.iter().for_each(|text| hash.add(text.as_bytes()));
        }
        Ok(read_by(PROGRAM, hash.finish(), model, &self.model))
    }
}
