"""What a user chooses about shards on CUDA devices."""

from __future__ import annotations

from dataclasses import dataclass, replace

from burstproof.engine.cuda.exchange.mail import Path
from burstproof.engine.cuda.exchange.words import MOST_SHARDS
from burstproof.errors import InputError


@dataclass(frozen=True)
class ShardingChoice:
    """Devices of the shards, and the path between them.

    Attributes
    ----------
    devices : tuple of int
        Ordinal of each shard's device; several shards may share one.
    strategy : str
        How the neurons are split if no partition is given.
    peers, nccl : bool
        ``cuda.multi_gpu.enable_p2p`` and ``use_nccl``: peer access if the devices have it, else NCCL if it is
        installed, else host memory.
    path : Path or None
        A path that must be taken, whatever the two allow.
    merged : bool
        Whether a burst may be one kernel (``kernels.burst``). It is, if every shard has a device of its own, all have
        peer access, all contributions are constants and the FCL has no tiles.
    timeout_s : float
        How long a shard waits for another before the run ends with an error.
    """

    devices: tuple[int, ...] = (0,)
    strategy: str = "contiguous"
    peers: bool = True
    nccl: bool = True
    path: Path | None = None
    merged: bool = True
    timeout_s: float = 20.0

    def __post_init__(self) -> None:
        if not 1 <= len(self.devices) <= MOST_SHARDS:
            raise InputError(
                "a number of shards that the CUDA kernels do not take",
                where="devices",
                got=len(self.devices),
                allowed=f"1...{MOST_SHARDS}",
            )
        if not self.timeout_s > 0:
            raise InputError("not a time to wait", where="timeout_s", got=self.timeout_s, allowed="above 0")

    @property
    def patience_ns(self) -> int:
        """The time-out in nanoseconds."""
        return int(self.timeout_s * 1e9)

    def for_shards(self, shards: int) -> ShardingChoice:
        """The same with a device for each of ``shards`` shards: the distinct ones in turn."""
        if shards == len(self.devices):
            return self
        distinct = tuple(dict.fromkeys(self.devices))
        return replace(self, devices=tuple(distinct[shard % len(distinct)] for shard in range(shards)))
