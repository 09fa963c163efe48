"""The Chat tab. The browser keeps the conversation; the server gets it with each request and streams JSON
lines back."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import gradio as gr

from omnidemo.core.config import SAMPLING
from omnidemo.core.private_folders import without_folders
from omnidemo.core.records import Generation, Part, Reading, Round
from omnidemo.learning.lines import sample_prompts
from omnidemo.models.catalogue import title_of
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import Refused
from omnidemo.storage.recorded_rounds import json_line, round_lines
from omnidemo.ui import answer_lines, text
from omnidemo.ui.answer_lines import UPDATE_SECONDS
from omnidemo.ui.chat_request import ChatRequest, conversation, in_manner, read_line, read_options, with_help
from omnidemo.ui.drafts_ahead import with_drafts
from omnidemo.ui.job import wire
from omnidemo.ui.markdown_tree import LiveMarkdown
from omnidemo.ui.shell import AS_IT_IS, PRIVATE, Kept, Shell, if_loaded, load_ready, longest_answer, widget
from omnidemo.ui.tabs.chat_controls import (
    advanced_fields,
    line_choices,
    line_names,
    method_and_line,
    privacy_switches,
)

MOST_KEYS = 400  # characters of the keys that a page asks about at once


def stream(parts: Iterator[Part | list[str]], started: float) -> Iterator[str]:
    """An answer as a growing string of JSON lines, at most 12 updates a second. Where drafts come, too
    (`with_drafts`), an update waits for the next one and ends with it."""
    rounds: list[Round] = []
    markdown = LiveMarkdown()
    first, value, shown_at, ended = None, "", 0.0, False
    reads, told, drafts = None, False, False
    for item in parts:
        now = time.perf_counter()
        if isinstance(item, Reading):
            reads = now if reads is None else reads
            told = told or item.is_long(now - reads)
            if told and (now - shown_at >= UPDATE_SECONDS or item.read == item.total):
                value += answer_lines.reading_line(item)
                shown_at = now
                yield value
            continue
        if isinstance(item, Generation):
            ended = True
            yield (
                value + answer_lines.markdown_line(*markdown.blocks(ended=True)) + answer_lines.end_line(item)
            )
            continue  # an update that is due after each answer runs behind its last item
        if isinstance(item, list):
            drafts = True
        else:
            rounds.append(item)
            first = now - started if first is None and item.tokens else first
            value += "".join(round_lines(item))
            markdown.add("".join(token.text for token in item.tokens))
            if drafts:
                continue
        if now - shown_at >= UPDATE_SECONDS or len(rounds) == 1:  # the first at once
            if markdown.due():
                value += answer_lines.markdown_line(*markdown.blocks())
            if rounds:
                value += answer_lines.figures_line(rounds, first)
            if isinstance(item, list) and item:
                value += json_line("g", r=len(rounds), t=item)
            shown_at = now
            yield value
    if not ended:
        yield value + json_line("error", text="The answer ended without its figures. Send the message again.")


def answer(services: PublicServices, question: ChatRequest, cancel: threading.Event) -> Iterator[str]:
    """The JSON lines of an answer (`ui/answer_lines.py`); the last one holds the text and the figures."""
    settings = services.settings
    pair = {
        "target": question.target or settings.target,
        "drafter": question.drafter or settings.drafter,
    }
    pair_and_name = pair | {"name": title_of(pair["target"])}
    if not question.message.strip():
        raise Refused("The message is empty. Type a question first.")
    if why := text.foreign(question.message, pair["target"]):
        raise Refused(why)
    options = read_options(services, question.options, longest_answer(settings))
    load_ready(services, **pair, again="Send again when it is ready.")
    options |= in_manner(services, **pair, options=options)
    numbers = {name: options[name] for name in SAMPLING}
    head = json_line("run", method=options["method"], **pair_and_name, **numbers)
    yield head
    session = services.session or f"api-{secrets.token_hex(8)}"
    begin = partial(
        services.chat,
        session=session,
        messages=conversation(question.history, question.message, question.system),
        cancel=cancel,
        domain=read_line(question.line),
        learn=question.learn and settings.training != "off",
        keep=question.keep,
        **{"draft_policy": settings.policy(question.likely), **pair, **options},
    )
    parts = with_drafts(lambda told: begin(on_draft=told)) if question.ahead else begin()
    try:
        for lines in stream(parts, time.perf_counter()):
            yield head + lines
    except (RuntimeError, ValueError) as error:
        raise with_help(error, question.system) from None


def _shown_manner(services: PublicServices, target: str, drafter: str) -> str:
    """The manner of a target for the page: a sentence, and its numbers; while it is not ready, none."""
    manner = if_loaded(services.manner, target, drafter, otherwise=None)
    source = text.manner(manner) if manner else "Shown as soon as the model is ready."
    return json.dumps([source, *(manner.options.values() if manner else [""] * len(SAMPLING))])


def _placeholders(shown: str) -> list[Any]:
    """The components that show a manner: its own numbers stand where nothing was written."""
    source, *own = json.loads(shown)
    return [source, *(gr.Textbox(placeholder=number if number == "" else f"{number:g}") for number in own)]


def _speeds(services: PublicServices, keys: str) -> str:
    """What is known of answers by their keys: `answer_lines.speed`, and `Speeds.learned_of` or null."""
    asked = str(keys or "")[:MOST_KEYS].split()
    speeds, learned = services.speeds_of(asked), services.learned_of(asked)
    return json.dumps({key: [answer_lines.speed(one), learned.get(key)] for key, one in speeds.items()})


def _notice(services: PublicServices) -> str:
    """What becomes of a chat, and what keeps it from being stored, as the value of the `notice` widget."""
    settings, store = services.settings, services.store.status
    waiting = f" Writes that wait: {store.pending}." if store.pending else ""
    failed = "" if store.ok else f"{without_folders(store.message)}{waiting} Chatting goes on."
    return json.dumps([text.notice(settings.keep_text, settings.training != "off"), failed])


def _keep_notices(services: PublicServices, shell: Shell, notice: gr.HTML) -> None:
    """Keep up to date what the settings say of a chat: what becomes of it, and whether it has a switch."""
    shell.keep(  # hidden where the settings say how far to guess ahead
        shell.likely,
        lambda: services.settings.draft_policy,
        [],
        "likely",
        draw=lambda policy: gr.Checkbox(visible=policy == "auto"),
    )
    shell.keep(
        notice,
        partial(_notice, services),
        [],
        "notice",
    )


def build(services: PublicServices, shell: Shell) -> None:
    """Everything inside the Chat tab."""
    settings = method_and_line(services)
    with gr.Row(elem_id="omni-chat-row", equal_height=False):
        with gr.Column(scale=7, min_width=320, elem_id="omni-main"):
            page = widget("chat", events=("run", "halt"))
            prompts = widget("prompts", visible="hidden")
            notice = widget("notice")
            privacy = privacy_switches(services)
        with gr.Column(scale=3, min_width=300, elem_id="omni-side"):
            widget("answer")
            shell.likely.render()
            speeds, keys = widget("speeds", visible="hidden"), gr.Textbox(visible=False, label="answers")
            manner, advanced = advanced_fields(services)
    fields = {
        "target": shell.target,
        "drafter": shell.drafter,
        **settings,
        **advanced,
        **privacy,
        "likely": shell.likely,
    }

    def work(asked: Mapping[str, Any], cancel: threading.Event, *values: Any) -> Iterator[str]:
        return answer(services, ChatRequest.of(asked, dict(zip(fields, values, strict=True))), cancel)

    wire(services, page, "run", work, [*fields.values()], "chat")
    shell.keep(prompts, lambda target: json.dumps(sample_prompts.examples(target)), [shell.target], "prompts")
    js = "() => [page.speeds.keys()]"
    shell.keep(speeds, lambda keys: _speeds(services, keys), [keys], "speeds", js=js)
    _keep_notices(services, shell, notice)
    pair, shown = [shell.target, shell.drafter], partial(_shown_manner, services)
    shell.kept.append(Kept("manner", shown, pair, manner, _placeholders, AS_IT_IS))
    # what was written holds until another target is chosen
    shell.target.change(None, None, manner[1:], js=f"() => {json.dumps([''] * len(SAMPLING))}", **PRIVATE)
    shell.keep(
        settings["line"],
        lambda target, drafter: json.dumps(line_names(services, target, drafter)),
        [shell.target, shell.drafter],
        "line_names",
        draw=lambda names: gr.Dropdown(choices=line_choices(json.loads(names))),
    )
