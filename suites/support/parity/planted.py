"""Faults planted in the real engines: a line of their source is edited in a copy of the package, which then runs.

What runs is the engine itself, kernels and shaders included, with one rule wrong; ``planted_check`` holds it against
the cases and mixes that every backend has to pass.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

CHECKOUT = Path(__file__).parents[3]
PACKAGE = CHECKOUT / "impl" / "burstproof"
TIME_LIMIT_S = 600.0
Result = TypeVar("Result")

PROBE = "float32 of this adapter is not exact"
"""In place of a check: the WGPU engine refuses, since its probe of the adapter runs the functions of the shader."""


@dataclass(frozen=True)
class Fault:
    """One edit of the source.

    Attributes
    ----------
    name : str
        What the engine does wrong.
    file : str
        Path in the package.
    old, new : str
        Text that stands there once, and what it becomes.
    caught_by : tuple of str
        Names of ``planted_check.checks``: the cases and mixes that fail on it.
    """

    name: str
    file: str
    old: str
    new: str
    caught_by: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What became of a fault: the ``problems`` that each check found, or why there was no answer."""

    fault: Fault
    problems: dict[str, list[str]]
    error: str = ""

    @property
    def caught(self) -> bool:
        """Whether every check that has to find the fault found it."""
        if self.fault.caught_by == (PROBE,):
            return PROBE in self.error
        return not self.error and all(self.problems[name] for name in self.fault.caught_by)

    def __str__(self) -> str:
        passed = ", ".join(name for name in self.fault.caught_by if not self.problems.get(name))
        return f"{self.fault.name} ({self.fault.file}): {self.error or f'not found by {passed}'}"


