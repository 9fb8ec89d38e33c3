"""Which loads of a kernel are waited for long before they are used: ``scoreboards.py KERNEL KIND:MILLIONS [PLACES]``.

Machine code of capability 9.0 says in bits 105 to 125 of each instruction which of six scoreboards it waits for and
which it holds. A load that shares one with another, or whose register a loop's head or a copy touches, is waited for
too early, and the compiler says nothing. Prints each load of global memory, how many instructions later its scoreboard
is first waited for and how many later its value is used (in order of the code, branches not followed); with PLACES
(``500-600``), these instructions with their scoreboards as well.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace

from burstproof.compile.numba_cubin import compile_kernel
from burstproof.compile.resources import _run
from burstproof.engine.cuda.kernels.catalogue import catalogue
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.cuda.plan.tiles import sized
from burstproof.engine.options import EngineOptions
from burstproof.network.synthetic.kinds import seeded_network

DRAWN, FAR = 10_000, 600


def variant_of(kind, neurons):
    """The variant of a network of so many neurons, from a small one of its kind."""
    packed = pack_network(seeded_network(kind, DRAWN, 100, 0.01, 3).network(), EngineOptions())
    entries = packed.sizes.static_entries * (neurons // DRAWN)
    palette = 510 if kind in ("fractions", "everything") and neurons > 200_000 else 0
    sizes = replace(packed.sizes, neurons=neurons, static_entries=entries, palette=palette)
    return replace(sized(packed.variant, sizes), overlapped=True)


def instructions(variant, kernel):
    """(scoreboards waited for, the one held until the result is there, text) of each instruction, and labels."""
    spec = next(spec for spec in catalogue(variant) if spec.name == kernel)
    image = compile_kernel(spec.name, spec.function, spec.signature, (9, 0), spec.registers)
    lines, found = _run("nvdisasm", ["-hex", "-c"], image).splitlines(), []
    for at, line in enumerate(lines):
        text = re.match(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s*/\* 0x[0-9a-f]+ \*/", line)
        if text:
            control = int(re.search(r"/\* (0x[0-9a-f]+) \*/", lines[at + 1])[1], 16) >> 41
            waits = "".join(str(one) for one in range(6) if control >> (11 + one) & 1)
            held = control >> 5 & 7
            found.append((waits, "" if held == 7 else str(held), text[1]))
        elif re.match(r"^\.L_x_\d+:", line):
            found.append(("", "", line))
    return found


def main(kernel, network, places=""):
    kind, millions = network.split(":")
    code = instructions(variant_of(kind, int(float(millions) * 1e6)), kernel)
    for at, (_, held, text) in enumerate(code):
        load = re.match(r"(?:@!?U?P\d+ )?(LDG\S*) (R\d+)", text)
        if not load or not held:
            continue
        waited = used = None
        for later in range(at + 1, min(at + FAR, len(code))):
            if waited is None and held in code[later][0]:
                waited = later
            stores = re.match(r"(?:@!?U?P\d+ )?(ST|RED|ATOM)", code[later][2])
            registers = re.findall(r"R\d+", code[later][2])
            if used is None and load[2] in (registers if stores else registers[1:]):
                used = later
        if waited is not None:
            early = "EARLY" if used is None or used - waited > 8 else ""
            print(f"{at:5d} {load[1]:14s} {load[2]:4s} waited +{waited - at}, used +{(used or at) - at} {early}")
    if places:
        first, last = map(int, places.split("-"))
        for at in range(first, last + 1):
            waits, held, text = code[at]
            print(f"{at:5d} [waits {waits or '-':6s} holds {held or '-'}] {text}")


main(*sys.argv[1:])
