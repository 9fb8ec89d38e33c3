"""Files that are checked before the work begins: readable inputs, outputs that can be written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from burstproof.errors import InputError
from burstproof.regular_file import check_regular


def check_input(path: Path, where: str) -> None:
    """Refuse an input that is no readable file.

    Raises
    ------
    InputError
        The file does not exist, is a folder, pipe or device, or cannot be opened.
    """
    try:
        check_regular(path)
        path.open("rb").close()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=where, got=str(path), cure="Check the path"
        ) from None


def check_output(path: Path, option: str, inputs: Sequence[Path] = (), what: str = "the input itself") -> None:
    """Refuse an output that could not be written, or that would overwrite an input; ``what`` says what those are.

    Raises
    ------
    InputError
        The folder does not exist or cannot be written to, the path is a folder, pipe or device, or it is one of
        ``inputs``.
    """
    folder = path.parent
    if not folder.is_dir():
        raise InputError(
            "the folder does not exist", where=option, got=str(folder), cure=f"Create it: mkdir -p {folder}"
        )
    if path.is_dir():
        raise InputError("this is a folder", where=option, got=str(path), cure="Name a file in it")
    if path.exists() and not path.is_file():
        raise InputError("this is a pipe or a device", where=option, got=str(path), cure="Name a file")
    if not os.access(folder, os.W_OK):
        raise InputError("the folder cannot be written to", where=option, got=str(folder), cure="Choose another folder")
    for source in inputs:
        if _same_file(path, source):
            raise InputError(f"the output is {what}", where=option, got=str(path), cure="Write to another file")


def _same_file(one: Path, other: Path) -> bool:
    """Whether two paths name one file, also through links and before it exists."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()
