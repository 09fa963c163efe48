"""Calls by an address, so that numba optimises a function once, and not again with each function above it."""

from __future__ import annotations

import hashlib
import inspect
from typing import Any

from llvmlite import binding
from numba import typeof
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

intrinsic: Any = _intrinsic  # what it makes takes one argument fewer than the function says


def outlined(function: Any, *examples: Any) -> Any:
    """A compiled function for arguments of the same types as these, as other compiled functions call it: by
    its address. It returns numbers, or nothing."""
    kinds = tuple(typeof(example) for example in examples)
    function.compile(kinds)
    made = function.overloads[kinds]
    # Not numba's own name, in which functions are counted: machine code is kept, and what another process
    # compiled counted otherwise.
    types = hashlib.sha256(repr(kinds).encode()).hexdigest()[:16]
    symbol, result = (
        f"omnidemo_{function.py_func.__module__}.{function.py_func.__qualname__}_{types}",
        made.signature.return_type,
    )
    binding.add_symbol(symbol, made.library.get_pointer_to_function(made.fndesc.llvm_func_name))

    def call(typing: Any, *given: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = context.call_conv.get_function_type(result, kinds)
            place = cgutils.get_or_insert_function(builder.module, kind, symbol)
            status, value = context.call_conv.call_function(builder, place, result, kinds, arguments)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return value

        return result(*kinds), code

    # numba wants each argument to have one
    names = ["typing", *inspect.signature(function.py_func).parameters]
    fixed: Any = call
    fixed.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    )
    return intrinsic(fixed)
