# torch==2.15.0 transformers==5.23.0 safetensors==0.8.0 tokenizers==0.23.3 peft==0.21.2
"""Makes crates/judge-models/tests/fixtures/encoder_heads: small random encoders with the heads of sequence classifiers, and what transformers makes of texts.

    python scripts/parity/make_encoder_head_fixtures.py [NAME ...]

expected.json of a folder has for each of some texts and pairs of texts: "texts", one or two; "ids" and "types" of transformers' tokenizer; "logits", in f32.
"""

import json
import sys

import torch
from make_encoder_fixtures import ROOT as ENCODERS
from make_encoder_fixtures import build, modernbert_bpe, numbers, roberta_bpe, unigram, wordpiece
from make_family_fixtures import emptied, reproducible, write_json
from safetensors.torch import save_file
from transformers import AutoConfig, AutoTokenizer

ROOT = ENCODERS.parent / "encoder_heads"
SMALL = dict(hidden_size=16, intermediate_size=24, num_attention_heads=2, num_hidden_layers=2, max_position_embeddings=60)
# name: (tokenizer, configuration, class, labels)
MODELS = {
    "bert": (wordpiece, dict(model_type="bert", **SMALL), "BertForSequenceClassification", ["relevance"]),
    "bert-labels": (wordpiece, dict(model_type="bert", **SMALL), "BertForSequenceClassification", ["contradiction", "entailment", "neutral"]),
    "roberta": (lambda: roberta_bpe(1), dict(model_type="roberta", **SMALL, type_vocab_size=1), "RobertaForSequenceClassification", ["bad", "good"]),
    "xlm-roberta": (unigram, dict(model_type="xlm-roberta", **SMALL, type_vocab_size=1), "XLMRobertaForSequenceClassification", ["LABEL_0"]),
    "modernbert": (modernbert_bpe, dict(model_type="modernbert", **SMALL, local_attention=7), "ModernBertForSequenceClassification", ["LABEL_0"]),
    "modernbert-mean": (
        modernbert_bpe,
        dict(model_type="modernbert", **SMALL, classifier_pooling="mean", classifier_bias=True, classifier_activation="silu", norm_bias=True, norm_eps=1e-3),
        "ModernBertForSequenceClassification",
        ["a", "b"],
    ),
    "deberta-v2": (
        wordpiece,
        dict(model_type="deberta-v2", **SMALL, relative_attention=True, position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type="p2c|c2p", position_biased_input=False),
        "DebertaV2ForSequenceClassification",
        ["reward"],
    ),
}
TEXTS = [["ba de fi"], ["ba de fi go ku", "la me 3, ni"], ["po", "ru su ta ve za ba 12 de fi go"], ["ba de fi go ku", "la me 3, no"]]


def main():
    reproducible()
    for seed, (name, (tokenizer, fields, class_name, labels)) in enumerate(MODELS.items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        folder = emptied(ROOT / name)
        kind = fields["model_type"]
        tokenizer().save_pretrained(folder)
        if kind == "bert":
            # As published tokenizers of BERT are: the class alone says that the model gets types.
            settings = json.loads((folder / "tokenizer_config.json").read_text())
            (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"tokenizer_class": "BertTokenizer"}, indent=2) + "\n")
        tok = AutoTokenizer.from_pretrained(folder)
        fields = dict(fields, vocab_size=len(tok), pad_token_id=tok.pad_token_id)
        if kind == "modernbert":
            fields |= dict(bos_token_id=None, eos_token_id=None, cls_token_id=tok.cls_token_id, sep_token_id=tok.sep_token_id)
        config = AutoConfig.for_model(fields.pop("model_type"), **fields, num_labels=len(labels))
        config.id2label, config.label2id = dict(enumerate(labels)), {label: i for i, label in enumerate(labels)}
        model = build(class_name, config, 70 + seed)
        found = []
        with torch.no_grad():
            for texts in TEXTS:
                inputs = tok(*texts, return_tensors="pt")
                logits = model(**inputs).logits[0]
                types = inputs["token_type_ids"][0].tolist() if "token_type_ids" in inputs else None
                found.append(dict(texts=texts, ids=inputs["input_ids"][0].tolist(), types=types, logits=numbers(logits)))
        write_json(folder / "expected.json", found)
        save_file({k: v.contiguous() for k, v in model.state_dict().items()}, folder / "model.safetensors", metadata={"format": "pt"})
        config.architectures = [class_name]
        config.dtype = "float32"
        write_json(folder / "config.json", {k: v for k, v in config.to_dict().items() if v is not None})
        print(name, [one["logits"] for one in found], sum(f.stat().st_size for f in folder.iterdir()))


if __name__ == "__main__":
    main()
