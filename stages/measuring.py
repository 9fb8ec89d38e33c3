"""The object that the fixture ``measure`` gives to a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import SupportsFloat

from reports.values.measurement import Measurement, Scalar


class Measure:
    """Attaches figures to the running case.

    Parameters
    ----------
    requirements : tuple of str
        Ids of the case, used for measurements that name none.
    """

    def __init__(self, requirements: tuple[str, ...]) -> None:
        self._requirements = requirements
        self._taken: list[Measurement] = []

    @property
    def taken(self) -> tuple[Measurement, ...]:
        """The measurements in the order taken."""
        return tuple(self._taken)

    def __call__(
        self,
        name: str,
        value: SupportsFloat | None,
        unit: str,
        *,
        samples: Sequence[SupportsFloat] = (),
        conditions: Mapping[str, object] | None = None,
        telemetry: Mapping[str, object] | None = None,
        note: str = "",
        requirements: Sequence[str] | None = None,
    ) -> Measurement:
        """Attach and return the measurement; ``requirements`` default to those of the case."""
        measurement = Measurement(
            name=name,
            value=None if value is None else float(value),
            unit=unit,
            samples=tuple(float(sample) for sample in samples),
            conditions=_scalars(conditions or {}),
            requirements=self._requirements if requirements is None else tuple(requirements),
            telemetry=_scalars(telemetry or {}),
            note=note,
        )
        self._taken.append(measurement)
        return measurement


def _scalars(values: Mapping[str, object]) -> dict[str, Scalar]:
    return {name: _scalar(name, value) for name, value in values.items()}


def _scalar(name: str, value: object) -> Scalar:
    """Return a plain scalar: of a NumPy scalar its ``item``, of a subclass of ``str`` (PyTorch's version) a ``str``."""
    if not isinstance(value, str | int | float | bool) and hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, str | int | float | bool):
        raise TypeError(f"{name} is {value!r}; a condition or telemetry value is a string, number or boolean")
    return str(value) if isinstance(value, str) else value
