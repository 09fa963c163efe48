"""Shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest

pytest.register_assert_rewrite("tests.support")

from omnidemo.backends import compile_kernels  # noqa: E402

compile_kernels.wait()  # before tests import compiled functions, which would be compiled once more then, into another folder


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """Tests run on the passes that users come to run on."""
    assert compile_kernels.wait()


@pytest.fixture(scope="session", autouse=True)
def _one_load_at_a_time() -> Iterator[None]:
    """Also of models that a test loads by `transformers` itself while a thread of ours loads another one: see `runtime.weights`."""
    from transformers import PreTrainedModel

    from omnidemo.models.read_weights import LOADING

    original = PreTrainedModel.from_pretrained.__func__

    def locked(cls: type, *given: Any, **options: Any) -> Any:
        with LOADING:
            return original(cls, *given, **options)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PreTrainedModel, "from_pretrained", classmethod(locked))
        yield
