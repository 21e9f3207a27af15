"""Makes small tokenizers of three kinds and what transformers does with them, for
crates/judge-text/src/tokenizer/tests.rs.

    python scripts/tokenizers/make_tokenizer_fixtures.py

Made with transformers 5.24.0 and tokenizers 0.23.3.
"""

import json
import tempfile
from pathlib import Path

import tokenizers
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

assert transformers.__version__ == "5.24.0", transformers.__version__
assert tokenizers.__version__ == "0.23.3", tokenizers.__version__

OUT = Path(__file__).parents[2] / "crates/judge-text/tests/fixtures/tokenizers"
TEXT = [
    "The judge reads the answer and gives a score from 1 to 5.",
    "A good answer is right, complete and clear; a bad answer is none of these.",
    "score: 4. Score: 5. score: 1, 2, 3. The reader reads, the writer writes.",
] * 4
BYTES = [f"<0x{i:02X}>" for i in range(256)]
TEMPLATE = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
PROMPTS = ["score: 4", " The judge", "reads\n\nthe  answer ", "é 😀 x", "12345", "a"]


def byte_level():
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(r"\p{N}|[^\s\p{L}\p{N}]?\p{L}+|\s+|[^\s\p{L}\p{N}]+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=340, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return t


def pieces(normalizer, pre_tokenizer):
    t = Tokenizer(models.BPE())
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.train_from_iterator(TEXT, trainers.BpeTrainer(vocab_size=120, special_tokens=["<unk>"], show_progress=False))
    state = json.loads(t.to_str())
    vocab = {"<unk>": 0, **{b: i + 1 for i, b in enumerate(BYTES)}}
    for token in state["model"]["vocab"]:
        vocab.setdefault(token, len(vocab))
    state["model"].update(vocab=vocab, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    t = Tokenizer.from_str(json.dumps(state))
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return t


KINDS = {
    "byte-level": byte_level(),
    "metaspace": pieces(None, pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)),
    "prepend": pieces(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None),
}

for name, t in KINDS.items():
    t.add_special_tokens([AddedToken("<s>", special=True, normalized=False), AddedToken("</s>", special=True, normalized=False)])
    bos = t.token_to_id("<s>")
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", bos)])
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    t.save(str(folder / "tokenizer.json"), pretty=False)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "chat_template": TEMPLATE, "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    hf = PreTrainedTokenizerFast.from_pretrained(folder)
    cases = []
    for prompt in PROMPTS:
        messages = [{"role": "user", "content": prompt}]
        chat = hf.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False)
        raw = hf(prompt)["input_ids"]
        cases.append({"prompt": prompt, "chat": chat, "raw": raw, "decoded": hf.decode(raw, skip_special_tokens=True)})
    labels = {label: t.token_to_id(label) for label in "12345"}
    (folder / "expected.json").write_text(json.dumps({"labels": labels, "bos": bos, "eos": t.token_to_id("</s>"), "cases": cases}, indent=1, ensure_ascii=False) + "\n")
    print(name, t.get_vocab_size(), "entries", sum(f.stat().st_size for f in folder.iterdir()), "bytes", labels)

# What transformers makes of the same files where the folder names a class, by model type.
HOSTILE = PROMPTS + ["<s>a </s> b</s>  c", "  two", "▁x ▁", "it's DON'T 12ab\t\tq", "\u0000", "e\u0301 \ufb01 n\u0303", " ", "\r\n \n", "a\u00a0b\u3000c", "<0x41>"]
CLASSES = [None, "PreTrainedTokenizerFast", "TokenizersBackend", "LlamaTokenizer", "LlamaTokenizerFast", "GemmaTokenizer", "Qwen2TokenizerFast", "Qwen3_5Tokenizer"]
TYPES = ["llama", "mistral", "qwen2", "qwen3", "qwen3_5_text", "qwen3_5", "gemma2", "gemma3_text", "gemma4_text", "phi3", "smollm3", "olmo2", "internlm3", "qwen2_vl"]
SETTINGS = [{}, {"legacy": True}, {"legacy": False}, {"legacy": None}, {"add_prefix_space": False}, {"add_prefix_space": True, "legacy": True}, {"add_bos_token": False}]


def loaded(kind, model_type, name, settings):
    with tempfile.TemporaryDirectory() as folder:
        for file in ["tokenizer.json", "tokenizer_config.json"]:
            (Path(folder) / file).write_text((OUT / kind / file).read_text())
        config = json.loads((Path(folder) / "tokenizer_config.json").read_text()) | settings
        config["tokenizer_class"] = name
        if name is None:
            del config["tokenizer_class"]
        (Path(folder) / "tokenizer_config.json").write_text(json.dumps(config))
        (Path(folder) / "config.json").write_text(json.dumps({"model_type": model_type}))
        return AutoTokenizer.from_pretrained(folder)


def read(hf, text):
    try:
        return hf(text)["input_ids"]
    except Exception as error:  # what the vocabulary of another class has no piece for
        assert "Unk token" in str(error), error
        return None


cases, texts = [], []
for kind in KINDS:
    asked = [(t, c, {}) for t in TYPES for c in CLASSES] + [("llama", c, s) for c in ["LlamaTokenizer", "GemmaTokenizer", "Qwen2Tokenizer"] for s in SETTINGS[1:]]
    for model_type, name, settings in asked:
        hf = loaded(kind, model_type, name, settings)
        ids = [read(hf, text) for text in HOSTILE]
        if ids not in texts:
            texts.append(ids)
        cases.append({"kind": kind, "model_type": model_type, "class": name, "settings": settings, "ids": texts.index(ids)})
(OUT / "classes.json").write_text(json.dumps({"texts": HOSTILE, "ids": texts, "cases": cases}, ensure_ascii=False) + "\n")
print(len(cases), "folders,", len(texts), "ways to read them")
