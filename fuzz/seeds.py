"""Writes what targets start from: corpus/TARGET, inputs made of the fixtures of the crates' tests, and dictionaries/TARGET, words that such files use."""

import base64
import hashlib
import json
import pathlib
import re
import struct

HERE = pathlib.Path(__file__).resolve().parent
CRATES = HERE.parent / "crates"
FIXTURES = CRATES / "judge-models" / "tests" / "fixtures"
WEIGHTS = CRATES / "judge-weights" / "tests" / "fixtures"
TEXTS = CRATES / "judge-text" / "tests" / "fixtures"
TEMPLATES = CRATES / "judge-jinja" / "tests" / "fixtures"
# Inputs of more bytes are changed too seldom in any one place.
MOST = 16_000


def write(target, inputs):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {hashlib.sha256(data).hexdigest()[:16]: data for data in inputs}
    for name, data in inputs.items():
        (folder / f"seed-{name}").write_bytes(data)
    print(f"{target}: {len(inputs)} seeds, {max(map(len, inputs.values()))} bytes at most")


def write_words(target, words):
    folder = HERE / "dictionaries"
    folder.mkdir(exist_ok=True)
    quoted = ("".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in word) for word in words)
    (folder / target).write_text("".join(f'"{word}"\n' for word in sorted(set(quoted)) if 1 < len(word) < 60))


