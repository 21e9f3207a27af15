//! What targets share: inputs of several parts, folders that hold them as files, and templates.

use std::fs;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use judge_jinja::{Date, Template};
use serde_json::Value;

/// Cuts an input at its first bytes 0xff, which no JSON and no other UTF-8 has. Parts that are missing are empty;
/// the last one is all the rest.
pub fn parts<const N: usize>(bytes: &[u8]) -> [&[u8]; N] {
    let mut parts = bytes.splitn(N, |&byte| byte == 0xff);
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// A model folder of this process with these files. Its `config.json` and `tokenizer.json` hold no model unless they are among them;
/// everything else that was in it is gone.
pub fn folder(files: &[(&str, &[u8])]) -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| std::env::temp_dir().join(format!("judge-fuzz-{}", std::process::id())));
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("the temporary folder can be written");
    let stand_ins: [(&str, &[u8]); 2] = [("config.json", b"{}"), ("tokenizer.json", b"")];
    for (name, bytes) in stand_ins.iter().chain(files) {
        fs::write(folder.join(name), bytes).expect("the temporary folder can be written");
    }
    folder
}

/// Libraries under the readers panic on some inputs, which the readers make an error of.
/// libFuzzer's hook would end the process before that.
pub fn panics_of_others_unwind() {
    let abort = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let is_of_others =
            info.location().is_some_and(|place| !place.file().contains("judge-") && !place.file().starts_with("src/"));
        if !is_of_others {
            abort(info);
        }
    }));
}

/// Reads a template and renders it twice with these variables.
///
/// # Panics
/// If it renders another text the second time, or a rendering ends in a panic that is caught.
pub fn renders_alike(source: &str, variables: &[(&str, Value)]) {
    let Ok(template) = Template::new(source, Date::default()) else { return };
    let variables = || variables.iter().map(|(name, value)| (*name, value));
    let render = || template.render(variables()).map_err(|error| error.to_string());
    let rendered = render();
    // Panics below the hook that ends the process, such as those of the standard library.
    assert!(!rendered.as_ref().is_err_and(|error| error.contains("please report it")), "{rendered:?}");
    assert_eq!(rendered, render());
}
