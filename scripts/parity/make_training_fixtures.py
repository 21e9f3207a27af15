# torch==2.15.0 transformers==5.24.0 peft==0.21.2 safetensors==0.8.0
"""Makes crates/judge-models/tests/fixtures/training: runs of torch and PEFT on the small random models of families/, encoders/ and
encoder_heads/, in f32.

    python scripts/parity/make_training_fixtures.py [NAME ...]

NAME.json says what is trained, on which model, by which loss, with which settings, and the examples of each batch, which are taken
in turn. NAME.safetensors has "loss", [21], the mean loss before each step and after the last, "grad_norm", [20], before it is scaled
down, and for each tensor that is learnt "gradient.TENSOR" at the first step, "5.TENSOR" and "20.TENSOR" after so many steps. Of an
adapter NAME.json also has the names of the tensors that PEFT saves, and its configuration. Of a model that is tuned as a whole every
tensor has at most SAMPLE of its numbers, evenly spaced. Gradients are of the mean loss. Tensors that are not the model's begin with
the numbers of `begin`, which the tests make too: factors, score heads, and those of an encoder's head that the folder has not.
Layer weights that are learnt begin as the logarithms of those that the case has, and weigh by their softmax.
Tensors of encoders are called as in the bare model.

Losses are those of the classes of transformers where they have one ("completion", "class"), else a formula: LAGER's cross-entropy and
distance over the labels ("mark"), the binary cross-entropies of "above class k" ("ordinal"), and TRL's loss of reward models
("bradley_terry"). Each sequence runs alone, without padding, and
gradients are added up.
"""

import json
import math
import sys

import peft
import torch
import transformers
from make_family_fixtures import ROOT as FAMILIES
from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
from safetensors.torch import save_file
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification, get_cosine_schedule_with_warmup, get_linear_schedule_with_warmup

ROOT = FAMILIES.parent / "training"
VERSIONS = {torch: "2.15.0", transformers: "5.24.0", peft: "0.21.2"}
STEPS, WARMUP, SAMPLE = 20, 2, 40
LORA = dict(rank=2, alpha=4.0, rslora=False, targets=None, layers=[0, 2])
SETTINGS = dict(peak=4e-3, course="cosine", max_grad_norm=0.8, beta2=0.99, epsilon=1e-6, weight_decay=0.05)
LABELS = dict(tokens=[10, 20, 30], values=[1.0, 2.0, 4.0], layers=[[1, 0.25], [2, -0.5], [3, 1.0]], lens="normed")