def words_of_json(value):
    """Names of fields and short texts, in quotes."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield json.dumps(key).encode()
            yield from words_of_json(inner)
    elif isinstance(value, list):
        for inner in value[:50]:
            yield from words_of_json(inner)
    elif isinstance(value, str):
        yield json.dumps(value).encode()


def parts(*some):
    return b"\xff".join(part if isinstance(part, bytes) else json.dumps(part).encode() for part in some)


def fixture(pattern, folder=FIXTURES):
    return [path.read_bytes() for path in sorted(folder.glob(pattern))]


def pickle():
    folder = CRATES / "judge-probe" / "tests" / "fixtures"
    cases = [case for file in sorted(folder.glob("sklearn_import_*.json")) for case in json.loads(file.read_text())["cases"]]
    cases += json.loads((folder / "sklearn_pickles.json").read_text())["others"]
    write("pickle", [bytes.fromhex(case["pickle"]) for case in cases])


def config():
    files = [json.loads(data) for data in fixture("**/config.json")]
    write("config", [json.dumps(file).encode() for file in files])
    kinds = [b'"linear"', b'"dynamic"', b'"llama3"', b'"yarn"', b'"longrope"', b"null", b"true", b"false", b"1e-300", b"4294967296"]
    write_words("config", [*kinds, *(word for file in files for word in words_of_json(file))])


def tokenizer():
    """The fixtures' own, and one for each part that a tokenizer may have."""
    inputs, words = [], set()
    for path in sorted([*FIXTURES.glob("**/tokenizer.json"), *TEXTS.glob("**/tokenizer.json")]):
        settings = path.with_name("tokenizer_config.json")
        inputs.append(parts(json.loads(path.read_text()), json.loads(settings.read_text()) if settings.exists() else {}))
    pattern = {"Regex": r"\s+|[a-z]{1,3}"}
    space = {"replacement": "\u2581", "prepend_scheme": "first", "split": True}
    template = {
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
    }
    # The trie of a character map that has nothing but `a`, which becomes `b`.
    trie = [0] * 512
    trie[0], trie[ord("a")], trie[ord("a") ^ 256] = 0, ord("a") | 1 << 8 | 256 << 10, 0
    charsmap = struct.pack("<I512I", 4 * len(trie), *trie) + b"b\0"
    of = {
        "normalizer": [
            {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
            {"type": "Sequence", "normalizers": [{"type": kind} for kind in ("NFC", "NFD", "NFKC", "NFKD", "Nmt", "Lowercase")]},
            {"type": "Replace", "pattern": pattern, "content": "x"},
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Strip", "strip_left": True, "strip_right": True},
            {"type": "StripAccents"},
            {"type": "ByteLevel"},
            {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()},
        ],
        "pre_tokenizer": [
            {"type": "BertPreTokenizer"},
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            {"type": "CharDelimiterSplit", "delimiter": " "},
            {"type": "Metaspace", **space},
            {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False},
            {"type": "Split", "pattern": {"String": "e"}, "behavior": "MergedWithPrevious", "invert": True},
            {"type": "Punctuation", "behavior": "Contiguous"},
            {"type": "Digits", "individual_digits": True},
            {"type": "FixedLength", "length": 2},
            {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "UnicodeScripts"}]},
        ],
        "post_processor": [
            {"type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1]},
            {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 1], "trim_offsets": True, "add_prefix_space": True},
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
            {"type": "TemplateProcessing", **template},
            {"type": "Sequence", "processors": [{"type": "TemplateProcessing", **template}]},
        ],
        "decoder": [
            {"type": "WordPiece", "prefix": "##", "cleanup": True},
            {"type": "BPEDecoder", "suffix": "</w>"},
            {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
            {"type": "Metaspace", **space},
            {
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                    {"type": "ByteFallback"},
                    {"type": "Fuse"},
                    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
                ],
            },
        ],
        "model": [
            {"type": "WordPiece", "unk_token": "<unk>", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": {"<unk>": 0, "a": 1, "##b": 2}},
            {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a": 1, "b": 2}},
            {"type": "Unigram", "unk_id": 0, "byte_fallback": True, "vocab": [["<unk>", 0.0], ["a", -1.5], ["ab", -2.0], ["<0x41>", -3.0]]},
            {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": True, "byte_fallback": True, "ignore_merges": True, "vocab": {"<unk>": 0, "a": 1, "b": 2, "ab": 3}, "merges": [["a", "b"]]},
        ],
    }
    added = {"single_word": False, "lstrip": False, "rstrip": True, "normalized": False, "special": True}
    plain = {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": id, "content": text, **added} for id, text in enumerate(["<unk>", "<s>", "</s>", "<|im_start|>"])],
        "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None, "model": of["model"][1],
    }  # fmt: skip
    settings = {"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": True, "added_tokens_decoder": {"9": {"content": "<x>", **added}}}
    chat = b"{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{{ eos_token }}{% endfor %}"
    for field, choices in of.items():
        inputs += [parts({**plain, field: choice}, settings, chat) for choice in choices]
        for choice in choices:
            words |= set(words_of_json(choice)) | {json.dumps(choice).encode()}
    write("tokenizer", [data for data in inputs if len(data) < MOST])
    write_words("tokenizer", [*words, *words_of_json(plain), *words_of_json(settings)])


def chat_template():
    file = json.loads((TEMPLATES / "templates.json").read_text())
    inputs, words = [], {b"{{ ", b" }}", b"{% ", b" %}", b"{%- ", b"namespace(", b"range(", b"|tojson", b"loop.index0"}
    for case in file["cases"]:
        texts = [text for message in file["conversations"][case["conversation"]] for text in (message["role"], message["content"])]
        inputs.append(b"\xff".join(text.encode() for text in [case["template"], *texts]))
        words |= {word.encode() for word in re.findall(r"[|.]?\w+\(?|\{%-? \w+ ", case["template"])}
    write("chat_template", inputs)
    write_words("chat_template", words)


def template_values():
    cases = json.loads((TEMPLATES / "jinja.json").read_text())["cases"]
    states = [[3, "a", None, 1.5, True, {"b": [2, "</s>"]}], {"b": 1, "A": "x", "2": [1]}, "a text", 7, None]
    inputs, words = [], set()
    for number, (template, _) in enumerate(cases[::10]):
        state = states[number % len(states)]
        inputs.append(b"\xff".join([template.replace("messages", "state").encode(), json.dumps(state).encode()]))
        words |= {word.encode() for word in re.findall(r"[|.]?\w+\(?|\{%-? \w+ ", template)}
    write("template_values", inputs)
    write_words("template_values", words | {b"state", b"question"})


def file_of(tensors):
    """A file of safetensors, of names with dtype, shape and bytes."""
    header, data = {}, b""
    for name, (dtype, shape, stored) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(stored)]}
        data += stored
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensors_of(data):
    length = struct.unpack("<Q", data[:8])[0]
    body = data[8 + length :]
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    return {name: (info["dtype"], info["shape"], body[slice(*info["data_offsets"])]) for name, info in header.items()}


DTYPES = [b'"F64"', b'"F32"', b'"F16"', b'"BF16"', b'"F8_E4M3"', b'"F8_E8M0"', b'"F4"', b'"I64"', b'"I32"', b'"I8"', b'"U8"', b'"BOOL"']
OF_HEADERS = [*DTYPES, b'"shape":[', b'"dtype":', b'"data_offsets":[', b'"__metadata__"', b"18446744073709551615"]


