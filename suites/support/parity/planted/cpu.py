"""Faults in the CPU engine, on one thread, on two, and in shards."""

from __future__ import annotations

from suites.support.parity.planted.fault import Fault
from suites.support.parity.planted.names import (
    ADD_UP,
    BATCH,
    CLAMPS,
    DELAY,
    DELAYS,
    DIVIDED,
    DRAW,
    DRIVEN,
    DRIVEN_CLAMP,
    EQUAL,
    EXCITATORY,
    FAN,
    FRACTIONS,
    LEAK,
    LIMIT,
    LISTED_BATCH,
    MIDDLE,
    MIX,
    NAN,
    NEGATIVE,
    NO_ROOM,
    PERIOD,
    PLASTIC,
    RESTART,
    SNOOZE,
    STILL,
    WINDOW,
)

KERNELS: tuple[Fault, ...] = (
    Fault(
        "the threshold is a unit of the last place higher",
        "engine/cpu/dynamics.py",
        "in_window = (v >= threshold) & (not above)",
        "in_window = (v > threshold) & (not above)",
        (FAN, MIX),
    ),
    Fault(
        "a potential equal to the limit does not fire",
        "engine/cpu/dynamics.py",
        "above = v > (threshold_limit",
        "above = v >= (threshold_limit",
        (LIMIT, MIX),
    ),
    Fault(
        "the leak comes before the input",
        "engine/cpu/dynamics.py",
        "u = kept(v + x, i, n)",
        "u = kept(v * p.decays[i] + x, i, n)",
        (LEAK, MIX),
    ),
    Fault(
        "the refractory period is a burst longer",
        "engine/cpu/dynamics.py",
        "choose(fired, period, countdown)",
        "choose(fired, np.uint16(period + _ONE), countdown)",
        (PERIOD, MIX),
    ),
    Fault(
        "snooze comes a fire late",
        "engine/cpu/dynamics.py",
        "snoozing = finite & (counted >= limit)",
        "snoozing = finite & (counted > limit)",
        (SNOOZE, MIX),
    ),
    Fault(
        "sums reach float32 by way of float64",
        "engine/cpu/dynamics.py",
        "np.float32(read(sums, place))",
        "np.float32(np.float64(read(sums, place)))",
        (MIDDLE,),
    ),
    Fault(
        "contributions that cancel make no candidate",
        "engine/cpu/dynamics.py",
        "arrived = sums[place] != 0",
        "arrived = (sums[place] != 0) & (read(sums, place) != 0)",
        (DRIVEN,),
    ),
    Fault("a negative sum counts", "engine/cpu/dynamics.py", "if floors:", "if False:", (NEGATIVE, MIX)),
    Fault(
        "a draw equal to the excitability passes",
        "engine/cpu/dynamics.py",
        "(draw(neuron, burst) < excitability)",
        "(draw(neuron, burst) <= excitability)",
        (EQUAL,),
    ),
    Fault(
        "non-accumulating neurons do not restart",
        "engine/cpu/dynamics.py",
        "if restarts and restart_candidates:",
        "if False:",
        (RESTART, MIX),
    ),
    Fault(
        "stimulus counts twice",
        "engine/cpu/parts.py",
        "add(sums, plan.ids[j], plan.amounts[j])",
        "add(sums, plan.ids[j], 2 * plan.amounts[j])",
        (ADD_UP, MIX),
    ),
    Fault(
        "the window of plasticity is a burst longer",
        "engine/cpu/synapses.py",
        "oldest = max(burst - window, 0)",
        "oldest = max(burst - window - 1, 0)",
        (WINDOW, PLASTIC),
    ),
    Fault(
        "contributions that are computed are rounded down",
        "engine/cpu/synapses.py",
        "scaled = np.rint(",
        "scaled = np.floor(",
        (CLAMPS,),
    ),
    Fault(
        "the negative clamp of computed contributions is positive",
        "engine/cpu/synapses.py",
        "return np.int64(-s.clamp), True",
        "return np.int64(s.clamp), True",
        (DRIVEN_CLAMP,),
    ),
    Fault(
        "NaN counts as the largest contribution",
        "engine/cpu/synapses.py",
        "return np.int64(0), False",
        "return np.int64(s.clamp), True",
        (NAN,),
    ),
    Fault(
        "a negative potential drives",
        "engine/cpu/synapses.py",
        "if v < np.float32(0):",
        "if False:",
        (DRIVEN,),
    ),
    Fault(
        "the draw has another multiplier",
        "engine/rules.py",
        "np.uint32(2654435761)",
        "np.uint32(2654435769)",
        (DRAW, MIX),
    ),
    Fault(
        "a block rests though something has arrived",
        "engine/cpu/dynamics.py",
        "arrived |= sums[i]",
        "arrived |= sums[first]",
        (DELAY,),
    ),
    Fault(
        "a block rests though its countdowns go on",
        "engine/cpu/dynamics.py",
        "countdowns |= n.refractory_countdowns[i]",
        "countdowns |= np.uint16(0)",
        (STILL,),
    ),
    Fault(
        "which neurons restart is not restored",
        "engine/cpu/memory.py",
        "neurons.was_candidate[:] = state.was_candidate[members]",
        "neurons.was_candidate[:] = False",
        (BATCH,),
    ),
)

