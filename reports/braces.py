"""Long lists of texts that are made of the same parts, in short: braces as a shell reads them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def braced(texts: Iterable[str], separator: str) -> tuple[str, ...]:
    """The texts, as few as follow from their first parts and their last: ``a-{1 | 2}`` stands for ``a-1`` and ``a-2``.

    Parameters
    ----------
    texts : iterable of str
    separator : str
        What the last part stands behind. First parts of which each has the same last parts stand in braces, too:
        ``{a | b}-{1 | 2}``.

    Returns
    -------
    tuple of str
        Which stand for all of the texts and for no other.
    """
    ends: dict[tuple[str, str], list[str]] = {}
    for text in texts:
        start, found, last = text.rpartition(separator)
        ends.setdefault((start, found), []).append(last)
    starts: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (start, found), lasts in ends.items():
        starts.setdefault((found, tuple(sorted(lasts))), []).append(start)
    return tuple(_one_of(firsts) + found + _one_of(lasts) for (found, lasts), firsts in starts.items())


def _one_of(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{{{' | '.join(parts)}}}"