def safetensors():
    some = {
        "model.embed_tokens.weight": ("F32", [3, 2], struct.pack("<6f", *range(6))),
        "model.norm.weight": ("BF16", [2], b"\x80\x3f\x00\x40"),
        "language_model.model.layers.0.mlp.up_proj.weight": ("F16", [2, 2], b"\x00\x3c" * 4),
    }
    head = {"lm_head.weight": ("F32", [3, 2], struct.pack("<6f", *range(6))), "x.inv_freq": ("I64", [1], bytes(8)), "s": ("F32", [], bytes(4))}
    both = {**dict.fromkeys(some, "1.safetensors"), **dict.fromkeys(head, "2.safetensors")}
    first = file_of(some)
    index = parts({"metadata": {"total_size": 58}, "weight_map": both}, struct.pack("<I", len(first)) + first + file_of(head))
    write("safetensors", [b"\xff" + file_of(some), b"\xff" + file_of(head), b"\xff" + file_of({}), index])
    write_words("safetensors", [*OF_HEADERS, b'"weight_map"', b'"1.safetensors"', b'"2.safetensors"', *(json.dumps(name).encode() for name in both)])


def pytorch():
    write("pytorch", fixture("pytorch/*.bin", WEIGHTS))
    names = [b"torch", b"torch._utils", b"_rebuild_tensor_v2", b"_rebuild_parameter", b"collections", b"OrderedDict", b"FloatStorage", b"storage"]
    write_words("pytorch", [*names, b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"archive/data.pkl", b"archive/data/0", b"data.pkl"])


def sentencepiece():
    settings = [{"add_bos_token": True}, {"add_bos_token": True, "tokenizer_class": "LlamaTokenizer"}, {"add_bos_token": False, "tokenizer_class": "GemmaTokenizer"}]
    texts = [json.dumps(some).encode() for some in settings]
    models = fixture("sentencepiece/*.model", TEXTS)
    write("sentencepiece", [bytes([kind, len(text)]) + text + model for model in models for kind in range(3) for text in texts])
    write_words("sentencepiece", [word for some in settings for word in words_of_json(some)])


