"""This checkout beside a commit, in one go on one machine: the ids of its answers, and its speed in turns."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from lab.drafters.prompt_sets import read_lines, some

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("ids.json")
TARGETS = ("bundled/large", "smollm2", "qwen2.5-coder-1.5b")
TOPICS = ("code", "edits", "explain", "howto", "letters", "maths", "sql", "summaries")
MANNERS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "seeded": {"temperature": 0.8, "top_p": 0.95},
}
POLICIES = ("chance", "fixed", "cost", "confidence")
# least tokens/s after, as a share of those before
BOUNDS = {"bundled/large": 0.9}
BOUND = 0.98


class Side:
    """A checkout that answers, in a process of its own."""

    def __init__(self, folder: Path, target: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("side.py"))], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment(folder),
        )  # fmt: skip
        self.methods: list[str] = self._ask({"target": target})

    def answer(self, prompt: str, **options: Any) -> tuple[list[int], float]:
        """The ids of an answer, and the seconds that it took."""
        ids, seconds = self._ask({"prompt": prompt, "options": options})
        return ids, seconds

    def close(self) -> None:
        self._process.communicate()

    def _ask(self, request: Any) -> Any:
        assert self._process.stdin and self._process.stdout
        print(json.dumps(request), file=self._process.stdin, flush=True)
        if not (line := self._process.stdout.readline()):
            raise ValueError("the side that answers has ended; what it printed says why")
        return json.loads(line)


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(folder), "PYTHONWARNINGS": "ignore", "TQDM_DISABLE": "1"}


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A folder with the commit's files. A folder with a checkout is taken as it is: its kernels may be
    compiled."""
    if Path(commit).is_dir():
        yield Path(commit)
        return
    with tempfile.TemporaryDirectory() as holder:
        folder = Path(holder, "before")
        command = ["git", "-C", str(ROOT), "worktree"]
        made = subprocess.run([*command, "add", "--detach", folder, commit], capture_output=True, text=True)
        if made.returncode:
            raise ValueError(f"git cannot check out {commit}: {made.stderr.strip().splitlines()[-1]}")
        try:
            yield folder
        finally:
            subprocess.run([*command, "remove", "--force", folder], check=True)


def prompts(count: int) -> list[str]:
    """Prompts of every topic, one topic after another."""
    each = [
        [one.text for one in some(read_lines(ROOT / "assets" / "prompts" / f"{topic}.jsonl"), -(-count // 8))]
        for topic in TOPICS
    ]
    return [prompt for row in zip(*each, strict=True) for prompt in row][:count]


@dataclass(frozen=True, slots=True)
class Answered:
    """The ids of an answer before and after; `before` is a hash where only that is kept."""

    target: str
    manner: str
    method: str
    before: str
    after: list[int]

    @property
    def equal(self) -> bool:
        return self.before == digest(self.after)


def digest(ids: Sequence[int]) -> str:
    return hashlib.sha256(json.dumps(list(ids)).encode()).hexdigest()[:16]


def ids(
    commit: str | None, targets: Sequence[str], count: int, tokens: int, keep: bool = False
) -> Iterator[Answered]:
    """Compare the ids of every target's answers to `count` prompts in every manner. Methods (at a seed those
    whose text it fixes) and draft policies take turns from prompt to prompt. `commit` None: the kept hashes
    of this processor. `keep`: keep those of the commit."""
    kept = _kept() if commit is None else {}
    if commit is None and kept.get("processor") != processor():
        raise ValueError(f"kept hashes are of {kept.get('processor')}; name the commit with --against")
    found: dict[str, list[str]] = {}
    with ExitStack() as stack:
        folder = stack.enter_context(checkout(commit)) if commit is not None else None
        for target in targets:
            before = Side(folder, target) if folder is not None else None
            after = Side(ROOT, target)
            for manner, options in MANNERS.items():
                for number, prompt in enumerate(prompts(count)):
                    method = after.methods[number % len(after.methods)]
                    asked = options | {
                        "method": method, "seed": number, "max_new_tokens": tokens,
                        "draft_policy": POLICIES[number // 3 % len(POLICIES)],
                    }  # fmt: skip
                    if before is not None:
                        was = digest(before.answer(prompt, **asked)[0])
                    else:
                        was = kept["ids"][f"{target} {manner}"][number]
                    found.setdefault(f"{target} {manner}", []).append(was)
                    yield Answered(target, manner, method, was, after.answer(prompt, **asked)[0])
            after.close()
            if before is not None:
                before.close()
    if keep and folder is not None:
        told = {
            "commit": _commit_of(folder),
            "processor": processor(),
            "tokens": tokens,
            "ids": _kept().get("ids", {}) | found,
        }
        KEPT.write_text(json.dumps(told, indent=1) + "\n", "utf-8")


def _commit_of(folder: Path) -> str:
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _kept() -> dict[str, Any]:
    return json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}


def processor() -> str:
    """The processor's name, family and model: products of torch round by it."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    split = (line.partition(":") for line in reversed(lines))
    facts = {name.strip(): value.strip() for name, _, value in split}
    return " ".join(facts.get(name, "") for name in ("model name", "cpu family", "model"))


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens/s before and after, the median ratio of an answer, and its bound."""

    target: str
    lane: str
    before: float
    after: float
    ratio: float
    bound: float

    @property
    def held(self) -> bool:
        return self.ratio >= self.bound


def speeds(commit: str, targets: Sequence[str], count: int, tokens: int, policy: str) -> Iterator[Speed]:
    """Time plain and drafted greedy answers, before and after in turns; who begins changes. The first prompt
    is not timed."""
    with checkout(commit) as folder:
        for target in targets:
            sides = Side(folder, target), Side(ROOT, target)
            # drafted first: what plain answers leave in the memory would be copied
            for lane, method in (("drafted", "auto"), ("plain", "autoregressive")):
                times: tuple[list[float], list[float]] = [], []
                for number, prompt in enumerate(prompts(count + 1)):
                    for which in (0, 1) if number % 2 else (1, 0):
                        written, seconds = sides[which].answer(
                            prompt, method=method, max_new_tokens=tokens, draft_policy=policy, temperature=0.0
                        )
                        if number:
                            times[which].append(len(written) / seconds)
                ratio = median(after / before for before, after in zip(*times, strict=True))
                yield Speed(
                    target, lane, median(times[0]), median(times[1]), ratio, BOUNDS.get(target, BOUND)
                )
            for side in sides:
                side.close()
