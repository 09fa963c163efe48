"""The Chat tab. The browser keeps the conversation; the server gets it with each request and streams JSON
lines back."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import gradio as gr

from omnidemo.config import SAMPLING, GenerationConfig
from omnidemo.records import Generation, Round
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import Refused
from omnidemo.store.recorded_rounds import json_line, round_lines
from omnidemo.ui import answer_lines, curve_data, text
from omnidemo.ui.errors import ENGINE, report
from omnidemo.ui.markdown_tree import LiveMarkdown
from omnidemo.ui.running_answers import Running
from omnidemo.ui.shell import EXPERT, PRIVATE, Shell, if_loaded, load_ready, longest_answer, widget
from omnidemo.ui.tabs import settings_panel, traffic_panel
from omnidemo.ui.tabs.trainer_panel import follow

UPDATE_SECONDS = 1 / 12  # at most this often to the browser
MOST_MESSAGES = 400  # of a conversation that are looked at
MOST_SYSTEM = 8_000  # characters of a system prompt
MOST_KEYS = 400  # characters of the keys that a page asks about at once
REFUSED = "refuses these messages"  # what `pair/prompt_reader.py` says of a chat template that does


def conversation(history: Any, message: str, system: Any = "") -> list[dict[str, str]]:
    """The messages of a request, with a system prompt where one was written. `history` comes from the
    browser: anything but the newest user and assistant texts is dropped. `Refused` for a system prompt that
    is too long or no text."""
    messages = read_system(system)
    for item in history[-MOST_MESSAGES:] if isinstance(history, list) else []:
        if (
            isinstance(item, dict)
            and item.get("role") in ("user", "assistant")
            and isinstance(item.get("content"), str)
        ):
            messages.append({"role": item["role"], "content": item["content"]})
    return [*messages, {"role": "user", "content": message}]


def read_system(system: Any) -> list[dict[str, str]]:
    """The system message, none for an empty text: then the chat template says what it says by itself."""
    if not isinstance(system, str):
        raise Refused("The system prompt is not a text. Empty it, or write one.")
    if len(system) > MOST_SYSTEM:
        raise Refused(
            f"The system prompt has {len(system):,} characters, and this takes at most {MOST_SYSTEM:,};"
            " shorten it."
        )
    return [{"role": "system", "content": system.strip()}] if system.strip() else []


def refusal(said: str, system: str) -> str:
    """The sentence of an error; where a chat template refused messages with a system prompt, also what helps:
    many know none."""
    return (
        f"{said.rstrip('.')}. Empty the system prompt and send the message again."
        if system and REFUSED in said
        else said
    )


def read_seed(value: str | int | None) -> int | None:
    """A whole number from 0 to 2**63 - 1, or None for an empty field; `Refused` says what to write
    instead."""
    shown = "" if value is None else str(value).strip()
    if not shown:
        return None
    if not (shown.isascii() and shown.isdigit() and int(shown) < 2**63):
        raise Refused(
            f"The seed “{shown[:40]}” is not a whole number from 0 up. Correct it under Advanced, or leave it"
            " empty."
        )
    return int(shown)


def read_line(name: str | None) -> str:
    """The topic line of a request: a name, `auto`, or `default` for an empty field."""
    return " ".join(str(name or "").split()) or "default"


def in_manner(
    services: PublicServices, target: str, drafter: str, given: Sequence[float | None]
) -> dict[str, float]:
    """SAMPLING by name, of a ready pair: the given numbers, else those of the target's manner. ValueError for
    one that is not possible."""
    asked = GenerationConfig.of(**dict(zip(SAMPLING, given, strict=True))).in_manner(
        services.manner(target, drafter)
    )
    return {name: getattr(asked, name) for name in SAMPLING}


def provenance(
    services: PublicServices, target: str, drafter: str, session: str
) -> Callable[[Generation], dict[str, str]]:
    """A function from a finished answer to the fields shown beside it: line, topic and the reason for it."""

    def about(generation: Generation) -> dict[str, str]:
        route = services.routed(session)
        topic, why = (route.topic, route.topic_why) if route is not None else ("", "")
        return {"line": generation.domain, "topic": topic, "why": why}

    return about


def stream(
    answer: Iterator[Round | Generation],
    started: float,
    about: Callable[[Generation], Mapping[str, str]] = lambda _: {},
) -> Iterator[str]:
    """An answer as a growing string of JSON lines, at most 12 updates a second; `about` adds fields to the
    last line."""
    rounds: list[Round] = []
    markdown = LiveMarkdown()
    first, value, shown_at, ended = None, "", 0.0, False
    for item in answer:
        now = time.perf_counter()
        if isinstance(item, Generation):
            ended = True
            yield (
                value
                + answer_lines.markdown_line(*markdown.blocks(ended=True))
                + answer_lines.end_line(item, **about(item))
            )
            continue  # an update that is due after each answer runs behind its last item
        rounds.append(item)
        first = now - started if first is None and item.tokens else first
        value += "".join(round_lines(item))
        markdown.add("".join(token.text for token in item.tokens))
        if now - shown_at >= UPDATE_SECONDS:
            if markdown.due():
                value += answer_lines.markdown_line(*markdown.blocks())
            value += answer_lines.figures_line(rounds, first)
            shown_at = now
            yield value
    if not ended:
        yield value + json_line("error", text="The answer ended without its figures. Send the message again.")


def _chat(services: PublicServices, running: Running) -> Any:
    def chat(
        message: str,
        history: list[dict[str, str]] | None,
        session: str,
        run: str,
        target: str,
        drafter: str,
        method: str,
        line: str,
        temperature: float | None,
        top_p: float | None,
        top_k: int | None,
        min_p: float | None,
        repetition_penalty: float | None,
        max_new_tokens: int,
        seed: str | int | None,
        learn: bool,
        keep: bool,
        system: str = "",
    ) -> Iterator[str]:
        """Answer `message` by a stream of JSON lines (`ui/answer_lines.py`); the last one holds the text and
        the figures."""
        message, session, run = (
            message or "",
            session or f"api-{secrets.token_hex(8)}",
            run or secrets.token_hex(8),
        )
        given = (temperature, top_p, top_k, min_p, repetition_penalty)
        about_run = {"run": run, "method": method, "target": target, "drafter": drafter}
        head, last = json_line("run", **about_run), ""
        try:
            if not message.strip():
                raise Refused("The message is empty. Type a question first.")
            if why := text.foreign(message, target):
                raise Refused(why)
            number = read_seed(seed)
            load_ready(services, target, drafter, "Send again when it is ready.")
            sampling = in_manner(services, target, drafter, given)
            head = json_line("run", **about_run, **sampling)
            yield head
            about = provenance(services, target, drafter, session)
            answer = services.chat(
                session=session,
                target=target,
                drafter=drafter,
                messages=conversation(history, message, system or ""),
                method=method,
                max_new_tokens=max_new_tokens,
                **sampling,
                seed=number,
                learn=bool(learn) and services.settings.training != "off",
                keep=bool(keep),
                cancel=running.start(session, run),
                domain=read_line(line),
            )
            for last in stream(answer, time.perf_counter(), about):
                yield head + last
        except Refused as refused:  # nothing is wrong, so nothing is logged
            yield head + last + json_line("error", text=str(refused))
        except Exception as error:  # any cause: the page says it and lives on
            yield head + last + json_line("error", text=refusal(report(error, "an answer"), system))
        finally:
            running.finish(session, run)

    return chat


def line_choices(names: Iterable[str]) -> list[tuple[str, str]]:
    """The entries of the picker of the topic memory, as the page calls an adapter line."""
    return [(text.LINES.get(name, name), name) for name in [text.AUTO_LINE, *names]]


def _bar(services: PublicServices) -> list[Any]:
    """The row above the chat: method with its help, topic line."""
    settings = services.settings
    methods = [(text.method_title(info), info.name) for info in services.methods()]
    with gr.Row(elem_id="omni-controls", elem_classes=EXPERT, equal_height=False):
        method = gr.Dropdown(
            methods,
            value=settings.method,
            label="Method",
            elem_id="omni-method",
            filterable=False,
            min_width=180,
        )
        widget("method", elem_id="omni-method-help")
        line = gr.Dropdown(
            line_choices(["default"]),
            value=settings.domain,
            label="Topic memory",
            elem_id="omni-line",
            allow_custom_value=True,
            min_width=180,
        )
    method.change(None, [method], None, js="(name) => { omni.showMethod(name); return []; }", **PRIVATE)
    return [method, line]


def _privacy(services: PublicServices) -> list[Any]:
    """What becomes of a chat: the two switches behind *Change*."""
    with gr.Row(elem_id="omni-privacy", equal_height=False):
        learn = gr.Checkbox(True, label="Learn from this chat", info=text.HELP["learn"])
        keep = gr.Checkbox(
            True,
            label="Store this chat",
            info=text.HELP["keep" if services.settings.keep_text else "figures"],
        )
    return [learn, keep]


def _advanced(services: PublicServices) -> tuple[gr.HTML, list[Any]]:
    """The folded settings: the draft policy, which is everybody's, and the own ones, as `chat` takes them."""
    settings = services.settings
    with gr.Accordion("Advanced", open=False, elem_id="omni-advanced", elem_classes=EXPERT):
        most = gr.Slider(
            1,
            longest_answer(settings),
            settings.max_new_tokens,
            step=1,
            label="Longest answer",
            info=text.HELP["max_new_tokens"],
        )
        # A gr.Number turns "empty" into 0 as soon as it is shown.
        seed = gr.Textbox(
            "", label="Seed", placeholder="a new one each time", max_lines=1, info=text.HELP["seed"]
        )
        steering = widget("ahead", events=("adjust",))
    return steering, [most, seed]


