"""Faults in what the CPU engine does with the features of genomes, by section of FEATURES.md."""

from __future__ import annotations

from suites.support.parity.planted.fault import Fault
from suites.support.parity.planted.shared import ASSOCIATION

FEATURED: tuple[Fault, ...] = (
    Fault(
        "1: the homeostat's leak moves the wrong way",
        "engine/features/rules.py",
        "step = multiply(gain, r - target)",
        "step = multiply(gain, target - r)",
        ("homeostat: a leak holds from the next burst on, and forced firings count",),
    ),
    Fault(
        "2: the homeostat goes on from the modulated leak",
        "engine/cpu/features.py",
        "x.leaks_in_force[i], p.decays[i] = leak, one - leak",
        "x.leaks[i], x.leaks_in_force[i], p.decays[i] = leak, leak, one - leak",
        ("modulators: a leak under a homeostat is scaled from g, and the homeostat goes on from the unscaled g",),
    ),
    Fault(
        "2: parameters are written only where a factor is not 1",
        "engine/cpu/features.py",
        "if subscribes[EXCITABILITY] and before[EXCITABILITY] != after[EXCITABILITY]:",
        "if subscribes[EXCITABILITY] and after[EXCITABILITY] != one:",
        ("modulators: a probability of 0 keeps a neuron from firing",),
    ),
    Fault(
        "2: a graded signal has no upper end",
        "engine/features/rules.py",
        "return share if share < one else one",
        "return share",
        ("signals: a graded one follows the potential, and is 1 beyond the full scale; forced firings carry 100",),
    ),
    Fault(
        "2: the last listed firing of a driver area decides",
        "engine/cpu/features.py",
        "ids[j] < ids[first[driver]]",
        "ids[j] > ids[first[driver]]",
        ("signals: the first listed firing of a driver area decides",),
    ),
    Fault(
        "2: transmission factors act a burst late",
        "engine/cpu/synapses.py",
        "rows.transmission[burst & 1, rows.rules[j]]",
        "rows.transmission[(burst + 1) & 1, rows.rules[j]]",
        ("transmission: a gain acts on synapses of its rule, on what fires in the burst after its driver",),
    ),
    Fault(
        "2: an open gate does not scale",
        "engine/cpu/features.py",
        "factor = factor * strongest",
        "factor = factor * (strongest > zero)",
        ("transmission: of several gates the strongest counts, and gains multiply it",),
    ),
    Fault(
        "3: a train has a firing more than the limit",
        "engine/features/rules.py",
        "        if cc < limit:\n",
        "        if cc <= limit:\n",
        ("trains: as many firings as the limit, with the potential of the first; input is lost; then a long rest",),
    ),
    Fault(
        "4: traces do not decay",
        "engine/features/rules.py",
        "e = multiply(e, decay)",
        "e = multiply(e, one)",
        ("traces decay over bursts, before the step of the burst is added",),
    ),
    Fault(
        "4: a negative reward raises the weight of a negative trace",
        "engine/features/rules.py",
        "if m == zero or e == zero or (m < zero and e < zero):",
        "if m == zero or e == zero:",
        ("rewards: a negative one leaves the weight of a negative trace alone, so the target stays silent",),
    ),
    Fault(
        "5: psp degenerates below 0",
        "engine/features/rules.py",
        "return left if left > zero else zero",
        "return left",
        ("degeneration: a psp of 0 stays 0, so inhibition never turns into excitation",),
    ),
    Fault(
        "6: 8-bit potentials have no upper end",
        "engine/cpu/dynamics.py",
        "choose(bounded > full, full, bounded)",
        "bounded",
        ("8-bit range: potentials and thresholds end at 255, and a limit of 300 is none",),
    ),
    ASSOCIATION,
    Fault(
        "8: the divisor stays as it was at load",
        "engine/features/associations.py",
        "made = sum(one.made.outgoing(source) for one in self._associations)",
        "made = 0",
        ("associations: a source that is not uniform divides by all its synapses of that moment",),
    ),
    Fault(
        "7: a pattern is injected a burst early",
        "engine/features/memories.py",
        "burst + 1 if life.index in early else burst + 2",
        "burst + 1",
        ("memories: a pattern fires its neuron two bursts later, or one; two injections into a burst add up",),
    ),
    Fault(
        "7: a twin gets no more than the potential",
        "engine/features/machine.py",
        "amount = max(potential, self.twin_threshold(memory.area))",
        "amount = potential",
        ("twins: added a burst after the neuron became long-term; they get its potential, at least their threshold",),
    ),
    Fault(
        "7: replays come a burst late",
        "engine/features/memories.py",
        "self.replays.setdefault(burst + at + 1, [])",
        "self.replays.setdefault(burst + at + 2, [])",
        ("replay: the voxels of each burst are forced one after another, each once",),
    ),
    Fault(
        "7: halves of a step go to the even bucket",
        "engine/features/patterns.py",
        "if abs(value - whole) < 0.5:",
        "if abs(value - whole) < 0.5 or (abs(value - whole) == 0.5 and whole % 2 == 0):",
        ("mp_differential: the steps between bursts identify a pattern, absent is 0, halves go away from 0",),
    ),
)
