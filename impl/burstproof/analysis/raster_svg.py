"""A raster as one SVG without anything outside it, readable in light, dark and by a screen reader."""

from __future__ import annotations

from html import escape

import numpy as np
import numpy.typing as npt

from burstproof.analysis.raster import LABEL_HEIGHT, Band, Raster
from burstproof.analysis.text import printable

_LEFT, _TOP, _WIDTH, _GAP, _BARS = 190.0, 44.0, 900.0, 3.0, 64.0
_LEVELS = ((0.0, 0.4), (0.05, 0.6), (0.25, 0.8), (0.6, 1.0))
"""A cell filled by more than the first figure is drawn with the second as its opacity."""

_STYLE = (
    "text{font:11px system-ui,sans-serif;fill:#222}.s{fill:#666}.h{font-size:14px;font-weight:600}"
    ".c{fill:#14508c}.b{fill:#f2f4f7}.r{fill:#fff}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e6e6}.s{fill:#a0a0a0}.c{fill:#7cc0ff}.b{fill:#20242b}"
    ".r{fill:#14171c}}"
)


def raster_svg(raster: Raster, title: str) -> str:
    """The picture: one band per cortical area, time to the right, firings per burst below."""
    tops = _band_tops(raster.bands)
    bottom = tops[-1] + raster.bands[-1].height if raster.bands else _TOP
    height = bottom + _BARS + 64
    width = _LEFT + _WIDTH + 30
    description, heading = _description(raster), escape(printable(title, 200))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-labelledby="t d"><title id="t">{heading}</title>'
        f'<desc id="d">{escape(description)}</desc><style>{_STYLE}</style>',
        f'<rect class="r" width="100%" height="100%"/><text class="h" x="16" y="24">{heading}</text>',
    ]
    for band, top in zip(raster.bands, tops, strict=True):
        parts.append(_band(band, top))
    parts += _cells(raster, tops)
    parts.append(_bars(raster, bottom + 16))
    parts.append(_ticks(raster, bottom + 16 + _BARS))
    return "\n".join([*parts, "</svg>", ""])


def _description(raster: Raster) -> str:
    neurons = sum(band.neurons for band in raster.bands)
    return (
        f"{int(raster.fired.sum())} firings of {neurons} neurons in {len(raster.bands)} cortical areas, "
        f"bursts {raster.first_burst} to {raster.last_burst}. The stronger its colour, the more firings a cell holds."
    )


def _band_tops(bands: tuple[Band, ...]) -> list[float]:
    """Upper edge of each band."""
    heights = [band.height + _GAP for band in bands]
    return [_TOP + sum(heights[:number]) for number in range(len(bands))]


def _band(band: Band, top: float) -> str:
    """Background and label of a band; one too thin for text carries its label as a tooltip only."""
    label = f"{band.label} ({band.neurons})"
    drawn = (
        f'<rect class="b" x="{_LEFT:g}" y="{top:g}" width="{_WIDTH:g}" height="{band.height:g}">'
        f"<title>{escape(label)}</title></rect>"
    )
    if band.labelled:
        middle = top + band.height / 2 + 4
        drawn += f'<text x="{_LEFT - 8:g}" y="{middle:g}" text-anchor="end">{escape(label)}</text>'
        if band.rows < band.neurons and band.height >= 2.5 * LABEL_HEIGHT:
            row = f"{band.neurons_per_row} in a row"
            drawn += f'<text class="s" x="{_LEFT - 8:g}" y="{middle + 14:g}" text-anchor="end">{row}</text>'
    return drawn


def _cells(raster: Raster, tops: list[float]) -> list[str]:
    """One path per level of filling."""
    level_of = np.zeros(raster.filled.shape, np.int8)
    for number, (above, _) in enumerate(_LEVELS, 1):
        level_of[raster.filled > above] = number
    cell = _WIDTH / max(1, raster.filled.shape[1])
    drawn = []
    for number, (_, opacity) in enumerate(_LEVELS, 1):
        path = []
        for band, top in zip(raster.bands, tops, strict=True):
            for row in range(band.rows):
                marked = level_of[band.first_row + row] == number
                path += _runs(marked, top + row * band.row_height, cell, band.row_height)
        if path:
            drawn.append(f'<path class="c" fill-opacity="{opacity:g}" d="{"".join(path)}"/>')
    return drawn


def _runs(marked: npt.NDArray[np.bool_], y: float, cell: float, height: float) -> list[str]:
    """Rectangles over the unbroken runs of marked cells in one row."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return [
        f"M{_LEFT + start * cell:.6g} {y:g}h{(end - start) * cell:.5g}v{height:g}H{_LEFT + start * cell:.6g}z"
        for start, end in edges.reshape(-1, 2).tolist()
    ]


def _bars(raster: Raster, top: float) -> str:
    """Mean firings per burst of each column, as one filled outline, with its largest value."""
    mean = raster.fired / np.maximum(raster.bursts_per_column, 1)
    largest = float(mean.max(initial=0.0))
    cell = _WIDTH / max(1, len(mean))
    base = top + _BARS
    outline = [f"M{_LEFT:g} {base:g}"]
    for column, value in enumerate((mean / largest if largest else mean).tolist()):
        outline.append(f"V{base - value * _BARS:.5g}H{_LEFT + (column + 1) * cell:.6g}")
    return (
        f'<path class="c" d="{"".join(outline)}V{base:g}z"/>'
        f'<text x="{_LEFT - 8:g}" y="{top + 10:g}" text-anchor="end">firings per burst</text>'
        f'<text class="s" x="{_LEFT - 8:g}" y="{top + 24:g}" text-anchor="end">up to {largest:g}</text>'
    )


def _ticks(raster: Raster, base: float) -> str:
    """Burst numbers below the picture, and what the axis is."""
    bursts = raster.last_burst - raster.first_burst + 1
    step = _round_step(bursts / 8)
    numbers = sorted({raster.first_burst, *range(-(-raster.first_burst // step) * step, raster.last_burst + 1, step)})
    if len(numbers) > 1 and numbers[1] - numbers[0] < step / 2:
        del numbers[1]  # too close to the first to be read
    drawn = []
    for number in numbers:
        x = _LEFT + (number - raster.first_burst + 0.5) / bursts * _WIDTH
        drawn.append(f'<text class="s" x="{x:.5g}" y="{base + 16:g}" text-anchor="middle">{number}</text>')
    middle, most = _LEFT + _WIDTH / 2, int(raster.bursts_per_column.max(initial=1))
    axis = "burst" if most == 1 else f"burst ({most} in a column)"
    return "".join(drawn) + f'<text x="{middle:g}" y="{base + 34:g}" text-anchor="middle">{axis}</text>'


def _round_step(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, 50, ... that is at least ``least``."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if step * factor >= least:
                return step * factor
        step *= 10
