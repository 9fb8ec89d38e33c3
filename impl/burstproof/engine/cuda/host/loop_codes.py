"""What compiled code makes of the replies to a call of a closed loop: one number."""

from __future__ import annotations

from burstproof.engine.cuda.kernels.mailbox import UNIT_BITS

UNSUITED, LATE, NOT_RUNNING, LONGER = -1, -2, -3, -4
"""Instead of an answer: the stimulus is not one for the shortest way, the answer is not there yet, the kernel ended
before it saw the call, or the answer is longer than the list."""

FIRED_BITS = 32
"""An answer: the number of firings in so many bits, above them that of the candidates."""
MANY = (1 << FIRED_BITS) - 1
"""Instead of a number of firings: more of them than there is room for in the replies."""
SLACK = 3 << UNIT_BITS
"""Elements that a list needs behind its last firing: it is written line by line."""
