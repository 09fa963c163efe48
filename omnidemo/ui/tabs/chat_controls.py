"""The fields of the Chat tab: method and topic memory, the two switches of a chat, and what folds under
Advanced."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import gradio as gr

from omnidemo.core.config import SAMPLING, GenerationConfig, option_named, option_of, shown_by
from omnidemo.core.config.answer_options import POLICIES
from omnidemo.serving.public_services import PublicServices
from omnidemo.ui import text
from omnidemo.ui.shell import EXPERT, PRIVATE, if_loaded, longest_answer, script, widget

# Options of an answer that have no place of their own on the page: they come under Advanced.
MORE = tuple(name for name in shown_by("page") if name not in (*SAMPLING, "max_new_tokens", "seed", "learn"))


def control(name: str, table: type[GenerationConfig] = GenerationConfig) -> Any:
    """The field of an option of an answer, by its type: a switch, a list of choices, or a number."""
    field = table.model_fields[name]
    option = option_of(field)
    words: dict[str, Any] = {"label": option.label, "info": option.hint}
    if field.annotation is bool:
        return gr.Checkbox(field.default, **words)
    if name == "draft_policy":
        policies = [(title, policy) for policy, (title, _) in POLICIES.items()]
        return gr.Dropdown([("by the switch", ""), *policies], value="", filterable=False, **words)
    if choices := get_args(field.annotation):
        return gr.Dropdown([str(choice) for choice in choices], value=field.default, **words)
    edges: dict[str, Any] = {
        name: getattr(one, name) for one in field.metadata for name in ("ge", "le") if hasattr(one, name)
    }
    if len(edges) == 2:
        return gr.Slider(edges["ge"], edges["le"], field.default, step=option.step, **words)
    return gr.Number(field.default, step=option.step, **words)


def line_choices(names: Iterable[str]) -> list[tuple[str, str]]:
    """The entries of the picker of the topic memory, as the page calls an adapter line."""
    return [(text.LINES.get(name, name), name) for name in [text.AUTO_LINE, *names]]


def line_names(services: PublicServices, target: str, drafter: str) -> list[str]:
    """The topic lines of a pair, `default` first; only that one while the pair is not loaded."""
    lines = if_loaded(services.lines, target, drafter, otherwise=())
    return list(dict.fromkeys(["default", *(line.domain for line in lines)]))


def method_and_line(services: PublicServices) -> dict[str, Any]:
    """The row above the chat: `method` with its help, topic `line`."""
    settings = services.settings
    methods = [(text.method_title(info), info.name) for info in services.methods()]
    with gr.Row(elem_id="omni-controls", elem_classes=EXPERT, equal_height=False):
        method = gr.Dropdown(
            methods,
            value=settings.method,
            label="Method",
            elem_id="omni-method",
            filterable=False,
            min_width=280,
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
    method.change(
        None, [method], None, js=script("(name) => { page.showMethod(name); return []; }"), **PRIVATE
    )
    return {"method": method, "line": line}


def privacy_switches(services: PublicServices) -> dict[str, Any]:
    """What becomes of a chat: the two switches behind *Change*, `learn` and `keep`."""
    with gr.Row(elem_id="omni-privacy", equal_height=False):
        learn = control("learn")
        learn.info = text.HELP["learn"]
        keep = gr.Checkbox(
            True,
            label="Store this chat",
            info=text.HELP["keep" if services.settings.keep_text else "figures"],
        )
    return {"learn": learn, "keep": keep}


def advanced_fields(services: PublicServices) -> tuple[list[Any], dict[str, Any]]:
    """The folded settings of an answer, by their names. The numbers of a target's manner come first: a
    sentence on where they come from, and a field for each, which is empty for the model's own."""
    settings = services.settings
    with gr.Accordion("Advanced", open=False, elem_id="omni-advanced", elem_classes=EXPERT):
        manner: list[Any] = [gr.Markdown(elem_classes="omni-manner")]
        with gr.Row(elem_classes="omni-tight"):
            # A gr.Number turns "empty" into 0 as soon as it is shown.
            manner += [
                gr.Textbox("", label=label, info=hint, max_lines=1, min_width=120)
                for label, hint, _ in text.MANNER.values()
            ]
        option = option_named("max_new_tokens")
        most = gr.Slider(
            1, longest_answer(settings), settings.max_new_tokens, step=1, label=option.label, info=option.hint
        )
        option = option_named("seed")
        seed = gr.Textbox(
            "", label=option.label, placeholder="a new one each time", max_lines=1, info=option.hint
        )
        more = {name: control(name) for name in MORE}
    more["draft_length"].value, more["longest_draft"].value = settings.draft_length, settings.longest_draft
    more["copying"].value = settings.copying
    sampling = dict(zip(SAMPLING, manner[1:], strict=True))
    return manner, {**sampling, "max_new_tokens": most, "seed": seed, **more}
