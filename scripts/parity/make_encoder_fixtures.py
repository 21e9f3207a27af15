# torch==2.15.0 transformers==5.23.0 safetensors==0.8.0 tokenizers==0.23.3 peft==0.21.2
"""Makes crates/judge-models/tests/fixtures/encoders: small random encoders, their tokenizers, and what transformers says of them.

    python scripts/parity/make_encoder_fixtures.py [NAME ...]

Names of folders make these alone and leave the others as they are: the last bits of what torch computes depend on the processor.

For each family a model with the family's switches on and one with them off, with the heads of some class or bare, as Hugging Face folders. Tokenizers are
of the kinds that published folders have, with a vocabulary made here: WordPiece (BERT), BPE of bytes (RoBERTa, ModernBERT), Unigram (XLM-RoBERTa).

expected.json of a folder has "prompts", each with
    text     what is tokenised
    ids      what transformers' tokenizer makes of it, special tokens included
    pooled   first, last, mean, min and max over the positions of each of hidden_states, [5][n_layers + 1][d_model]; the last of hidden_states
             is behind the final norm, where there is one
    bf16     first and mean in f32 arithmetic on weights rounded to bf16, [2][n_layers + 1][d_model]
    bf16_error_of_transformers
             how far transformers' own bf16 arithmetic is from that: the largest difference over the largest value, [2][n_layers + 1]

adapter/ is a LoRA adapter of bert-on as PEFT saves it, with the classifier that it trains beside; its expected.json has the pooled states of the model
that it wraps.
"""

import json
import math
import sys

import torch
import transformers
from make_family_fixtures import ROOT as FAMILY_ROOT
from make_family_fixtures import emptied, reproducible, write_json
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import AutoConfig, PreTrainedTokenizerFast

ROOT = FAMILY_ROOT.parent / "encoders"
WORDS = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
DIGITS = [str(i) for i in range(10)]


def wordpiece():
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ba", "##ba", "##de", "de", ",", *DIGITS]
    vocab += [w for w in WORDS if w not in vocab]
    tok = Tokenizer(models.WordPiece({w: i for i, w in enumerate(vocab)}, unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer(lowercase=True)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)])
    tok.decoder = decoders.WordPiece()
    special = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")
    return PreTrainedTokenizerFast(tokenizer_object=tok, **special)


def byte_bpe(special, post, **names):
    """Merges of letters into syllables, and of a blank with them."""
    letters = sorted({c for w in WORDS for c in w} | set(DIGITS) | {"Ġ", ","})
    vocab, merges = [*special, *letters], []
    for word in WORDS:
        merges.append((word[0], word[1]))
        vocab.append(word)
    for word in WORDS[:20]:
        merges.append(("Ġ", word))
        vocab.append("Ġ" + word)
    tok = Tokenizer(models.BPE({w: i for i, w in enumerate(vocab)}, merges))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.post_processor = post({w: i for i, w in enumerate(special)})
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(w, special=True, normalized=False) for w in special])
    return PreTrainedTokenizerFast(tokenizer_object=tok, **names)


def roberta_bpe(pad):
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    if pad == 3:
        special = ["<s>", "<unk>", "</s>", "<pad>", "<mask>"]
    post = lambda ids: processors.RobertaProcessing(("</s>", ids["</s>"]), ("<s>", ids["<s>"]), add_prefix_space=False)
    names = dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>", sep_token="</s>", pad_token="<pad>", cls_token="<s>", mask_token="<mask>")
    return byte_bpe(special, post, **names)


def modernbert_bpe():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    post = lambda ids: processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]", [(t, ids[t]) for t in ("[CLS]", "[SEP]")])
    names = dict(unk_token="[UNK]", sep_token="[SEP]", pad_token="[PAD]", cls_token="[CLS]", mask_token="[MASK]")
    return byte_bpe(special, post, **names)


def unigram():
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -3.0)]
    pieces += [("▁" + w, -4.0 - i / 50) for i, w in enumerate(WORDS)] + [(w, -5.0 - i / 50) for i, w in enumerate(WORDS)]
    pieces += [(d, -6.0) for d in DIGITS] + [(",", -6.0), ("<mask>", 0.0)]
    tok = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    tok.normalizer = normalizers.NFKC()
    tok.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tok.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 0), ("</s>", 2)])
    tok.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    names = dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>", sep_token="</s>", pad_token="<pad>", cls_token="<s>", mask_token="<mask>")
    return PreTrainedTokenizerFast(tokenizer_object=tok, **names)


