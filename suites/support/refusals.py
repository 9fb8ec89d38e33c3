"""Files that are refused: one error that names the file and says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from burstproof.errors import BurstproofError, ExitCode


def refusal(
    kind: type[BurstproofError], read: Callable[..., object], path: Path, data: bytes, **options: object
) -> BurstproofError:
    """The error of ``kind`` with which ``read`` refuses a file of these bytes."""
    path.write_bytes(data)
    with pytest.raises(kind) as caught:
        read(path, **options)
    error = caught.value
    assert error.exit_code is ExitCode.USAGE
    assert str(path) in (error.where or "")
    assert error.cure
    return error
