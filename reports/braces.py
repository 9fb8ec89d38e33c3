"""Shortens lists of texts that share parts, in the brace notation of shells: ``a-{1 | 2}`` for ``a-1`` and ``a-2``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def braced(texts: Iterable[str], separator: str) -> tuple[str, ...]:
    """Join texts that differ in their last part, then those that differ in what precedes it: ``{a | b}-{1 | 2}``.

    Parameters
    ----------
    texts : iterable of str
    separator : str
        Precedes the last part.

    Returns
    -------
    tuple of str
        They stand for all of ``texts`` and for no other text.
    """
    last_parts: dict[tuple[str, str], list[str]] = {}
    for text in texts:
        first, found, last = text.rpartition(separator)
        last_parts.setdefault((first, found), []).append(last)
    first_parts: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (first, found), lasts in last_parts.items():
        first_parts.setdefault((found, tuple(sorted(lasts))), []).append(first)
    return tuple(_one_of(firsts) + found + _one_of(lasts) for (found, lasts), firsts in first_parts.items())


def _one_of(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{{{' | '.join(parts)}}}"
