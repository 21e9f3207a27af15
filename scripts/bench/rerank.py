# sentence-transformers==6.2.0 transformers==5.23.0 torch==2.15.0
"""Queries a second of judge rerank and of sentence-transformers' CrossEncoder, on a model of MiniLM's shape with random weights.

    python scripts/bench/rerank.py JUDGE [--threads N] [--queries N] [--repeats N]

JUDGE is the program, built with --release. Both score the same queries of 32 documents of about 100 tokens in f32 on the same threads, one after
another in the same run, three times; documents a second are of the best of them, without loading the model. Then a decoder of Qwen3's shape is read at its last
layer and at half of them.
"""

import argparse
import json
import os
import random
import subprocess
import tempfile
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("judge")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--queries", type=int, default=64)
parser.add_argument("--repeats", type=int, default=3)
args = parser.parse_args()
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from sentence_transformers import CrossEncoder
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

WORDS = "ba de fi go ku la me no pa ru su ta ve za".split()


def word_tokenizer():
    """Words, and pairs as BERT has them."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "so", ":"] + WORDS
    made = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    names = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")
    return PreTrainedTokenizerFast(tokenizer_object=made, model_input_names=["input_ids", "token_type_ids", "attention_mask"], **names)


def rows(path, queries, documents, words):
    draw = random.Random(1)
    text = lambda n: " ".join(draw.choice(WORDS) for _ in range(n))
    made = [{"id": n, "query": text(8), "documents": [text(draw.randint(words // 2, words * 3 // 2)) for _ in range(documents)]} for n in range(queries)]
    path.write_text("".join(json.dumps(row) + "\n" for row in made))
    return made


def judge(folder, *more):
    """Seconds of the passes: those of all rows less those of one, which load the model too."""
    def took(limit):
        out = folder / "out.jsonl"
        for old in folder.glob("out.jsonl*"):
            old.unlink()
        start = time.perf_counter()
        subprocess.run([args.judge, "rerank", "--input", folder / "rows.jsonl", "--output", out, "--dtype", "f32", "--quiet", *limit, *more], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "RAYON_NUM_THREADS": str(args.threads)})
        return time.perf_counter() - start
    return took([]) - took(["--limit", "1"])


def main():
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made = rows(folder / "rows.jsonl", args.queries, 32, 90)
        tokenizer = word_tokenizer()
        tokenizer.save_pretrained(folder / "minilm")
        # Of cross-encoder/ms-marco-MiniLM-L6-v2, but for the vocabulary.
        config = BertConfig(vocab_size=len(tokenizer), hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536, num_labels=1, pad_token_id=tokenizer.pad_token_id)
        BertForSequenceClassification(config).save_pretrained(folder / "minilm")
        model = CrossEncoder(str(folder / "minilm"), device="cpu", model_kwargs={"dtype": torch.float32}, local_files_only=True)
        pairs = [(row["query"], text) for row in made for text in row["documents"]]
        best = {"judge": float("inf"), "sentence-transformers": float("inf")}
        model.predict(pairs[:64], show_progress_bar=False)
        for _ in range(args.repeats):
            start = time.perf_counter()
            model.predict(pairs, batch_size=32, show_progress_bar=False)
            best["sentence-transformers"] = min(best["sentence-transformers"], time.perf_counter() - start)
            best["judge"] = min(best["judge"], judge(folder, "--model", folder / "minilm") * len(made) / (len(made) - 1))
        for name, seconds in best.items():
            print(f"MiniLM's shape, {len(pairs)} documents: {name} {len(pairs) / seconds:.0f} documents/s, {len(made) / seconds:.2f} queries/s", flush=True)

        # A decoder, read at its last layer and at half of them.
        tokenizer.save_pretrained(folder / "qwen3")
        layers = 28
        config = Qwen3Config(vocab_size=len(tokenizer), hidden_size=512, num_hidden_layers=layers, num_attention_heads=8, num_key_value_heads=4, head_dim=64, intermediate_size=1536, pad_token_id=None, bos_token_id=None, eos_token_id=None)
        Qwen3ForCausalLM(config).save_pretrained(folder / "qwen3")
        (folder / "prompt.jinja").write_text("{{ query }}<|split|> {{ document }}<|split|> so:")
        made = rows(folder / "rows.jsonl", max(args.queries // 8, 2), 32, 90)
        documents = 32 * (len(made) - 1)
        labels = ["--model", folder / "qwen3", "--rerank-template", folder / "prompt.jinja", "--labels", "ba,de"]
        for layer in [None, layers // 2, layers // 4]:
            more = [] if layer is None else ["--layer", str(layer)]
            seconds = min(judge(folder, *labels, *more) for _ in range(args.repeats))
            print(f"decoder of {layers} blocks, {documents} documents: layer {layer or layers}: {documents / seconds:.1f} documents/s", flush=True)


main()
