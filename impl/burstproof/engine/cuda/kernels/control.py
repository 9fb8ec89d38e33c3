"""Layout of the two small device arrays that steer a run without the host: control and report.

*Control* lives as long as the engine. *Report* belongs to one batch of bursts: the host fills its head before the
batch, the device its counts during the batch, and the host reads both after it.
"""

from __future__ import annotations

BURST = 0
"""Number of the burst being done, or of the last one done."""
SLOT = 1
"""Slot of the FCL ring that the burst consumes: burst mod ring length."""
ACTIVE = 2
"""1 while a burst is being done; if it is 0, every kernel of a batch returns at once."""
START = 3
"""Place in the log where the burst's fired list begins."""
COUNT = 4
"""Neurons fired so far in the burst."""
BATCH = 6
"""Candidates counted ahead of the dynamics, if the batch path is emulated."""
HALTED = 7
"""Not 0 once the log had no room for another burst; with shards, the first burst not done. The host clears it."""
CLAMPED = 8
"""1 once a contribution was clamped."""
HISTORY = 9
"""Past bursts that the plasticity history covers."""
SETTLED = 10
"""The last burst after which all weights were up to date, if learning is deferred."""
CONTROL_LENGTH = 16

TALLIES = 4
"""Length of the ring of tallies: words that count firings (upper 32 bits) and candidates (lower) of fused bursts."""

PROGRESS_SIDE, NOTED = 16, 32
"""Places in the progress, a cache line apart. 0 and ``PROGRESS_SIDE`` count the places given to pieces of long rows, in
bursts of even and of odd number; ``NOTED`` and ``NOTED + PROGRESS_SIDE``, the chunks whose rows are noted (from bit 32
on) and their pieces."""
PROGRESS_LENGTH = 64

COUNTS, LISTS, FRESH = 0, 1, 2
"""Steering modes of a fused burst: in a batch that keeps the last fired list, or all; or as a batch of its own."""

LIMIT = 0
"""Bursts that the batch is to do, at most its captured length."""
KEEP = 1
"""1 keeps every fired list of the batch in the log, 0 only the last."""
INDEX = 2
"""Place of the burst in the batch, from 0; -1 before the first; after the batch: bursts done - 1."""
USED = 3
"""Log entries kept so far, if bursts have separate kernels."""
ORIGIN = 4
"""Number of the burst before the batch's first; this and the following are for the fused burst."""
STARTS = 5
"""Where a burst's list begins in the log: two places, for bursts at even and at odd places of the batch."""
CONSUMED = 7
"""The slot that the last burst consumed."""
STOPPED = 8
"""1 once the log had no room for another burst of the batch."""
LAST_SLOT = 9
"""The slot that the burst before the batch's first consumed, for bursts in one kernel."""
REPORT_HEAD = 16
"""Counts follow from here: fired, candidates of burst 0, of burst 1, ..."""


def report_length(batch_length: int) -> int:
    """Elements of the report of a batch of ``batch_length`` bursts."""
    return REPORT_HEAD + 2 * batch_length
