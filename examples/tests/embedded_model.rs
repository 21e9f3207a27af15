//! The model that ships with the repository is the judge that its card says it is.

use judge_core::{Backbone, Fields, Prompt, Scale};
use judge_examples::model_args::{JUDGE_TEMPLATE, embedded_model, read_template};
use judge_examples::planted::{Split, generate, prompt};
use judge_models::{LoadOptions, Model};

#[test]
fn it_is_small() {
    let bytes: u64 = std::fs::read_dir(embedded_model())
        .expect("models/tiny-judge")
        .map(|entry| entry.and_then(|entry| entry.metadata()).expect("file").len())
        .sum();
    assert!(bytes <= 6_000_000, "{bytes} bytes");
}

#[test]
fn its_template_asks_as_it_was_trained() {
    let template = read_template(&embedded_model().join(JUDGE_TEMPLATE)).expect("template");
    for split in Split::ALL {
        for item in generate(split, 20, 0) {
            assert_eq!(template.fill(&item).expect("filled"), Prompt::user(prompt(&item)));
            assert!(item.names().iter().all(|name| item.field(name).is_some()));
        }
    }
}

#[test]
fn marks_are_tokens_of_their_own_right_after_the_prompt() {
    let model = Model::load(embedded_model(), &LoadOptions::default()).expect("model");
    let item = generate(Split::Test, 1, 0).remove(0);
    for label in Scale::integers(1, 5).expect("scale").labels() {
        model.token(label).expect("one vocabulary entry");
        let found = model.label_in_context(&Prompt::user(prompt(&item)), label).expect("tokens");
        assert!(found.agrees, "{found:?}");
    }
}
