"""A fake of the services: scripted rounds with every token class, slow enough to watch. No models, no
files."""

from __future__ import annotations

import random
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from omnidemo.core.config import GREEDY, Manner, Settings
from omnidemo.core.records import PROPOSED, Generation, Round, Token
from omnidemo.learning.distill.trainer_status import TrainerStatus
from omnidemo.learning.lines.line_names import AUTO, LineInfo
from omnidemo.learning.lines.router import Route
from omnidemo.models.adapters.adapter_state import AdapterVersion
from omnidemo.models.catalogue import ModelCard
from omnidemo.models.load import ModelError
from omnidemo.models.names import drafter_of
from omnidemo.pair.drafting_line import Drafting
from omnidemo.serving.better_target import BetterTarget
from omnidemo.serving.comparison import Asked, Comparison, turns_of
from omnidemo.serving.pair_pool import PairState
from omnidemo.serving.services import MethodInfo
from omnidemo.serving.waiting_line import WaitingLine
from omnidemo.storage.database import StoreStatus

HOSTILE = (
    'def double(n):\n    """<b>Return</b> ${1+1} 😀 naïve."""\n    return 2 * n  # Therefore:'
    " <script>alert(1)</script>\n"
)


CARDS = [
    ModelCard(
        "bundled/large",
        "Bundled Large · byte-level BPE, 8 layers",
        "target",
        8_800_000,
        35_000_000,
        "bundled",
        "Trained on generated text; writes stories, sums and small programs.",
    ),
    ModelCard(
        "bundled/other",
        "Bundled Other · Metaspace BPE, 8 layers",
        "target",
        8_100_000,
        33_000_000,
        "bundled",
        "The same text, another vocabulary.",
    ),
    ModelCard(
        "Qwen/Qwen2.5-0.5B-Instruct",
        "Qwen2.5 0.5B Instruct",
        "target",
        494_000_000,
        1_980_000_000,
        "downloadable",
        "Downloaded from the Hub at the first use.",
    ),
    ModelCard(
        "meta-llama/Llama-3.1-8B",
        "Llama 3.1 8B",
        "target",
        8_030_000_000,
        16_100_000_000,
        "gated",
        "Needs an accepted licence and a Hub token.",
    ),
    ModelCard(
        "Qwen/Qwen2-72B",
        "Qwen2 72B",
        "target",
        72_000_000_000,
        145_000_000_000,
        "too big",
        "Needs more memory than this machine has.",
    ),
    ModelCard(
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
    MethodInfo(
        "ngram-exact",
        "n-gram, exact",
        True,
        "Merges drafter tokens through the n-gram cache, with the target's law kept exactly.",
    ),
    MethodInfo(
        "ngram-merge",
        "n-gram, as in the paper",
        False,
        "The paper's merging rule; exact at temperature 0, approximate above.",
    ),
    MethodInfo(
        "token-intersection", "shared tokens only", True, "Guesses only tokens that both vocabularies have."
    ),
    MethodInfo("autoregressive", "plain decoding", True, "The target alone. The baseline of every speedup."),
]
STAGES = ["queued", "tokenizers", "target", "drafter", "vocabulary map", "cache and adapter"]


def script(text: str, seed: int = 0, plain: bool = False, draft_length: int = 4) -> list[Round]:
    """Rounds that spell `text`, with every token class; multi-byte characters are split into an empty and a
    full token."""
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
                Token(
                    1000 + len(word),
                    word,
                    "ngram" if merged else "direct",
                    p,
                    q,
                    min(1.0, p / q),
                    tuple(range(len(pieces))),
                    pieces,
                )
            )
        at += accepted
        for rank in range(proposed - accepted):
            wrong = [" maybe", " <i>x</i>", " ${7*7}", "ing", "\n"][rng.randrange(5)]
            discarded.append(
                Token(7, wrong, "direct", 0.02, 0.4, 0.05 if rank == 0 else None, (7,), (wrong,))
            )
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


