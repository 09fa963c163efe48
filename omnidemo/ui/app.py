"""The page: `build_app(services)` puts it together, `launch_options(services)` says how to serve it.
Importing builds nothing."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from omnidemo.core.answer_figures import FIGURES, MAIN_FIGURES
from omnidemo.core.asset_files import ASSETS
from omnidemo.core.config import GenerationConfig
from omnidemo.core.records import Generation
from omnidemo.serving import endpoint
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.services import Services
from omnidemo.ui import downloads, replay_data, text
from omnidemo.ui.chat_request import MOST_SYSTEM
from omnidemo.ui.errors import AppBlocks, in_one_sentence
from omnidemo.ui.guard import around
from omnidemo.ui.job import in_turn
from omnidemo.ui.live_answers import RECORDED
from omnidemo.ui.shell import build_shell, load_ready, longest_answer, widget
from omnidemo.ui.tabs import adaptation_tab, chat_tab, compare_tab, history_tab, task_tab
from omnidemo.ui.tabs.better_panel import build_better
from omnidemo.ui.tabs.models_panel import build_models
from omnidemo.ui.tabs.visitor_panel import build_visitor, public_services, routes

BROWSERS = 64  # pages whose components' state Gradio keeps; each takes a quarter of a megabyte
# between two looks of Gradio at its queue; by default it wakes the processor a thousand times a second
LOOK_SECONDS = 0.01
CACHE = (600, 3600)  # seconds between two looks at files that went over the page, and how long they stay
PARTS = ASSETS / "ui"
KEPT = {"Cache-Control": "public, max-age=31536000, immutable"}
# Gradio mounts widgets and calls its server without waiting for a module, so both wait for the promise of it.
START = """
  window.omni = import("./%s/page.js");
  {
    const direct = window.fetch.bind(window);
    window.fetch = (...call) => omni.then(page => page.send(direct, ...call), () => direct(...call));
    omni.catch(error => {
      console.error(error);
      document.body.prepend("The scripts of this page did not arrive. Reload the page.");
    });
  }
"""


def build_app(services: Services | PublicServices) -> gr.Blocks:
    """The whole page over the given services; loads no model."""
    os.environ.setdefault("GRADIO_TEMP_DIR", str(downloads.private_folder("gradio")))
    # also the launch and the version check stay silent
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
    # Else each event ends with a pandas table over the 10,000 newest ones, for a page of Gradio's that nobody
    # can open here.
    os.environ |= {"GRADIO_ANALYTICS_MAX_EVENTS": "1", "GRADIO_ANALYTICS_CACHE_FREQUENCY": str(10**9)}
    services = public_services(services)
    about = f"{text.TITLE} · {text.SUBTITLE}"
    with AppBlocks(title=about, analytics_enabled=False, fill_width=True, delete_cache=CACHE) as page:
        shell = build_shell(services, page)
        build_better(services, shell)
        build_models(services, shell)
        build_visitor(services, shell)
        with gr.Tabs(elem_id="omni-tabs"):
            for title, module in (
                ("Chat", chat_tab),
                ("Same task", task_tab),
                ("Adaptation", adaptation_tab),
                ("Compare", compare_tab),
                ("History", history_tab),
            ):
                name = title.lower().replace(" ", "-")
                with gr.Tab(title, id=name, elem_id=f"omni-tab-{name}"):
                    module.build(services, shell)
        widget("about")
        shell.watch()
        replay_data.build(services)
        gr.api(
            _generate(services), api_name="generate", concurrency_limit=None, api_description=text.API_EXAMPLE
        )
    in_one_sentence(page)
    # no call bypasses the queue
    page.queue(max_size=services.settings.queue_size, default_concurrency_limit=4, api_open=False)
    page._queue.sleep_when_free = page._queue.progress_update_sleep_when_free = LOOK_SECONDS
    return page


def _generate(services: PublicServices) -> Any:
    async def generate(
        prompt: str,
        target: str = "",
        drafter: str = "",
        method: str = "",
        max_new_tokens: int = 128,
        temperature: float | None = None,
        draft_length: int | None = None,
        seed: int | None = None,
    ) -> dict[str, Any]:
        settings = services.settings
        names = (target or settings.target, drafter or settings.drafter)
        offered = {card.name for card in services.models()} | {settings.target, settings.drafter}
        if not all(isinstance(name, str) and name in offered for name in names):
            # No visitor makes the server read folders or fetch models that it does not offer.
            raise ValueError(f"Unknown target or drafter. Choose from: {', '.join(sorted(offered))}.")
        options: dict[str, Any] = {
            "method": method or settings.method,
            "temperature": temperature,
            "seed": seed,
        }
        options["max_new_tokens"] = max_new_tokens
        if draft_length is not None:  # else the draft policy of the settings decides
            options |= {"draft_policy": "fixed", "draft_length": draft_length}
        checked = GenerationConfig.of(**options)
        options["max_new_tokens"] = min(checked.max_new_tokens, longest_answer(settings))
        if not isinstance(prompt, str) or not prompt.strip():
            raise ValueError("The prompt is empty or not a text. Write a question.")
        about: dict[str, Any] = {"session": "api", "learn": False, "keep": False, "kind": "api"}
        messages = [{"role": "user", "content": prompt}]

        def write() -> Any:
            load_ready(services, *names, "Try again in a few seconds.")
            *_, last = services.chat(target=names[0], drafter=names[1], messages=messages, **about, **options)
            return last

        last = await in_turn(services, write)
        assert isinstance(last, Generation)
        return {
            "text": last.text,
            "finish_reason": last.finish_reason,
            "adapter_version": last.adapter_version,
            "metrics": dict(last.metrics),
        }

    return generate


def _theme() -> gr.themes.Base:
    """A calm theme with local fonts only: the page must not ask a font server."""
    return gr.themes.Base(
        primary_hue=gr.themes.colors.indigo,
        neutral_hue=gr.themes.colors.slate,
        radius_size=gr.themes.sizes.radius_md,
        font=["Inter", "ui-sans-serif", "system-ui", "sans-serif"],
        font_mono=["JetBrains Mono", "ui-monospace", "SFMono-Regular", "Menlo", "monospace"],
    )


def page_scripts() -> tuple[str, Route]:
    """The address of the page's modules and the recorded run below the app's, and the route to them. It
    carries a hash of them all, so a browser keeps them, and asks anew as soon as one is another."""
    paths = sorted(PARTS.rglob("*.js"))
    parts = {path.relative_to(PARTS).as_posix(): path.read_bytes() for path in paths}
    parts |= {RECORDED.name: RECORDED.read_bytes()} if RECORDED.exists() else {}
    folder = f"ui/{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"

    def serve(request: Request) -> Response:
        part = parts.get(request.path_params["part"])
        if part is None:
            return JSONResponse({"detail": "The page has no such script."}, 404)
        return Response(part, media_type="text/javascript", headers=KEPT)

    return folder, Route(f"/{folder}/{{part:path}}", serve)


def _head(services: PublicServices, folder: str) -> str:
    """What the page's modules, which are in `folder`, need before them."""
    labels = {
        "title": text.TITLE,
        "subtitle": text.SUBTITLE,
        "about": {"paper": text.PAPER, "code": _code()},
        "legend": [{"key": key, "title": title, "help": hint} for key, (title, hint) in text.CLASSES.items()],
        "figures": [
            {"key": figure.name, "title": figure.label, "help": figure.help, "as": figure.form}
            for figure in FIGURES
            if figure.label
        ],
        "main_figures": MAIN_FIGURES,
        "split": text.SPLIT,
        "methods": {
            info.name: {"title": text.method_title(info), "lossless": info.lossless, "help": info.help}
            for info in services.methods()
        },
        "method": services.settings.method,
        "help": {f"omni-{name}": hint for name, hint in text.HELP.items()},
        "lossless": text.LOSSLESS,
        "topics": text.TOPICS,
        "most_system": MOST_SYSTEM,
        "approximate": text.APPROXIMATE,
        "plotly": downloads.serve_plotly(),
    }
    names = [path.relative_to(PARTS).as_posix() for path in sorted(PARTS.rglob("*.js"))]
    return "\n".join(
        [
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<script type="application/json" id="omni-labels">{downloads.for_browser(labels)}</script>',
            *(f'<link rel="modulepreload" href="./{folder}/{name}">' for name in names),
            f"<script>{START % folder}</script>",
        ]
    )


