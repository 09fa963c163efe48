"""The functions of `decoding/sources` that memory runs on, in compiled code."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any

from numba import njit

from omnidemo.decoding.sources import memory_chain, ngram_table, text_index


def _compiled(module: ModuleType, names: str, known: Mapping[str, Any] = {}) -> dict[str, Any]:
    """Compiled forms of functions of a module, and those that are `known`. Each calls those before it."""
    made = dict(known)
    for name in names.split():
        code = getattr(module, name).__code__
        own = FunctionType(code, {**vars(module), **made}, name)
        made[name] = njit(cache=True, error_model="numpy", nogil=True)(own)
    return made


_functions = _compiled(ngram_table, "follow count")
_functions |= _compiled(text_index, "enter find_places")
_functions = _compiled(
    memory_chain,
    "among class_of_copy class_of_continuation most_say what_follows copy_from likeliest chain learn_chain",
    _functions,
)
follow, count, enter, chain, learn_chain = (
    _functions[name] for name in ("follow", "count", "enter", "chain", "learn_chain")
)
