//! The model that ships with the repository is what its training example says, and it judges.

#[path = "../train/folder.rs"]
mod folder;
#[path = "../train/lesson.rs"]
mod lesson;
#[path = "../train/tokenizer.rs"]
mod tokenizer;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use judge_core::{
    Backbone, PromptTemplate, Runner, Scale,
    lager::{LagerJudge, LagerSettings, Variant},
    runner::RunEvent,
};
use judge_metrics::correlation::spearman;
use judge_models::{LoadOptions, Model};
use tiny_judge::planted::{Defect, Severity, Split, generate, prompt};

fn embedded_model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(tiny_judge::NAME)
}

fn judge_template() -> PromptTemplate {
    let text = fs::read_to_string(embedded_model().join("judge_template.json")).unwrap();
    judge_core::settings::settings_from_json(&text).unwrap()
}

/// What a program carries is the folder, but for its page.
#[test]
fn the_files_that_a_program_carries_are_the_folders() {
    let unpacked = tempfile::tempdir().unwrap();
    tiny_judge::write(unpacked.path()).unwrap();
    let names = |folder: &Path| -> Vec<_> {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.retain(|name| name != "README.md");
        names.sort();
        names
    };
    assert_eq!(names(unpacked.path()), names(&embedded_model()));
    for name in names(unpacked.path()) {
        assert!(
            fs::read(unpacked.path().join(&name)).unwrap() == fs::read(embedded_model().join(&name)).unwrap(),
            "{name:?}"
        );
    }
}

#[test]
fn training_makes_a_model_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_train-tiny-judge"));
    let output = program.args(["--out", "model", "--steps", "3", "--checkpoint-every", "2", "--quiet"]);
    let output = output.current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let model = Model::load(folder.path().join("model"), &LoadOptions::default()).unwrap();
    assert_eq!(model.info().n_layers, 6);
}

#[test]
fn the_folder_is_what_the_example_writes() {
    let written = tempfile::tempdir().unwrap();
    let tokenizer = tokenizer::train(folder::D_VOCAB, folder::TOKENIZER_ITEMS, 0).unwrap();
    folder::write(written.path(), &tokenizer).unwrap();
    for file in fs::read_dir(written.path()).unwrap() {
        let name = file.unwrap().file_name();
        let shipped = fs::read(embedded_model().join(&name)).unwrap();
        assert!(shipped == fs::read(written.path().join(&name)).unwrap(), "{name:?} differs");
    }
    let size: u64 = fs::read_dir(embedded_model()).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(size < 6_000_000, "{size} bytes");
}

#[test]
fn each_digit_is_one_token_after_the_prompt() {
    let tokenizer = tokenizers::Tokenizer::from_file(embedded_model().join("tokenizer.json")).unwrap();
    for item in generate(Split::Test, 5, 0) {
        let asked = lesson::question(&tokenizer, &item).unwrap();
        for mark in 1..=9 {
            let text = format!("{}{}{}{}{mark}", tokenizer::USER, prompt(&item), tokenizer::END, tokenizer::ASSISTANT);
            let tokens = tokenizer.encode(text, false).unwrap().get_ids().to_vec();
            assert_eq!(tokens[..asked.len()], asked);
            assert_eq!(tokens[asked.len()..], [tokenizer.token_to_id(&mark.to_string()).unwrap()]);
        }
    }
}

#[test]
fn a_lesson_is_about_the_mark_the_remarks_and_sound_answers() {
    let tokenizer = tokenizers::Tokenizer::from_file(embedded_model().join("tokenizer.json")).unwrap();
    let items = generate(Split::Train, 200, 0);
    let first = |defects: &[Defect]| items.iter().find(|item| item.defects == defects).unwrap();
    for (defects, imitated, remarks) in [
        (vec![], true, " good"),
        (vec![Defect::Wrong(Severity::Severe)], false, " wrong"),
        (vec![Defect::Padding(Severity::Mild)], true, " wordy"),
    ] {
        let item = first(&defects);
        let answering = lesson::answering(&tokenizer, item).unwrap();
        let taught = answering.map(|lesson| lesson.weights.iter().filter(|&&weight| weight > 0.0).count());
        assert_eq!(taught, imitated.then(|| tokenizer.encode(format!(" {}", item.response), false).unwrap().len()));
        let lesson = lesson::judging(&tokenizer, item, 4.0).unwrap();
        let weighed = |range: fn(f32) -> bool| -> String {
            let tokens: Vec<u32> = lesson
                .tokens
                .iter()
                .zip(&lesson.weights)
                .filter(|(_, weight)| range(**weight))
                .map(|(&token, _)| token)
                .collect();
            tokenizer.decode(&tokens, false).unwrap()
        };
        assert_eq!(weighed(|weight| weight == 1.0), "4");
        assert_eq!(weighed(|weight| weight == 0.5), format!("{remarks}{}", tokenizer::END));
        assert_eq!(
            weighed(|weight| weight > 0.0 && weight < 0.5),
            if imitated { format!(" {}", item.response) } else { String::new() }
        );
    }
}

#[test]
fn the_judge_template_asks_what_the_model_was_taught() {
    let template: PromptTemplate = judge_template();
    for item in generate(Split::Shifted, 5, 0) {
        assert_eq!(template.fill(&item).unwrap(), judge_core::Prompt::user(prompt(&item)));
    }
}

#[test]
fn the_shipped_model_judges() {
    let model = Model::load(embedded_model(), &LoadOptions::default()).unwrap();
    let scale = Scale::integers(1, 5).unwrap();
    let template = judge_template();
    let settings = LagerSettings { template, opening: String::new(), ..LagerSettings::prompt_end(scale.clone()) };
    let judge = LagerJudge::new(settings, &model).unwrap();
    let items = generate(Split::Test, 150, 0);
    let (mut tables, mut human) = (Vec::new(), Vec::new());
    Runner::new(&model, vec![&judge])
        .run(items.iter().map(|item| (item.id.as_str().into(), item)), |event| {
            if let RunEvent::Item(result) = event {
                tables.push(judge.table(&result.rounds(0)).unwrap());
                human.push(result.item.human());
            }
        })
        .unwrap();
    let score = |table| Variant::LastExpected.score(table, &scale, judge_core::lager::States::All).unwrap().score;
    let scores: Vec<f64> = tables.iter().map(score).collect();
    let agreement = spearman(&scores, &human).unwrap().estimate;
    assert!(agreement > 0.55, "Spearman {agreement}");
}
