"""A client of the app over HTTP (standard library only), and the process that runs one: `python -m
lab.torture.client`.

It writes each thing that it was told into its ledger, a line each, before it goes on. The history is held
against the ledgers.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lab.torture import harm
from omnidemo.core.config import EMBEDDED_TARGET, GREEDY
from omnidemo.models.names import catalogued_drafter

# Errors as the language or a library words them, which no visitor may read.
RAW = re.compile(
    r"Traceback|NoneType|object has no attribute|not supported between|cannot convert float|local"
    r" variable|unhashable|codec can't|"
    r"Internal Server Error|Original error|Something went wrong inside|positional argument|list index|is not"
    r" JSON serializable"
)
SEED = 1  # of every chat
GONE = 5  # calls in a row that nobody answers
TOPICS = (
    "What is {} plus {}?",
    "Tell me a story with a duck and {} frogs in {} sentences.",
    "Write a Python function that adds {} to {}.",
    # to be copied
    "Write this again, word for word: the {} ducks of pond {} swim in a row, and the ducks swim home again.",
)


class Away(RuntimeError):
    """The server does not answer: it was killed, or is starting."""


@dataclass(slots=True)
class Answer:
    """What came of a call: `text` is all that was sent, `data` the last value, `error` a sentence or
    nothing."""

    status: int = 200
    text: str = ""
    data: Any = None
    error: str = ""
    done: bool = False

    @property
    def raw(self) -> str:
        """The part that looks like an error as a library words it, if there is one."""
        found = RAW.search(self.error or (self.text if self.status >= 400 else ""))
        return (
            "" if found is None else (self.error or self.text)[max(0, found.start() - 80) : found.end() + 120]
        )


@dataclass
class Client:
    """One browser. `visitor`: its signed id, for a public app; `headers` go with each request; `target`
    answers its chats."""

    port: int
    session: str
    visitor: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 30.0
    target: str = EMBEDDED_TARGET

    @property
    def drafter(self) -> str:
        return catalogued_drafter(self.target)

    @contextmanager
    def _asked(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[Any]:
        """The response to one request. Away where nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        own = {"x-omnidemo-visitor": self.visitor} if self.visitor else {}
        try:
            connection.request(
                method,
                path,
                body,
                {"content-type": "application/json", **self.headers, **own, **(headers or {})},
            )
            yield connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise Away(str(error)) from error
        finally:
            connection.close()

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request. Away where nobody answers."""
        with self._asked(method, path, body, headers) as response:
            return Answer(response.status, response.read().decode(errors="replace"))

    def arrive(self) -> str:
        """Get an id as a browser does; the name that this visitor's session has."""
        facts = json.loads(self.request("POST", "/visitor", b"{}").text)
        self.visitor = facts["id"]
        return str(facts["name"])

    @cached_property
    def events(self) -> dict[str, tuple[int, list[Any]]]:
        """The app's events by their names: the number of each, and the values of a page that was just
        opened."""
        config = json.loads(self.request("GET", "/config").text)
        values = {one["id"]: one["props"].get("value") for one in config["components"]}
        return {
            one["api_name"]: (one["id"], [values.get(number) for number in one["inputs"]])
            for one in config["dependencies"]
            if one.get("api_name")
        }

    def call(self, name: str, data: list[Any], stop_after: int = 0, asked: Any = None) -> Answer:
        """Call an event and read what it streams; values that are missing are those of a page that was just
        opened. `asked`: what the page triggers it with; `stop_after`: hang up after so many messages.
        KeyError where there is no such event."""
        number, values = self.events[name]
        unique = f"{self.session}-{random.getrandbits(60):x}"
        body = {"data": [*data, *values[len(data) :]], "fn_index": number, "session_hash": unique}
        body["event_data"] = {"asked": asked}
        joined = self.request("POST", "/gradio_api/queue/join", json.dumps(body).encode())
        if joined.status != 200:
            joined.error = joined.text[:2000]
            return joined
        answer = Answer()
        for count, message in enumerate(self._listen(unique), 1):
            kind, output = message.get("msg"), message.get("output") or {}
            if kind in ("process_generating", "process_completed") and output.get("data") is not None:
                answer.data = output["data"]
            if kind == "process_completed":
                answer.done = bool(message.get("success"))
                answer.error = "" if answer.done else str(output.get("error") or "no reason was given")
                break
            if stop_after and count >= stop_after:
                break
        return answer

    def _listen(self, unique: str) -> Iterator[dict[str, Any]]:
        with self._asked("GET", f"/gradio_api/queue/data?session_hash={unique}") as response:
            if response.status != 200:
                raise Away(f"status {response.status}")
            while line := response.readline():
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])
            raise Away("the stream ended")

    def chat(
        self, prompt: str, tokens: int = 24, stop_after: int = 0, history: Any = None, **options: Any
    ) -> Answer:
        """Send a chat message; `data` becomes its last line, which has text and figures, where the answer
        came to its end."""
        answer = self.call("chat", [], stop_after, self.question(prompt, tokens, history, **options))
        # Gradio sends the streamed value's beginning whole and then what was added, as [[operation, path,
        # value], …].
        first = answer.data[0] if isinstance(answer.data, list) and answer.data else ""
        answer.text = (
            first if isinstance(first, str) else first.get("value", "") if isinstance(first, dict) else ""
        )
        answer.data = (
            json.loads(answer.text.strip().splitlines()[-1]) if answer.text.strip() and answer.done else {}
        )
        if answer.data.get("k") == "error":
            answer.error = str(answer.data.get("text", ""))
        return answer

    def question(self, prompt: Any, tokens: int, history: Any = None, **more: Any) -> dict[str, Any]:
        """What the page sends with a chat message; `more`: other fields of it, and its options by name."""
        options = {"method": "ngram-exact", **GREEDY.options, "max_new_tokens": tokens, "seed": str(SEED)}
        asked = {"message": prompt, "history": history, "line": "default"}
        asked |= {"target": self.target, "drafter": self.drafter, "learn": True, "keep": True}
        asked |= {name: value for name, value in more.items() if name in asked}
        options |= {name: value for name, value in more.items() if name not in asked}
        return asked | {"options": options}