def generation(
    rounds: Sequence[Round], seconds: float, method: str, finish: str = "end", version: int = 3
) -> Generation:
    """A Generation over scripted rounds with plausible figures."""
    tokens = [token for record in rounds for token in record.tokens]
    proposed = sum(record.proposed for record in rounds)
    accepted = sum(record.accepted for record in rounds)
    count = max(1, len(rounds))
    split = {
        f"{key}_seconds": sum(record.seconds[key] for record in rounds)
        for key in ("draft", "verify", "settle", "other")
    }
    metrics: dict[str, float | None] = {
        "tokens": len(tokens), "rounds": len(rounds), "seconds": seconds,
        "tokens_per_second": len(tokens) / seconds if seconds else None,
        "time_to_first_token": 0.05, "acceptance_rate": accepted / proposed if proposed else None,
        "guesses_right": accepted / proposed if proposed else None, "draft_length": proposed / count,
        "alpha": 0.7,
        "block_efficiency": len(tokens) / count,
        "ngram_hits": sum(record.ngram_hits for record in rounds) / count,
        "proposed": proposed, "accepted": accepted, "drafted": proposed, "engine_overhead": 0.1,
        "copied": 0.0, "copied_share": 0.0 if tokens else None, "copies_proposed": 0.0, "copies_right": None,
        "time_per_output_token": 0.02,
        "cost_ratio": 0.1 if proposed else None,
        "total_variation": 0.034 if method == "typical-acceptance" else None, **split,
    }  # fmt: skip
    text = "".join(token.text for token in tokens)
    return Generation(
        tuple(token.id for token in tokens),
        text,
        tuple(rounds),
        metrics,
        finish,
        method,
        12,
        None,
        version,
        42,
    )  # type: ignore[arg-type]


ADAPTABLE = (
    *(
        "training",
        "patience",
        "update_interval",
        "steps_per_update",
        "batch_size",
        "learning_rate",
        "schedule",
    ),
    *(
        "schedule_steps",
        "lora_rank",
        "divergence",
        "jsd_beta",
        "ngram_loss",
        "ngram_weight",
        "head",
        "buffer_positions",
        "buffer_order",
    ),
    *("draft_policy", "draft_length", "longest_draft", "confidence", "gamma", "copying", "domain"),
)


def curve_rows(count: int = 96, seed: int = 0) -> list[dict[str, Any]]:
    """A pair's life: it learns stories, meets maths (a dip), gets a bad version that is rolled back, and
    comes back to stories."""
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    learned = {"stories": 0.34, "maths": 0.22}
    versions = {"stories": 0, "maths": 0}
    for place in range(count):
        domain = "maths" if count // 3 <= place < 2 * count // 3 else "stories"
        learned[domain] += 0.06 * (0.78 - learned[domain])
        bad = 20 <= place < 25
        acceptance = min(1.0, max(0.0, learned[domain] - 0.15 * bad + rng.gauss(0, 0.05)))
        if place % 6 == 5:
            versions[domain] += 1
        rows.append(
            {
                "id": place + 1,
                "index": place + 1,
                "created_at": f"2026-11-21T01:{place % 60:02d}:00+00:00",
                "kind": "traffic" if place % 4 else "chat",
                "method": "ngram-exact",
                "domain": domain,
                "topic": domain,
                "acceptance_rate": acceptance,
                "alpha": acceptance,
                "block_efficiency": 1 + 2.4 * acceptance,
                "tokens": 100,
                "accepted": 20 + round(60 * acceptance),
                "copied": 20,
                "copied_earlier": 20 if place else 0,
                "tokens_per_second": 90 + 160 * acceptance + rng.gauss(0, 9),
                "speedup": 0.8 + 1.3 * acceptance if place % 3 == 0 else None,
                "ngram_hits": 0.9 * acceptance + rng.gauss(0, 0.05),
                "draft_length": 2 + 5 * acceptance,
                "cache_entries": round(2400 * (1 - 0.97**place)),
                "cache_bytes": 24 * place,
                "adapter_version": versions[domain] - (place == 25),
            }
        )
    return rows