def weights():
    """The first tensors of quantised folders, of those with experts and of encoders."""
    inputs, words = [], set(OF_HEADERS)
    for pattern in ("quantised/*", "families/*-on", "encoders/*-on"):
        for folder in sorted(FIXTURES.glob(pattern)):
            if not (folder / "config.json").exists() or not (folder / "model.safetensors").exists():
                continue
            settings = json.loads((folder / "config.json").read_text())
            words |= set(words_of_json(settings.get("quantization_config", {})))
            some, size = {}, 0
            for name, tensor in tensors_of((folder / "model.safetensors").read_bytes()).items():
                if size + len(tensor[2]) < MOST // 2:
                    some[name] = tensor
                    size += len(tensor[2])
                    words.add(b"." + name.rsplit(".", 1)[-1].encode())
            inputs.append(parts(settings, file_of(some)))
    write("weights", [data for data in inputs if len(data) < 2 * MOST])
    write_words("weights", words)


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf():
    """A tensor of each type, in the architectures that are read."""
    kinds = {0: (4, 1), 1: (2, 1), 30: (2, 1), 8: (34, 32), 2: (18, 32), 12: (144, 256), 13: (176, 256), 14: (210, 256)}
    inputs = []
    for architecture in ("llama", "qwen2", "qwen3", "gemma3"):
        table, data = b"", b""
        names = ["token_embd", "blk.0.attn_q", "blk.0.attn_k", "blk.0.ffn_up", "blk.0.ffn_down", "output", "blk.1.attn_v", "blk.1.attn_output"]
        for name, (kind, (size, block)) in zip(names, kinds.items()):
            rows = 8 if "attn_" in name else 1
            table += text(name + ".weight") + struct.pack("<IQQIQ", 2, block, rows, kind, len(data))
            data += bytes([1]) * (size * rows)
            data += bytes(-len(data) % 32)
        table += text("blk.0.attn_norm.weight") + struct.pack("<IQIQ", 1, 8, 0, len(data))
        data += struct.pack("<8f", *range(8))
        values = [("general.architecture", struct.pack("<I", 8) + text(architecture)), ("general.alignment", struct.pack("<II", 4, 32))]
        values += [("tokens", struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")), ("scores", struct.pack("<IIQ2f", 9, 6, 2, 1.0, 2.0))]
        keys = b"".join(text(key) + value for key, value in values)
        header = b"GGUF" + struct.pack("<IQQ", 3, len(names) + 1, len(values)) + keys + table
        inputs.append(header + bytes(-len(header) % 32) + data)
    # Whole models in one file.
    inputs += [path.read_bytes() for path in sorted(FIXTURES.glob("gguf_tokenizers/*.gguf")) if path.stat().st_size < MOST]
    write("gguf", inputs)
    known = ["llama.block_count", "llama.embedding_length", "llama.attention.head_count", "llama.context_length", "tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.ggml.scores", "tokenizer.ggml.token_type", "general.architecture", "general.alignment", "llama", "qwen2", "qwen3", "gemma3", "rope_freqs.weight", "output_norm.weight", "blk.0.", "post_ffw_norm"]
    write_words("gguf", [word.encode() for word in known])


def adapter():
    inputs, words = [], set(OF_HEADERS)
    for folder in sorted(path.parent for path in FIXTURES.glob("**/adapter_config.json")):
        settings = json.loads((folder / "adapter_config.json").read_text())
        words |= set(words_of_json(settings)) | {b".lora_A.weight", b".lora_B.weight", b".lora_magnitude_vector", b"base_model.model."}
        tensors = tensors_of((folder / "adapter_model.safetensors").read_bytes())
        inputs.append(parts(settings, file_of(tensors)))
        # The same of one module.
        few = dict(sorted(tensors.items())[:3])
        inputs.append(parts({key: value for key, value in settings.items() if value}, file_of(few)))
    write("adapter", [data for data in inputs if len(data) < MOST])
    write_words("adapter", words)


def rows():
    """What pyarrow writes."""
    made = json.loads((CRATES / "judge-data" / "tests" / "fixtures" / "pyarrow.json").read_text())
    write("stream", [bytes.fromhex(case["bytes"]) for case in made["streams"] + made["refused"]])


def row_files():
    """Rows of every kind, as lines, as an indented array, and with what is odd."""
    graded = {"id": 1, "instruction": "i", "response": "r", "human": [1, None], "meta": {"a": [1.5, "x\ny"]}}
    kinds = [
        [graded, {**graded, "id": "b", "response": None}, {**graded, "id": 3, "human": "no"}],
        [{"id": 1, "prompt": "p"}, {"id": 2, "prompt": "p", "output": "r"}],
        [{"id": 1, "messages": [{"role": "user", "content": "u"}, {"from": "gpt", "value": [{"type": "text", "text": "t"}]}]}],
        [{"id": 1, "question": "q", "response_a": "a", "response_b": "b", "human": "A"}],
        [{"id": 1, "question": "q", "responses": ["a", "b"], "human": [1, None]}],
        [{"user_prompt": "p", "user_prompt_feedback": "f", "score": 3}],
        [{"dialogue": "d", "human": "Ann", "emotion": "Joy", "emotion_score": "6"}],
    ]
    inputs = []
    for rows in kinds:
        inputs += ["\n".join(map(json.dumps, rows)).encode(), json.dumps(rows, indent=2).encode()]
    inputs.append(rb'{"id": 1, "instruction": "i", "response": "\ud83d", "n": 1e999}')
    write("row_file", inputs)
    words = {word for rows in kinds for word in words_of_json(rows)} | {b"null", b'"idx"', b'"answer"', b'"completion"', b'"reference"', b"\\ud83d"}
    write_words("row_file", words)


def journal():
    """Lines: an even first byte asks for a check."""
    row = lambda number, fate, body: f"{number}\t{fate}\t-\t{body}".encode()
    lines = [row(0, "scored", '{"id":0}'), row(2, "too_long+graded", '{"id":2}'), b"synced", b"resumed", b"forgotten\t1", b"finishing\t{}", row(3, "scored", "x")]
    inputs = [b"\x00" + line for line in lines] + [b"\xff".join(b"\x00" + line for line in lines), b"\x01torn\n", b"\x01torn"]
    inputs.append(b"\xff".join(b"\x00" + row(number, "scored", "{}") for number in range(4)) + b"\xff\x00finishing\t{}")
    write("journal", inputs)
    write_words("journal", [b"synced", b"resumed", b"forgotten\t", b"finishing\t", b"scored\t-\t", b"+graded", b"\xff\x00"])


for make in (rows, row_files, journal, pickle, config, tokenizer, chat_template, template_values, sentencepiece, safetensors, pytorch, weights, gguf, adapter):
    make()
