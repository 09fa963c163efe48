"""Calls by address, so that numba optimises a function once, and not again with each caller."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import binding
from numba import typeof, types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

intrinsic: Any = _intrinsic  # what it makes takes one argument fewer than the function says


def outlined(function: Any, *examples: Any) -> Any:
    """A compiled function for arguments of the types of `examples`, which other compiled functions call by
    its address. It returns numbers or nothing."""
    kinds = _kinds(examples)
    address = address_of(function, *examples)
    # numba's own names count functions, and the process that compiled the kept machine code counted
    # otherwise.
    own = hashlib.sha256(repr(kinds).encode()).hexdigest()[:16]
    symbol = f"omnidemo_{function.py_func.__module__}.{function.py_func.__qualname__}_{own}"
    binding.add_symbol(symbol, address)

    def place(builder: Any, kind: Any, arguments: Any) -> tuple[Any, Any]:
        return cgutils.get_or_insert_function(builder.module, kind, symbol), arguments

    result = function.overloads[kinds].signature.return_type
    return _call(result, kinds, list(inspect.signature(function.py_func).parameters), place)


def called_at(function: Any, *examples: Any) -> Any:
    """The same by an address that the call is given first, so that the function may be compiled later
    (`address_of`). It returns nothing."""

    def place(builder: Any, kind: Any, arguments: Any) -> tuple[Any, Any]:
        return builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:]

    names = ["address", *inspect.signature(function.py_func).parameters]
    return _call(types.none, _kinds(examples), names, place, types.int64)


def address_of(function: Any, *examples: Any) -> int:
    """The address of the machine code of a compiled function for arguments of the types of `examples`."""
    kinds = _kinds(examples)
    function.compile(kinds)
    made = function.overloads[kinds]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))


def _kinds(examples: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(typeof(example) for example in examples)


def _call(
    result: Any, kinds: tuple[Any, ...], names: list[str], place: Callable[..., tuple[Any, Any]], *first: Any
) -> Any:
    """An intrinsic that calls the function at a `place`. The call has arguments of the types `first`, which
    `place` consumes, and then those of the function."""

    def call(typing: Any, *given: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = context.call_conv.get_function_type(result, kinds)
            function, rest = place(builder, kind, arguments)
            status, value = context.call_conv.call_function(builder, function, result, kinds, rest)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return value

        return result(*first, *kinds), code

    # numba wants each argument to have one
    fixed: Any = call
    fixed.__signature__ = inspect.Signature(
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("typing", *names)]
    )
    return intrinsic(fixed)
