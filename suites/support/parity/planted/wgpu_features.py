"""Faults in what the WGPU engine does with the features of genomes, by section of FEATURES.md."""

from __future__ import annotations

from suites.support.parity.planted.fault import Fault
from suites.support.parity.planted.names import BYTES, GATES, NEGATIVE_REWARD, NO_PSP, RAW_LEAK, SCALED_LEAK, TRAINS

FEATURED: tuple[Fault, ...] = (
    Fault(
        "1: the leak is clamped before its first update",
        "engine/wgpu/features.wgsl",
        "if (homeostatic && (flags & REGULATED) != 0u) {",
        "if (homeostatic) {",
        (RAW_LEAK,),
    ),
    Fault(
        "2: a modulator scales the leak that was loaded",
        "engine/wgpu/features.wgsl",
        "        if (homeostatic) {\n            base",
        "        if (false) {\n            base",
        (SCALED_LEAK,),
    ),
    Fault(
        "2: factors of areas act a burst late",
        "engine/wgpu/features.wgsl",
        "atomicStore(&counted[factors_of(burst.number + 1u) + f], made);",
        "atomicStore(&counted[factors_of(burst.number) + f], made);",
        (SCALED_LEAK,),
    ),
    Fault(
        "2: the last listed firing of a driver area decides",
        "engine/wgpu/features.wgsl",
        "atomicLoad(&counted[burst.drivers + driver - 1u]) == log[k].x)",
        "atomicLoad(&counted[burst.drivers + driver - 1u]) != log[k].x)",
        ("signals: the first listed firing of a driver area decides",),
    ),
    Fault(
        "2: open gates add up",
        "engine/features/signals.py",
        "gains[at] *= max(_ZERO, *listed)",
        "gains[at] *= sum(listed, start=_ZERO)",
        (GATES,),
    ),
    Fault(
        "3: there is no snooze at the end of a train",
        "engine/wgpu/features.wgsl",
        "s.rc = min(p.refractory_periods + p.snooze_periods, 65535u);",
        "s.rc = p.refractory_periods;",
        (TRAINS,),
    ),
    Fault(
        "4: a negative reward raises the weight of a negative trace",
        "engine/wgpu/host_rows.py",
        "np.flatnonzero(traces > 0 if factor < 0 else traces)",
        "np.flatnonzero(traces)",
        (NEGATIVE_REWARD,),
    ),
    Fault(
        "5: psp degenerates below 0",
        "engine/wgpu/host_rows.py",
        "np.maximum(psps - losses, _ZERO)",
        "psps - losses",
        (NO_PSP,),
    ),
    Fault(
        "6: 8-bit potentials are clamped after the test",
        "engine/wgpu/burst.wgsl",
        "let v = kept(integrated(",
        "let v = (integrated(",
        (BYTES,),
    ),
)
