"""The CUDA engine's own kernels in the CUDA simulator, in a process of their own: their logic, without a GPU.

They run beside a GPU too: only there do the stand-ins for warp and link instructions meet the reference.
"""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from stages.measuring import Measure
from stages.plugin import left_out
from suites.support import simulated_process
from suites.support.parity.simulator_check import simulated_checks
from suites.support.plans import asked, thinned
from suites.support.shards.cuda_simulator_check import checks as shard_checks
from suites.support.simulated_process import Simulated, device_functions, print_problems, run_simulated

pytestmark = [
    pytest.mark.requirement("BE-4", "BE-6", "BE-17", "ST-5"),
    pytest.mark.xdist_group("simulator"),
    pytest.mark.time_limit(1800),  # the first case waits for all checks
]

_WARP = "warp operations; in the simulator each thread works alone"
_LINK = "instructions for memory of other devices; in the simulator plain loads and stores"
_UNUSED = "a network without restarts leaves the call out"

ONLY_ON_GPU = {
    "burst.make_first_item.own_item": "a block's own items; the simulator runs one block for all",
    "burst.make_following_item.none": "a block has one item; the simulator runs one block for all",
    "burst.make_following_item.next_of_block": "a block's next item, where there are fewer blocks than chunks",
    "calendar._make_late_block.every_other_block": "which blocks add late; the simulator's only block takes turns",
    "calls.make_begin_turn.follow": "what blocks but the first do; the simulator runs one",
    "closed_loop.make_following_item.next_of_block": "a block's next item, where there are fewer blocks than chunks",
    "dependent_launch._instruction.typed": "an instruction for overlapping launches; the simulator has none",
    "features.rules_of_features.rounded": "a product that no compiler contracts; in the simulator a plain one",
    "generate.make_ranks.all_own": "a warp generates a row together; in the simulator one thread does",
    "generate.make_ranks.by_warp": _WARP,
    "groups.make_load_group.load_group": "one load of four elements; in the simulator one after another",
    "groups.make_store_group.store_group": "one store of four elements; in the simulator one after another",
    "identity._moved.typed": "an instruction that moves a number; in the simulator the number itself",
    "lines.make_part_of_word.by_warp": _WARP,
    "link._instructions.assembled": _LINK,
    "link._instructions.clock": _LINK,
    "link._instructions.load_at": _LINK,
    "link._instructions.store_at": _LINK,
    "link._on_device.keep": _LINK,
    "link._on_device.load": _LINK,
    "link._on_device.near": _LINK,
    "link._on_device.now": _LINK,
    "link._on_device.store": _LINK,
    "neuron.make_restarts.never": _UNUSED,
    "neuron_values._make_load.load": "an instruction that loads several words; in the simulator one after another",
    "packet.make_source.by_warp": _WARP,
    "packet.make_take.by_warp": _WARP,
    "places.make_add.add": "an addition at an unsigned place; in the simulator numba's own",
    "places.make_read_once.read_once": "a load with a cache hint; in the simulator a plain one",
    "places.make_read_several.read_several": "one load of several elements; in the simulator one after another",
    "bins.make_flush_bins.by_warp": _WARP,
    "warp.make_any_lane.by_warp": _WARP,
    "warp.make_scan.by_block": _WARP,
    "relay._on_device.add": _LINK,
    "relay._on_device.assembled": _LINK,
    "relay._on_device.loading": _LINK,
    "relay._on_device.pair": _LINK,
    "relay._on_device.reply": _LINK,
    "relay._on_device.storing": _LINK,
    "replies._make_scan.by_warp": _WARP,
    "tiles.make_send_tile.any_by_warp": _WARP,
    "tiles.make_send_tile.vote_by_warp": _WARP,
    "warp.make_append.by_warp": _WARP,
    "warp.make_block_count.by_warp": _WARP,
    "warp.make_block_tally.by_warp": _WARP,
    "warp.make_sync_warp.by_warp": _WARP,
}
"""Device functions that no GPU-free case executes, and why."""


QUICK = (
    *("closed loop with features", "empty networks", "failing command", "forced restart"),
    *("interrupted loop", "interrupted run", "packed sums"),
    *("plastic start", "records", "restore without memory", "restored state", "stuck loop"),
    *("windows too long for words", "mix: fractions, delays to 7"),
    *("precision: int8: beta", "recording: rml_11", "recording: rstdp_11", "recording: stim_11"),
)
"""Checks of a fraction of a second, or nearly; a check that is not here is left to the thorough plan."""


def _quick(place: int, name: str) -> bool:
    """Those, and each sixth case worked out by hand."""
    return place % 6 == 0 if name.startswith("case: ") else name in QUICK


OF_SHARDS = (
    *("batch path", "full logs of unequal shards", "networks made on the device", "padded rows made on the device"),
    *("padded rows of packets", "silent shard", "silent shard of owners"),
)
"""Checks of shards that run all device functions which no check of one device runs."""


@pytest.mark.not_proof
def test_the_quick_checks_are_checks() -> None:
    assert set(QUICK) <= set(simulated_checks())
    assert set(OF_SHARDS) <= set(shard_checks())


@pytest.mark.not_proof
def test_a_check_that_raises_has_a_problem_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    print_problems({"broken": lambda: [str(1 // 0)], "sound": list}, ())
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert "ZeroDivisionError" in problems["broken"][0]
    assert problems["sound"] == []


@pytest.mark.not_proof
@pytest.mark.thorough("starts processes of the simulator of its own")
def test_processes_share_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each runs some, and together they have the problems and the functions of all."""
    monkeypatch.setattr(simulated_process, "take_host", lambda: SimpleNamespace(usable_cores=8))
    found = run_simulated("suites.support.parity.simulator_check", ("interrupted loop", "records"))
    assert found.problems == {"interrupted loop": [], "records": []}
    assert {name.partition(".")[0] for name in found.executed} >= {"burst", "closed_loop"}


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Simulated:
    """The checks of the engine on one device: those that cases ask for, or all if one looks at all functions."""
    runs = (item for item in request.session.items if item.path == request.path and not left_out(item))
    every = any(item.name == test_device_functions.__name__ for item in runs)
    names = tuple(simulated_checks()) if every else asked(request, "name")
    return run_simulated("suites.support.parity.simulator_check", names)


@pytest.fixture(scope="module")
def shards() -> Simulated:
    """Checks of shards, of which stage 7 runs all."""
    return run_simulated("suites.support.shards.cuda_simulator_check", OF_SHARDS)


@pytest.mark.parametrize("name", thinned(simulated_checks(), "seconds each in the simulator", keep=_quick))
def test_simulated_engine(name: str, engine: Simulated) -> None:
    """The simulated engine does what the reference does."""
    assert engine.problems[name] == []


@pytest.mark.measures("device_function.simulated", "device_function.only_on_gpu")
@pytest.mark.thorough("runs every check of the simulator")
def test_device_functions(engine: Simulated, shards: Simulated, measure: Measure) -> None:
    """Every device function runs in the simulator, but for those that only a GPU executes: named, with the reason."""
    functions = device_functions()
    executed = (engine.executed | shards.executed) & functions
    measure("device_function.simulated", len(executed), "1", conditions={"functions": len(functions)})
    for name, reason in ONLY_ON_GPU.items():
        measure("device_function.only_on_gpu", 1, "1", conditions={"function": name}, note=reason)
    assert functions - executed == set(ONLY_ON_GPU)
