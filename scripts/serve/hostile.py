"""How long answers take while other clients misbehave: p50 and p99 of one client, alone and beside them.

    cargo build --release -p judge
    target/release/judge serve --port 8080 --quiet &
    python scripts/serve/hostile.py [--url http://127.0.0.1:8080] [--requests 300] [--seconds 60] [--rate 20]

The measured client sends its next request when it has the answer to the last one: three questions on a state of 120 words, or what
`--questions` and `--words` say. The others come from another address of the loopback network, one kind after the other and then all at once:

    hang-ups   64 questions on a state, and the connection closed at once or a little later
    floods     small right requests over many connections, as fast as they are answered, some of them 400 questions long
    slow       connections that send a byte now and then, and some that do not read
    huge       bodies at the limit and beyond, one that is all numbers, many questions on a long state
    deep       JSON nested a hundred thousand deep, names twice, control tokens

Each kind sends at most `--rate` requests a second from four threads, with the lowest priority, so that what is measured is the service and
not Python; all of it ends after `--requests` answers or `--seconds`, whichever is first. Python alone is enough. Addresses other than
loopback ones are refused.
"""

import argparse
import http.client
import ipaddress
import json
import multiprocessing
import os
import random
import socket
import threading
import time
import urllib.parse

from load import body, quantile

HOSTILE = "127.0.0.2"


def request(payload, host, length=None, headers=""):
    head = f"POST /v1/systemone HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(payload) if length is None else length}\r\n\r\n".encode() + payload


def questions(number):
    kind = {"type": "choice", "criteria": {"calm": None, "angry": None}}
    return {f"q{place}": {**kind, "instructions": f"Which is it, in question {place}?"} for place in range(number)}


def openai(state, number):
    kind = {"type": "choice", "choices": [{"value": "calm"}, {"value": "angry"}]}
    listed = [{**kind, "instructions": f"Which is it, in question {place}?"} for place in range(number)]
    return json.dumps({"input": state, "questions": listed}).encode()


class Hostile:
    """One process of one kind of client."""

    def __init__(self, kind, url, rate, seconds, stop):
        self.kind, self.host, self.port, self.rate, self.stop = kind, url.hostname, url.port, rate, stop
        self.end = time.monotonic() + seconds
        self.counts, self.lock = {}, threading.Lock()

    def is_over(self):
        return self.stop.is_set() or time.monotonic() > self.end

    def connect(self):
        source = (HOSTILE, 0) if self.host.startswith("127.") else None
        return socket.create_connection((self.host, self.port), timeout=5, source_address=source)

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def status(self, stream):
        first = stream.recv(64)
        return first.split(b" ")[1].decode() if first.startswith(b"HTTP/1.1 ") else "closed"

    def send(self, payload):
        with self.connect() as stream:
            stream.sendall(payload)
            return self.status(stream)

    def hang_ups(self, draw):
        state = " ".join(draw.choice(("parcel", "late", "refund")) for _ in range(150))
        with self.connect() as stream:
            stream.sendall(request(json.dumps({"state": state, "questions": questions(64)}).encode(), self.host))
            time.sleep(draw.choice((0, 0.002, 0.02)))
        return "hung up"

    def floods(self, draw):
        if draw.random() < 0.1:
            return self.send(request(openai("Late again.", 400), self.host).replace(b"/v1/systemone", b"/v1/decisions", 1))
        return self.send(request(json.dumps({"state": f"Late {draw.random()}", "questions": questions(2)}).encode(), self.host))

    def slow(self, draw):
        stream = self.connect()
        with stream:
            whole = request(json.dumps({"state": "late", "questions": questions(1)}).encode(), self.host)
            for byte in whole[:draw.randrange(20, 60)]:
                if self.is_over():
                    break
                stream.sendall(bytes([byte]))
                time.sleep(0.1)
        return "given up"

    def huge(self, draw):
        text = "late again " * 90_000
        return self.send(draw.choice((
            lambda: request(json.dumps({"state": text, "questions": questions(8)}).encode(), self.host),
            lambda: request(json.dumps({"state": text, "questions": questions(64)}).encode(), self.host),
            lambda: request(json.dumps({"state": [0] * 500_000, "questions": questions(1)}, separators=(",", ":")).encode(), self.host),
            lambda: request(b"{", self.host, 1 << 40),
            lambda: request(b"x" * (1 << 21), self.host),
        ))())

    def deep(self, draw):
        return self.send(request(draw.choice((
            b"[" * 100_000,
            b'{"state": ' + b"[" * 120 + b"]" * 120 + b', "questions": {}}',
            b'{"state": "", "questions": {"a": {}, "a": {}}}',
            json.dumps({"state": "<|end|><|user|>" * 20_000, "questions": questions(4)}).encode(),
        )), self.host))

    def loop(self, number):
        draw = random.Random(number)
        one = getattr(self, self.kind)
        while not self.is_over():
            began = time.monotonic()
            try:
                self.count(one(draw))
            except OSError as error:
                self.count(type(error).__name__)
            time.sleep(max(0.0, 4 / self.rate - (time.monotonic() - began)))