BASE = dict(hidden_size=32, intermediate_size=48, num_attention_heads=4, max_position_embeddings=110)
ROPES = dict(full_attention=dict(rope_type="linear", factor=2.0, rope_theta=500.0), sliding_attention=dict(rope_type="default", rope_theta=20.0))

# name: (tokenizer, configuration, class, layout of config.json and of tensors, stored dtype)
MODELS = {
    "bert-off": (wordpiece, dict(model_type="bert", **BASE, num_hidden_layers=2), "BertModel", "v5", torch.float32),
    "bert-on": (wordpiece, dict(model_type="bert", **BASE, num_hidden_layers=3, hidden_act="relu", type_vocab_size=3, layer_norm_eps=1e-3), "BertForSequenceClassification", "old", torch.bfloat16),
    "roberta-off": (lambda: roberta_bpe(1), dict(model_type="roberta", **BASE, num_hidden_layers=2, type_vocab_size=1, layer_norm_eps=1e-5), "RobertaForMaskedLM", "v5", torch.bfloat16),
    "roberta-on": (lambda: roberta_bpe(3), dict(model_type="roberta", **BASE, num_hidden_layers=3, hidden_act="gelu_new", pad_token_id=3), "RobertaModel", "old", torch.float16),
    "xlm-roberta-off": (unigram, dict(model_type="xlm-roberta", **BASE, num_hidden_layers=2, hidden_act="silu"), "XLMRobertaForTokenClassification", "v5", torch.bfloat16),
    "modernbert-off": (modernbert_bpe, dict(model_type="modernbert", **BASE, num_hidden_layers=4, local_attention=7), "ModernBertForMaskedLM", "old", torch.bfloat16),
    "modernbert-on": (modernbert_bpe, dict(model_type="modernbert", **BASE, num_hidden_layers=3, hidden_activation="gelu_pytorch_tanh", attention_bias=True, mlp_bias=True, norm_bias=True, norm_eps=1e-3, local_attention=6, layer_types=["sliding_attention", "full_attention", "sliding_attention"], rope_parameters=ROPES), "ModernBertModel", "v5", torch.float32),
    "deberta-v2-off": (wordpiece, dict(model_type="deberta-v2", **BASE, num_hidden_layers=2, relative_attention=True, position_buckets=12, norm_rel_ebd="layer_norm", share_att_key=True, pos_att_type=["p2c", "c2p"], position_biased_input=False), "DebertaV2Model", "v5", torch.float32),
    "deberta-v2-on": (wordpiece, dict(model_type="deberta-v2", **BASE, num_hidden_layers=3, hidden_act="gelu_new", relative_attention=True, max_relative_positions=20, share_att_key=True, pos_att_type=["c2p"], type_vocab_size=2, layer_norm_eps=1e-3), "DebertaV2ForSequenceClassification", "v5", torch.bfloat16),
}
LONG = " ".join(WORDS[(7 * i + i * i) % len(WORDS)] for i in range(50))
PROMPTS = ["ba de fi go ku la me ni po ru", "Bade 3, xu ba", LONG[: LONG.index(" ", 100)], LONG]


def build(class_name, config, seed, dtype=torch.float32, state=None):
    config._attn_implementation = "eager"
    model = getattr(transformers, class_name)(config).eval()
    if state is not None:
        model.load_state_dict(state)
        return model.to(dtype)
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            noise = torch.randn(p.shape, generator=rng)
            if "norm" in name.lower():
                p.copy_(0.3 * noise + (0.0 if name.endswith("bias") else 1.0))
            elif name.endswith("bias"):
                p.copy_(0.5 * noise)
            elif "embeddings" in name:
                p.copy_(noise)
            elif any(part in name for part in ("query", "key", "Wqkv")):
                p.copy_(1.5 * noise / math.sqrt(p.shape[1]))
            else:
                p.copy_(noise / math.sqrt(p.shape[1]))
    return model


@torch.no_grad()
def pooled(model, ids):
    """First, last, mean, min and max of each layer, [5, n_layers + 1, d_model] in f32."""
    base = model.base_model if hasattr(model, "base_model") else model
    states = torch.stack(base(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states)[:, 0].float()
    return torch.stack([states[:, 0], states[:, -1], states.mean(1), states.amin(1), states.amax(1)])


def relative(a, b):
    """The largest difference over the largest value, of pooled states [k, n_layers + 1, d_model] by pooling and layer."""
    return (a - b).abs().amax(-1) / b.abs().amax(-1)


def numbers(tensor):
    def short(x):
        return [short(y) for y in x] if isinstance(x, list) else float(f"{x:.7g}")

    return short(tensor.tolist())


def prompts_of(name):
    # A prompt that spells the padding token, which RoBERTa does not count.
    return [*PROMPTS, "ba<pad> de<pad><pad>fi"] if name == "roberta-on" else PROMPTS


def round_weights(model, dtype):
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.to(dtype).float())


