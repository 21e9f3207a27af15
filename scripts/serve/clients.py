# openai==3.57.0
# systemone-client==0.1.0
"""Asks a running `judge serve` by the packages openai and systemone-client, and checks their answers against those of /v1/systemone.

    judge serve --model FOLDER --port 8080 &
    python scripts/serve/clients.py [--url http://127.0.0.1:8080] [--key KEY]

The model must be one that can answer yes-or-no questions (single tokens for Yes and No).
"""

import argparse
import asyncio
import importlib.metadata
import json
import urllib.request

import openai
import systemone

QUESTIONS = [
    {"type": "predicate", "name": "refund", "instructions": "Is a refund asked for?"},
    {"type": "choice", "instructions": "What is the tone?",
     "choices": [{"value": "calm"}, {"value": "angry", "description": "Accuses or shouts"}, {"value": True}]},
    {"type": "score", "name": "urgency", "instructions": [{"type": "input_text", "text": "How urgent is it?"}],
     "levels": [{"label": "can wait"}, {"label": "this week"}, {"label": "today", "description": "within hours"}]},
]
STATE = "Three weeks late. I want my money back, now!"


def system_one(url, key, body):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(f"{url}/v1/systemone", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def refused(kind, call):
    try:
        call()
    except kind as error:
        print(f"{kind.__name__}: {error.body['message'] if error.body else error}")
        return
    raise AssertionError(f"expected {kind.__name__}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--key")
    args = parser.parse_args()
    client = openai.OpenAI(base_url=f"{args.url}/v1", api_key=args.key or "none", max_retries=0)
    model = client.models.list().data[0].id
    decision = client.decisions.create(model=model, input=STATE, questions=QUESTIONS)
    # What the package made of the JSON is of its own types, and has nothing left over.
    assert decision.model == model
    predicate, choice, score = decision.answers
    for answer, name in [(predicate, "Predicate"), (choice, "Choice"), (score, "Score")]:
        assert type(answer).__name__ == f"AnswerAnswerResource{name}", type(answer)
        assert not answer.model_extra, answer.model_extra
    assert not decision.usage.model_extra and decision.usage.total_tokens == decision.usage.input_tokens > 0

    theirs = system_one(args.url, args.key, {"model": model, "state": STATE, "questions": {
        "refund": {"type": "noul", "instructions": "Is a refund asked for?"},
        "tone": {"type": "choice", "instructions": "What is the tone?",
                 "criteria": {"calm": None, "angry": "Accuses or shouts", "true": None}},
        "urgency": {"type": "score", "instructions": "How urgent is it?", "criteria": ["can wait", "this week", "today: within hours"]},
    }})["answers"]
    assert predicate.probability == theirs["refund"]["noul"] and predicate.name == "refund"
    assert [option.probability for option in choice.probabilities] == list(theirs["tone"]["probabilities"].values())
    assert [option.value for option in choice.probabilities] == ["calm", "angry", True] and choice.name is None
    assert choice.confidence == theirs["tone"]["confidence"]
    assert str(choice.choice).lower() == theirs["tone"]["choice"]
    assert [level.probability for level in score.probabilities] == list(theirs["urgency"]["probabilities"].values())
    assert [(level.value, level.label) for level in score.probabilities] == [(0, "can wait"), (1, "this week"), (2, "today")]
    assert (score.score, score.confidence) == (theirs["urgency"]["score"], theirs["urgency"]["confidence"])

    with systemone.Client(args.url, api_key=args.key, model=model) as other:
        questions = {
            "refund": systemone.Noul("Is a refund asked for?"),
            "tone": systemone.Choice("What is the tone?", {"calm": None, "angry": "Accuses or shouts", "true": None}),
            "urgency": systemone.Score("How urgent is it?", ["can wait", "this week", "today: within hours"]),
        }
        found = other.system_one(STATE, questions)
        assert found.nouls["refund"].noul == theirs["refund"]["noul"]
        assert found.choices["tone"].probabilities == theirs["tone"]["probabilities"] and found.choices["tone"].choice == theirs["tone"]["choice"]
        assert found.scores["urgency"].score == theirs["urgency"]["score"]
        try:
            other.system_one(STATE, questions, model="another")
            raise AssertionError("expected SystemOneError")
        except systemone.SystemOneError as error:
            print(f"SystemOneError: {error}")

    messages = [
        {"type": "message", "role": "developer", "content": "Sort mails."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "three weeks late"},
        {"type": "message", "role": "user",
         "content": [{"type": "input_text", "text": STATE}, {"type": "input_json", "data": {"days": 21}}]},
    ]

    async def asynchronous():
        async with openai.AsyncOpenAI(base_url=f"{args.url}/v1", api_key=args.key or "none") as client:
            create = client.decisions.create
            return await asyncio.gather(*(create(model=model, input=messages, questions=QUESTIONS) for _ in range(8)))

    decisions = asyncio.run(asynchronous())
    assert len({decision.model_dump_json() for decision in decisions}) == 1, "the same question, the same bits"

    def ask(**fields):
        return lambda: client.decisions.create(**{"model": model, "input": STATE, "questions": QUESTIONS} | fields)

    refused(openai.NotFoundError, ask(model="another"))
    refused(openai.UnprocessableEntityError, ask(questions=[{"type": "predicate"}]))
    refused(openai.UnprocessableEntityError, ask(extra_body={"stream": True}))
    image = [{"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/a.png"}]}]
    refused(openai.BadRequestError, ask(input=image))
    if args.key:
        wrong = openai.OpenAI(base_url=f"{args.url}/v1", api_key="wrong", max_retries=0)
        refused(openai.AuthenticationError, lambda: wrong.decisions.create(model=model, input=STATE, questions=QUESTIONS))
    print(f"openai {openai.__version__}, systemone-client {importlib.metadata.version('systemone-client')}: all as expected; P(refund) = {predicate.probability:.4f}")


if __name__ == "__main__":
    main()
