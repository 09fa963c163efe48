"""A fake of the services: scripted rounds with every token class, slow enough to watch. No models, no files."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from omnidemo.config import Settings
from omnidemo.records import Generation, Round, Token

HOSTILE = 'def double(n):\n    """<b>Return</b> ${1+1} 😀 naïve."""\n    return 2 * n  # Therefore: <script>alert(1)</script>\n'


@dataclass(frozen=True)
class Card:
    name: str
    title: str
    role: str
    parameters: int | None
    memory_bytes: int | None
    availability: str
    note: str


@dataclass(frozen=True)
class Method:
    name: str
    title: str
    lossless: bool
    help: str


@dataclass(frozen=True)
class Pair:
    target: str
    drafter: str
    stage: str
    fraction: float = 0.0
    detail: str = ""
    error: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trainer:
    state: str
    why: str
    version: int
    step: int
    loss: float | None
    requests_seen: int
    next_in: int
    last_swap: str | None
    seconds: float
    error: str | None = None


CARDS = [
    Card(
        "bundled/a",
        "Bundled A · byte-level BPE, 8 layers",
        "target",
        8_800_000,
        35_000_000,
        "bundled",
        "Trained on generated text; writes stories, sums and small programs.",
    ),
    Card(
        "bundled/b", "Bundled B · Metaspace BPE, 8 layers", "target", 8_100_000, 33_000_000, "bundled", "The same text, another vocabulary."
    ),
    Card(
        "Qwen/Qwen2.5-0.5B-Instruct",
        "Qwen2.5 0.5B Instruct",
        "target",
        494_000_000,
        1_980_000_000,
        "downloadable",
        "Downloaded from the Hub at the first use.",
    ),
    Card(
        "meta-llama/Llama-3.1-8B",
        "Llama 3.1 8B",
        "target",
        8_030_000_000,
        16_100_000_000,
        "gated",
        "Needs an accepted licence and a Hub token.",
    ),
    Card("Qwen/Qwen2-72B", "Qwen2 72B", "target", 72_000_000_000, 145_000_000_000, "too big", "Needs more memory than this machine has."),
    Card(
        "bundled/drafter",
        "Bundled drafter · 2,000 tokens, 2 layers",
        "drafter",
        1_300_000,
        5_200_000,
        "bundled",
        "Saw stories only; everything else it learns here.",
    ),
]
METHODS = [
    Method("ngram-exact", "n-gram, exact", True, "Merges drafter tokens through the n-gram cache, with the target's law kept exactly."),
    Method("ngram-merge", "n-gram, as in the paper", False, "The paper's merging rule; exact at temperature 0, approximate above."),
    Method("token-intersection", "shared tokens only", True, "Guesses only tokens that both vocabularies have."),
    Method("autoregressive", "plain decoding", True, "The target alone. The baseline of every speedup."),
]
STAGES = ["queued", "tokenizers", "target", "drafter", "vocabulary map", "cache and adapter"]
PROMPTS = {
    "stories": [
        "Tell a short story about a fox and a lantern.",
        "Write about a rainy day in a harbour town.",
        "A child finds a key. What happens?",
        "Describe a quiet morning on a farm.",
    ],
    "maths": [
        "Mara has 4 boxes with 6 pens each. How many pens?",
        "What is 17 plus 25?",
        "A train needs 3 hours for 240 km. How fast is it?",
        "Share 48 apples among 6 children.",
    ],
    "code": [
        "Write a function that doubles a number.",
        "Write a function that counts vowels.",
        "Reverse a list without slicing.",
        "Is a number even? Write it in Python.",
    ],
    "how-to": ["How do I make tea?", "How do I plant tomatoes?", "How do I fix a flat bicycle tyre?", "How do I pack a bag for a hike?"],
}


def script(text: str, seed: int = 0, plain: bool = False, draft_length: int = 4) -> list[Round]:
    """Rounds that spell `text`, with every token class; multi-byte characters are split into an empty and a full token."""
    rng = random.Random(seed)
    words: list[str] = []
    word = ""
    for char in text:
        if char in " \n" or ord(char) > 0x2000:
            if word:
                words.append(word)
            word = char
            if ord(char) > 0x2000:
                words += ["", char]
                word = ""
        else:
            word += char
    words += [word] if word else []
    rounds: list[Round] = []
    at = 0
    while at < len(words):
        tokens: list[Token] = []
        discarded: list[Token] = []
        proposed = 0 if plain else min(draft_length, len(words) - at, rng.randint(1, 4))
        accepted = min(proposed, rng.choice([0, 1, 2, 3, 4, 4]))
        for word in words[at : at + accepted]:
            merged = len(word) > 5
            pieces = (word[: len(word) // 2], word[len(word) // 2 :]) if merged else (word,)
            q = rng.uniform(0.2, 0.99)
            p = rng.uniform(0.3, 0.99)
            tokens.append(
                Token(1000 + len(word), word, "ngram" if merged else "direct", p, q, min(1.0, p / q), tuple(range(len(pieces))), pieces)
            )
        at += accepted
        for rank in range(proposed - accepted):
            wrong = [" maybe", " <i>x</i>", " ${7*7}", "ing", "\n"][rng.randrange(5)]
            discarded.append(Token(7, wrong, "direct", 0.02, 0.4, 0.05 if rank == 0 else None, (7,), (wrong,)))
        if at < len(words):
            source = "plain" if plain else "corrected" if discarded or not proposed else "bonus"
            tokens.append(Token(1000 + len(words[at]), words[at], source, rng.uniform(0.2, 0.99)))  # type: ignore[arg-type]
            at += 1
        seconds = {"draft": 0.004 * proposed, "verify": 0.02, "settle": 0.002, "other": 0.001}
        seconds["total"] = sum(seconds.values())
        hits = sum(token.source == "ngram" for token in tokens)
        rounds.append(
            Round(
                len(rounds),
                tuple(tokens),
                tuple(discarded),
                proposed,
                proposed,
                proposed,
                accepted,
                min(proposed, accepted + 1),
                hits,
                seconds,
            )
        )
    return rounds


def generation(rounds: Sequence[Round], seconds: float, method: str, finish: str = "end", version: int = 3) -> Generation:
    """A Generation over scripted rounds with plausible figures."""
    tokens = [token for record in rounds for token in record.tokens]
    proposed = sum(record.proposed for record in rounds)
    accepted = sum(record.accepted for record in rounds)
    count = max(1, len(rounds))
    split = {f"{key}_seconds": sum(record.seconds[key] for record in rounds) for key in ("draft", "verify", "settle", "other")}
    metrics: dict[str, float | None] = {
        "tokens": len(tokens), "rounds": len(rounds), "seconds": seconds, "tokens_per_second": len(tokens) / seconds if seconds else None,
        "time_to_first_token": 0.05, "acceptance_rate": accepted / proposed if proposed else None, "alpha": 0.7,
        "block_efficiency": len(tokens) / count, "ngram_hits": sum(record.ngram_hits for record in rounds) / count,
        "proposed": proposed, "accepted": accepted, "drafted": proposed, "engine_overhead": 0.1,
        "estimated_speedup": 1.62 if proposed else None, "modelled_speedup": 1.8 if proposed else None, **split,
    }  # fmt: skip
    text = "".join(token.text for token in tokens)
    return Generation(tuple(token.id for token in tokens), text, tuple(rounds), metrics, finish, method, 12, None, version, 42)  # type: ignore[arg-type]


class FakeStore:
    def __init__(self) -> None:
        self.status = SimpleNamespace(ok=True, message="", pending=0, lost=0)
        self.rows: list[dict[str, Any]] = [
            {
                "index": i,
                "acceptance_rate": 0.3 + 0.01 * min(i, 30) + 0.04 * (i % 3),
                "adapter_version": i // 8,
                "method": "ngram-exact",
                "kind": "chat",
            }
            for i in range(24)
        ]

    def curve(self, target: str, drafter: str, limit: int = 1000) -> list[dict[str, Any]]:
        return self.rows[-limit:]

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: {} if name == "counts" else []


class FakeServices:
    """Loads in `load_seconds`, answers at `pace` seconds per round; raises when the message is `fail`."""

    def __init__(self, load_seconds: float = 3.0, pace: float = 0.04, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.store = FakeStore()
        self.load_seconds, self.pace = load_seconds, pace
        self.started: dict[tuple[str, str], float] = {}
        self.calls: list[dict[str, Any]] = []
        self.paused = False
        self.seen = 25

    def models(self) -> list[Card]:
        return CARDS

    def methods(self) -> list[Method]:
        return METHODS

    def refusals(self, target: str, drafter: str) -> dict[str, str]:
        return {}

    def load(self, target: str, drafter: str) -> Pair:
        if self.state(target, drafter).stage in ("absent", "failed"):
            self.started[target, drafter] = time.monotonic()
        return self.state(target, drafter)

    def state(self, target: str, drafter: str) -> Pair:
        start = self.started.get((target, drafter))
        if start is None:
            return Pair(target, drafter, "absent")
        card = next((card for card in CARDS if card.name == target), None)
        part = (time.monotonic() - start) / max(self.load_seconds, 1e-9)
        if card and card.availability in ("gated", "too big") and part > 0.3:
            return Pair(
                target,
                drafter,
                "failed",
                part,
                error=f"{target} is {card.availability}. Choose another target, or start the app where it is available.",
            )
        if part < 1:
            stage = STAGES[int(part * len(STAGES))]
            return Pair(target, drafter, stage, part, f"reading {target} (17 MB)")
        info = {"target_tokens": 10_000, "drafter_tokens": 2_000, "mapped": 1_812, "ngram_share": 0.26, "target_parameters": 8_800_000,
                "drafter_parameters": 1_300_000, "context": 1024, "device": "cpu", "dtype": "float32"}  # fmt: skip
        return Pair(target, drafter, "ready", 1.0, "", None, info)

    def chat(
        self, *, messages: list[dict[str, str]], method: str, draft_length: int = 4, cancel: threading.Event | None = None, **more: Any
    ) -> Iterator[Round | Generation]:
        self.calls.append({"messages": messages, "method": method, **more})
        said = messages[-1]["content"]
        if said == "fail":
            raise RuntimeError("The target ran out of memory. Choose a smaller target, or a shorter answer under Advanced.")
        time.sleep(self.pace)
        text = f"You said: {said}\n{HOSTILE}" + (HOSTILE * 12 if "long" in said else "")
        done: list[Round] = []
        start = time.monotonic()
        finish = "end"
        for record in script(text, seed=len(said), plain=method == "autoregressive" or not draft_length, draft_length=draft_length):
            if cancel is not None and cancel.is_set():
                finish = "cancelled"
                break
            time.sleep(self.pace)
            done.append(record)
            yield record
        self.seen += 1
        self.store.rows.append({**self.store.rows[-1], "index": self.seen, "adapter_version": self.seen // 8})
        yield generation(done, time.monotonic() - start, method, finish, self.seen // 8)

    def topics(self) -> list[str]:
        return list(PROMPTS)

    def sample_prompts(self, topic: str, count: int, seed: int = 0) -> list[str]:
        return random.Random(seed).sample(PROMPTS[topic], min(count, len(PROMPTS[topic])))

    def trainer(self, target: str, drafter: str) -> Trainer:
        if self.paused:
            return Trainer("paused", "Paused by a visitor.", self.seen // 8, self.seen * 3, 0.31, self.seen, 4 - self.seen % 4, None, 1.2)
        return Trainer(
            "waiting",
            "Collecting answers to learn from.",
            self.seen // 8,
            self.seen * 3,
            0.31,
            self.seen,
            4 - self.seen % 4,
            "2026-11-21T01:00:00Z",
            1.2,
        )

    def pause(self, target: str, drafter: str) -> None:
        self.paused = True

    def resume(self, target: str, drafter: str) -> None:
        self.paused = False

    def reset(self, target: str, drafter: str) -> None:
        self.seen = 0

    def compare(self, **more: Any) -> Iterator[Any]:
        yield from ()

    def play(self, **more: Any) -> Iterator[Any]:
        yield from ()

    def close(self) -> None:
        pass
