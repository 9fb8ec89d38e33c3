"""What one GPU or several hold: neurons, synapses and bytes of a network that ran and agreed with the reference."""

from __future__ import annotations

from stages.measuring import Measure
from suites.support.bench.rows import Row


def put_capacity(
    measure: Measure, row: Row, gpus: int, device_bytes: int, density: str = "", memory_gb: float | None = None
) -> None:
    """Attach neurons, synapses and bytes per synapse of ``row``, which ran in ``device_bytes`` of device memory.

    Parameters
    ----------
    measure : Measure
    row : Row
        What ran; its result was checked.
    gpus : int
        How many GPUs hold it together.
    device_bytes : int
        Of all buffers on all of them.
    density : str
        ``dense`` or ``sparse`` as in the notes; empty for a network that stands for neither: no synapses are counted.
    memory_gb : float or None
        Device memory (10**9 bytes) that the run was held to.
    """
    synapses = row.neurons * row.synapses_per_neuron
    where: dict[str, object] = {"gpus": gpus, "synapses_per_neuron": row.synapses_per_neuron}
    where |= {"density": density} if density else {}
    where |= {} if memory_gb is None else {"device_memory_gb": memory_gb}
    note = f"{device_bytes / 1e9:.2f} GB on the devices; {row.checked_bursts} bursts equal the implicit reference's"
    measure("capacity.neurons", row.neurons, "neurons", conditions=where, note=note)
    if density:
        measure("capacity.synapses", synapses, "synapses", conditions=where, note=note)
    measure("capacity.device_bytes", device_bytes, "B", conditions={**where, "neurons": row.neurons}, note=note)
    measure("capacity.bytes_per_synapse", device_bytes / synapses, "B", conditions=where, note=note)
