"""The package's own exceptions: each names what was wrong, where, the value, what is allowed and the cure."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """``text`` with control characters and changes of direction as escapes; ends of lines and tabs stay."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def shortened(text: str) -> str:
    """``text``, cut at 120 characters."""
    return text if len(text) <= 120 else text[:117] + "..."


def _shown(value: object) -> str:
    """``repr`` of a value; of a number with too many digits for it, its bits; of what is nested deeply, its type."""
    try:
        return repr(value)
    except (ValueError, RecursionError):
        return f"a number of {value.bit_length()} bits" if isinstance(value, int) else type(value).__name__


class ExitCode(IntEnum):
    """Exit codes shared by the command and the stage runner (requirement RE-2)."""

    PASS = 0
    FAIL = 1
    UNDECIDED = 2
    INVALID_ENVIRONMENT = 3
    USAGE = 4


class BurstproofError(Exception):
    """Base of every error that burstproof raises on purpose.

    Parameters
    ----------
    problem : str
        What was wrong, in one clause.
    where : str, optional
        File and place (``brain.json: blueprint.cx____.cortical_dimensions``), or the option's name.
    got : object, optional
        The offending value; shown with ``repr`` and cut at 120 characters.
    allowed : str, optional
        What would have been accepted.
    cure : str, optional
        What to do about it, as an imperative sentence.
    """

    exit_code: ExitCode = ExitCode.USAGE

    def __init__(
        self,
        problem: str,
        *,
        where: str | None = None,
        got: object = None,
        allowed: str | None = None,
        cure: str | None = None,
    ) -> None:
        self.problem = problem
        self.where = where
        self.got = got
        self.allowed = allowed
        self.cure = cure
        super().__init__(self._message())

    def _message(self) -> str:
        text = f"{self.where}: {self.problem}" if self.where else self.problem
        details = []
        if self.got is not None:
            details.append(f"got {shortened(_shown(self.got))}")
        if self.allowed:
            details.append(f"allowed: {self.allowed}")
        if details:
            text += f" ({'; '.join(details)})"
        if self.cure:
            text += f". {self.cure}"
        return visible(text)


class InputError(BurstproofError):
    """A file, an option or an argument that cannot be used as given (exit code 4)."""


class ConfigError(InputError):
    """A configuration key that is unknown, ill-typed or out of range."""


class GenomeError(InputError):
    """A genome that cannot be read or grown."""


class ConnectomeError(InputError):
    """A ``.connectome`` file that cannot be read exactly."""


class NetworkFileError(InputError):
    """A burstproof network file that is damaged, cut short or of another version."""


class CheckpointError(InputError):
    """A checkpoint that is damaged, or belongs to another run."""


class TraceError(InputError):
    """A trace that is incomplete or contradicts itself."""


class NetworkError(InputError):
    """Arrays that do not make a network, or a network that a profile refuses."""


class UnmodelledError(NetworkError):
    """A network with features that the backend does not model, although another one does."""


class StimulusError(InputError):
    """A stimulus that the network or the declared bounds do not admit."""


class ArrayError(InputError):
    """An array whose shape, element type, device or contents an operation does not take."""


class EnvironmentInvalidError(BurstproofError):
    """This machine lacks what was asked for (exit code 3)."""

    exit_code = ExitCode.INVALID_ENVIRONMENT


class BackendUnavailableError(EnvironmentInvalidError):
    """The asked-for backend cannot start here."""


class OutOfMemoryError(EnvironmentInvalidError):
    """A network does not fit; the message says bytes needed, bytes free and what would fit."""


class ShardLostError(EnvironmentInvalidError):
    """A shard that the others waited for in vain; its engine cannot go on, its devices can be used."""


class DeviceFaultError(EnvironmentInvalidError):
    """A device failed while it ran: a kernel faulted, or the device is lost; its process cannot go on with it."""


class CompileError(EnvironmentInvalidError):
    """Device code did not compile; the message carries source line and compiler log."""


class SourceError(CompileError):
    """Device code that is wrong in itself, so that no other machine would compile it either (exit code 4)."""

    exit_code = ExitCode.USAGE


def refuse_first(
    error: type[BurstproofError],
    wrong: npt.NDArray[np.bool_],
    values: npt.NDArray[np.generic],
    problem: str,
    where: str,
    allowed: str | None = None,
    cure: str | None = None,
) -> None:
    """Raise ``error`` for the first of ``values`` that is ``wrong``."""
    if wrong.any():
        place = int(wrong.argmax())
        raise error(problem, where=f"{where}[{place}]", got=values[place].item(), allowed=allowed, cure=cure)