CASES = {
    "llama": dict(model="llama-on", lora=LORA, loss="completion", settings=dict(max_grad_norm=6.0)),
    "qwen2": dict(model="qwen2-on", lora=dict(LORA, rslora=True), loss="completion", settings=dict(max_grad_norm=15.0)),
    "qwen3": dict(model="qwen3-on", lora=dict(LORA, targets=["q_proj", "v_proj", "down_proj"], layers=None), loss="completion", settings=dict(course="linear", max_grad_norm=3.2)),
    "gemma2": dict(model="gemma2-on", lora=LORA, loss="completion", settings=dict(max_grad_norm=7.0)),
    "phi3": dict(model="phi3-off", lora=LORA, loss="completion", settings=dict(max_grad_norm=None)),
    "qwen2-full": dict(model="qwen2-on", loss="completion", settings=dict(max_grad_norm=12.0)),
    "gemma2-full": dict(model="gemma2-on", loss="completion", settings=dict(max_grad_norm=4.0)),
    "mark": dict(model="gemma2-on", lora=dict(LORA, targets=["k_proj", "up_proj"]), loss="mark", alpha=0.7, labels=LABELS, settings=dict(max_grad_norm=2.6)),
    "mark-raw": dict(model="llama-on", lora=dict(LORA, targets=["o_proj"]), loss="mark", alpha=1.0, labels=dict(LABELS, lens="raw"), settings=dict(max_grad_norm=1.9)),
    "mark-weights": dict(model="qwen2-on", lora=dict(LORA, targets=["q_proj", "down_proj"]), loss="mark", alpha=0.7, labels=dict(LABELS, layers=[[1, 0.2], [2, 0.3], [3, 0.5]], learned=True), settings=dict(max_grad_norm=2.6)),
    "expected": dict(model="qwen3-on", lora=dict(LORA, targets=["q_proj", "gate_proj"]), loss="bradley_terry", centring=0.02, labels=LABELS),
    "score": dict(model="llama-on", lora=dict(LORA, targets=["q_proj", "v_proj"]), loss="bradley_terry", centring=0.01, settings=dict(max_grad_norm=1.8)),
    "class": dict(model="qwen2-on", lora=dict(LORA, targets=["v_proj", "down_proj"]), loss="class", classes=3, settings=dict(max_grad_norm=1.9)),
    "class-full": dict(model="phi3-off", loss="class", classes=3),
    "ordinal": dict(model="llama-on", lora=dict(LORA, targets=["k_proj", "up_proj"]), loss="ordinal", classes=4, settings=dict(max_grad_norm=3.2)),
    "bert": dict(model="../encoder_heads/bert-labels", lora=dict(LORA, layers=None), loss="class", classes=3, head=["classifier", "pooler"], is_pair=True, settings=dict(max_grad_norm=1.4)),
    "roberta": dict(model="../encoder_heads/roberta", lora=dict(LORA, targets=["query", "value", "output.dense"], layers=[1]), loss="class", classes=2, head=["classifier"], settings=dict(max_grad_norm=2.0)),
    "roberta-full": dict(model="../encoders/roberta-off", loss="class", classes=3, head=["classifier"], new=["classifier.dense", "classifier.out_proj"], settings=dict(max_grad_norm=1.0, epsilon=1e-4)),
    "modernbert": dict(model="../encoders/modernbert-off", lora=dict(LORA, layers=[1, 3], rslora=True), loss="class", classes=3, head=["classifier", "head"], new=["classifier"], settings=dict(max_grad_norm=2.0)),
    "modernbert-full": dict(model="../encoder_heads/modernbert-mean", loss="class", classes=2, head=["classifier", "head"], settings=dict(max_grad_norm=2.0)),
}
# What classes of encoders put before the names of the bare model.
PREFIXES = {"bert": "bert.", "roberta": "roberta.", "modernbert": "model."}


def numbers(count, start, scale):
    """Numbers in +-scale / 2 that look random and are the same everywhere."""
    return torch.tensor([(((start + i) * 2654435761) % 2**32 / 2**32 - 0.5) * scale for i in range(count)], dtype=torch.float64).float()


def begin(case, named):
    """Gives what is not the model's its first numbers: a tensor begins where the one before it in the order of names has ended."""
    start = 1
    for name, p in sorted(named.items()):
        if "lora_" in name or name == "score.weight" or name.rsplit(".", 1)[0] in case.get("new", []):
            with torch.no_grad():
                p.copy_(numbers(p.numel(), start, 0.4).view_as(p))
            start += p.numel()