def _shown_manner(services: PublicServices, target: str, drafter: str) -> str:
    """The manner of a target for the page; without numbers while it is not ready."""
    manner = if_loaded(services.manner, target, drafter, otherwise=None)
    return json.dumps(
        {"target": target, "own": manner and manner.options, "source": text.manner(manner) if manner else ""}
    )


def _speeds(services: PublicServices, keys: str) -> str:
    """What is known of the speed of answers, by their keys; None for one that will be measured."""
    found = services.speeds_of(str(keys or "")[:MOST_KEYS].split())
    return json.dumps({key: answer_lines.speed(one) for key, one in found.items()})


def build(services: PublicServices, shell: Shell) -> None:
    """Everything inside the Chat tab."""
    running = Running()
    settings = _bar(services)
    with gr.Row(elem_id="omni-chat-row", equal_height=False):
        with gr.Column(scale=7, min_width=320, elem_id="omni-main"):
            page = widget("chat", events=("ask", "halt"))
            prompts = widget("prompts", visible="hidden")
            notice = widget("notice")
            privacy = _privacy(services)
        with gr.Column(scale=3, min_width=300, elem_id="omni-side"):
            widget("answer")
            speeds, keys = widget("speeds", visible="hidden"), gr.Textbox(visible=False, label="answers")
            curve = widget("hero", events=("look",))  # tokens per step on the probe prompts of a topic
            player = widget("teach", traffic_panel.first(services), events=("play", "halt"))
            trainer = widget("trainer", events=("pause", "resume", "reset"))
            manner = widget("manner", elem_classes=EXPERT)
            steering, advanced = _advanced(services)
    # The browser fills these in with what was changed of the target's manner.
    sampling = [gr.Number(None, visible=False, label=name) for name in SAMPLING]
    settings += [*sampling, *advanced, *privacy]
    message, run, system = (gr.Textbox(visible=False, label=label) for label in ("message", "run", "system"))
    history = gr.JSON(visible=False, label="history")
    inputs = [message, history, shell.session, run, shell.target, shell.drafter, *settings, system]
    places = f"{inputs.index(shell.target)}, {inputs.index(sampling[0])}"
    page.ask(
        _chat(services, running),
        inputs,
        [page],
        js=f"(...values) => omni.manner.fill(omni.chat.request(values), {places})",
        api_name="chat",
        concurrency_id=ENGINE,
        concurrency_limit=1,
        # the browser lets one through at a time; one that got lost must not block the next
        trigger_mode="multiple",
        show_progress="minimal",  # hidden by our css; the browser reads the queue position from it
    ).then(None, [page], None, js="(value) => { omni.chat.settled(value); return []; }", **PRIVATE)

    running.stopped_by(page.halt, [shell.session, run], "() => omni.chat.current()", "stop")
    follow(services, shell, trainer, settings[1])
    curve_data.follow(services, shell, curve, settings[1])
    settings_panel.steer(services, shell, steering, "chat")
    shell.keep(prompts, lambda target: json.dumps(services.examples(target)), [shell.target], "prompts")
    js = "(keys, seen) => [omni.speeds.wanted(), seen]"
    shell.keep(speeds, lambda keys: _speeds(services, keys), [keys], "speeds", js=js)
    shell.keep(
        notice,
        lambda: json.dumps(text.notice(services.settings.keep_text, services.settings.training != "off")),
        [],
        "notice",
    )
    shell.keep(manner, lambda *pair: _shown_manner(services, *pair), [shell.target, shell.drafter], "manner")
    shell.keep(
        settings[1],
        lambda target, drafter: json.dumps(settings_panel.line_names(services, target, drafter)),
        [shell.target, shell.drafter],
        "line_names",
        draw=lambda names: gr.Dropdown(choices=line_choices(json.loads(names))),
    )
    traffic_panel.wire(services, shell, player, "teach")
