"""Load on a service of decisions: a closed loop of 1, 8 and 64 clients, requests per second, p50 and p99.

    judge serve --model FOLDER --port 8080 --quiet &
    python scripts/serve/load.py [--url http://127.0.0.1:8080] [--model NAME] [--key KEY]
        [--clients 1,8,64] [--seconds 20] [--questions 3] [--words 120]

The other side on the same machine and model, after this one has ended:

    transformers serve FOLDER --port 8000 &
    python scripts/serve/load.py --url http://127.0.0.1:8000 --model FOLDER

Each client sends its next request when it has the answer to the last one, over a connection that it keeps. States differ from request to
request and questions are the same, all drawn with a fixed seed, so both sides get the same requests. Seconds before the first answer of
all clients are not counted. Python alone is enough.
"""

import argparse
import http.client
import json
import random
import threading
import time
import urllib.parse

WORDS = "parcel late week refund order mail please answer today money shop broken thanks again never call number street box return".split()


def body(args, seed):
    draw = random.Random(seed)
    state = " ".join(draw.choice(WORDS) for _ in range(args.words))
    kinds = [
        {"type": "choice", "instructions": "What is the tone?", "criteria": {"calm": None, "angry": "Accuses or shouts", "joking": None}},
        {"type": "score", "instructions": "How urgent is it?", "criteria": ["can wait", "this week", "today"]},
        {"type": "choice", "instructions": "What is it about?", "criteria": {"delivery": None, "payment": None, "something else": None}},
    ]
    questions = {f"q{number}": kinds[number % len(kinds)] for number in range(args.questions)}
    request = {"state": state, "questions": questions}
    return json.dumps(request | ({"model": args.model} if args.model else {}))


class Client(threading.Thread):
    """Asks until told to stop."""

    def __init__(self, args, number, stop):
        super().__init__(daemon=True)
        self.args, self.number, self.stop, self.done, self.failed = args, number, stop, [], {}

    def run(self):
        url = urllib.parse.urlsplit(self.args.url)
        headers = {"Content-Type": "application/json"}
        if self.args.key:
            headers["Authorization"] = f"Bearer {self.args.key}"
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=600)
        turn = 0
        while not self.stop.is_set():
            turn += 1
            request = body(self.args, self.number * 1_000_000 + turn)
            start = time.perf_counter()
            try:
                connection.request("POST", "/v1/systemone", request, headers)
                answer = connection.getresponse()
                answer.read()
                status = answer.status
            except OSError as error:
                connection.close()
                status = type(error).__name__
            end = time.perf_counter()
            if status == 200:
                self.done.append((end, end - start))
            else:
                self.failed[status] = self.failed.get(status, 0) + 1


def quantile(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def load(args, clients):
    stop = threading.Event()
    threads = [Client(args, number, stop) for number in range(clients)]
    for thread in threads:
        thread.start()
    while not all(thread.done or thread.failed for thread in threads):
        time.sleep(0.01)
    start = time.perf_counter()
    time.sleep(args.seconds)
    end = time.perf_counter()
    stop.set()
    for thread in threads:
        thread.join()
    seconds = sorted(took for thread in threads for at, took in thread.done if start <= at <= end)
    failed = {}
    for thread in threads:
        for status, number in thread.failed.items():
            failed[status] = failed.get(status, 0) + number
    if not seconds:
        print(f"{clients:>7}  none answered, {failed}")
        return
    rate = len(seconds) / (end - start)
    p50, p99 = (1000 * quantile(seconds, share) for share in (0.5, 0.99))
    print(f"{clients:>7}  {rate:>10.2f}  {p50:>8.1f}  {p99:>8.1f}  {failed or 'none'}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--model")
    parser.add_argument("--key")
    parser.add_argument("--clients", default="1,8,64", type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--seconds", default=20.0, type=float)
    parser.add_argument("--questions", default=3, type=int)
    parser.add_argument("--words", default=120, type=int)
    args = parser.parse_args()
    print("clients  requests/s    p50 ms    p99 ms  failed")
    for clients in args.clients:
        load(args, clients)


if __name__ == "__main__":
    main()
