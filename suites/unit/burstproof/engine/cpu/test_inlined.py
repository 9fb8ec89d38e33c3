"""Functions that only others call: no machine code of their own, and all else as numba has it."""

from __future__ import annotations

import pytest

from burstproof.engine.cpu.compile import compiler, inner_compiler

pytestmark = pytest.mark.requirement("BE-4")


@inner_compiler
def positive(number: int) -> int:
    if number < 0:
        raise ValueError("negative")
    if number > 9:
        raise ValueError("large", number)
    return number


@compiler
def twice(number: int) -> int:
    return 2 * int(positive(number))


def test_a_linked_function_returns_and_raises() -> None:
    """An exception with a number in it is made from the environment of the function that raises."""
    assert twice(3) == 6
    with pytest.raises(ValueError, match="negative"):
        twice(-1)
    with pytest.raises(ValueError, match="large") as raised:
        twice(11)
    assert raised.value.args == ("large", 11)


def test_only_what_python_calls_has_machine_code() -> None:
    twice(1)
    (linked,), (whole,) = positive.overloads.values(), twice.overloads.values()
    assert linked.library.get_pointer_to_function(linked.fndesc.llvm_func_name) == 0
    assert whole.library.get_pointer_to_function(whole.fndesc.llvm_func_name) != 0
