"""Which values of a parameter the quick plan keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from stages.plugin import left_out


def thinned(values: Iterable[Any], why: str, *, keep: Callable[[int, Any], bool]) -> list[Any]:
    """Parameters of which those that ``keep(place, value)`` refuses run in the thorough plan only, because of ``why``.

    Values that are parameters already (``pytest.param``) keep their ids and marks.
    """
    mark = pytest.mark.thorough(why)
    return [value if keep(place, value) else _marked(value, mark) for place, value in enumerate(values)]


def every(step: int) -> Callable[[int, Any], bool]:
    """Keep the first and each ``step``-th value after it."""
    return lambda place, _: place % step == 0


def first(count: int) -> Callable[[int, Any], bool]:
    """Keep the first ``count`` values."""
    return lambda place, _: place < count


def only(*kept: object) -> Callable[[int, Any], bool]:
    """Keep these values."""
    return lambda _, value: value in kept


def asked(request: pytest.FixtureRequest, parameter: str) -> list[Any]:
    """Values of ``parameter`` in those cases of the requesting module that the plan runs."""
    cases = (item for item in request.session.items if getattr(item, "module", None) is request.module)
    params = ((getattr(case, "callspec", None), case) for case in cases if not left_out(case))
    return [spec.params[parameter] for spec, _ in params if spec is not None and parameter in spec.params]


def _marked(value: Any, mark: pytest.MarkDecorator) -> Any:
    if isinstance(value, type(pytest.param())):
        return pytest.param(*value.values, marks=[*value.marks, mark], id=value.id)
    return pytest.param(value, marks=mark)
