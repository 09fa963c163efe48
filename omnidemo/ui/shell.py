"""Parts of the page that all tabs use: the widgets' frame, the pair pickers with the loading bar, the browser's session, the timers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

import gradio as gr

from omnidemo.models.catalogue import reading
from omnidemo.serving.pair_pool import PairState
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import Refused
from omnidemo.ui import text
from omnidemo.ui.errors import report

EXPERT = "omni-expert"  # class of what only the Expert switch shows
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
QUIET: dict[str, Any] = {**PRIVATE, "concurrency_limit": None, "queue": False}  # polls must work while the queue is full
AS_IT_IS = "(...values) => values"
FINAL_STAGES = ("ready", "failed", "absent")


@dataclass(frozen=True)
class Kept:
    """Components that are kept up to date by `poll(*inputs)`, a value for each of the outputs."""

    name: str
    poll: Callable[..., Any]
    inputs: list[Any]
    outputs: list[Any]
    js: str


@dataclass(frozen=True)
class Shell:
    """Components every tab may use as inputs. `session` is a random id kept by the browser (a string)."""

    page: gr.Blocks
    session: gr.Textbox
    target: gr.Dropdown
    drafter: gr.Dropdown
    tick: gr.Timer  # every 2 s; pauses in hidden browser tabs
    kept: list[Kept] = field(default_factory=list)

    def keep(
        self, shown: Any, make: Callable[..., str], inputs: list[Any], name: str, draw: Callable[[str], Any] = str, js: str = AS_IT_IS
    ) -> tuple[Callable[..., Any], gr.State]:
        """Keep a component up to date: when the page opens and at each tick it gets `draw(make(*inputs))`, if that differs from the value
        that the returned state holds. Also returned: the function (*inputs, state) → (component, state) behind it. `js`: what
        the browser makes of inputs and state before they are sent."""
        seen = gr.State("")

        def poll(*given: Any) -> Any:
            *arguments, last = given
            value = make(*arguments)
            return (gr.skip(), gr.skip()) if value == last else (draw(value), value)

        self.kept.append(Kept(name, poll, [*inputs, seen], [shown, seen], js))
        return poll, seen

    def watch(self) -> None:
        """Ask for everything that is kept, in one event: most of what a request costs server and browser is the request itself, and an open
        page sends them all day. What fails is told to the log, and the rest is shown."""

        def poll(*given: Any) -> Any:
            values, shown = iter(given), list[Any]()
            for one in self.kept:
                own = list(islice(values, len(one.inputs)))
                try:
                    shown += one.poll(*own)
                except Exception as error:
                    report(error, one.name)
                    shown += [gr.skip()] * len(one.outputs)
            return shown

        inputs = [block for one in self.kept for block in one.inputs]
        outputs = [block for one in self.kept for block in one.outputs]
        parts = ", ".join(f"...({one.js})(...values.splice(0, {len(one.inputs)}))" for one in self.kept)
        gr.on([self.page.load, self.tick.tick], poll, inputs, outputs, js=f"(...values) => [{parts}]", api_name="state", **QUIET)


def widget(name: str, value: Any = None, *, events: tuple[str, ...] = (), **options: Any) -> gr.HTML:
    """A gr.HTML drawn by `omni.widgets[name]` in the browser from its value, a JSON string.

    The template is constant, so no value is ever parsed as markup or run; `events` names the custom events it may trigger.
    """
    names = json.dumps(list(events))
    code = f"omni.mount({json.dumps(name)}, {{element, trigger, props, watch, events: {names}}});"
    template = f'<div class="omni-widget" data-widget="{name}"></div>'
    options.setdefault("elem_id", f"omni-{name}")
    return gr.HTML(value, html_template=template, js_on_load=code, apply_default_css=False, **options)


def megabytes(size: int | None) -> str:
    """Bytes in words a person reads; empty when unknown."""
    if size is None:
        return ""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6))} MB"


def pair_choices(services: PublicServices, role: str, current: str) -> list[tuple[str, str]]:
    """The entries of a picker: title, memory need, availability."""
    cards = [card for card in services.models() if card.role in (role, "both")]
    choices = [(" · ".join(filter(None, (card.title, megabytes(card.memory_bytes), card.availability))), card.name) for card in cards]
    return choices if any(name == current for _, name in choices) else [(current, current), *choices]


def load_ready(services: PublicServices, target: str, drafter: str, again: str) -> None:
    """Load a pair, as every request that needs it does. `Refused` while it is not ready: why not, and what to do; `again` is said while
    it is loading."""
    state = services.load(target, drafter)
    if state.stage != "ready":
        raise Refused(state.error or f"{target} is still loading ({text.STAGES.get(state.stage, state.stage)}). {again}")


def longest_answer(settings: Any) -> int:
    """Most new tokens a visitor may ask for."""
    return max(settings.max_new_tokens, 1024)


def if_loaded(ask: Callable[..., Any], *about: Any, otherwise: Any) -> Any:
    """What a service says of a pair; `otherwise` while that is not loaded, and for what is no line of it."""
    try:
        return ask(*about)
    except (RuntimeError, ValueError):
        return otherwise


def line_of(services: PublicServices, picked: str, session: str) -> str:
    """The topic line that a picker means: with the automatic choice that of what was asked, or taught, last. Visitors have one line only,
    and a picker that they do not see."""
    if services.own:
        return "default"
    if picked and picked != text.AUTO_LINE:
        return picked
    route = services.following(session)
    return route.domain if route is not None else "default"


def build_shell(services: PublicServices, page: gr.Blocks) -> Shell:
    """The head of the page: brand, pickers, loading bar. Loading starts after the page is up and never blocks it."""
    settings = services.settings
    with gr.Row(elem_id="omni-head", equal_height=False):
        widget("brand")
        pair = widget("pair", events=("retry",))
    with gr.Row(elem_id="omni-details", equal_height=False):  # folded; the loading bar opens it
        target, drafter = (
            gr.Dropdown(
                pair_choices(services, role, name), value=name, label=label, elem_id=f"omni-{role}", filterable=False, min_width=150
            )
            for role, name, label in (
                ("target", settings.target, "Target, the big model"),
                ("drafter", settings.drafter, "Drafter, the small one"),
            )
        )
        widget("facts")
    session = gr.Textbox(visible=False, elem_id="omni-session")
    shell = Shell(page, session, target, drafter, gr.Timer(2.0))
    loading = gr.Timer(0.4, active=False)
    seen = gr.State("")

    def show(value: PairState, last: str = "") -> Any:
        words = {"title": text.STAGES.get(value.stage, value.stage), "reads": text.reads(reading(value.target).turns)}
        shown = json.dumps(asdict(value) | words, default=str)
        return (gr.skip(),) * 3 if shown == last else (shown, gr.Timer(active=value.stage not in FINAL_STAGES), shown)

    def start(target_name: str, drafter_name: str) -> Any:
        return show(services.load(target_name, drafter_name))

    def watch(target_name: str, drafter_name: str, last: str) -> Any:
        return show(services.state(target_name, drafter_name), last)

    names, outputs = [target, drafter], [pair, loading, seen]
    page.load(None, None, [session], js="() => omni.session()", **PRIVATE)
    page.load(start, names, outputs, api_name="load", **QUIET)
    gr.on([target.change, drafter.change], start, names, outputs, api_name="load_pair", trigger_mode="always_last", **QUIET)
    pair.retry(start, names, outputs, api_name="load_again", **QUIET)
    # Two clocks: quick while something loads, slow afterwards (another visitor may have made the server drop the pair).
    gr.on([loading.tick, shell.tick.tick], watch, [*names, seen], outputs, api_name="pair_state", **QUIET)
    return shell