class FakeStore:
    def __init__(self) -> None:
        self.status = StoreStatus(ok=True, message="", pending=0, lost=0)
        self.rows: list[dict[str, Any]] = curve_rows()
        self.newest: dict[str, int] = {}

    def common_key(self, own: bytes) -> bytes:
        return own

    def curve(self, target: str, drafter: str, limit: int = 1000, **_: Any) -> list[dict[str, Any]]:
        return self.rows[-limit:]

    def steps(
        self, target: str, drafter: str, domain: str = "default", limit: int = 1000
    ) -> list[dict[str, Any]]:
        own = [
            {
                "step": step,
                "loss": 1.4 * 0.985**step + 0.5 + 0.05 * (step % 3),
                "version": step // 12,
                "learning_rate": 5e-4,
            }
            for step in range(1, 97)
        ]
        return own[-limit:] if domain != "empty" else []

    def adapters(self, target: str, drafter: str, domain: str = "default") -> list[AdapterVersion]:
        count = 0 if domain == "empty" else self.newest.get(domain, 6)
        effects = [
            {"acceptance_before": 0.3 + 0.05 * one, "acceptance_after": 0.36 + 0.05 * one, "requests": 8.0}
            for one in range(count)
        ]
        if count > 3:
            effects[3] |= {"acceptance_after": 0.31, "rolled_back": 1.0}
            effects[-1] = {}  # not judged yet
        return [
            AdapterVersion(
                one + 1, drafter, target, domain, f"v{one + 1}", "0" * 64, one or None, 8 * (one + 1),
                12 * (one + 1), 1.2 - 0.1 * one,
                f"2026-11-21T01:{one:02d}:00+00:00", effects[one],
            )
            for one in reversed(range(count))
        ]  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: {} if name == "counts" else []


COSTS = [1 + 0.12 * length for length in range(13)]  # of rounds, in plain ones


def draft_of(record: Round) -> list[str]:
    """The texts of what a round proposed."""
    kept = [token.text for token in record.tokens if token.source in PROPOSED]
    return kept + [token.text for token in record.discarded]


