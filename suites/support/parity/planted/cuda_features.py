"""Faults in what the CUDA engine does with the features of genomes, by section of FEATURES.md."""

from __future__ import annotations

from suites.support.parity.planted.fault import Fault
from suites.support.parity.planted.names import (
    BYTES,
    FADING,
    FROZEN,
    GATES,
    RAW_LEAK,
    REPLAYED,
    SCALED_LEAK,
    TRAINS,
)
from suites.support.parity.planted.shared import ASSOCIATION

FEATURED: tuple[Fault, ...] = (
    Fault(
        "1: the leak is clamped before its first update",
        "engine/cuda/kernels/features.py",
        "regulated = homeostats and (adapted.flags & (homeostatic if scaled else leaks)) != none",
        "regulated = homeostats and (adapted.flags & homeostatic) != none",
        (RAW_LEAK,),
    ),
    Fault(
        "2: a modulator scales the leak that was loaded",
        "engine/cuda/kernels/features.py",
        "regulated = homeostats and (adapted.flags & (homeostatic if scaled else leaks)) != none",
        "regulated = homeostats and (adapted.flags & leaks) != none and not scaled",
        (SCALED_LEAK,),
    ),
    Fault(
        "2: a gate has no gains",
        "engine/cuda/kernels/modulators.py",
        "factor = factor * strongest",
        "factor = strongest",
        (GATES,),
    ),
    Fault(
        "3: a train carries 100",
        "engine/cuda/kernels/features.py",
        "extras.held_potentials[neuron] = potential",
        "extras.held_potentials[neuron] = np.float32(100)",
        (TRAINS,),
    ),
    Fault(
        "4: a frozen mapping learns",
        "engine/cuda/kernels/modes.py",
        "or modes.frozen[rule] != np.uint8(0) or idle",
        "or idle",
        (FROZEN,),
    ),
    Fault(
        "5: a psp below the loss stays",
        "engine/cuda/kernels/propagate.py",
        "if loss > silent:",
        "if loss > silent and rows.psps[entry] > loss:",
        (FADING,),
    ),
    Fault(
        "6: 8-bit potentials are clamped after the test",
        "engine/rules.py",
        "            v = within(v)",
        "            pass",
        (BYTES,),
    ),
    Fault(
        "7: a replay carries 100",
        "engine/cuda/kernels/consume.py",
        "potential = extras.given_potentials[neuron]",
        "potential = np.float32(100)",
        (REPLAYED,),
    ),
    ASSOCIATION,
)
