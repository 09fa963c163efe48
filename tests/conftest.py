"""Shared by all tests: on what code they run, and who runs them."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
import torch

pytest.register_assert_rewrite("tests.support")

from omnidemo.backends import compile_kernels, processor, thread_pool  # noqa: E402
from omnidemo.learning.distill import process_worker  # noqa: E402
from omnidemo.pair import pair_prices  # noqa: E402
from omnidemo.serving import gc_pauses  # noqa: E402
from tests.support.cli import cli, lab_cli, names, prompts  # noqa: E402, F401  (fixtures)
from tests.support.fetched import MARKED, needed, qwen_file, smollm2_file  # noqa: E402, F401
from tests.support.models import models  # noqa: E402, F401  (a fixture)
from tests.support.trained_pair import DRAFTER, TARGET  # noqa: E402

gc.disable()  # until all tests are imported: what libraries make would be looked through again and again
# Tests name their pair; those that name none have the trained one, whatever models this machine holds.
os.environ["OMNIDEMO_TARGET"], os.environ["OMNIDEMO_DRAFTER"] = TARGET, DRAFTER

HERE = Path(__file__).parent
# What runs on compiled code, as users have it; everything else runs on the reference.
COMPILED = ("kernels", "contract", "cli", "lab", "browser")
# Several workers share the cores, so a test has one thread where it does not measure or ask for more.
MEASURED = ("cli", "lab", "browser")
THREADS, HELPERS = torch.get_num_threads(), thread_pool.pick_size
# What starts processes on the reference comes first, beside compiling; then what takes longest, so that no
# worker is left alone with it; single tests of the law fill up what is left.
FIRST = ("distill", "store", "replicas", "browser", "contract", "kernels", "lab", "cli")
LAST = ("kernels/test_compile_kernels.py", "law")
# A job of its own, `make test-long`: visits in a browser, processes that Ray keeps, the torture.
LONG = ("browser", "replicas", "lab/test_torture.py", "lab/test_many_browsers.py")


def part_of(path: Path, parts: Sequence[str]) -> int | None:
    """The number of the first of some folders and files that a path is in."""
    own = path.relative_to(HERE).as_posix()
    return next(
        (number for number, part in enumerate(parts) if own == part or own.startswith(f"{part}/")), None
    )


@pytest.fixture(scope="module", autouse=True)
def _code(request: pytest.FixtureRequest) -> Iterator[None]:
    """The reference, as in a process that has compiled nothing; or compiled code, ready before the first test
    asks for it."""
    measured = part_of(request.path, MEASURED) is not None
    torch.set_num_threads(THREADS if measured else 1)
    if part_of(request.path, COMPILED) is not None:
        _wait_for_machine_code()
        _leave_out()
        with pytest.MonkeyPatch.context() as patched:
            patched.delenv("OMNIDEMO_BACKEND", raising=False)
            if not measured:
                patched.setattr(thread_pool, "pick_size", lambda threads=0: HELPERS(threads or 1))
            yield
        return
    _leave_out()
    nothing_to_do = threading.Thread(target=lambda: None)  # stands for a compiling that ended without code
    nothing_to_do.start()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OMNIDEMO_BACKEND", "reference")
        patched.setattr(compile_kernels, "_thread", nothing_to_do)
        patched.setattr(compile_kernels, "_ready", None)
        patched.setattr("omnidemo.decoding.sources.compiled.functions", None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_prices_are_kept_in_the_users_cache() -> Iterator[None]:
    """In a file nothing can be kept: what one test measures must not decide another."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pair_prices, "cache_folder", lambda: HERE / "conftest.py")
        yield


@pytest.fixture(scope="session", autouse=True)
def _training_is_not_niced() -> Iterator[None]:
    """Beside workers that use all cores, a training process of lower priority would hardly run."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(process_worker, "NICE", 0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _loads_collect_no_garbage() -> Iterator[None]:
    """Beside the tests' own libraries a full collection takes longer than to load small models."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gc_pauses, "settle", lambda: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_load_at_a_time() -> Iterator[None]:
    """Also of models that a test loads by `transformers` itself while a thread of ours loads another one: see
    `models.read_weights`."""
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
    """One process compiles for all workers, which would leave it hardly any time if it had a lower
    priority."""
    if getattr(session.config.option, "numprocesses", None):
        compile_kernels.NICE = 0
        compile_kernels.prepare()


def _wait_for_machine_code() -> None:
    """In a worker, which would otherwise compile for itself, until the process that has started the workers
    has done it."""
    folder, features = Path(compile_kernels._folder()), processor.told()
    until = time.monotonic() + compile_kernels.TIMEOUT_S
    while (
        "PYTEST_XDIST_WORKER" in os.environ
        and time.monotonic() < until
        and not compile_kernels._complete(folder, features)
    ):
        time.sleep(1.0)
    assert compile_kernels.wait()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> tuple[int, int]:
        last, first = part_of(item.path, LAST), part_of(item.path, FIRST)
        return (1 + last, 0) if last is not None else (0, len(FIRST) if first is None else first)

    for item in items:
        if part_of(item.path, LONG) is not None:
            item.add_marker("long")
    items.sort(key=place)


def pytest_collection_finish() -> None:
    _leave_out()
    gc.enable()


def _leave_out() -> None:
    """What was imported stays, and what other modules keep, so that no later collection has to look through
    it."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, name in MARKED.items():
        if item.get_closest_marker(marker) is not None:
            needed(name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Workers get whole files, of `law`, which shares nothing, single tests, and one of them all that starts
    browsers."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            folder = (config.rootpath / nodeid.partition("::")[0]).parent.name
            return (
                folder if folder == "browser" else nodeid if folder == "law" else super()._split_scope(nodeid)
            )

    config.option.loadscopereorder = False  # files with most tests would come first, whatever they need
    return Scheduling(config, log)