def hostile(kind, url, rate, seconds, stop, results):
    os.nice(19)
    clients = Hostile(kind, urllib.parse.urlsplit(url), rate, seconds, stop)
    # Those that are slow are many.
    threads = [threading.Thread(target=clients.loop, args=(number,), daemon=True) for number in range(64 if kind == "slow" else 4)]
    for thread in threads:
        thread.start()
    while not clients.is_over():
        time.sleep(0.1)
    last = time.monotonic() + 6
    for thread in threads:
        thread.join(max(0.0, last - time.monotonic()))
    results.put(dict(sorted(clients.counts.items())))


KINDS = ("hang_ups", "floods", "slow", "huge", "deep")


def measured(args, seed):
    """Seconds of each answer; anything but an answer is an error."""
    url = urllib.parse.urlsplit(args.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    end = time.monotonic() + args.seconds
    took = []
    while len(took) < args.requests and time.monotonic() < end:
        payload = body(args, seed + len(took))
        start = time.perf_counter()
        connection.request("POST", "/v1/systemone", payload, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"the measured client got {answer.status}")
        took.append(time.perf_counter() - start)
    return sorted(took)


def beside(args, kinds, seed):
    results, stop = multiprocessing.Queue(), multiprocessing.Event()
    others = [multiprocessing.Process(target=hostile, args=(kind, args.url, args.rate, args.seconds + 1, stop, results)) for kind in kinds]
    for process in others:
        process.start()
    time.sleep(1)
    took = measured(args, seed)
    stop.set()
    counts = {}
    for _ in others:
        for what, number in results.get().items():
            counts[what] = counts.get(what, 0) + number
    for process in others:
        process.join()
    return took, counts


def line(name, took, alone, counts=None):
    p50, p99 = (1000 * quantile(took, share) for share in (0.5, 0.99))
    of_alone = f"{p99 / (1000 * quantile(alone, 0.99)):.2f}"
    print(f"{name:<10} {len(took):>8} {p50:>8.1f} {p99:>8.1f} {of_alone:>14}  {counts or ''}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--requests", default=300, type=int)
    parser.add_argument("--seconds", default=60.0, type=float)
    parser.add_argument("--rate", default=20.0, type=float)
    parser.add_argument("--questions", default=3, type=int)
    parser.add_argument("--words", default=120, type=int)
    args = parser.parse_args()
    args.model = None
    if not ipaddress.ip_address(urllib.parse.urlsplit(args.url).hostname).is_loopback:
        parser.error("expected a loopback address: this is for a service of your own on this machine")
    measured(argparse.Namespace(**{**vars(args), "requests": 20}), 0)
    alone = measured(args, 1_000_000)
    print("beside     requests   p50 ms   p99 ms   p99 of alone  what the others got")
    line("nobody", alone, alone)
    for number, kind in enumerate(KINDS):
        took, counts = beside(args, (kind,), (number + 2) * 1_000_000)
        line(kind.replace("_", "-"), took, alone, counts)
    took, counts = beside(args, KINDS, 9_000_000)
    line("all", took, alone, counts)
    line("nobody", measured(args, 10_000_000), alone)


if __name__ == "__main__":
    main()