class Workshop:
    """A copy of the package in which faults are planted one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(PACKAGE, folder / "burstproof", ignore=shutil.ignore_patterns("__pycache__"))
        others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        kept = [path for path in others if Path(path).resolve() != PACKAGE.parent.resolve()]
        paths = os.pathsep.join([str(folder), str(CHECKOUT), *kept])
        self._environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels"), "PYTHONPATH": paths}
        self._runs = 0

    def healthy(self, backend: str, checks: Iterable[str]) -> dict[str, list[str]]:
        """Problems that the checks find without a fault."""
        found, error = self._run(backend, checks)
        return {"the process": [error]} if error else {name: problems for name, problems in found.items() if problems}

    def try_out(self, backend: str, fault: Fault) -> Outcome:
        """Plant ``fault``, run what has to catch it, take it back.

        Raises
        ------
        ValueError
            The text to be edited does not stand in the file exactly once.
        """
        path = self._folder / "burstproof" / fault.file
        text = path.read_text("utf-8")
        if text.count(fault.old) != 1:
            raise ValueError(f"{fault.name}: {fault.file} holds the text {text.count(fault.old)} times: {fault.old!r}")
        try:
            self._write(path, text.replace(fault.old, fault.new))
            probed = fault.caught_by == (PROBE,)
            return Outcome(fault, *self._run(backend, [_ANY] if probed else fault.caught_by))
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        """Python may take a compiled file for that of a source of the same second and size."""
        path.write_text(text, "utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def _run(self, backend: str, checks: Iterable[str]) -> tuple[dict[str, list[str]], str]:
        self._runs += 1
        own = {"XDG_CACHE_HOME": str(self._folder / f"images {self._runs}")}  # no image of another run is taken
        if backend == SIMULATOR:
            own["NUMBA_ENABLE_CUDASIM"] = "1"
        try:
            done = subprocess.run(
                [sys.executable, "-m", "suites.support.parity.planted_check", backend, *checks],
                cwd=CHECKOUT,
                env=self._environment | own,
                capture_output=True,
                text=True,
                check=False,
                timeout=TIME_LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            return {}, f"no answer within {TIME_LIMIT_S:.0f} s"
        if done.returncode:
            return {}, "\n".join(done.stderr.splitlines()[-3:])
        answer = json.loads(done.stdout.splitlines()[-1])
        if not Path(answer["package"]).is_relative_to(self._folder):
            return {}, f"the package that ran is {answer['package']}"
        return answer["problems"], ""


def plant(backend: str, faults: Iterable[Fault], jobs: int = 1) -> tuple[dict[str, list[str]], list[Outcome]]:
    """What is wrong without a fault (it should be empty), and what became of each fault; ``jobs`` run at once."""
    chosen = list(faults)
    free: SimpleQueue[Workshop] = SimpleQueue()

    def borrowed(work: Callable[[Workshop], Result]) -> Result:
        workshop = free.get()
        try:
            return work(workshop)
        finally:
            free.put(workshop)

    with tempfile.TemporaryDirectory(prefix="burstproof-planted-") as folder, ThreadPoolExecutor(jobs) as pool:
        for job in range(jobs):
            free.put(Workshop(Path(folder) / str(job)))
        names = sorted({name for fault in chosen for name in fault.caught_by} - {PROBE})
        healthy = pool.submit(borrowed, lambda workshop: workshop.healthy(backend, names))
        outcomes = pool.map(lambda fault: borrowed(lambda workshop: workshop.try_out(backend, fault)), chosen)
        return healthy.result(), list(outcomes)


# The catalogue ----------------------------------------------------------------------------------------------------

CPU, THREADS, SHARDS, WGPU, SIMULATOR, CUDA = "cpu", "cpu, 2 threads", "cpu, 2 shards", "wgpu", "cuda simulator", "cuda"
SHARED = "cpu, shared helpers"
FEATURES = "cpu, features"

_FAN = "3 parts of 2.0 divided by 3 add up"
_LIMIT = "above the threshold limit it does not fire, at the limit it does"
_LEAK = "leak after the input, none without input, never towards the resting potential"
_PERIOD = "a period of 2 skips two bursts; the input of blocked bursts is lost"
_SNOOZE = "limit 2 with snooze 3 and period 1: two fires, then a long rest that resets the count"
_DELAY = "a contribution arrives after its delay of 1 to 255 bursts"
_ADD_UP = "stimulus: amounts in any order, several to a neuron, add up"
_HALVES = "stimulus: fractions are rounded half to even"
_TWO_CLAMPS = "stimulus: beyond all scales an amount is clamped at floor(2^62 / 2)"
_NO_ROOM = "with no room at any scale a contribution is clamped at -1 x floor(2^62 / 3)"
_DRIVEN_CLAMP = "an mp-driven potential of inf times -1 is clamped"
_NAN = "a weight of 0 times an infinite mp-driven potential counts as 0, and its target is a candidate"
_MIDDLE = "a sum just beyond the middle, where float64 would end in it, times 1"
_NEGATIVE = "a net negative sum counts as 0 where the neuron accumulates and is added where it does not"
_DRAW, _EQUAL = (
    "excitability 0.5: neurons fire exactly when their draw is below it",
    "excitability equal to the draw fails",
)
_RESTART = "a non-accumulating neuron restarts from 0 after it was a candidate, and only then"
_WINDOW = "window 2: firings of two bursts pair up, and nothing changes before two bursts are known"
_STEP = "plastic steps: a constant of 2.5 is 2"
_DIVIDED = "a source in a non-uniform area divides among all its valid synapses"
_DRIVEN = "a negative mp-driven potential counts as 0, and its targets are still candidates"
_POWER = "the power neuron gets its amount in every burst"
_FORCED = "a forced firing has potential 100 and leaves potential, countdown and count untouched"
_CARRY = "a sum carries into its upper 32 bits"
_ANY = _FAN
_MIX, _FRACTIONS, _CLAMPS = "mix: integers", "mix: fractions", "mix: clamped contributions"
_DELAYS, _PLASTIC = "mix: fractions, delays to 7", "mix: plastic, window 1"
_TRAIN = "train: fractions"

HELPERS = (
    Fault(
        "of several amounts to a neuron the last one counts",
        "engine/stimulus.py",
        "np.add.at(sums, places, integers)",
        "sums[places] = integers",
        (_ADD_UP, _FRACTIONS),
    ),
    Fault(
        "what becomes an integer is rounded down",
        "network/fixed_point.py",
        "scaled = np.rint(",
        "scaled = np.floor(",
        (_HALVES, _CLAMPS),
    ),
    Fault(
        "halves are rounded away from 0",
        "network/fixed_point.py",
        "scaled = np.rint(contributions.astype(np.float64) * self.scale)",
        "scaled = contributions * np.float64(self.scale); scaled = np.trunc(scaled + np.copysign(0.5, scaled))",
        (_HALVES,),
    ),
    Fault(
        "the clamp of negative contributions is positive",
        "network/fixed_point.py",
        "np.where(scaled[outside] > 0, self.clamp, -self.clamp)",
        "self.clamp",
        (_NO_ROOM, _TWO_CLAMPS),
    ),
    Fault(
        "the scale has a binary digit too few",
        "engine/fixed_point.py",
        "digits = max(survey.digits, _outside_digits(power_amount, options))",
        "digits = max(survey.digits - 1, _outside_digits(power_amount, options))",
        (_FAN,),
    ),
    Fault(
        "the scale of learning networks leaves 2^9 times more room",
        "engine/fixed_point.py",
        "_LEARNING_SUM, _LEARNING_INPUT = 2.0**49, 64.0",
        "_LEARNING_SUM, _LEARNING_INPUT = 2.0**40, 64.0",
        ("mix: mp-driven",),
    ),
    Fault(
        "invalid synapses count in the division",
        "engine/fixed_point.py",
        "sources = synapses.source_neurons if valid.all() else synapses.source_neurons[valid]",
        "sources = synapses.source_neurons",
        (_DIVIDED, _FRACTIONS),
    ),
    Fault(
        "plastic parameters are not truncated",
        "network/plasticity.py",
        "constant, *multipliers = np.trunc(parameters)",
        "constant, *multipliers = parameters",
        (_STEP, _PLASTIC),
    ),
)
"""Faults in what the engines share, which were in the reference too as long as it shared that."""

_CPU_KERNELS = (
    Fault(
        "the threshold is a unit of the last place higher",
        "engine/cpu/dynamics.py",
        "inside = (v >= threshold) & (not over)",
        "inside = (v > threshold) & (not over)",
        (_FAN, _MIX),
    ),
    Fault(
        "a potential equal to the limit does not fire",
        "engine/cpu/dynamics.py",
        "over = v > (threshold_limit",
        "over = v >= (threshold_limit",
        (_LIMIT, _MIX),
    ),
    Fault(
        "the leak comes before the input",
        "engine/cpu/dynamics.py",
        "u = kept(v + x, i, n)",
        "u = kept(v * p.decays[i] + x, i, n)",
        (_LEAK, _MIX),
    ),
    Fault(
        "the refractory period is a burst longer",
        "engine/cpu/dynamics.py",
        "choose(fired, pause, left)",
        "choose(fired, np.uint16(pause + _ONE), left)",
        (_PERIOD, _MIX),
    ),
    Fault(
        "snooze comes a fire late",
        "engine/cpu/dynamics.py",
        "snoozing = finite & (counted >= limit)",
        "snoozing = finite & (counted > limit)",
        (_SNOOZE, _MIX),
    ),
    Fault(
        "sums reach float32 by way of float64",
        "engine/cpu/dynamics.py",
        "x = np.float32(sums[i]) * unit",
        "x = np.float32(np.float64(sums[i]) * np.float64(unit))",
        (_MIDDLE,),
    ),
    Fault("a negative sum counts", "engine/cpu/dynamics.py", "if floors:", "if False:", (_NEGATIVE, _MIX)),
    Fault(
        "a draw equal to the excitability passes",
        "engine/cpu/dynamics.py",
        "(draw(neuron, burst) < excitability)",
        "(draw(neuron, burst) <= excitability)",
        (_EQUAL,),
    ),
    Fault(
        "non-accumulating neurons do not restart",
        "engine/cpu/dynamics.py",
        "if restarts and restart_candidates:",
        "if False:",
        (_RESTART, _MIX),
    ),
    Fault(
        "stimulus counts twice",
        "engine/cpu/parts.py",
        "+= plan.amounts[j]",
        "+= 2 * plan.amounts[j]",
        (_ADD_UP, _MIX),
    ),
    Fault(
        "the window of plasticity is a burst longer",
        "engine/cpu/synapses.py",
        "oldest = max(burst - window, 0)",
        "oldest = max(burst - window - 1, 0)",
        (_WINDOW, _PLASTIC),
    ),
    Fault(
        "contributions that are computed are rounded down",
        "engine/cpu/synapses.py",
        "scaled = np.rint(",
        "scaled = np.floor(",
        (_CLAMPS,),
    ),
    Fault(
        "the negative clamp of computed contributions is positive",
        "engine/cpu/synapses.py",
        "return np.int64(-s.clamp), True",
        "return np.int64(s.clamp), True",
        (_DRIVEN_CLAMP,),
    ),
    Fault(
        "NaN counts as the largest contribution",
        "engine/cpu/synapses.py",
        "return np.int64(0), False",
        "return np.int64(s.clamp), True",
        (_NAN,),
    ),
    Fault(
        "a negative potential drives",
        "engine/cpu/synapses.py",
        "if v < np.float32(0):",
        "if False:",
        (_DRIVEN,),
    ),
    Fault(
        "the draw has another multiplier",
        "engine/rules.py",
        "np.uint32(2654435761)",
        "np.uint32(2654435769)",
        (_DRAW, _MIX),
    ),
    Fault(
        "which neurons restart is not restored",
        "engine/cpu/memory.py",
        "neurons.was_candidate[:] = state.was_candidate[members]",
        "neurons.was_candidate[:] = False",
        (_TRAIN,),
    ),
)

_CPU_ROWS = (
    Fault(
        "contributions arrive a burst early",
        "engine/cpu/synapses.py",
        "slot = own_slot + np.int64(static.delays[j])",
        "slot = own_slot + np.int64(static.delays[j]) - 1",
        (_DELAY, _DELAYS),
    ),
    Fault(
        "the last synapse of a row is lost",
        "engine/cpu/synapses.py",
        "send_static(burst, static.offsets[source], static.offsets[source + 1], ring, static, s)",
        "send_static(burst, static.offsets[source], static.offsets[source + 1] - 1, ring, static, s)",
        (_FAN, _MIX),
    ),
)

_THREADS = (
    Fault(
        "the last synapse of a row is lost",
        "engine/cpu/deliver.py",
        "send_static(first + done, end, shift",
        "send_static(first + done, end - 1, shift",
        (_FAN, _MIX),
    ),
    Fault(
        "contributions arrive a burst early",
        "engine/cpu/deliver.py",
        "shift = (slot + 1) % s.slots",
        "shift = slot % s.slots",
        (_DELAY, _DELAYS),
    ),
    Fault(
        "contributions that were restored never arrive",
        "engine/cpu/deliver.py",
        "if queues.ahead[slot]:",
        "if False:",
        (_TRAIN,),
    ),
    Fault(
        "a thread's firings lie one place too far in the list",
        "engine/cpu/share.py",
        "to += shared.tally[slot, other, FIRED]",
        "to += shared.tally[slot, other, FIRED] - 1",
        (_MIX,),
    ),
)

_SHARDS = (
    Fault(
        "the last shard's firings are not told",
        "engine/sharded/engine.py",
        "self.exchange.gather(merged(fired))",
        "self.exchange.gather(merged(fired[:-1]))",
        (_FAN, _MIX),
    ),
    Fault(
        "forced firings go to the first shard alone",
        "engine/sharded/engine.py",
        "owner[stimulus.forced] == shard",
        "owner[stimulus.forced] == 0 * shard",
        (_MIX,),
    ),
    Fault(
        "a shard divides by its own synapses",
        "engine/sharded/shard_layout.py",
        "build_layout(own, self.options, self.fixed_point, self.facts, modelled)",
        "build_layout(own, self.options, self.fixed_point, modelled=modelled)",
        (_DIVIDED, _FRACTIONS),
    ),
    Fault(
        "every shard has a power neuron",
        "engine/sharded/shard_layout.py",
        "owned = whole.power_neuron >= 0 and partition.owner[whole.power_neuron] == shard.number",
        "owned = whole.power_neuron >= 0",
        (_MIX,),
    ),
    Fault(
        "a shard draws for places instead of ids",
        "engine/cpu/dynamics.py",
        "neuron = n.ids[i] if mapped else base + marks.places[j]",
        "neuron = base + marks.places[j]",
        (_DRAW, _MIX),
    ),
    Fault(
        "the first shard is not restored",
        "engine/sharded/engine.py",
        "for shard in self.shards:\n                shard.restore(state)",
        "for shard in self.shards[1:]:\n                shard.restore(state)",
        (_TRAIN,),
    ),
)

_WGPU = (
    Fault(
        "the threshold is a unit of the last place higher",
        "engine/wgpu/burst.wgsl",
        "var inside = reaches(v, p.thresholds);",
        "var inside = reaches(v, p.thresholds) && v != p.thresholds;",
        (_FAN, _MIX),
    ),
    Fault(
        "a potential equal to the limit does not fire",
        "engine/wgpu/burst.wgsl",
        "if (exceeds(v, p.threshold_limits)",
        "if ((v == p.threshold_limits || exceeds(v, p.threshold_limits))",
        (_LIMIT, _MIX),
    ),
    Fault(
        "the leak comes before the input",
        "engine/wgpu/burst.wgsl",
        "let v = integrated(old, sum,",
        "let v = integrated(leaked(old, p.decays), sum,",
        (_LEAK, _MIX),
    ),
    Fault(
        "the refractory period is a burst longer",
        "engine/wgpu/burst.wgsl",
        "var rc = p.refractory_periods;",
        "var rc = p.refractory_periods + 1u;",
        (_PERIOD, _MIX),
    ),
    Fault(
        "snooze comes a fire late",
        "engine/wgpu/burst.wgsl",
        "finite && cc >= limit && !batch",
        "finite && cc > limit && !batch",
        (_SNOOZE, _MIX),
    ),
    Fault(
        "a sum loses the bit that stands for what lies below",
        "engine/wgpu/rules.wgsl",
        "float_of_unsigned(kept | select(0u, 1u, lost != 0u))",
        "float_of_unsigned(kept)",
        (PROBE,),
    ),
    Fault(
        "a negative sum counts",
        "engine/wgpu/burst.wgsl",
        "p.mp_charge_accumulation != 0u && !NEGATIVE_SUM_LOWERS)",
        "false)",
        (_NEGATIVE, _MIX),
    ),
    Fault(
        "a draw equal to the excitability passes",
        "engine/wgpu/rules.wgsl",
        "above(excitability, drawn(neuron, burst))",
        "at_least(excitability, drawn(neuron, burst))",
        (_EQUAL,),
    ),
    Fault(
        "non-accumulating neurons do not restart",
        "engine/wgpu/burst.wgsl",
        "return (status & WAS_CANDIDATE) != 0u && rc == 0u;",
        "return false;",
        (_RESTART, _MIX),
    ),
    Fault(
        "stimulus counts twice",
        "engine/wgpu/burst.wgsl",
        "stimuli[entry], stimuli[entry + 1u], stimuli[entry + 2u]);",
        "stimuli[entry], 2u * stimuli[entry + 1u], stimuli[entry + 2u]);",
        (_ADD_UP, _MIX),
    ),
    Fault(
        "contributions arrive a burst early",
        "engine/wgpu/burst.wgsl",
        "slot = burst.slot + synapses[entry + WORDS_PER_SYNAPSE - 1u];",
        "slot = burst.slot + synapses[entry + WORDS_PER_SYNAPSE - 1u] - 1u;",
        (_DELAY, _DELAYS),
    ),
    Fault(
        "the last synapse of a row is lost",
        "engine/wgpu/burst.wgsl",
        "let row_end = offsets[source + 1u];",
        "let row_end = max(offsets[source + 1u], 1u) - 1u;",
        (_FAN, _MIX),
    ),
    Fault(
        "the carry into the upper word is lost",
        "engine/wgpu/burst.wgsl",
        "let carried = high + select(0u, 1u, old + low < old);",
        "let carried = high;",
        (_CARRY,),
    ),
    Fault(
        "a subnormal product is 0",
        "engine/wgpu/small.wgsl",
        "return sign | small_product(a, b);",
        "return sign;",
        (PROBE,),
    ),
    Fault(
        "the window of plasticity is a burst longer",
        "engine/wgpu/host_rows.py",
        "(self.last_fired > burst - window)",
        "(self.last_fired >= burst - window)",
        (_WINDOW, _PLASTIC),
    ),
    Fault(
        "which neurons restart is not restored",
        "engine/wgpu/memory.py",
        "status = np.where(state.was_candidate, np.uint32(WAS_CANDIDATE), np.uint32(0))",
        "status = np.zeros(len(state.was_candidate), np.uint32)",
        (_TRAIN,),
    ),
)

_CUDA = (
    Fault(
        "the threshold is a unit of the last place higher",
        "engine/rules.py",
        "v >= own.thresholds",
        "v > own.thresholds",
        (_FAN, _MIX),
    ),
    Fault(
        "a potential equal to the limit does not fire",
        "engine/rules.py",
        "if v > ceiling and",
        "if v >= ceiling and",
        (_LIMIT, _MIX),
    ),
    Fault("the leak comes before the input", "engine/rules.py", "v = v + x", "v = v * own.decays + x", (_LEAK, _MIX)),
    Fault(
        "the refractory period is a burst longer",
        "engine/rules.py",
        "rc = np.int32(own.refractory_periods)",
        "rc = np.int32(own.refractory_periods + 1)",
        (_PERIOD, _MIX),
    ),
    Fault(
        "snooze comes a fire late",
        "engine/rules.py",
        "finite and cc >= limit and not",
        "finite and cc > limit and not",
        (_SNOOZE,),
    ),
    Fault(
        "sums reach float32 by way of float64",
        "engine/cuda/kernels/neuron.py",
        "x = np.float32(np.float32(found.total) * network.unit)",
        "x = np.float32(np.float64(found.total) * np.float64(network.unit))",
        (_MIDDLE,),
    ),
    Fault(
        "a negative sum counts",
        "engine/rules.py",
        "if floors and x < zero and",
        "if False and x < zero and",
        (_NEGATIVE,),
    ),
    Fault(
        "a draw equal to the excitability passes",
        "engine/rules.py",
        "draw(neuron, burst) < own.excitabilities",
        "draw(neuron, burst) <= own.excitabilities",
        (_EQUAL,),
    ),
    Fault(
        "non-accumulating neurons do not restart",
        "engine/cuda/kernels/neuron.py",
        "return (mark & marked_candidate) != 0 and rc == 0",
        "return False",
        (_RESTART,),
    ),
    Fault(
        "stimulus counts twice",
        "engine/cuda/kernels/stimulus.py",
        "before, stimulus.stimulus_amounts[entry], base",
        "before, 2 * stimulus.stimulus_amounts[entry], base",
        (_ADD_UP, _MIX),
    ),
    Fault(
        "contributions arrive a burst early",
        "engine/cuda/kernels/rows.py",
        "arrival = np.uint32(slot + np.uint32(read_once(rows.delays, entry)))",
        "arrival = np.uint32(slot + np.uint32(read_once(rows.delays, entry)) - np.uint32(1))",
        (_DELAYS,),
    ),
    Fault(
        "the last synapse of a row is lost",
        "engine/cuda/kernels/rows.py",
        "while entry < end:",
        "while offset(entry + offset(1)) < end:",
        (_DELAYS,),
    ),
    Fault(
        "the window of plasticity is a burst longer",
        "engine/cuda/kernels/plastic.py",
        "before, after = age < window, other < window",
        "before, after = age <= window, other <= window",
        (_WINDOW,),
    ),
    Fault(
        "contributions that are computed are cut off",
        "engine/cuda/kernels/propagate.py",
        "scaled = (scaled + half) - half",
        "scaled = scaled",
        (_CLAMPS,),
    ),
    Fault(
        "the negative clamp of computed contributions is positive",
        "engine/cuda/kernels/propagate.py",
        "return np.int64(-scale.clamp), True",
        "return scale.clamp, True",
        (_DRIVEN_CLAMP,),
    ),
    Fault(
        "which neurons restart is not restored",
        "engine/cuda/host/state.py",
        'self.write("marks", self._marks(state))',
        'self.write("marks", 0 * self._marks(state))',
        (_TRAIN,),
    ),
)

_FEATURES = (
    Fault(
        "the homeostat's leak moves the wrong way",
        "engine/features/rules.py",
        "step = multiply(gain, r - target)",
        "step = multiply(gain, target - r)",
        ("homeostat: a leak holds from the next burst on, and forced firings count",),
    ),
    Fault(
        "the homeostat goes on from the modulated leak",
        "engine/cpu/features.py",
        "x.leaks_in_force[i], p.decays[i] = leak, one - leak",
        "x.leaks[i], x.leaks_in_force[i], p.decays[i] = leak, leak, one - leak",
        ("modulators: a leak under a homeostat is scaled from g, and the homeostat goes on from the unscaled g",),
    ),
    Fault(
        "parameters are written only where a factor is not 1",
        "engine/cpu/features.py",
        "if subscribes[EXCITABILITY] and before[EXCITABILITY] != after[EXCITABILITY]:",
        "if subscribes[EXCITABILITY] and after[EXCITABILITY] != one:",
        ("modulators: a probability of 0 keeps a neuron from firing",),
    ),
    Fault(
        "a graded signal has no upper end",
        "engine/features/rules.py",
        "return share if share < one else one",
        "return share",
        ("signals: a graded one follows the potential, and is 1 beyond the full scale; forced firings carry 100",),
    ),
    Fault(
        "the last listed firing of a driver area decides",
        "engine/cpu/features.py",
        "ids[j] < ids[first[driver]]",
        "ids[j] > ids[first[driver]]",
        ("signals: the first listed firing of a driver area decides",),
    ),
    Fault(
        "transmission factors act a burst late",
        "engine/cpu/synapses.py",
        "rows.transmission[burst & 1, rows.rules[j]]",
        "rows.transmission[(burst + 1) & 1, rows.rules[j]]",
        ("transmission: a gain acts on synapses of its rule, on what fires in the burst after its driver",),
    ),
    Fault(
        "an open gate does not scale",
        "engine/cpu/features.py",
        "factor = factor * strongest",
        "factor = factor * (strongest > zero)",
        ("transmission: of several gates the strongest counts, and gains multiply it",),
    ),
    Fault(
        "a train has a firing more than the limit",
        "engine/features/rules.py",
        "        if cc < limit:\n",
        "        if cc <= limit:\n",
        ("trains: as many firings as the limit, with the potential of the first; input is lost; then a long rest",),
    ),
    Fault(
        "traces do not decay",
        "engine/features/rules.py",
        "e = multiply(e, decay)",
        "e = multiply(e, one)",
        ("traces decay over bursts, before the step of the burst is added",),
    ),
    Fault(
        "a negative reward raises the weight of a negative trace",
        "engine/features/rules.py",
        "if m == zero or e == zero or (m < zero and e < zero):",
        "if m == zero or e == zero:",
        ("rewards: a negative one leaves the weight of a negative trace alone, so the target stays silent",),
    ),
    Fault(
        "psp degenerates below 0",
        "engine/features/rules.py",
        "return left if left > zero else zero",
        "return left",
        ("degeneration: a psp of 0 stays 0, so inhibition never turns into excitation",),
    ),
    Fault(
        "8-bit potentials have no upper end",
        "engine/cpu/dynamics.py",
        "choose(bounded > full, full, bounded)",
        "bounded",
        ("8-bit range: potentials and thresholds end at 255, and a limit of 300 is none",),
    ),
    Fault(
        "an association lowers weights where one area is silent",
        "engine/features/associations.py",
        "            return False, _NO_IDS, _NO_IDS\n        self.traces = self.traces + self.rise",
        "            self.weights = self.weights - 1\n            return True, _NO_IDS, _NO_IDS\n"
        "        self.traces = self.traces + self.rise",
        ("associations: made where both areas fired, not updated in that burst; later by the activity of the areas",),
    ),
    Fault(
        "the divisor stays as it was at load",
        "engine/features/associations.py",
        "self.made_out.get(one, 0) + (int",
        "0 * self.made_out.get(one, 0) + (int",
        ("associations: a source that is not uniform divides by all its synapses of that moment",),
    ),
    Fault(
        "a pattern is injected a burst early",
        "engine/features/memories.py",
        "burst + 1 if life.index in early else burst + 2",
        "burst + 1",
        ("memories: a pattern fires its neuron two bursts later, or one; two injections into a burst add up",),
    ),
    Fault(
        "a twin gets no more than the potential",
        "engine/features/machine.py",
        "amount = max(potential, self.twin_threshold(memory.area))",
        "amount = potential",
        ("twins: added a burst after the neuron became long-term; they get its potential, at least their threshold",),
    ),
    Fault(
        "replays come a burst late",
        "engine/features/memories.py",
        "self.replays.setdefault(burst + at + 1, [])",
        "self.replays.setdefault(burst + at + 2, [])",
        ("replay: the voxels of each burst are forced one after another, each once",),
    ),
    Fault(
        "halves of a step go to the even bucket",
        "engine/features/patterns.py",
        "if abs(value - whole) < 0.5:",
        "if abs(value - whole) < 0.5 or (abs(value - whole) == 0.5 and whole % 2 == 0):",
        ("mp_differential: the steps between bursts identify a pattern, absent is 0, halves go away from 0",),
    ),
)

CATALOGUE: dict[str, tuple[Fault, ...]] = {
    CPU: (*_CPU_KERNELS, *_CPU_ROWS),
    FEATURES: _FEATURES,
    SHARED: HELPERS,
    THREADS: _THREADS,
    SHARDS: _SHARDS,
    WGPU: _WGPU,
    SIMULATOR: _CUDA,
    CUDA: (*_CUDA, *HELPERS),
}
"""What is planted in each backend; what all share runs on the host, so one backend without a GPU is enough for it."""
