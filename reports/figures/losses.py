"""The loss of training runs over their steps."""

from __future__ import annotations

import math

from reports.drawing import LINE_CHART, Figure, LineChart, Lines, line_charts
from reports.values.record import RunRecord

_EMPTY = LineChart("loss", "Loss of a small GPT per character, by step", "steps")


def loss_lines(record: RunRecord) -> Lines:
    """The loss of each training run by step, from 1 on; of a thinned record the losses that were kept."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for measurement in record.measured("training.loss"):
        known, losses = measurement.conditions, measurement.samples
        if len(losses) < 2 or not all(math.isfinite(loss) and loss > 0.0 for loss in losses):
            continue
        stride = ((measurement.number("steps") or float(len(losses))) - 1.0) / (len(losses) - 1)
        name = f"{known.get('backend', '')} {known.get('dtype', '')}".strip() or "training"
        lines[name] = [(1.0 + round(index * stride), loss) for index, loss in enumerate(losses)]
    return lines


FIGURE = Figure(30, lambda record: line_charts(loss_lines(record), "nats", _EMPTY), LINE_CHART, is_chart=True)
