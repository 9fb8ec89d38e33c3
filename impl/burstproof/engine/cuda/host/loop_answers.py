"""Compiled code that waits for the replies of a closed loop (``kernels.replies``) and copies the fired list from them.

Replies are copied by whole lines, without a branch on how many units of a line are in use: the next copy overwrites the
excess.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.base import BaseContext
from numba.core.typing import Context
from numba.extending import intrinsic

from burstproof.engine.atomics import Intrinsic, Values
from burstproof.engine.cuda.host.loop_codes import FIRED_BITS, LATE, LONGER, MANY, NOT_RUNNING, SLACK
from burstproof.engine.cuda.kernels.mailbox import (
    CANDIDATES_SHIFT,
    COUNT_BITS,
    NUMBER_SHIFT,
    RUNNING,
    STATUS,
    UNIT_BITS,
)

SPINS = 20_000
"""Polls before a wait gives up with ``LATE``, about a millisecond."""

_UNITS = 1 << UNIT_BITS
"""Units of a line."""


@intrinsic  # type: ignore[untyped-decorator]
def copy_unit(
    typing_context: Context, fired: types.Array, entry: types.Type, replies: types.Array, place: types.Type
) -> Intrinsic:
    """``copy_unit(fired, entry, replies, place)``: copy the last three numbers of a unit in one 16-byte store.

    The fourth element stored is undefined.
    """

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Values) -> ir.Value:
        vector = ir.VectorType(ir.IntType(32), 4)

        def pointer(array: int) -> ir.Value:
            """To the element of argument ``array`` that the argument after it names."""
            data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
            return builder.bitcast(builder.gep(data, [arguments[array + 1]]), vector.as_pointer())

        target, source = pointer(0), pointer(2)
        unit = builder.load(source, align=8)
        three = builder.shuffle_vector(unit, ir.Constant(vector, ir.Undefined), ir.Constant(vector, [1, 2, 3, 3]))
        builder.store(three, target, align=4)
        return context.get_dummy_value()

    return types.void(fired, types.intp, replies, types.intp), generate


def _make_take(first: int) -> Any:
    """``take(replies, place, number, units, fired, entry)``: copy a line from unit ``first`` on.

    It returns whether the first ``units`` units, or all if a line has fewer, carried ``number`` and so had arrived.
    """
    from numba import njit

    from burstproof.engine.atomics import atomic_load

    low, sign = (1 << NUMBER_SHIFT) - 1, 63

    @njit(inline="always")
    def take(replies, place, number, units, fired, entry):  # type: ignore[no-untyped-def]
        wrong = 0
        for unit in range(first, _UNITS):
            in_use = (unit - units) >> sign  # all bits set if unit < units, else 0
            wrong |= (atomic_load(replies, place + 2 * unit) ^ number) & in_use
            copy_unit(fired, entry + 3 * unit, replies, place + 2 * unit)
        return wrong & low == 0

    return take


@cache
def make_wait() -> Callable[..., int]:
    """``wait(answers, replies, number, chunks, fired)``, see ``host.loop_calls.LoopCalls``."""
    from numba import int64, njit, uint32

    from burstproof.engine.atomics import atomic_load, relax

    low, shift, line_bits = (1 << NUMBER_SHIFT) - 1, NUMBER_SHIFT, UNIT_BITS + 1
    take_first, take_further = _make_take(1), _make_take(0)

    @njit
    def missing(answers, replies, place, number):  # type: ignore[no-untyped-def]
        """Wait for the unit at ``place``; 0, or the code (``loop_codes``) that says why it has not arrived."""
        for _ in range(SPINS):
            if atomic_load(replies, place) & low == number:
                return 0
            if atomic_load(answers, STATUS) != RUNNING and atomic_load(replies, place) & low != number:
                return NOT_RUNNING
            relax()
        return LATE

    @njit
    def missing_in_line(answers, replies, place, number, units):  # type: ignore[no-untyped-def]
        """The same for the first ``units`` units of a line."""
        for unit in range(min(units, _UNITS)):
            code = missing(answers, replies, place + 2 * unit, number)
            if code != 0:
                return code
        return 0

    @njit(int64(int64[::1], int64[::1], int64, int64, uint32[::1]))
    def wait(answers, replies, number, chunks, fired):  # type: ignore[no-untyped-def]
        """Copy the units of one chunk after another; a unit has arrived once its first word carries ``number``."""
        room = (len(replies) // chunks) >> line_bits << UNIT_BITS  # units of a chunk
        found, candidates, many = 0, 0, False
        for chunk in range(chunks):
            place = chunk << line_bits
            if atomic_load(replies, place) & low != number:
                code = missing(answers, replies, place, number)
                if code != 0:
                    return code
            counts, pair = atomic_load(replies, place) >> shift, atomic_load(replies, place + 1)
            count = counts & COUNT_BITS
            candidates += counts >> CANDIDATES_SHIFT
            units, entry = (count + 3) // 3, found - 1
            if units > room:
                many = True
                continue
            if found + count + SLACK > len(fired):
                return LONGER
            fired[found], fired[found + 1] = pair & low, pair >> shift
            while not take_first(replies, place, number, units, fired, entry):
                code = missing_in_line(answers, replies, place, number, units)
                if code != 0:
                    return code
            while units > _UNITS:
                units, entry, place = units - _UNITS, entry + 3 * _UNITS, place + (chunks << line_bits)
                while not take_further(replies, place, number, units, fired, entry):
                    code = missing_in_line(answers, replies, place, number, units)
                    if code != 0:
                        return code
            found += count
        return (candidates << FIRED_BITS) | (MANY if many else found)

    return wait  # type: ignore[no-any-return]
