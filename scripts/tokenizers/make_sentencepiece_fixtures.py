"""Trains small SentencePiece models and writes what transformers and sentencepiece make of odd texts with them, for
crates/judge-text/src/tokenizer/sentencepiece/tests.rs.

    python scripts/tokenizers/make_sentencepiece_fixtures.py

Made with transformers 5.24.0, tokenizers 0.23.3, sentencepiece 0.2.3 and protobuf 7.36.2.
"""

import io
import json
import tempfile
from pathlib import Path

import sentencepiece
import tokenizers
import transformers
from transformers import AutoTokenizer

assert transformers.__version__ == "5.24.0", transformers.__version__
assert tokenizers.__version__ == "0.23.3", tokenizers.__version__
assert sentencepiece.__version__ == "0.2.3", sentencepiece.__version__
transformers.logging.set_verbosity_error()

OUT = Path(__file__).parents[2] / "crates/judge-text/tests/fixtures/sentencepiece"
TEXT = [
    "The judge reads the answer and gives a score from 1 to 5.",
    "A good answer is right, complete and clear; a bad answer is none of these.",
    "score: 4. Score: 5. score: 1, 2, 3. The reader reads, the writer writes.",
    "aaaa aaab abab banana bananas",
] * 4
TEXTS = [
    "score: 4", " The judge", "reads\n\nthe  answer ", "é 😀 x", "12345", "a", "", "<s>a </s> b</s>  c", "  two", "▁x ▁", "▁▁",
    "it's DON'T 12ab\t\tq", "\u0000", "e\u0301 \ufb01 n\u0303 ①", " ", "\r\n \n", "a\u00a0b\u3000c", "<0x41>", "aaaaaaa baaaab",
    "<mask> <pad><unk> [CLS][SEP] [MASK]", "<start_of_turn>x<end_of_turn>\n", "   a\n\n\n b", "A<|x|>B <y>c <y> d", "+((.*", "word." * 40,
]
# A table of a few characters in the place of the whole of NFKC, which takes 240 kB.
RULES = "FB01\t66 69\n2460\t31\nA0\t20\n3000\t20\n65 301\tE9\nA\t20\n9\t20\n"


def train(**settings):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_writer=written, minloglevel=2, hard_vocab_limit=False, num_threads=1, **settings
    )
    return written.getvalue()


with tempfile.TemporaryDirectory() as folder:
    rules = Path(folder) / "rules.tsv"
    rules.write_text(RULES)
    plain = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    MODELS = {
        # As Llama's and Mistral's.
        "llama": train(model_type="bpe", vocab_size=365, byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True, **plain),
        # As Gemma's: no space before a text, runs of spaces and line breaks as user-defined pieces.
        "gemma": train(
            model_type="bpe", vocab_size=380, byte_fallback=True, split_digits=True, allow_whitespace_only_pieces=True, add_dummy_prefix=False,
            pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>", bos_piece="<bos>",
            user_defined_symbols=["<mask>", "\n", "\n\n", "▁▁", "▁▁▁", "+(("], control_symbols=["<start_of_turn>", "<end_of_turn>"], **plain,
        ),
        # With a table of characters, extra spaces removed, without bytes.
        "bpe": train(model_type="bpe", vocab_size=100, normalization_rule_tsv=str(rules)),
        # As XLM-RoBERTa's.
        "unigram": train(model_type="unigram", vocab_size=80, normalization_rule_tsv=str(rules)),
        # As DeBERTa's v3.
        "deberta": train(
            model_type="unigram", vocab_size=85, normalization_rule_tsv=str(rules), pad_id=0, bos_id=1, eos_id=2, unk_id=3,
            pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]",
        ),
        # T5's has neither of the two, and bytes are possible here too.
        "bytes": train(model_type="unigram", vocab_size=340, byte_fallback=True, bos_id=-1, pad_id=0, eos_id=1, unk_id=2, user_defined_symbols=["<y>"], **plain),
    }

OUT.mkdir(parents=True, exist_ok=True)
for name, data in MODELS.items():
    (OUT / f"{name}.model").write_bytes(data)