def examples(case):
    """Three batches of three examples, of tokens that numbers() gives."""
    place = 1

    def tokens(count):
        nonlocal place
        place += count
        return [int((x + 0.5) * (80 if case.get("is_pair") else 92)) + 3 for x in numbers(count, 7 * place, 1.0).tolist()]

    def one(batch, index):
        length = 4 + (3 * batch + 5 * index) % 8
        if case["loss"] == "completion":
            return dict(prompt=tokens(length), completion=tokens(1 + (batch + index) % 4))
        if case["loss"] == "mark":
            return dict(prompt=tokens(length), target=[[0.0, 1.0, 0.0], [0.5, 0.25, 0.25], [1.0, 0.0, 0.0]][(batch + index) % 3])
        if case["loss"] in ("class", "ordinal"):
            types = dict(types=[0] * (length // 2) + [1] * (length - length // 2)) if case.get("is_pair") else {}
            return dict(prompt=tokens(length), **types, **{"class": (batch + (1 if case["classes"] == 2 else 2) * index) % case["classes"]})
        return dict(better=tokens(length), worse=tokens(length + 2), margin=[0.0, 0.5][index % 2])

    return [[one(batch, index) for index in range(3)] for batch in range(3)]


def end(model, case, ids):
    """Of the last position: the logits of the labels, or the scores."""
    if "labels" not in case:
        return model(torch.tensor([ids]), use_cache=False).logits[0]
    base = model.get_base_model() if "lora" in case else model
    states = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False).hidden_states
    of = case["labels"]
    logits = 0.0
    learned = torch.softmax(model.layer_weights, 0) if of.get("learned") else None
    for at, (layer, weight) in enumerate(of["layers"]):
        weight = weight if learned is None else learned[at]
        state = states[layer][0, -1]
        if of["lens"] == "normed" and layer < len(states) - 1:
            state = base.model.norm(state)
        logits = logits + weight * (base.lm_head.weight[of["tokens"]] @ state)
    return logits


def expected(case, logits):
    return (torch.softmax(logits, -1) * torch.tensor(case["labels"]["values"])).sum()


def of_example(model, case, example, count):
    """The example's part of the mean loss."""
    if case["loss"] == "completion":
        ids = example["prompt"] + example["completion"]
        labels = [-100] * len(example["prompt"]) + example["completion"]
        return model(input_ids=torch.tensor([ids]), labels=torch.tensor([labels]), num_items_in_batch=torch.tensor(count), use_cache=False).loss
    if case["loss"] == "class":
        more = {} if "head" in case else dict(use_cache=False)
        if "types" in example:
            more["token_type_ids"] = torch.tensor([example["types"]])
        return model(input_ids=torch.tensor([example["prompt"]]), labels=torch.tensor([example["class"]]), **more).loss / count
    if case["loss"] == "ordinal":
        logits = end(model, case, example["prompt"])
        above = (example["class"] > torch.arange(case["classes"] - 1)).float()
        return binary_cross_entropy_with_logits(logits, above, reduction="sum") / count
    if case["loss"] == "mark":
        logits, target = end(model, case, example["prompt"]), torch.tensor(example["target"])
        distance = (expected(case, logits) - (target * torch.tensor(case["labels"]["values"])).sum()).abs()
        return (case["alpha"] * -(target * torch.log_softmax(logits, -1)).sum() + (1 - case["alpha"]) * distance) / count
    rewards = [end(model, case, example[which]) for which in ("better", "worse")]
    better, worse = [expected(case, reward) if "labels" in case else reward[0] for reward in rewards]
    return (-logsigmoid(better - worse - example["margin"]) + case["centring"] * (better + worse) ** 2) / count


def count(case, batch):
    return sum(len(example["completion"]) for example in batch) if case["loss"] == "completion" else len(batch)


def is_scored(case):
    return case["loss"] in ("class", "ordinal") or case["loss"] == "bradley_terry" and "labels" not in case


def load_base(case, folder):
    """The model without an adapter, of the fixture's folder or another."""
    folder = folder or FAMILIES / case["model"]
    config = AutoConfig.from_pretrained(folder)
    if config.model_type == "phi3":
        config.pad_token_id = None
    if is_scored(case):
        config.num_labels = case["classes"] - 1 if case["loss"] == "ordinal" else case.get("classes", 1)
    kind = AutoModelForSequenceClassification if is_scored(case) else AutoModelForCausalLM
    return kind.from_pretrained(folder, config=config, attn_implementation="eager", dtype=torch.float32)


def load(case):
    model = load_base(case, None)
    prefix = PREFIXES[model.config.model_type] if "head" in case else ""
    if "lora" in case and "head" in case:
        lora, layers = case["lora"], ("layer.", "layers.")
        is_in_block = lambda name: any(f"{part}{layer}." in name for part in layers for layer in lora["layers"] or range(model.config.num_hidden_layers))
        is_target = lambda name: not lora["targets"] or any(name.endswith(f".{target}") for target in lora["targets"])
        # Whole names, since the last parts are those of the head too.
        targets = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and is_in_block(name) and is_target(name)]
        model = get_peft_model(model, LoraConfig(
            r=lora["rank"], lora_alpha=lora["alpha"], use_rslora=lora["rslora"], target_modules=targets, init_lora_weights=False,
            task_type="SEQ_CLS", modules_to_save=list(case["head"])))
    elif "lora" in case:
        lora = case["lora"]
        # PEFT takes "all-linear" for all layers alone.
        all_linear = sorted({name.rsplit(".")[-1] for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) and ".layers." in name})
        model = get_peft_model(model, LoraConfig(
            r=lora["rank"], lora_alpha=lora["alpha"], use_rslora=lora["rslora"], target_modules=lora["targets"] or all_linear,
            layers_to_transform=lora["layers"], init_lora_weights=False, task_type="SEQ_CLS" if is_scored(case) else "CAUSAL_LM",
            modules_to_save=["score"] if is_scored(case) else None))
    model.eval()  # nothing of it is random
    own = lambda name: name.removeprefix("base_model.model.").replace(".default", "").replace(".modules_to_save", "").removeprefix(prefix)
    named = {own(name): p for name, p in model.named_parameters() if p.requires_grad}
    begin(case, named)
    if case.get("labels", {}).get("learned"):
        model.layer_weights = torch.nn.Parameter(torch.tensor([weight for _, weight in case["labels"]["layers"]]).log())
        named["layer_weights"] = model.layer_weights
    return model, named