def acknowledged(answer: Answer) -> bool:
    """Whether the end of an answer was seen."""
    return answer.done and not answer.error and answer.data.get("k") == "end"


def main(port: int, ledger: Path, seed: int, seconds: float, target: str) -> None:
    """Chat, hang up, and send nonsense, until the time is over or the server is gone. The answers go into the
    ledger."""
    draw, until = random.Random(seed), time.monotonic() + seconds
    client = Client(port, f"torture-{seed}-{os.getpid()}", target=target)
    with ledger.open("a", encoding="utf-8") as file:

        def note(**facts: Any) -> None:
            file.write(json.dumps({"session": client.session, **facts}) + "\n")
            file.flush()

        number = away = 0
        while time.monotonic() < until and away < GONE:
            number += 1
            try:
                _act(client, draw, number, note)
                away = 0
            except Away as error:
                away += 1
                note(kind="away", why=str(error)[:200])
                time.sleep(0.3)


def _act(client: Client, draw: random.Random, number: int, note: Any) -> None:
    kind = draw.random()
    if kind < 0.5:
        prompt = draw.choice(TOPICS).format(draw.randrange(100), number) + f" [{client.session} {number}]"
        note(kind="asked", prompt=prompt)
        tokens, temperature = draw.choice((8, 24, 48)), draw.choice((0.0, 1.0))
        answer = client.chat(prompt, tokens, temperature=temperature)
        asked = {"prompt": prompt, "tokens": tokens, "temperature": temperature}
        told = {"acknowledged": True, "answer": answer.data.get("text")} if acknowledged(answer) else {}
        note(kind="chat", **asked, **told, error=answer.error, raw=answer.raw)
    elif kind < 0.6:
        client.chat(f"hang up {number}", 200, stop_after=draw.randrange(1, 4), keep=False, learn=False)
        note(kind="hung up")
    else:
        data: Any
        if kind < 0.9:
            valid = client.question("", 8, keep=False, learn=False)
            event, data, asked = harm.call(draw, client.events, valid)
            client.timeout = 60.0
            answer = client.call(event, data, asked=asked)
        else:
            method, path, data, headers = harm.request(draw)
            event, answer = f"{method} {path[:80]}", client.request(method, path, data, headers)
        said, sent = (answer.error or answer.text)[:300], repr(data)[:300]
        note(kind="bad", event=event, data=sent, status=answer.status, error=said, raw=answer.raw)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), sys.argv[5])
