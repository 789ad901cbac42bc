"""The one door through which numba enters: a decorator, and drivers that take a measure as a value.

A *driver* is a loop that evaluates a measure many times (a search, a null). It receives the measure's
loop as a function pointer, so a driver is compiled once for all measures and a measure once for all
drivers; with a plain Python callable the very same source runs uncompiled.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numba
from numba import types
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.core.event import Listener, install_listener
from numba.extending import typeof_impl

Function = TypeVar("Function", bound=Callable[..., Any])

# No fastmath anywhere: sums keep their order, so results are the same bits on every machine. Only a
# measure's value is called by address; sparing the others that entry spares the first call a second.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

F1, F2, F3 = (types.Array(types.float64, d, "C") for d in (1, 2, 3))
I1, I2 = (types.Array(types.int32, d, "C") for d in (1, 2))
L1, L2 = (types.Array(types.int64, d, "C") for d in (1, 2))
B1 = types.Array(types.boolean, 1, "C")
U1 = types.Array(types.uint64, 1, "C")
H2 = types.Array(types.uint16, 2, "C")
INT, FLOAT, NONE = types.int64, types.float64, types.void

#: A measure's loop: value(mixed, labels, row_weights, parameters, offset, state, scratch) -> float
VALUE = FLOAT(F2, I1, F1, F1, F1, F1, F1)
#: The first half of an additive one: accumulate(mixed, labels, row_weights, parameters, state, scratch)
ACCUMULATE = NONE(F2, I1, F1, F1, F1, F1)
#: A measure's loop over many labellings: of_labellings(mixed, drawn, parameters, out)
OF_LABELLINGS = NONE(F2, H2, F1, F1)


def _jit(function: Callable[..., Any], signature: Any = None, **options: Any) -> Any:
    options = _OPTIONS | options
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError as error:
        # No folder can hold the compiled code (read-only home): compile for this process alone.
        if "cache" not in str(error):
            raise
        dispatcher = numba.njit(**options)(function)
    else:
        _keep_if_possible(dispatcher)
    if signature is not None and is_compiled(dispatcher):
        dispatcher.compile(signature)
        dispatcher.disable_compile()
    return dispatcher


def _keep_if_possible(dispatcher: Any) -> None:
    """Let a disk or a quota that is full keep compiled code from being kept, and no more."""
    cache: Any = getattr(dispatcher, "_cache", None)
    save = getattr(cache, "save_overload", None)
    if save is None:  # compilation is switched off
        return

    def save_or_not(*arguments: Any) -> None:
        with contextlib.suppress(OSError):
            save(*arguments)

    cache.save_overload = save_or_not


def compiled(function: Function) -> Function:
    """Compile a loop on its first call; keep the compiled code on disk where a folder allows it."""
    return _jit(function)  # type: ignore[no-any-return]


def compiled_inline(function: Function) -> Function:
    """Compile a step that must become part of the loops that call it, or they would not vectorise."""
    return _jit(function, forceinline=True)  # type: ignore[no-any-return]


def compiled_part(function: Function) -> Function:
    """Compile a step only as part of the loops that call it, which spares the first call some time."""
    return _jit(function, inline="always")  # type: ignore[no-any-return]


def compiled_value(function: Function) -> Function:
    """Compile a measure's value, or its first half, so that drivers can take it as a pointer."""
    return _jit(function, no_cfunc_wrapper=False)  # type: ignore[no-any-return]


def is_compiled(function: object) -> bool:
    """Whether a measure's loop can be handed to compiled drivers as a pointer."""
    return isinstance(function, numba.core.dispatcher.Dispatcher)


