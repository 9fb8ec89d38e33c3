"""What no program can exceed on a card: the vendor's peaks, as the condition ``floor`` of a rate or a time."""

from __future__ import annotations

from hardware.roofline import profile_for

TENSOR_PEAKS = {
    "float32": "fp32_tflops",
    "tf32": "tf32_tensor_tflops",
    "bfloat16": "fp16_tensor_tflops",
    "float16": "fp16_tensor_tflops",
    "int8": "int8_tensor_tops",
}
"""Peak of a matrix product by the name of its type; of double precision no profile states that of the tensor cores."""


def ceiling(device: str, peak: str | None, unit: float = 1.0) -> dict[str, float]:
    """``floor`` of a rate on ``device``: the peak of that name times ``unit``; nothing where it is not known.

    Parameters
    ----------
    device : str
        Product name.
    peak : str or None
        Key of a profile's peaks; ``None`` where none bounds the rate.
    unit : float
        The rate's units in one unit of the peak: 1000 for GFLOP/s.
    """
    known = profile_for(device)
    value = known.peak(peak) if known is not None and peak is not None else None
    return {} if value is None else {"floor": unit * value}


def least_ms(device: str, floating_point_operations: float, peak: str) -> dict[str, float]:
    """``floor`` of a time in ms: so many operations at the peak (TFLOP/s); nothing where it is not known."""
    best = ceiling(device, peak)
    return {"floor": floating_point_operations / best["floor"] / 1e9} if best else {}
