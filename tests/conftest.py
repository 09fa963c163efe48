"""Shared by all tests: on what code they run, and who runs them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch

pytest.register_assert_rewrite("tests.support")

from omnidemo.backends import compile_kernels  # noqa: E402
from omnidemo.decoding import row_ops  # noqa: E402
from tests.support.cli import cli, names  # noqa: E402, F401  (fixtures)
from tests.support.models import models  # noqa: E402, F401  (a fixture)

HERE = Path(__file__).parent
# What runs as users come to run it, measurements included; everything else runs on the reference.
COMPILED = ("kernels", "contract", "bench", "browser")
THREADS = torch.get_num_threads()


def is_compiled(path: Path) -> bool:
    return path.relative_to(HERE).parts[0] in COMPILED


@pytest.fixture(scope="module", autouse=True)
def _code(request: pytest.FixtureRequest) -> Iterator[None]:
    """The reference, as in a process that has compiled nothing; or compiled code, ready before the first test asks for it."""
    if is_compiled(request.path):
        torch.set_num_threads(THREADS)
        assert compile_kernels.wait()
        with pytest.MonkeyPatch.context() as patched:
            patched.delenv("OMNIDEMO_BACKEND", raising=False)
            yield
        return
    torch.set_num_threads(1)  # models are tiny here, and several workers share the cores
    nothing_to_do = threading.Thread(target=lambda: None)  # stands for a compiling that ended without code
    nothing_to_do.start()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OMNIDEMO_BACKEND", "reference")
        patched.setattr(compile_kernels, "_thread", nothing_to_do)
        patched.setattr(compile_kernels, "_ready", None)
        patched.setattr(row_ops, "_compiled", None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_load_at_a_time() -> Iterator[None]:
    """Also of models that a test loads by `transformers` itself while a thread of ours loads another one: see `models.read_weights`."""
    from transformers import PreTrainedModel

    from omnidemo.models.read_weights import LOADING

    original = PreTrainedModel.from_pretrained.__func__

    def locked(cls: type, *given: Any, **options: Any) -> Any:
        with LOADING:
            return original(cls, *given, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PreTrainedModel, "from_pretrained", classmethod(locked))
        yield


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before workers start: each of them would compile for itself."""
    if getattr(session.config.option, "numprocesses", None):
        compile_kernels.wait()


def _turn(path: Path) -> int:
    """When the tests of a file run: compiled code first, for it is the longest piece; what compiles anew and what is measured last."""
    part = path.relative_to(HERE).parts[0]
    if path.name == "test_compile_kernels.py":
        return 2
    return {"contract": 0, "kernels": 0, "bench": 3, "browser": 3}.get(part, 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _turn(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Workers get whole files, and of `law`, which shares nothing, single tests. What runs compiled code takes all cores, so one worker
    gets all of it, and one all that starts servers and browsers."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = config.rootpath / nodeid.partition("::")[0]
            turn = _turn(path)
            if turn in (0, 3):
                return ("compiled", "", "", "measured")[turn]
            return nodeid if path.parent.name == "law" else super()._split_scope(nodeid)

    config.option.loadscopereorder = False  # files with most tests would come first, whatever they need
    return Scheduling(config, log)
