"""Calls by address, so that numba optimises a function once and not with each caller."""

from __future__ import annotations

import hashlib
import inspect
from typing import Any, cast

from llvmlite import binding
from numba import typeof
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

intrinsic: Any = _intrinsic  # what it makes takes one argument fewer than the function says


def outlined(function: Any, *examples: Any) -> Any:
    """A compiled function for arguments of the types of `examples`, which other compiled functions call by
    its address. It returns numbers or nothing."""
    kinds = tuple(typeof(example) for example in examples)
    function.compile(kinds)
    made = function.overloads[kinds]
    address = int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))
    # numba's own names count functions, and the process that compiled the kept machine code counted
    # otherwise.
    own = hashlib.sha256(repr(kinds).encode()).hexdigest()[:16]
    symbol = f"omnidemo_{function.py_func.__module__}.{function.py_func.__qualname__}_{own}"
    binding.add_symbol(symbol, address)

    result = made.signature.return_type

    def call(typing: Any, *given: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = context.call_conv.get_function_type(result, kinds)
            called = cgutils.get_or_insert_function(builder.module, kind, symbol)
            status, value = context.call_conv.call_function(builder, called, result, kinds, arguments)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return value

        return result(*kinds), code

    # numba wants each argument to have one
    names, fixed = inspect.signature(function.py_func).parameters, cast(Any, call)
    fixed.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("typing", *names)]
    )
    return intrinsic(fixed)
