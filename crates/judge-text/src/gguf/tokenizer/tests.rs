//! Small vocabularies in files of keys alone, against transformers' own reading of such files.

use super::*;

/// A file of keys alone: texts, and lists of texts and numbers.
struct Keys(Vec<u8>, u64);

impl Keys {
    fn key(&mut self, key: &str, kind: u32) -> &mut Vec<u8> {
        self.1 += 1;
        self.0.extend((key.len() as u64).to_le_bytes());
        self.0.extend(key.bytes());
        self.0.extend(kind.to_le_bytes());
        &mut self.0
    }

    fn text(&mut self, key: &str, text: &str) {
        let bytes = self.key(key, 8);
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.bytes());
    }

    fn texts(&mut self, key: &str, texts: &[&str]) {
        let bytes = self.key(key, 9);
        bytes.extend([8_u32.to_le_bytes().as_slice(), &(texts.len() as u64).to_le_bytes()].concat());
        for text in texts {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.bytes());
        }
    }

    fn numbers(&mut self, key: &str, numbers: &[u32]) {
        let bytes = self.key(key, 9);
        bytes.extend([4_u32.to_le_bytes().as_slice(), &(numbers.len() as u64).to_le_bytes()].concat());
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
    }

    /// What is made of the file.
    fn files(self) -> Result<TextFiles, GgufProblem> {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("keys.gguf");
        let head = [b"GGUF".as_slice(), &3_u32.to_le_bytes(), &0_u64.to_le_bytes(), &self.1.to_le_bytes()].concat();
        std::fs::write(&path, [head, self.0, vec![0; 64]].concat()).unwrap();
        TextFiles::of(&GgufFile::open(&path).unwrap())
    }
}

/// Keys of a vocabulary with these entries and types.
fn keys(model: &str, architecture: &str, tokens: &[&str], types: Option<&[u32]>) -> Keys {
    let mut keys = Keys(Vec::new(), 0);
    keys.text("general.architecture", architecture);
    keys.text("tokenizer.ggml.model", model);
    keys.texts("tokenizer.ggml.tokens", tokens);
    if let Some(types) = types {
        keys.numbers("tokenizer.ggml.token_type", types);
    }
    keys.texts("tokenizer.ggml.merges", &[]);
    keys
}

/// Gemma's runs of spaces are user-defined and spelt as spaces. Each was a token behind the end of the vocabulary, for which
/// there is no embedding. Expected tokens: `convert_gguf_tokenizer("gemma3", …)` of transformers 5.24 on the same entries; the
/// last text is that of a file that spells them with marks.
#[test]
fn runs_of_spaces_of_gemma_are_entries_of_the_vocabulary() {
    let spaces = |two, three, four| {
        let before = ["<pad>", "<eos>", "<bos>", "<unk>", "\n\n", two, three, four];
        let after = ["▁a", "▁b", "ab", "▁ab", "▁", "a", "b", "<0x0A>", "<0x09>", "<start_of_turn>"];
        before.into_iter().chain(after).collect::<Vec<_>>()
    };
    let types = [3, 3, 3, 2, 4, 4, 4, 4, 1, 1, 1, 1, 1, 1, 1, 6, 6, 3];
    let ids = |tokens: &[&str], text: &str| {
        let json = keys("llama", "gemma3", tokens, Some(&types)).files().unwrap().tokenizer;
        let tokenizer = tokenizers::Tokenizer::from_bytes(json.to_string()).unwrap();
        assert_eq!(tokenizer.get_vocab_size(true), tokens.len(), "a token behind the vocabulary");
        tokenizer.encode(text, false).unwrap().get_ids().to_vec()
    };
    let as_spaces = spaces("  ", "   ", "    ");
    let as_marks = spaces("▁▁", "▁▁▁", "▁▁▁▁");
    for (text, expected) in [
        ("a b", vec![13, 9]),
        ("a  b", vec![13, 5, 14]),
        ("a   b", vec![13, 6, 14]),
        (" a    ab", vec![8, 7, 10]),
        ("     b", vec![5, 6, 14]),
        ("a\n\nb", vec![13, 4, 14]),
        ("  ", vec![5]),
        ("<start_of_turn>a  \n\n  b", vec![17, 13, 5, 4, 5, 14]),
    ] {
        assert_eq!(ids(&as_spaces, text), expected, "{text:?}");
        assert_eq!(ids(&as_marks, text), expected, "{text:?}, spelt with marks");
    }
    assert_eq!(ids(&as_spaces, "a ▁▁ b"), [13, 7, 14]);
}

/// <https://github.com/sgl-project/sglang/issues/3427>, <https://github.com/vllm-project/vllm/issues/12985>,
/// <https://github.com/ollama/ollama/issues/9266>: such files were read, with other tokens and without a word.
#[test]
fn a_vocabulary_is_refused_that_does_not_say_what_its_entries_are_or_how_text_is_cut() {
    let tokens = ["a", "b", "<|user|>", "<|end|>", "<0x0A>"];
    let said = |types: Option<&[u32]>, pre: Option<&str>| {
        let mut keys = keys("gpt2", "llama", &tokens, types);
        if let Some(pre) = pre {
            keys.text("tokenizer.ggml.pre", pre);
        }
        keys.files().map(|_| ()).map_err(|problem| problem.to_string())
    };
    let types: &[u32] = &[1, 1, 3, 3, 6];
    assert_eq!(said(Some(types), Some("qwen2")), Ok(()));
    for (types, pre, expected) in [
        (None, Some("qwen2"), "a vocabulary of 5 entries with 0 types"),
        (Some(&types[..4]), Some("qwen2"), "a vocabulary of 5 entries with 4 types"),
        (None, Some("qwen2"), "control tokens (such as \"<|user|>\", \"<|end|>\") would be plain text"),
        (Some(types), None, "without tokenizer.ggml.pre"),
        (Some(types), Some("default"), "the pre-tokenizer \"default\""),
        (Some(types), Some("gptX"), "the pre-tokenizer \"gptX\""),
    ] {
        let problem = said(types, pre).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
        assert!(problem.ends_with("put the model's tokenizer.json beside the file"), "{problem}");
    }
}
