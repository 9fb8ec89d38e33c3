"""The result of waiting for a call of a closed loop, as one number."""

from __future__ import annotations

from burstproof.engine.cuda.kernels.mailbox import UNIT_BITS

UNSUITED, LATE, NOT_RUNNING, LONGER = -1, -2, -3, -4
"""Codes instead of an answer: the stimulus must be packed first; no answer yet; the kernel ended before it saw the
call; the answer is longer than the list."""

FIRED_BITS = 32
"""An answer holds the number of firings in its low ``FIRED_BITS`` bits and the number of candidates above them."""
MANY = (1 << FIRED_BITS) - 1
"""In place of the number of firings: the replies have no room for so many."""
SLACK = 3 << UNIT_BITS
"""Elements that a list needs beyond its last firing, because whole lines are copied."""