def sample(case, tensor):
    flat = tensor.detach().clone().flatten()
    return flat if "lora" in case else flat[:: math.ceil(flat.numel() / SAMPLE)].clone()


def run(name, case):
    settings = SETTINGS | case.get("settings", {})
    case = {key: value for key, value in case.items() if key != "settings"}
    batches = examples(case)
    model, named = load(case)
    kinds = [[p for p in named.values() if (p.dim() > 1) == is_matrix] for is_matrix in (True, False)]
    groups = [dict(params=params, weight_decay=decay) for params, decay in zip(kinds, (settings["weight_decay"], 0.0)) if params]
    optimizer = torch.optim.AdamW(groups, lr=settings["peak"], betas=(0.9, settings["beta2"]), eps=settings["epsilon"])
    schedule = {"cosine": get_cosine_schedule_with_warmup, "linear": get_linear_schedule_with_warmup}[settings["course"]](optimizer, WARMUP, STEPS)
    out, losses, norms = {}, [], []
    for step in range(STEPS + 1):
        batch = batches[step % len(batches)]
        optimizer.zero_grad()
        parts = [of_example(model, case, example, count(case, batch)) for example in batch]
        losses.append(sum(part.item() for part in parts))
        if step == STEPS:
            break
        for part in parts:
            part.backward()
        if step == 0:
            out |= {f"gradient.{key}": sample(case, p.grad) for key, p in named.items()}
        norms.append(torch.nn.utils.clip_grad_norm_(named.values(), settings["max_grad_norm"] or math.inf).item())
        optimizer.step()
        schedule.step()
        if step + 1 in (5, STEPS):
            out |= {f"{step + 1}.{key}": sample(case, p) for key, p in named.items()}
    if "lora" in case:  # names as PEFT saves them, and the fields of its configuration that decide about numbers
        config = model.peft_config["default"].to_dict()
        fields = ("peft_type", "task_type", "r", "lora_alpha", "use_rslora", "layers_to_transform", "bias", "fan_in_fan_out", "modules_to_save")
        case["saved"] = sorted(get_peft_model_state_dict(model))
        # PEFT adds the names that heads of other classes have.
        config["modules_to_save"] = case.get("head") or (["score"] if any(".score." in name for name in case["saved"]) else None)
        case["config"] = {field: config[field] for field in fields} | dict(target_modules=sorted(config["target_modules"]))
    out |= {"loss": torch.tensor(losses), "grad_norm": torch.tensor(norms)}
    save_file(out, ROOT / f"{name}.safetensors")
    (ROOT / f"{name}.json").write_text(json.dumps(case | dict(settings=settings, steps=STEPS, warmup=WARMUP, batches=batches)) + "\n")
    clipped = sum(norm > (settings["max_grad_norm"] or math.inf) for norm in norms)
    print(name, f"loss {losses[0]:.3f} to {losses[-1]:.3f}, {clipped} of {STEPS} clipped,", sum((ROOT / f"{name}.{end}").stat().st_size for end in ("json", "safetensors")))


def main():
    for module, version in VERSIONS.items():
        if module.__version__.split("+")[0] != version:
            raise SystemExit(f"pinned to {module.__name__} {version}, found {module.__version__}")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    ROOT.mkdir(exist_ok=True)
    for name in sys.argv[1:] or CASES:
        run(name, CASES[name])


if __name__ == "__main__":
    main()