def loaded(model, file, model_type, settings, others):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / file).write_bytes(MODELS[model])
        (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        for name, content in others.items():
            (folder / name).write_text(json.dumps(content))
        return AutoTokenizer.from_pretrained(folder)


BOS, BOTH, NONE = {"add_bos_token": True}, {"add_bos_token": True, "add_eos_token": True}, {"add_bos_token": False}
LLAMA, GEMMA = {"tokenizer_class": "LlamaTokenizer"}, {"tokenizer_class": "GemmaTokenizer"}
DECODER = {"added_tokens_decoder": {
    "0": {"content": "<unk>", "special": True, "normalized": True}, "1": {"content": "<s>", "special": True, "normalized": False},
    "20": {"content": "<|x|>", "special": True, "normalized": False}, "400": {"content": "<y>", "special": False, "normalized": True, "lstrip": True},
}}
MAP = {"special_tokens_map.json": {"pad_token": "<pad>", "bos_token": {"content": "<s>", "lstrip": False, "normalized": True}}, "added_tokens.json": {"<pad>": 365, "<y>": 366}}
MODEL = "tokenizer.model"
ASKED = [
    ("llama", MODEL, "llama", BOS | LLAMA, {}),
    ("llama", MODEL, "llama", BOTH | LLAMA | {"legacy": True}, {}),
    ("llama", MODEL, "llama", BOS | LLAMA | {"legacy": False, "add_prefix_space": False}, {}),
    ("llama", MODEL, "llama", BOS | LLAMA | {"bos_token": "<x>", "unk_token": "<unk>"}, {}),
    ("llama", MODEL, "llama", BOS | LLAMA, MAP),
    ("llama", MODEL, "llama", BOS | LLAMA | DECODER | {"pad_token": "<pad>"}, {}),
    ("llama", MODEL, "llama", BOS | LLAMA | {"additional_special_tokens": ["<|x|>", "<y>"]}, {}),
    ("llama", MODEL, "llama", BOS | GEMMA, {}),
    ("llama", MODEL, "mistral", BOS | LLAMA, {}),
    ("llama", MODEL, "mistral", BOS | LLAMA | DECODER, {}),
    ("llama", MODEL, "mistral", BOTH | LLAMA | {"legacy": False}, MAP),
    ("llama", MODEL, "mistral", NONE | {"legacy": None}, {}),
    ("llama", MODEL, "phi3", BOS | LLAMA | DECODER | {"additional_special_tokens": ["<|x|>"]}, {}),
    ("llama", MODEL, "llama", NONE, {}),
    ("gemma", MODEL, "gemma", BOS | GEMMA, {}),
    ("gemma", MODEL, "gemma", BOS | {"additional_special_tokens": ["<start_of_turn>", "<end_of_turn>"]}, {}),
    ("gemma", MODEL, "gemma2", BOTH | LLAMA, {}),
    ("gemma", MODEL, "mistral", NONE, {}),
    ("gemma", MODEL, "llama", BOTH | {"additional_special_tokens": ["<start_of_turn>"]}, {}),
    ("bpe", MODEL, "mistral", NONE, {}),
    ("bpe", MODEL, "llama", BOS | {"legacy": False}, {}),
    ("bpe", MODEL, "llama", BOS | LLAMA, {}),
    ("unigram", MODEL, "mistral", NONE, {}),
    ("unigram", "sentencepiece.bpe.model", "xlm-roberta", {}, {}),
    ("unigram", "sentencepiece.bpe.model", "xlm-roberta", {"tokenizer_class": "XLMRobertaTokenizerFast", "bos_token": "<s>"}, {}),
    ("unigram", MODEL, "xlm-roberta", {"mask_token": "<m>"}, {}),
    ("unigram", MODEL, "llama", BOS | LLAMA, {}),
    ("deberta", "spm.model", "deberta-v2", {}, {}),
    ("deberta", "spm.model", "deberta-v2", {"do_lower_case": True, "split_by_punct": True}, {}),
    ("deberta", MODEL, "deberta-v2", {"tokenizer_class": "DebertaV2Tokenizer", "add_prefix_space": False}, {}),
    ("unigram", "spm.model", "deberta-v2", {}, {}),
    ("bytes", MODEL, "mistral", NONE, {}),
]
cases, pairs = [], [["score: 4", " two  spaces"], ["", "a"]]
for model, file, model_type, settings, others in ASKED:
    hf = loaded(model, file, model_type, settings, others)
    ids = [hf(text)["input_ids"] for text in TEXTS]
    decoded = [hf.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=False) for row in ids]
    two = [hf(a, b)["input_ids"] for a, b in pairs]
    named = {name: str(token) for name, token in hf.special_tokens_map.items() if isinstance(token, str)}
    own = None
    if type(hf).__name__ == "TokenizersBackend" and not (settings.keys() - {"add_bos_token", "add_eos_token", "tokenizer_class"}) and not others:
        # The program itself, which knows no special tokens in a text.
        sp = sentencepiece.SentencePieceProcessor(model_proto=MODELS[model])
        special = set(hf.all_special_tokens) | set(hf.added_tokens_encoder)
        own = [sp.encode(text) if not any(token in text for token in special) else None for text in TEXTS]
        bare = [hf(text, add_special_tokens=False)["input_ids"] for text in TEXTS]
        differ = [text for text, a, b in zip(TEXTS, own, bare) if a is not None and a != b]
        print("   sentencepiece differs on", differ)
        own = [None if text in differ else row for text, row in zip(TEXTS, own)]
    print(type(hf).__name__, model, file, model_type, len(hf), len(set(map(tuple, ids))))
    cases.append({"model": model, "file": file, "model_type": model_type, "settings": settings, "others": others, "ids": ids, "decoded": decoded,
                  "pairs": two, "named": named, "own": own})
(OUT / "expected.json").write_text(json.dumps({"texts": TEXTS, "pairs": pairs, "cases": cases}, ensure_ascii=False, separators=(",", ":")) + "\n")
print(sum(f.stat().st_size for f in OUT.iterdir()), "bytes")
