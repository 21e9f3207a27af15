# sentence-transformers==6.2.0 transformers==5.23.0 torch==2.15.0 tokenizers==0.23.3 safetensors==0.8.0
"""Makes crates/judge-models/tests/fixtures/rerank: what sentence-transformers' CrossEncoder and transformers make of queries and documents.

    pip install sentence-transformers==6.2.0 transformers==5.23.0 torch==2.15.0 tokenizers==0.23.3 safetensors==0.8.0
    python scripts/parity/make_rerank_fixtures.py

The models are those of tests/fixtures/encoder_heads, heads and families, decoders with the tokenizer of characters of tests/fixtures/decisions;
a folder of tests/fixtures/rerank has what lies beside a model. expected.json has for each case the model, what lies beside it, changes of
`config.json` and `tokenizer_config.json`, and the scores: `scores` as they come out, `raw` without the activation. For templates of a whole prompt it has
the logits of the labels at every layer, by transformers alone.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from jinja2 import Environment
from sentence_transformers import CrossEncoder
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parents[2] / "crates/judge-models/tests/fixtures"
RERANK = ROOT / "rerank"
LONG = " ".join(["go", "fi", "ku", "de", "ba", "la", "me"] * 12)
# Of encoders' vocabularies: short, of unequal lengths, with white space around, and longer than the 60 positions on either side and on both.
WORDS = [
    ["ba de fi", "go ku la"],
    ["ba", "ru su ta ve za ba 12 de fi go ku la me"],
    ["  ba de ", " fi go\n"],
    ["ba de fi", LONG],
    [LONG, "go ku"],
    [LONG + " ba", "ru " + LONG],
    ["ba de", ""],
]
# Of characters.
TEXTS = [
    ["Who wrote it?", "Ann did."],
    ["Who wrote it?", "It is blue, and a </s> and Yes."],
    ["Who wrote it?", "Nobody knows. " * 20],
    ["Who?", ""],
    ["Who wrote <s>query: it?", "No, no, no: Yes"],
]
ROLES = """{%- for m in messages %}{{ '<s>' + m.role + ': ' + m.content + '</s>' }}{%- endfor %}{{ '<s>assistant:' }}"""
WHOLE = """<s>{{ instruction or 'Is it so?' }} {{ query }}<|split|>{{ document }}</s> so: """
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"},
    {"idx": 1, "name": "1", "path": "1_LogitScore", "type": "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"},
]
SIGMOID = "torch.nn.modules.activation.Sigmoid"
IDENTITY = "torch.nn.modules.linear.Identity"
YES, NO = 3, 4  # of the tokenizer of characters


def beside(name, yes=None, no=None, activation=None, prompt=None):
    """A folder of files that lie beside a decoder."""
    folder = RERANK / name
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "modules.json", MODULES[: 2 if yes else 1])
    if yes:
        (folder / "1_LogitScore").mkdir(exist_ok=True)
        write(folder / "1_LogitScore/config.json", {"true_token_id": yes, "false_token_id": no})
    config = {"model_type": "CrossEncoder", "activation_fn": activation}
    if prompt:
        config |= {"prompts": {"web": prompt}, "default_prompt_name": "web"}
    write(folder / "config_sentence_transformers.json", {k: v for k, v in config.items() if v})
    (folder / "chat_template.jinja").write_text(ROLES)
    write(folder / "sentence_bert_config.json", {
        "transformer_task": "text-generation" if yes else "sequence-classification",
        "module_output_name": "causal_logits" if yes else "scores",
        "modality_config": {name: {"method": "forward", "method_output_name": "logits"} | more for name, more in (("text", {}), ("message", {"format": "flat"}))},
    })


def write(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


def folder_of(case, into):
    """The model of a case."""
    shutil.copytree(ROOT / case["model"], into, ignore=shutil.ignore_patterns("expected*"))
    if case["beside"] is not None or case.get("template"):
        shutil.copytree(ROOT / "decisions/tokenizer", into, dirs_exist_ok=True)
    if case["beside"]:
        shutil.copytree(RERANK / case["beside"], into, dirs_exist_ok=True)
    for name in ("config.json", "tokenizer_config.json"):
        fields = json.loads((into / name).read_text())
        fields |= case[name]
        (into / name).write_text(json.dumps(fields))
    return into


def scores(case, pairs):
    """As CrossEncoder has them."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = folder_of(case, Path(temporary) / "model")
        model = CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": torch.float32}, local_files_only=True)
        if model.tokenizer.pad_token is None:
            model.tokenizer.pad_token = "</s>"
        # One by one: padding of a batch is not what is looked at.
        of = lambda **given: [float(model.predict([tuple(pair)], show_progress_bar=False, **given)[0]) for pair in pairs]
        return {"pairs": pairs, "scores": of(), "raw": of(activation_fn=torch.nn.Identity())}


