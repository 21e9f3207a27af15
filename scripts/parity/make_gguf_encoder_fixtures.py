"""Writes encoders as GGUF files with nothing beside them, for crates/judge-models/tests/it/gguf_encoders.rs.

    python scripts/parity/make_gguf_encoder_fixtures.py

bert.gguf is encoders/bert-off, bert-q8_0.gguf the same in Q8_0 where rows have whole blocks. xlm-roberta has a small random model as
transformers saves it, with the tokenizer of sentencepiece/unigram.model, and model.gguf beside it. Keys and names of tensors are those of the
package gguf (its tensor-name map); what `convert_hf_to_gguf.py` does beside renaming is done here as it does: entries of WordPiece that begin
a word get a mark and others lose theirs, and an XLM-RoBERTa loses the rows of positions that are not used.

Made with torch 2.15.0, transformers 5.24.0, safetensors 0.8.0, sentencepiece 0.2.3, protobuf 7.36.2 and gguf 0.19.0.
"""

import base64
import json
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import load_file
from transformers import AutoTokenizer, XLMRobertaConfig, XLMRobertaModel

assert transformers.__version__ == "5.24.0", transformers.__version__
assert version("gguf") == "0.19.0"

FIXTURES = Path(__file__).resolve().parents[2] / "crates/judge-models/tests/fixtures"
SENTENCEPIECE = Path(__file__).resolve().parents[2] / "crates/judge-text/tests/fixtures/sentencepiece"
OUT = FIXTURES / "gguf_encoders"
OUT.mkdir(exist_ok=True)
CONTROL, NORMAL, UNKNOWN = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL, gguf.TokenType.UNKNOWN


def write(folder, to, quantised=False):
    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    is_xlm_r = config["model_type"] == "xlm-roberta"
    offset = config["pad_token_id"] + 1 if is_xlm_r else 0
    writer = gguf.GGUFWriter(to, "bert")
    writer.add_context_length(config["max_position_embeddings"] - offset)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.CLS)
    writer.add_token_type_count(config["type_vocab_size"])
    special = {token["content"] for token in tokenizer["added_tokens"] if token["special"]}
    if is_xlm_r:
        pieces = tokenizer["model"]["vocab"]
        unknown = tokenizer["model"]["unk_id"]
        writer.add_tokenizer_model("t5")
        writer.add_tokenizer_pre("default")
        writer.add_token_list([text for text, _ in pieces])
        writer.add_token_scores([score for _, score in pieces])
        writer.add_token_types([UNKNOWN if i == unknown else CONTROL if text in special else NORMAL for i, (text, _) in enumerate(pieces)])
        writer.add_add_space_prefix(True)
        writer.add_remove_extra_whitespaces(False)
        writer.add_precompiled_charsmap(base64.b64decode(tokenizer["normalizer"]["precompiled_charsmap"]))
    else:
        tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
        writer.add_tokenizer_model("bert")
        writer.add_tokenizer_pre("jina-v2-en")
        writer.add_token_list([t if t in special else t[2:] if t.startswith("##") else "\u2581" + t for t in tokens])
        writer.add_token_types([CONTROL if t in special else NORMAL for t in tokens])
    gguf.SpecialVocab(folder, n_vocab=config["vocab_size"]).add_to_gguf(writer)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, config["num_hidden_layers"])
    for name, data in load_file(folder / "model.safetensors").items():
        name = name.removeprefix("bert.").removeprefix("roberta.")
        if name.startswith(("pooler.", "cls.")) or name == "embeddings.position_ids":
            continue
        if name == "embeddings.position_embeddings.weight":
            data = data[offset:]
        new = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert new, name
        data = data.astype(np.float32)
        if quantised and new.startswith("blk.") and data.ndim == 2 and data.shape[1] % 32 == 0:
            writer.add_tensor(new, gguf.quants.quantize(data, Type.Q8_0), raw_dtype=Type.Q8_0)
        else:
            writer.add_tensor(new, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(to.stat().st_size, to.relative_to(OUT))


write(FIXTURES / "encoders/bert-off", OUT / "bert.gguf")
write(FIXTURES / "encoders/bert-off", OUT / "bert-q8_0.gguf", quantised=True)

folder = OUT / "xlm-roberta"
shutil.rmtree(folder, ignore_errors=True)
with tempfile.TemporaryDirectory() as made:
    shutil.copy(SENTENCEPIECE / "unigram.model", Path(made) / "sentencepiece.bpe.model")
    (Path(made) / "config.json").write_text(json.dumps({"model_type": "xlm-roberta"}))
    tokenizer = AutoTokenizer.from_pretrained(made)
torch.manual_seed(7)
config = XLMRobertaConfig(
    vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=70,
    type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2, initializer_range=0.3,
)
model = XLMRobertaModel(config, add_pooling_layer=False)
model.save_pretrained(folder)
tokenizer.save_pretrained(folder)
write(folder, folder / "model.gguf")
