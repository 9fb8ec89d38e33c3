"""Plain text for people: aligned tables, readable sizes, names without control characters."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: str, width: int = 60) -> str:
    """``text`` on one line, without control characters, cut at ``width``."""
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if len(clean) <= width else clean[: width - 3] + "..."


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """Lines of aligned columns; the first ``left`` columns are aligned to the left, figures to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]

    def joined(line: Sequence[str]) -> str:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        return "  ".join(cells).rstrip()

    ruler = "  ".join("-" * width for width in widths)
    return "\n".join([joined(lines[0]), ruler, *(joined(line) for line in lines[1:])])


def gibibytes(size: int) -> str:
    """A size in GiB with one decimal."""
    return f"{size / 2**30:.1f} GiB"