def config_json(config, layout, class_name, dtype):
    config.architectures = [class_name]
    config.dtype = str(dtype).removeprefix("torch.")
    fields = {k: v for k, v in config.to_dict().items() if v is not None}
    if layout == "v5":
        return fields
    fields["torch_dtype"] = fields.pop("dtype")
    fields["position_embedding_type"] = "absolute"
    if config.model_type == "modernbert":
        rope = fields.pop("rope_parameters")
        fields.pop("layer_types")
        fields |= dict(global_attn_every_n_layers=3, global_rope_theta=rope["full_attention"]["rope_theta"], local_rope_theta=rope["sliding_attention"]["rope_theta"], layer_norm_eps=1e-5, reference_compile=False)
    return fields


def stored(model, layout, dtype):
    """The tensors as a file has them: old ones of BERT with the names of TensorFlow's norms and a buffer of positions."""
    state = {k: v.to(dtype).contiguous() for k, v in model.state_dict().items()}
    tied = {"lm_head.decoder.weight", "decoder.weight", "lm_head.decoder.bias"}
    state = {k: v for k, v in state.items() if k not in tied}
    if layout == "old" and model.config.model_type == "bert":
        state = {k.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v for k, v in state.items()}
        state["bert.embeddings.position_ids"] = torch.arange(model.config.max_position_embeddings)[None]
    return state


def make(name, seed):
    tokenizer, fields, class_name, layout, dtype = MODELS[name]
    folder = emptied(ROOT / name)
    tok = tokenizer()
    fields = dict(fields, vocab_size=len(tok))
    fields.setdefault("pad_token_id", tok.pad_token_id)
    if fields["model_type"] == "modernbert":
        fields |= dict(bos_token_id=None, eos_token_id=None, cls_token_id=tok.cls_token_id, sep_token_id=tok.sep_token_id)
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    model = build(class_name, config, seed)
    round_weights(model, dtype)
    rounded = build(class_name, config, 0, state=model.state_dict())
    round_weights(rounded, torch.bfloat16)
    own = build(class_name, config, 0, torch.bfloat16, rounded.state_dict())
    found, errors = [], []
    for text in prompts_of(name):
        ids = tok(text)["input_ids"]
        reference = pooled(rounded, ids)[[0, 2]]
        errors.append(relative(pooled(own, ids)[[0, 2]], reference))
        found.append(dict(text=text, ids=ids, pooled=numbers(pooled(model, ids)), bf16=numbers(reference), bf16_error_of_transformers=numbers(errors[-1])))
    (folder / "expected.json").write_text(json.dumps(dict(prompts=found)) + "\n")
    save_file(stored(model, layout, dtype), folder / "model.safetensors", metadata={"format": "pt"})
    write_json(folder / "config.json", config_json(config, layout, class_name, dtype))
    tok.save_pretrained(folder)
    print(name, class_name, [len(p["ids"]) for p in found], f"{torch.stack(errors).square().mean().sqrt():.2e}", sum(f.stat().st_size for f in folder.iterdir()))


def make_adapter():
    """Of bert-on, whose weights are bf16: what is merged is rounded to f32 alone."""
    torch.manual_seed(1)
    base = transformers.AutoModelForSequenceClassification.from_pretrained(ROOT / "bert-on", dtype=torch.float32, attn_implementation="eager")
    lora = LoraConfig(task_type="SEQ_CLS", r=2, lora_alpha=6, target_modules=["query", "intermediate.dense"], init_lora_weights=False)
    model = get_peft_model(base, lora).eval()
    folder = emptied(ROOT / "adapter")
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    write_json(folder / "adapter_config.json", {**config, "base_model_name_or_path": "bert-on"})
    ids = wordpiece()(PROMPTS[0])["input_ids"]
    found = [dict(text=PROMPTS[0], ids=ids, pooled=numbers(pooled(model.base_model.model.bert, ids)))]
    (folder / "expected.json").write_text(json.dumps(dict(prompts=found)) + "\n")
    print("adapter", sum(f.stat().st_size for f in folder.iterdir()))


def main():
    reproducible()
    wanted = sys.argv[1:] or [*MODELS, "adapter"]
    for seed, name in enumerate(MODELS):
        if name in wanted:
            make(name, seed)
    if "adapter" in wanted:
        make_adapter()


if __name__ == "__main__":
    main()
