"""The start on ZeroGPU: one pair, loaded before the page is launched."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omnidemo.core.config import Settings
from omnidemo.models.load import load_model
from omnidemo.models.names import resolve
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.messages import Call, Message
from omnidemo.pair.zerogpu.gpu_pair import FixedPair, answer, seconds
from omnidemo.pair.zerogpu.sign import names
from omnidemo.pair.zerogpu.zero_pair import Write, ZeroPair

_started: tuple[FixedPair, Write] | None = None


def start(settings: Settings) -> Settings:
    """Load the pair, decorate the function that needs the GPU, and return the settings with the pair's names.
    To be called in the main thread before the launch. ValueError, one sentence, where that fails."""
    global _started
    try:
        import spaces  # before torch uses CUDA
    except ImportError as error:
        raise ValueError(
            "ZeroGPU needs the package spaces, which a Gradio Space brings along; run `pip install spaces`"
        ) from error
    target, drafter = names(settings)
    place = "cuda" if settings.device == "auto" else settings.device
    models = [
        load_model(resolve(name, settings).where, writes=writes, device=place, park=True, **settings.loading)
        for name, writes in ((target, True), (drafter, False))
    ]
    fixed = FixedPair(models[0], models[1], settings.limits)

    @spaces.GPU(duration=seconds)
    def write(call: Call) -> Iterator[Message]:
        yield from answer(fixed, call)

    _started = fixed, write
    return settings.model_copy(update={"target": models[0].name, "drafter": models[1].name})


def started() -> bool:
    return _started is not None


def build(target: str, drafter: str, settings: Settings, tell: Callable[[str, float, str], None]) -> Pair:
    """As `build_pair`, for the fixed pair; ValueError for another one."""
    assert _started is not None
    fixed, write = _started
    if (target, drafter) != (fixed.target.name, fixed.drafter.name):
        raise ValueError(
            f"On ZeroGPU this app has one pair, {fixed.target.name} with {fixed.drafter.name}; for another"
            " one set OMNIDEMO_TARGET and OMNIDEMO_DRAFTER and restart the Space."
        )
    tell(
        "vocabulary map", 0.8, f"{len(fixed.target.vocabulary):,} × {len(fixed.drafter.vocabulary):,} tokens"
    )
    return ZeroPair(fixed, write)