ROWS: tuple[Fault, ...] = (
    Fault(
        "contributions arrive a burst early",
        "engine/cpu/synapses.py",
        "slot = own_slot + np.int64(static.delays[j])",
        "slot = own_slot + np.int64(static.delays[j]) - 1",
        (DELAY, DELAYS),
    ),
    Fault(
        "the last synapse of a row is lost",
        "engine/cpu/synapses.py",
        "send_static(burst, static.offsets[source], static.offsets[source + 1], ring, static, s)",
        "send_static(burst, static.offsets[source], static.offsets[source + 1] - 1, ring, static, s)",
        (FAN, MIX),
    ),
)

THREADED: tuple[Fault, ...] = (
    Fault(
        "the last synapse of a row is lost",
        "engine/cpu/deliver.py",
        "send_static(first + done, end, shift",
        "send_static(first + done, end - 1, shift",
        (FAN, MIX),
    ),
    Fault(
        "contributions arrive a burst early",
        "engine/cpu/deliver.py",
        "shift = (slot + 1) % s.slots",
        "shift = slot % s.slots",
        (DELAY, DELAYS),
    ),
    Fault(
        "contributions that were restored never arrive",
        "engine/cpu/deliver.py",
        "if queues.in_ring[slot]:",
        "if False:",
        (BATCH,),
    ),
    Fault(
        "a thread's firings lie one place too far in the list",
        "engine/cpu/share.py",
        "to += shared.tally[row, other, FIRED]",
        "to += shared.tally[row, other, FIRED] - 1",
        (MIX,),
    ),
)

LISTED: tuple[Fault, ...] = (
    Fault(
        "the last synapse of a part of a row is lost",
        "engine/cpu/recall.py",
        "j, end = np.int64(recall.offsets[at]), np.int64(recall.offsets[at + 1])",
        "j, end = np.int64(recall.offsets[at]), np.int64(recall.offsets[at + 1]) - 1",
        (EXCITATORY,),
    ),
    Fault(
        "a list is read a burst late",
        "engine/cpu/recall.py",
        "row, column = (burst - delay) % kept",
        "row, column = (burst - delay - 1) % kept",
        (LISTED_BATCH,),
    ),
    Fault(
        "what is under way goes to another burst of the state",
        "engine/cpu/recall.py",
        "slot = (burst - age + delay) % s.slots",
        "slot = (burst - age + delay + 1) % s.slots",
        (DELAYS,),
    ),
    Fault(
        "contributions that were restored never arrive",
        "engine/cpu/recall.py",
        "if recall.in_ring[region, slot]:",
        "if False:",
        (LISTED_BATCH,),
    ),
    Fault(
        "nobody is told that a contribution was clamped",
        "engine/cpu/recall.py",
        "if static_clamps and recall.clamped_sources[ids[k]]:",
        "if False:",
        (NO_ROOM,),
    ),
)

LISTED_BY_THREADS: tuple[Fault, ...] = (
    Fault(
        "the firings of the last thread are not read",
        "engine/cpu/recall.py",
        "delay - 1\n                for sender in range(recall.counts.shape[1]):",
        "delay - 1\n                for sender in range(recall.counts.shape[1] - 1):",
        (LISTED_BATCH,),
    ),
    Fault(
        "a thread leaves out its last region",
        "engine/cpu/recall.py",
        "range(recall.owned[thread], recall.owned[thread + 1])",
        "range(recall.owned[thread], recall.owned[thread + 1] - 1)",
        (EXCITATORY,),
    ),
)

SHARDED: tuple[Fault, ...] = (
    Fault(
        "the last shard's firings are not told",
        "engine/sharded/engine.py",
        "self.exchange.gather(merged(fired))",
        "self.exchange.gather(merged(fired[:-1]))",
        (FAN, MIX),
    ),
    Fault(
        "forced firings go to the first shard alone",
        "engine/sharded/engine.py",
        "owner[stimulus.forced] == shard",
        "owner[stimulus.forced] == 0 * shard",
        (MIX,),
    ),
    Fault(
        "a shard divides by its own synapses",
        "engine/sharded/shard_layout.py",
        "build_layout(own, self.options, self.fixed_point, self.facts, modelled)",
        "build_layout(own, self.options, self.fixed_point, modelled=modelled)",
        (DIVIDED, FRACTIONS),
    ),
    Fault(
        "every shard has a power neuron",
        "engine/sharded/shard_layout.py",
        "owned = whole.power_neuron >= 0 and partition.owner[whole.power_neuron] == shard.number",
        "owned = whole.power_neuron >= 0",
        (MIX,),
    ),
    Fault(
        "a shard draws for places instead of ids",
        "engine/cpu/dynamics.py",
        "neuron = n.ids[i] if mapped else base + marks.places[j]",
        "neuron = base + marks.places[j]",
        (DRAW, MIX),
    ),
    Fault(
        "the first shard is not restored",
        "engine/sharded/engine.py",
        "for shard in self.shards:\n                shard.restore(state)",
        "for shard in self.shards[1:]:\n                shard.restore(state)",
        (BATCH,),
    ),
)
