"""Parts of the page that all tabs use: the widgets' frame, the pair pickers with the loading bar, the
timers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import gradio as gr

from omnidemo.models.catalogue import ModelCard, credits_of, reading, title_of
from omnidemo.serving.pair_pool import PairState
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import Refused
from omnidemo.ui import text
from omnidemo.ui.errors import brought, check, report

EXPERT = "omni-expert"  # class of what only the Expert switch shows
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
# polls must work while the queue is full
QUIET: dict[str, Any] = {**PRIVATE, "concurrency_limit": None, "queue": False}
AS_IT_IS = "(...values) => values"
FINAL_STAGES = ("ready", "failed", "absent")


@dataclass(frozen=True)
class Kept:
    """Components that are kept up to date: they get `draw(make(*inputs))` whenever that text is another
    one."""

    name: str
    make: Callable[..., str]
    inputs: list[Any]
    outputs: list[Any]
    draw: Callable[[str], Sequence[Any]]
    js: str  # what the browser makes of the inputs before they are sent, as for `script`

    def show(self, *given: Any) -> Sequence[Any]:
        """Values for the outputs, of values for the inputs."""
        return self.draw(self.make(*given))


@dataclass(frozen=True)
class Shell:
    """Components every tab may use as inputs."""

    page: gr.Blocks
    target: gr.Dropdown
    drafter: gr.Dropdown
    # its script looks every 2 s whether there is news of what is kept, and not in hidden browser tabs
    pair: gr.HTML
    # of all answers of this page: whether they guess only where that is faster; the Chat tab has it
    likely: gr.Checkbox
    kept: list[Kept] = field(default_factory=list)

    def keep(
        self,
        shown: Any,
        make: Callable[..., str],
        inputs: list[Any],
        name: str,
        draw: Callable[[str], Any] = str,
        js: str = AS_IT_IS,
    ) -> None:
        """Keep a component up to date: it gets `draw(make(*inputs))` when the page opens, and whenever that
        text has changed."""
        self.kept.append(Kept(name, make, inputs, [shown], lambda value: [draw(value)], js))

    def begin_anew(self, services: PublicServices) -> None:
        """Draw new pages with the pair of the settings, where that is another one now. An event of theirs
        would be too late: others ask at the same time about the pair that a page was drawn with."""
        settings = services.settings
        if (self.target.value, self.drafter.value) != (settings.target, settings.drafter):
            for role, picker in (("target", self.target), ("drafter", self.drafter)):
                picker.value = getattr(settings, role)
                picker.choices = [*pair_choices(services, role, picker.value)]
            self.page.config = self.page.get_config_file()

    def watch(self) -> None:
        """Ask for everything that is kept in one event: when the page opens, when an input has changed, and
        when there is news. An event costs more than what it brings, and a page is open all day, so its script
        looks for `news` first. A part that fails is logged, and the others are shown."""

        def poll(event: gr.EventData, *given: Any) -> Any:
            values, shown = iter(given), list[Any]()
            changed = brought(event, "changed")
            # else the page opens, or an input changed
            wanted = changed if isinstance(changed, list) else [kept.name for kept in self.kept]
            for kept in self.kept:
                own = list(islice(values, len(kept.inputs)))
                try:
                    skipped = [gr.skip()] * len(kept.outputs)
                    shown += kept.show(*own) if kept.name in wanted else skipped
                except Exception as error:
                    report(error, kept.name)
                    shown += skipped
            return shown

        inputs = [block for kept in self.kept for block in kept.inputs]
        outputs = [block for kept in self.kept for block in kept.outputs]
        parts = ", ".join(f"({kept.js})(...values.splice(0, {len(kept.inputs)}))" for kept in self.kept)
        changes = [
            block.change for block in dict.fromkeys(inputs) if isinstance(block, (gr.Textbox, gr.Dropdown))
        ]
        options = {
            "js": script(f"(...values) => page.news.asked(values, (values) => [{parts}])"),
            "trigger_mode": "always_last",
            **QUIET,
        }
        gr.on([self.page.load, *changes], poll, inputs, outputs, api_name="state", **options)
        self.pair.news(poll, inputs, outputs, api_name="news", **options)

    def news(self, asked: Any) -> dict[str, str]:
        """For each part that is kept a short text that is another one as soon as the part is. `asked`: for
        each a list of the values of its inputs, and whatever comes after them. ValueError, one sentence,
        where it is something else."""
        sizes = [len(own) if isinstance(own, list) else 0 for own in asked] if isinstance(asked, list) else []
        if len(sizes) != len(self.kept) or any(
            size < len(kept.inputs) for kept, size in zip(self.kept, sizes, strict=True)
        ):
            raise ValueError(
                "This takes what the page asks for, and that page is of another version; reload it."
            )
        made = {}
        for kept, own in zip(self.kept, asked, strict=True):
            check(kept.inputs, own)
            try:
                text = kept.make(*own[: len(kept.inputs)])
                made[kept.name] = hashlib.sha256(text.encode()).hexdigest()[:16]
            except Exception as error:  # as in `watch`
                report(error, kept.name)
        return made


def script(call: str) -> str:
    """JavaScript of an event: `call` is a function of the inputs' values, in which `page` stands for the
    exports of `assets/ui/page.js`. `omni` is the promise of them (`ui/app.py`)."""
    return f"async (...values) => {{ const page = await omni; return ({call})(...values); }}"


def widget(name: str, value: Any = None, *, events: tuple[str, ...] = (), **options: Any) -> gr.HTML:
    """A gr.HTML drawn by `widgets[name]` of the page's script from its value, a JSON string.

    The template is constant, so no value is ever parsed as markup or run; `events` names the custom events it
    may trigger.
    """
    names = json.dumps(events)  # Gradio looks for them in the code
    given = "element, trigger, props, watch, server: typeof server === 'undefined' ? {} : server"
    code = f"omni.then(page => page.mount({json.dumps(name)}, {{{given}}}, {names}));"
    template = f'<div class="omni-widget" data-widget="{name}"></div>'
    options.setdefault("elem_id", f"omni-{name}")
    return gr.HTML(value, html_template=template, js_on_load=code, apply_default_css=False, **options)


def megabytes(size: int | None) -> str:
    """Bytes in words a person reads; empty when unknown."""
    if size is None:
        return ""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(1, round(size / 1e6))} MB"


def pair_choices(services: PublicServices, role: str, current: str) -> list[tuple[str, str]]:
    """The entries of a picker: title, type, memory need, availability."""
    cards = [card for card in services.models() if card.role in (role, "both") or card.name == current]
    choices = [(" · ".join(filter(None, _about(card))), card.name) for card in cards]
    return choices if any(name == current for _, name in choices) else [(current, current), *choices]


def _about(card: ModelCard) -> tuple[str, ...]:
    kind = "" if card.type == "safetensors" else card.type
    return card.title, kind, megabytes(card.memory_bytes), text.AVAILABILITY[card.availability]


def choose(services: PublicServices, role: str, name: str, before: str = "") -> Any:
    """A picker that shows what can be had now, and has chosen a model. `before`: a name that it may still be
    asked about."""
    choices = pair_choices(services, role, name)
    if before and before not in {chosen for _, chosen in choices}:
        choices.append((before, before))
    return gr.Dropdown(choices, value=name)


def load_ready(services: PublicServices, target: str, drafter: str, again: str) -> None:
    """Load a pair, as every request that needs it does. `Refused` while it is not ready: why not, and what to
    do; `again` is said while it is loading."""
    state = services.load(target, drafter)
    if state.stage != "ready":
        raise Refused(
            state.error or f"{target} is still loading ({text.STAGES.get(state.stage, state.stage)}). {again}"
        )


def longest_answer(settings: Any) -> int:
    """Most new tokens a visitor may ask for."""
    return max(settings.max_new_tokens, 1024)


def if_loaded(ask: Callable[..., Any], *about: Any, otherwise: Any) -> Any:
    """What a service says of a pair; `otherwise` while that is not loaded, and for what is no line of it."""
    try:
        return ask(*about)
    except (RuntimeError, ValueError):
        return otherwise


def build_shell(services: PublicServices, page: gr.Blocks) -> Shell:
    """The head of the page: brand, pickers, loading bar. Loading starts after the page is up and never blocks
    it."""
    settings = services.settings
    shell: Shell
    with gr.Row(elem_id="omni-head", equal_height=False):
        widget("brand")

        def look(asked: Any) -> dict[str, str]:
            return shell.news(asked)

        pair = widget("pair", events=("retry", "stop", "news"), server_functions=[look])
    with gr.Row(elem_id="omni-details", equal_height=False):  # folded; the loading bar opens it
        target, drafter = (
            gr.Dropdown(
                pair_choices(services, role, name),
                value=name,
                label=label,
                elem_id=f"omni-{role}",
                filterable=False,
                min_width=150,
            )
            for role, name, label in (
                ("target", settings.target, "Target, the big model"),
                ("drafter", settings.drafter, "Drafter, the small one"),
            )
        )
        widget("facts")
    likely = gr.Checkbox(
        False,
        label=text.LIKELY,
        info=text.HELP["likely"],
        elem_id="omni-likely",
        elem_classes=EXPERT,
        render=False,
    )
    shell = Shell(page, target, drafter, pair, likely)
    _load_pairs(services, shell)
    return shell


def _load_pairs(services: PublicServices, shell: Shell) -> None:
    """Load the pair that is picked, when the page opens and when another is; show how far it is."""
    page, pair, target, drafter = shell.page, shell.pair, shell.target, shell.drafter
    loading = gr.Timer(0.4, active=False)

    def state_json(value: PairState, *asked: str) -> str:
        answering = value.meanwhile[0] if value.meanwhile else value.target
        words: dict[str, Any] = {
            "title": text.STAGES.get(value.stage, value.stage),
            "reads": text.reads(reading(answering).turns),
        }
        if value.meanwhile:
            words["instead"] = text.meanwhile(title_of(answering))
        words["system"] = reading(value.target).system
        named = {"target_title": title_of(value.target), **credits_of(value.target)}
        words["info"] = {**value.info, **named} if value.info else {}
        words |= {"asked": asked, "stoppable": value.stage == "downloading" and not services.own}
        return json.dumps(asdict(value) | words, default=str)

    def draw(value: str) -> tuple[Any, ...]:
        shown = json.loads(value)
        named = zip(("target", "drafter"), shown["asked"], strict=True)
        pickers = [
            gr.skip() if shown[role] == asked else choose(services, role, shown[role], asked)
            for role, asked in named
        ]
        return value, gr.Timer(active=shown["stage"] not in FINAL_STAGES), *pickers

    def after(act: Callable[..., PairState], *asked: str) -> tuple[Any, ...]:
        return draw(state_json(act(*asked), *asked))

    def state(*asked: str) -> str:
        shell.begin_anew(services)
        return state_json(services.state(*asked), *asked)

    start, stop = partial(after, services.load), partial(after, services.stop)
    names = [target, drafter]
    shown = [pair, loading, *names]  # a model that was downloaded is called by another name from then on
    kept = Kept("pair_state", state, names, shown, draw, AS_IT_IS)
    shell.kept.append(kept)
    page.load(start, names, shown, api_name="load", **QUIET)
    gr.on(
        [target.change, drafter.change],
        start,
        names,
        shown,
        api_name="load_pair",
        trigger_mode="always_last",
        **QUIET,
    )
    pair.retry(start, names, shown, api_name="load_again", **QUIET)
    pair.stop(stop, names, shown, api_name="stop_loading", **QUIET)
    loading.tick(kept.show, names, shown, api_name="pair_state", **QUIET)