def logits(case, pairs, labels):
    """The logits of the labels at every layer, at the end of prompts of a whole template; the document loses tokens at its end beyond `most`."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = folder_of(case, Path(temporary) / "model")
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder)
        ids = [tokenizer.convert_tokens_to_ids(label) for label in labels]
        before, after = WHOLE.split("<|split|>")
        around = Environment().from_string(before), after.replace("{{ document }}", "")
        found = []
        for query, document in pairs:
            plain = lambda text: tokenizer(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
            head = [1] + plain(around[0].render(query=query).removeprefix("<s>"))
            end = [2] + plain(around[1].removeprefix("</s>"))
            text = plain(document)
            kept = text[: case["most"] - len(head) - len(end)]
            with torch.no_grad():
                states = model(torch.tensor([head + kept + end]), output_hidden_states=True)
            rows = model.get_output_embeddings().weight[ids]
            layers = [(state[0, -1] @ rows.T).tolist() for state in states.hidden_states]
            layers[-1] = states.logits[0, -1, ids].tolist()
            found.append({"cut": len(text) - len(kept), "layers": layers})
        return {"pairs": pairs, "documents": found}


def main():
    torch.set_num_threads(1)
    shutil.rmtree(RERANK, ignore_errors=True)
    beside("difference", YES, NO)
    beside("difference-sigmoid", YES, NO, SIGMOID, "Is it an answer?")
    beside("logit", YES, None, SIGMOID)
    beside("head")
    none = {"config.json": {}, "tokenizer_config.json": {}}
    # Types of tokens by name; without names they are given by the class.
    types = {"tokenizer_config.json": {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}}
    encoders = [
        ("bert", types),
        ("bert", types | {"config.json": {"sentence_transformers": {"activation_fn": IDENTITY}}}),
        # Two of its positions are for padding, which its published tokenizers count and sentence-transformers does not.
        ("xlm-roberta", {"config.json": {"sbert_ce_default_activation_function": IDENTITY}, "tokenizer_config.json": {"model_max_length": 58}}),
        ("xlm-roberta", {"tokenizer_config.json": {"sep_token": None, "model_max_length": 58}}),
        ("modernbert", {"tokenizer_config.json": {"model_max_length": 20}}),
        ("deberta-v2", {}),
        ("bert", {}),
        ("bert", {"tokenizer_config.json": {"tokenizer_class": "TokenizersBackend"}}),
    ]
    cases = []
    for name, changes in encoders:
        case = {"model": f"encoder_heads/{name}", "beside": None} | none | changes
        cases.append(case | scores(case, WORDS))
    # Defaults of pad_token_id are beyond 96 tokens.
    config = {"pad_token_id": None, "max_position_embeddings": 160}
    decoders = [
        ("families/qwen3-off", "difference"),
        ("families/qwen3-off", "difference-sigmoid"),
        ("families/gemma-off", "logit"),
        ("heads/llama", "head"),
    ]
    for model, name in decoders:
        case = {"model": model, "beside": name} | none | {"config.json": config}
        cases.append(case | scores(case, TEXTS))
    case = {"model": "families/qwen3-off", "beside": None, "template": WHOLE, "most": 90} | none | {"config.json": config}
    whole = case | logits(case, TEXTS, ["Yes", "No"])
    write(RERANK / "expected.json", {"cross_encoders": cases, "whole": whole})


if __name__ == "__main__":
    main()