class FakeServices:
    """Loads in `load_seconds`, answers at `pace` seconds per round; raises when the message is `fail`."""

    processes = 1
    own, session, waiting_as = "", "s", ""
    own_manner = GREEDY

    def __init__(
        self, load_seconds: float = 3.0, pace: float = 0.04, settings: Settings | None = None
    ) -> None:
        given = settings or Settings(target="bundled/large", drafter="bundled/drafter")
        self.settings = given.model_copy(update={"drafter": drafter_of(given.target, given)})
        self.better = BetterTarget(self.settings)
        self.store = FakeStore()
        self.line, self.beside = WaitingLine(lambda: 1, 64), WaitingLine(lambda: 1, 64)
        self.public_services = None
        self.pool = self.chats = self.tasks = self.adaptation = self.drafts = self.speeds = self
        self.public = False  # of its speeds
        self.visitor_lines = SimpleNamespace(
            use=lambda domain: None, forget=lambda domain: True, sweep=lambda: 0
        )
        self.load_seconds, self.pace = load_seconds, pace
        self.started: dict[tuple[str, str], float] = {}
        self.calls: list[dict[str, Any]] = []
        self.former: list[tuple[str, str]] = []
        self.paused: set[str] = set()
        self.seen = 25
        self.now = {name: getattr(self.settings, name) for name in ADAPTABLE}
        self.versions = {"default": 5, "maths": 3, "stories": 5, "code": 1}
        self.fallen_back = False  # True: the pair has fallen back to plain decoding

    def models(self, scan: bool = True) -> list[ModelCard]:
        return CARDS

    def known(self, name: str) -> str:
        return name

    def change_over(self, target: str) -> tuple[str, str]:
        self.former.append((self.settings.target, self.settings.drafter))
        self.settings = self.settings.model_copy(update={"target": target})
        return target, self.settings.drafter

    def pace_of(self, target: str) -> float | None:
        return None

    def resolve(self, name: str) -> str:
        if name.endswith(".gguf") and ":" not in name:
            raise ModelError(f"{name} is not there; give the path of a .gguf file")
        return name

    def stop(self, target: str, drafter: str) -> PairState:
        self.started.pop((target, drafter), None)
        return self.state(target, drafter)

    def methods(self) -> list[MethodInfo]:
        return METHODS

    def refusals(self, target: str, drafter: str) -> dict[str, str]:
        return {}

    def load(self, target: str, drafter: str) -> PairState:
        if self.state(target, drafter).stage in ("absent", "failed"):
            self.started[target, drafter] = time.monotonic()
        return self.state(target, drafter)

    def state(self, target: str, drafter: str) -> PairState:
        known = self._state(target, drafter)
        there = [one for one in self.started if self._state(*one).stage == "ready"]
        return replace(known, meanwhile=there[-1] if there and known.stage != "ready" else None)

    def _state(self, target: str, drafter: str) -> PairState:
        start = self.started.get((target, drafter))
        if start is None:
            return PairState(target, drafter, "absent")
        card = next((card for card in CARDS if card.name == target), None)
        part = (time.monotonic() - start) / max(self.load_seconds, 1e-9)
        if card and card.availability in ("gated", "too big") and part > 0.3:
            return PairState(
                target,
                drafter,
                "failed",
                part,
                error=(
                    f"{target} is {card.availability}. Choose another target, or start the app where it is"
                    " available."
                ),
            )
        if part < 1:
            stage = STAGES[int(part * len(STAGES))]
            return PairState(target, drafter, stage, part, f"reading {target} (17 MB)")
        info = {"target_tokens": 10_000, "drafter_tokens": 2_000, "mapped": 1_812, "ngram_share": 0.26,
            "target_parameters": 8_800_000,
                "drafter_parameters": 1_300_000, "context": 1024, "device": "cpu",
                "dtype": "float32"}  # fmt: skip
        return PairState(target, drafter, "ready", 1.0, "", None, info)

    def chat(
        self,
        *,
        messages: list[dict[str, str]],
        method: str,
        draft_length: int | None = None,
        cancel: threading.Event | None = None,
        domain: str | None = None,
        on_draft: Callable[[list[str]], object] | None = None,
        **more: Any,
    ) -> Iterator[Round | Generation]:
        self.calls.append({"messages": messages, "method": method, "domain": domain, **more})
        asked = self.now["domain"] if domain is None else domain
        route = self.route(messages[-1]["content"])
        line = route.domain if asked == "auto" else asked
        length = 0 if self.fallen_back else 4 if draft_length is None else draft_length
        said = messages[-1]["content"]
        if said == "fail":
            raise RuntimeError(
                "The target ran out of memory. Choose a smaller target, or a shorter answer under Advanced."
            )
        time.sleep(self.pace)
        text = f"You said: {said}\n{HOSTILE}" + (HOSTILE * 12 if "long" in said else "")
        done: list[Round] = []
        start = time.monotonic()
        finish = "end"
        for record in script(
            text, seed=len(said), plain=method == "autoregressive" or not length, draft_length=length
        ):
            if cancel is not None and cancel.is_set():
                finish = "cancelled"
                break
            if on_draft is not None:
                on_draft(draft_of(record))
            time.sleep(self.pace)
            done.append(record)
            yield record
        self.seen += 1
        self.versions.setdefault(line, 0)
        self.store.rows.append(
            {**self.store.rows[-1], "index": self.seen, "domain": line, "adapter_version": self.live(line)}
        )
        yield replace(
            generation(done, time.monotonic() - start, method, finish, self.live(line)),
            domain=line,
            conditions="compiled.cpu.float32",
            guesses="adapter-5.ngrams-42",
            topic=route.topic,
            topic_why=route.topic_why,
        )

    def compare(
        self,
        *,
        prompts: Sequence[Asked],
        methods: Sequence[str],
        cancel: threading.Event | None = None,
        **more: Any,
    ) -> Iterator[Comparison]:
        """Scripted answers; the baseline takes twice as long. The last item of a cancelled one is missing, as
        of a real one."""
        self.calls.append({"prompts": list(prompts), "methods": list(methods), **more})
        known = {info.name for info in METHODS}
        for name in methods:
            if name not in known:
                raise ValueError(f"there is no method {name}; choose one of {', '.join(sorted(known))}")
        for name in methods:
            plain = name == "autoregressive"
            said = str(turns_of(prompts[0])[0])
            rounds = script(f"You said: {said}\n{HOSTILE}", seed=len(said), plain=plain)
            for _ in rounds:
                if cancel is not None and cancel.is_set():
                    return
                time.sleep(self.pace)
            baseline = "autoregressive" in methods
            made = generation(rounds, 2.0 if plain else 1.0, name)
            yield Comparison(
                0, said, name, made, True if baseline else None, (1.0 if plain else 2.0) if baseline else None
            )

    def manner(self, target: str, drafter: str) -> Manner:
        return self.own_manner

    def let_learn(self, target: str, drafter: str, domain: str, *, longest: float = 0) -> None:
        pass

    def speeds_of(self, keys: Sequence[str]) -> dict[str, Any]:
        return {}

    def learned_of(self, keys: Sequence[str]) -> dict[str, tuple[int, list[tuple[int, int]]]]:
        return {}

    def speed_lanes(self, key: str, patience: float, again: bool = False) -> None:
        return None

    def forget(self, *_: str) -> None:
        pass

    def race(self, *, methods: Sequence[str], **options: Any) -> list[list[Generation]]:
        plain = methods == ["autoregressive"]
        made = generation(script("Alone.", plain=plain), 1.0, methods[-1])
        return [[replace(made, adapter_version=0 if name == "fresh" else 3)] for name in methods]

    def trainer(self, target: str, drafter: str, domain: str = "default") -> TrainerStatus:
        if domain in ("", AUTO) or "/" in domain:
            raise ValueError(f"No line can be called {domain}.")
        why = f"The small model learns after {4 - self.seen % 4} more answers."
        own = TrainerStatus(
            "idle",
            why,
            self.live(domain),
            72,
            0.31,
            self.seen,
            4 - self.seen % 4,
            "2026-11-21T01:00:00Z",
            1.2,
            None,
        )
        own = replace(
            own,
            mode=self.now["training"],
            domain=domain,
            rolled_back=1,
        )
        return replace(own, state="paused", why="Paused by a visitor.") if domain in self.paused else own

    def live(self, domain: str) -> int:
        return self.versions.get(domain, 0)

    def pause(self, target: str, drafter: str, domain: str = "default") -> None:
        self.paused.add(domain)

    def resume(self, target: str, drafter: str, domain: str = "default") -> None:
        self.paused.discard(domain)

    def reset(self, target: str, drafter: str, domain: str = "default") -> None:
        self.seen, self.versions[domain] = 0, 0

    def activate(self, target: str, drafter: str, version: int, domain: str = "default") -> None:
        if not 0 <= version <= 6:
            raise ValueError(f"Version {version} of the line {domain} is not there. Choose one of the list.")
        self.versions[domain] = version

    def lines(self, target: str, drafter: str) -> list[LineInfo]:
        return [
            LineInfo(name, version, 12 + 8 * version, name != "code")
            for name, version in self.versions.items()
        ]

    def configure(self, /, **changes: Any) -> None:
        for name, value in changes.items():
            if name not in self.now:
                raise ValueError(f"There is no adaptable setting {name}.")
            if name == "learning_rate" and float(value) > 0.1:
                raise ValueError(f"{name} = {value} is not possible: give at most 0.1.")
        self.now |= changes
        self.settings = self.settings.model_copy(update=changes)

    def route(self, prompt: str) -> Route:
        for word, domain in (
            ("apples", "maths"),
            ("how many", "maths"),
            ("function", "code"),
            ("story", "stories"),
        ):
            if word in prompt.lower() and domain in self.versions:
                why = f"“{word}” speaks for {domain} (97 %)."
                return Route(domain, 0.97, why, ((word, 2.1),), domain, why)
        return Route("default", 0.3, "No topic is likely enough (30 %), so the default line answers.", ())

    def drafting(self, target: str, drafter: str, domain: str) -> Drafting:
        length = 0.0 if self.fallen_back else 5.4
        return Drafting(self.now["draft_policy"], length, not self.fallen_back, False, COSTS)

    def on_disk(self, target: str, drafter: str, domain: str = "default") -> list[int]:
        return [one.version for one in self.store.adapters(target, drafter, domain)][:4]

    def export_adapter(self, target: str, drafter: str, domain: str, version: int) -> Path:
        if version == 0:
            raise ValueError("Version 0 is the base drafter and has no adapter. Choose a later one.")
        path = Path(tempfile.mkdtemp()) / f"adapter-{domain}-v{version}.zip"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("adapter_config.json", '{"peft_type": "LORA"}')
            file.writestr("adapter_model.safetensors", "")
        return path

    def import_adapter(self, target: str, drafter: str, domain: str, path: Path) -> int:
        if not zipfile.is_zipfile(path):
            raise ValueError(
                "The file is not a zip. Upload a zip with adapter_config.json and adapter_model.safetensors."
            )
        self.store.newest[domain] = self.versions[domain] = self.store.newest.get(domain, 6) + 1
        return self.versions[domain]

    def close(self) -> None:
        pass
