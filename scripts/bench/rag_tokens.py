# ragas==0.4.3 langchain-community==0.3.31 langchain-openai==0.3.35 tokenizers==0.23.3 gguf==0.19.0
"""How many tokens a model reads and writes for faithfulness: `judge rag`, and ragas, on the same rows.

    JUDGE_TEST_DATA=FOLDER python scripts/bench/rag_tokens.py JUDGE [--rows N]

The rows are the first of QAGS (an article, a summary). ragas runs as it is, with a stand-in in the place of its language model, which answers as
briefly as its forms allow: the sentences of the summary as statements, a verdict for each, no reasons. So what it writes is the least that it can be.
The model is SmolLM2-135M-Instruct, whose tokenizer counts both, without the chat template around ragas' prompts. What ragas' prompts begin with alike, an engine that keeps
prefixes reads less often.
"""

import argparse
import asyncio
import json
import os
import pathlib
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("judge")
parser.add_argument("--rows", type=int, default=100)
args = parser.parse_args()
os.environ["RAGAS_DO_NOT_TRACK"] = "true"
DATA = pathlib.Path(os.environ["JUDGE_TEST_DATA"])
MODEL = DATA / "models/smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf"

from gguf import GGUFReader
from ragas.llms.base import InstructorBaseRagasLLM
from ragas.metrics.collections import Faithfulness
from tokenizers import Tokenizer, models, pre_tokenizers

QUESTION = "Summarise the article."


def rows():
    for number, line in enumerate((DATA / "qags/mturk_cnndm.jsonl").read_text().splitlines()[: args.rows]):
        row = json.loads(line)
        yield {"id": number, "question": QUESTION, "contexts": [row["article"]], "response": " ".join(one["sentence"] for one in row["summary_sentences"])}


def tokenizer():
    """The file's own: pairs of bytes, digits one by one."""
    fields = GGUFReader(MODEL).fields
    tokens, merges = [fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges")]
    made = Tokenizer(models.BPE({token: at for at, token in enumerate(tokens)}, [tuple(pair.split(" ")) for pair in merges]))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    return made


class StandIn(InstructorBaseRagasLLM):
    """Answers in the form that is asked for, and keeps the prompts."""

    def __init__(self):
        self.prompts, self.answers, self.sentences = [], [], []

    def generate(self, prompt, response_model):
        self.prompts.append(prompt)
        fields = response_model.model_fields
        if list(fields) != ["statements"]:
            sys.exit(f"ragas asks for {list(fields)}, expected statements: another version?")
        if fields["statements"].annotation == list[str] or "str" in str(fields["statements"].annotation):
            found = self.sentences
        else:
            found = [{"statement": sentence, "reason": "", "verdict": 1} for sentence in self.sentences]
        answer = response_model.model_validate({"statements": found})
        self.answers.append(answer.model_dump_json())
        return answer

    async def agenerate(self, prompt, response_model):
        return self.generate(prompt, response_model)


def main():
    made = list(rows())
    own = tokenizer()
    count = lambda texts: sum(len(own.encode(text).ids) for text in texts)
    with tempfile.TemporaryDirectory() as temporary:
        source, out = pathlib.Path(temporary, "rows.jsonl"), pathlib.Path(temporary, "out.jsonl")
        source.write_text("".join(json.dumps(row) + "\n" for row in made))
        command = [args.judge, "rag", "--input", source, "--output", out, "--measures", "faithfulness", "--model", MODEL, "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        measured = [json.loads(line) for line in out.read_text().splitlines()]
    model = StandIn()
    faithfulness = Faithfulness(llm=model)
    for row, found in zip(made, measured):
        model.sentences = [one["text"] for one in found["sentences"]]
        asyncio.run(faithfulness.ascore(user_input=QUESTION, response=row["response"], retrieved_contexts=row["contexts"]))
    sentences = sum(len(row["sentences"]) for row in measured)
    print(f"{len(made)} rows, {sentences} sentences")
    prompts = sum(row["input_tokens"] for row in measured)
    # Of each row the article is read once, and every further sentence brings its own words.
    again = sum((len(found["sentences"]) - 1) * count(row["contexts"]) for row, found in zip(made, measured))
    print("| | prompts | tokens of prompts | read | written, one after another |")
    print("|---|---|---|---|---|")
    print(f"| judge rag | {sentences:,} | {prompts:,} | at most {prompts - again:,} | 0 |")
    print(f"| ragas 0.4.3 | {len(model.prompts):,} | {count(model.prompts):,} | {count(model.prompts):,} | at least {count(model.answers):,} |")


if __name__ == "__main__":
    main()