def _code() -> str:
    """Where the files of a Space are to be read; else empty."""
    space = os.environ.get("SPACE_ID", "")
    return f"https://huggingface.co/spaces/{space}/tree/main" if space else ""


def _address(settings: Any) -> str:
    """The setting; a Space, which says so in SPACE_ID, is reached through every interface unless one was
    asked for."""
    here = "host" in settings.model_fields_set or not os.environ.get("SPACE_ID")
    return in_url(settings.host) if here else "0.0.0.0"


def in_url(host: str) -> str:
    """An address as it stands in an URL."""
    return f"[{host}]" if ":" in host else host


def launch_options(services: Services | PublicServices) -> dict[str, Any]:
    """Keyword arguments for `build_app(services).launch(**...)`: address, theme, styles, scripts, footer, no
    run history."""
    services = public_services(services)
    settings = services.settings
    user, _, password = settings.auth.partition(":")
    answers = endpoint.Endpoint(services)
    tools = endpoint.ToolServer(answers)
    folder, scripts = page_scripts()
    return {
        "server_name": _address(settings),
        "server_port": settings.port or None,
        "share": settings.share,
        "auth": (user, password) if settings.auth else None,
        "theme": _theme(),
        "css": "\n".join(path.read_text(encoding="utf-8") for path in sorted(PARTS.glob("*.css"))),
        "head": _head(services, folder),
        "footer_links": [],  # our own foot names the endpoint
        "run_history": False,
        "show_error": True,
        "ssr_mode": False,
        # else Gradio asks for its own page at the start, once, and ends the app where that takes 3 s on a
        # busy machine
        "_frontend": False,
        "app_kwargs": {
            "lifespan": around(services, tools.life),
            "routes": [scripts, *routes(services), *endpoint.routes(answers), *tools.routes],
        },
        "mcp_server": False,  # Gradio's own would make a tool of everything on the page
        "strict_cors": True,
        "state_session_capacity": BROWSERS,
        "max_file_size": settings.upload_mb * 2**20,
        "blocked_paths": [str(Path(settings.storage).resolve())],
    }