class _Pointer(types.WrapperAddressProtocol):
    """The address of a measure's compiled loop, looked up once rather than at every call."""

    def __init__(self, loop: Any, signature: Any) -> None:
        result = loop.get_compile_result(signature)
        name = result.fndesc.llvm_cfunc_wrapper_name
        self._address = result.library.get_pointer_to_function(name)
        self._signature = signature
        self.type = types.FunctionType(signature)
        if not self._address:
            raise TypeError(f"a measure's loop must be a `compiled_value`; {loop} is not.")

    def __wrapper_address__(self) -> int:
        return int(self._address)

    def signature(self) -> Any:
        return self._signature


@typeof_impl.register(_Pointer)
def _type_of_pointer(pointer: _Pointer, context: object) -> Any:
    # numba would build and compare this type anew at every call.
    return pointer.type


#: Labels that may not be written to; predictions (n_rows, n_members, n_classes) as they came, neither.
GIVEN_LABELS = types.Array(types.int32, 1, "C", readonly=True)
_GIVEN_PROBS = {
    "f": types.Array(types.float32, 3, "C", readonly=True),
    "d": types.Array(FLOAT, 3, "C", readonly=True),
}
#: Stands for predictions of either type, as the first of the arguments.
GIVEN_PROBS = object()


_COMPILING = threading.RLock()


class _Driver:
    """A loop whose first argument is a measure's loop; see the module's first lines."""

    def __init__(self, function: Callable[..., Any], loop: Any, arguments: Any) -> None:
        self._function = function
        self._loop = loop
        self._arguments = arguments
        self._compiled: dict[str, Callable[..., Any]] = {}
        # Found by identity: to hash a numba signature takes longer than a small search.
        self._pointers: dict[int, tuple[Any, _Pointer]] = {}
        functools.update_wrapper(self, function)

    def _compile(self, code: str) -> Callable[..., Any]:
        given: list[Any] = [
            _GIVEN_PROBS[code] if one is GIVEN_PROBS else one for one in self._arguments
        ]
        signature = NONE(types.FunctionType(self._loop), *given)
        with warnings.catch_warnings(action="ignore", category=NumbaExperimentalFeatureWarning):
            return _jit(self._function, signature)  # type: ignore[no-any-return]

    def __call__(self, loop: Callable[..., Any], *arguments: Any) -> Any:
        code = arguments[0].dtype.char if self._arguments[0] is GIVEN_PROBS else "d"
        known, compiled = self._pointers.get(id(loop)), self._compiled.get(code)
        if known is None or compiled is None:
            if not is_compiled(loop):
                return self._function(loop, *arguments)
            # Threads must not compile the same twice, nor change the filters of warnings together.
            with _COMPILING:
                # Kept with its loop, whose identity must not pass to another.
                known = self._pointers.setdefault(id(loop), (loop, _Pointer(loop, self._loop)))
                compiled = self._compiled.get(code) or self._compile(code)
                self._compiled[code] = compiled
        return compiled(known[1], *arguments)


def driver(*arguments: Any, loop: Any = VALUE) -> Callable[[Callable[..., Any]], _Driver]:
    """Declare a driver by the numba types of what follows the measure's loop, its `value` or another."""
    return functools.partial(_Driver, loop=loop, arguments=arguments)


class _Compilations(Listener):
    """Calls a function once when compilations, one within another or not, have taken a while."""

    def __init__(self, call: Callable[[], None], after: float) -> None:
        self._call, self._left, self._depth = call, after, 0
        self._begun = 0.0
        self._timer: threading.Timer | None = None

    def on_start(self, event: object) -> None:
        self._depth += 1
        if self._depth == 1 and self._left > 0.0:
            self._begun = time.monotonic()
            self._timer = threading.Timer(self._left, self._call)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            # Once the call was made nothing is left, and no further timer is started.
            self._left -= time.monotonic() - self._begun


@contextmanager
def when_compiling(call: Callable[[], None], *, after: float = 1.0) -> Iterator[None]:
    """Call `call` if something has to be compiled here, and takes longer than `after` seconds."""
    listener = _Compilations(call, after)
    with install_listener("numba:compile", listener):
        yield
