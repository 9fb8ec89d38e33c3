"""What the shaders of a network without features hold: nothing of features that a compiler has to leave in."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from burstproof.engine.wgpu.shaders import Variant, burst_shader, operations_shader

pytestmark = pytest.mark.requirement("BE-16")

PLAIN = Variant(False, False, False, "RESTART_CANDIDATES", False, False, False, False)
FEATURED = {
    "trains": ("train", "HELD"),
    "homeostats": ("regulate", "RATE"),
    "modulated": ("factor", "BASE_LEAK"),
    "clamps": ("bounded", "FULL"),
}
"""Switches of features: a function and a word that only those need."""

_SWITCH = re.compile(r"const (\w+) = (true|false);")
_BRANCH = re.compile(r"if \(((?:!?[A-Z_]+(?: && )?)+)\) \{")


def block_end(text: str, start: int) -> int:
    """Behind the brace that closes the one before ``start``."""
    depth, at = 1, start
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def folded(text: str) -> str:
    """``text`` as a compiler sees it that knows the switches: no dead branch, nothing behind a return."""
    text = re.sub(r"//.*", "", text)
    switches = {name: value == "true" for name, value in _SWITCH.findall(text)}
    text = re.sub(r"(!?\b(?:" + "|".join(switches) + r")) && [^{}]*?\) \{", lambda m: known(m, switches), text)
    at = 0
    while (found := _BRANCH.search(text, at)) is not None:
        names = found[1].split(" && ")
        if not all(name.lstrip("!") in switches for name in names):
            at = found.end()
            continue
        end = block_end(text, found.end())
        taken = all(switches[name.lstrip("!")] != name.startswith("!") for name in names)
        inside, behind = text[found.end() : end - 1], text[end:]
        if taken and re.search(r"\breturn\b[^;]*;\s*$", inside):
            behind = text[block_end(text, end) - 1 :]
        text = text[: found.start()] + (inside if taken else "") + behind
        at = found.start()
    return text


def known(found: re.Match[str], switches: dict[str, bool]) -> str:
    """A condition that begins with a switch, decided where that is off."""
    name = found[1]
    off = switches[name.lstrip("!")] == name.startswith("!")
    return f"{name}) {{" if off else found[0]


def reached(text: str) -> dict[str, str]:
    """The functions that the passes of a burst call, by name; ``modulate`` is dispatched for modulators alone."""
    bodies, entries = {}, []
    for found in re.finditer(r"(@compute[^{]*?)?\bfn (\w+)\([^{]*\{", text):
        bodies[found[2]] = text[found.start() : block_end(text, found.end())]
        if found[1]:
            entries.append(found[2])
    assert "modulate" in entries
    used, waiting = {}, [name for name in entries if name != "modulate"]
    while waiting:
        name = waiting.pop()
        if name not in used:
            used[name] = bodies[name]
            waiting += [one for one in re.findall(r"\b(\w+)\(", bodies[name]) if one in bodies]
    return used


def used_by(variant: Variant) -> dict[str, str]:
    """The functions of a burst for ``variant``."""
    return reached(folded(burst_shader(variant, operations_shader())))


def test_unused_features_leave_no_function_no_branch_and_no_word() -> None:
    used = used_by(PLAIN)
    assert not {"class_of", "factor", "regulate", "train", "signal", "complement"} & used.keys()
    text = "\n".join(used.values())
    words = ("FEATURES", "BASE_LEAK", "DRIVER", "HELD", "RATE", "LEAK", "class_flags", "CAN_TRAIN", "FULL")
    assert [word for word in words if re.search(rf"\b{word}\b", text)] == []
    assert (
        "".join(used["in_force"].split()) == "fnin_force(neuron:u32)->Parameters{varp=parameters_of(neuron);returnp;}"
    )
    assert "".join(used["kept"].split()) == "fnkept(potential:u32)->u32{returnpotential;}"


def test_unused_features_take_no_word_of_a_neuron() -> None:
    assert PLAIN.state_fields == ("v", "counts", "status")
    assert not {"features", "base_leak", "driver"} & set(PLAIN.parameter_fields)


@pytest.mark.parametrize("switch", FEATURED)
def test_each_feature_is_found_where_it_is_used(switch: str) -> None:
    """What the other cases look for is there with the feature, and not with any other of them."""
    function, word = FEATURED[switch]
    for other in FEATURED:
        used = used_by(replace(PLAIN, **{other: True}))
        there = function in used and any(re.search(rf"\b{word}\b", body) for body in used.values())
        assert there == (other == switch), other
