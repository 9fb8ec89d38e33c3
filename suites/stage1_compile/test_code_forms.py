"""CUDA C++, PTX, LTO-IR, cubins and numba functions become machine code without a GPU; what cannot, says why."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from burstproof.compile.code import CubinCode, LtoirCode, NumbaCode, PtxCode
from burstproof.compile.image_cache import cached_image
from burstproof.compile.numba_cubin import Image, obstacle
from burstproof.compile.resources import Instructions, instructions_of
from burstproof.compile.source import CudaSource, SourceOptions
from burstproof.errors import CompileError, EnvironmentInvalidError, InputError
from suites.support.compile.code_forms import PTX, SCALE
from suites.support.compile.tools import needs_tools

pytestmark = [pytest.mark.requirement("KL-1", "KL-3", "ST-1"), needs_tools]

HOPPER = (9, 0)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("burstproof.compile.image_cache.cache_folder", lambda: tmp_path)
    return tmp_path / "images"


def test_a_bad_source_names_file_line_and_log() -> None:
    """The second of two joined files is named with its own line number."""
    text = '#line 1 "first.cuh"\n#define ONE 1\n#line 1 "second.cu"\n\n__global__ void k(int* a) { a[0] = missing; }'
    with pytest.raises(CompileError) as caught:
        CudaSource("second.cu", text).image(HOPPER)
    error = caught.value
    assert error.where == "second.cu, line 2"
    assert 'identifier "missing" is undefined' in error.problem
    assert error.got == "__global__ void k(int* a) { a[0] = missing; }"
    assert "1 error detected in the compilation" in str(error)


def test_a_header_that_is_missing_is_named() -> None:
    with pytest.raises(CompileError, match=r"bad\.cu, line 1: .*could not open source file|cannot open source file"):
        CudaSource("bad.cu", "#include <nowhere.h>").image(HOPPER)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.cu: the source cannot be read.*Check the path"):
        CudaSource.beside(str(tmp_path / "module.py"), "nowhere.cu")


def test_a_capability_that_nobody_knows_is_refused_with_the_cure() -> None:
    with pytest.raises(CompileError, match=r"Choose a capability that the installed compiler knows"):
        CudaSource("t.cu", SCALE).image((99, 0))


@pytest.mark.parametrize("build", [lambda: obstacle(HOPPER), lambda: CudaSource("t.cu", SCALE).image(HOPPER)])
def test_without_the_tools_the_extra_is_named(build: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("cuda.bindings", "cuda.bindings.nvjitlink", "cuda.bindings.nvrtc"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(EnvironmentInvalidError, match=r"is not installed.*pip install '\.\[compile\]'"):
        build()


def test_template_instances_get_the_names_of_the_machine_code() -> None:
    source = CudaSource("t.cu", "template <int N> __global__ void put(int* a) { *a = N; }", templates=("put<3>",))
    image = source.image(HOPPER)
    assert image.symbols["put<3>"].encode() in image.cubin
    assert source.image(HOPPER).symbols == image.symbols  # from the disk


def test_an_image_is_kept_and_told_apart_by_all_that_it_depends_on(own_cache: Path) -> None:
    plain = CudaSource("s.cu", SCALE)
    others = [
        CudaSource("s.cu", SCALE + " "),
        CudaSource("s.cu", SCALE, SourceOptions(fast_math=True)),
        CudaSource("s.cu", SCALE, SourceOptions(defines=(("A", "1"),))),
    ]
    first = plain.image(HOPPER)
    assert _kept(own_cache) == 1
    assert plain.image(HOPPER).cubin == first.cubin
    assert _kept(own_cache) == 1
    for code in others:
        code.image(HOPPER)
    plain.image((8, 0))
    assert _kept(own_cache) == 5


def _kept(folder: Path) -> int:
    return sum(path.is_file() for path in (folder / "entries").rglob("*"))


def test_a_damaged_image_is_compiled_again(own_cache: Path) -> None:
    source = CudaSource("s.cu", SCALE)
    good = source.image(HOPPER).cubin
    (kept,) = (path for path in (own_cache / "entries").rglob("*") if path.is_file())
    kept.write_bytes(kept.read_bytes()[:-100])
    assert source.image(HOPPER).cubin == good
    assert source.image(HOPPER).cubin == good


@pytest.mark.parametrize(
    "header",
    [b"{", b"1", b"[]", b"null", b"{}", b'{"symbols": null}', b'{"symbols": [1]}', b"[" * 100_000, b"\xff"],
    ids=["cut", "number", "list", "null", "empty", "no symbols", "a list of them", "deep", "no text"],
)
def test_a_damaged_header_is_no_error(own_cache: Path, header: bytes) -> None:
    made = b"\x7fELF and more"
    cached_image("n", HOPPER, {"a": 1}, lambda: (made, {"f": "g"}))
    (kept,) = (path for path in (own_cache / "entries").rglob("*") if path.is_file())
    kept.write_bytes(header + b"\n" + made)
    image = cached_image("n", HOPPER, {"a": 1}, lambda: (made, {"f": "h"}))
    assert (image.cubin, image.symbols) == (made, {"f": "h"})


def test_an_entry_under_the_name_of_another_is_not_taken(own_cache: Path) -> None:
    one, other = ((b"\x7fELF" + letter, {"f": "g"}) for letter in (b"a", b"b"))
    cached_image("n", HOPPER, {"a": 1}, lambda: one)
    (first,) = (path for path in (own_cache / "entries").rglob("*") if path.is_file())
    cached_image("n", HOPPER, {"a": 2}, lambda: other)
    (second,) = (path for path in (own_cache / "entries").rglob("*") if path.is_file() and path != first)
    second.write_bytes(first.read_bytes())
    assert cached_image("n", HOPPER, {"a": 2}, lambda: other).cubin == other[0]


def test_a_user_without_a_home_compiles_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("burstproof.compile.image_cache.cache_folder", lambda: None)
    assert cached_image("n", HOPPER, {}, lambda: (b"\x7fELF", {})).cubin == b"\x7fELF"


def test_processes_share_the_cache(own_cache: Path) -> None:
    """Two processes that keep the same 60 images at once: every one can be read afterwards."""
    program = (
        "import sys; from pathlib import Path\n"
        "from burstproof.compile.image_cache import cached_image\n"
        "for i in range(60):\n"
        "    made = b'\\x7fELF' + bytes([i]) * 5000\n"
        "    got = cached_image('n', (9, 0), {'i': i}, lambda: (made, {'f': str(i)}), Path(sys.argv[1]))\n"
        "    assert got.cubin == made and got.symbols == {'f': str(i)}\n"
    )
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    running = [subprocess.Popen([sys.executable, "-c", program, str(own_cache)], env=paths) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]

    def not_again() -> tuple[bytes, dict[str, str]]:
        raise AssertionError("compiled again")

    for i in range(60):
        assert cached_image("n", HOPPER, {"i": i}, not_again, own_cache).symbols == {"f": str(i)}


def test_one_process_compiles_and_the_others_wait(own_cache: Path, tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from burstproof.compile.image_cache import cached_image\n"
        "def compiled():\n"
        "    with open(sys.argv[2], 'a') as log: log.write('compiled\\n')\n"
        "    time.sleep(1.0)\n"
        "    return b'\\x7fELF', {}\n"
        "assert cached_image('n', (9, 0), {}, compiled, Path(sys.argv[1])).cubin == b'\\x7fELF'\n"
    )
    paths, log = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}, tmp_path / "log"
    command = [sys.executable, "-c", program, str(own_cache), str(log)]
    running = [subprocess.Popen(command, env=paths) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert log.read_text() == "compiled\n"


def test_a_cache_that_cannot_be_written_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    image = cached_image("n", HOPPER, {}, lambda: (b"\x7fELF", {}), tmp_path / "file" / "folder")
    assert image.cubin == b"\x7fELF"


def test_a_ptx_newer_than_the_tools_is_refused_or_rebuilt() -> None:
    from burstproof.compile.code import newest_isa
    from burstproof.compile.numba_cubin import toolkit_version

    newer = PTX.replace("9.4", "99.0")
    assert newest_isa(toolkit_version()) < (99, 0)
    with pytest.raises(CompileError, match=r"newer than nvJitLink accepts.*PTX ISA 99\.0.*Set rebuild"):
        PtxCode("put", newer).image(HOPPER)
    known = PtxCode("put", PTX.replace("9.4", "8.0")).image(HOPPER)
    rebuilt = PtxCode("put", newer, rebuild=True).image(HOPPER)
    assert _counts(rebuilt.cubin, "put") == _counts(known.cubin, "put")


def _counts(cubin: bytes, function: str) -> Instructions | None:
    return instructions_of(Image(function, HOPPER, cubin, 0.0), function)


def test_a_rebuilt_ptx_with_an_instruction_of_its_own_time_is_refused() -> None:
    with pytest.raises(CompileError, match="does not link"):
        PtxCode("put", PTX.replace("9.4", "99.0").replace("st.global.u32", "st.tomorrow.u32"), rebuild=True).image(
            HOPPER
        )


def test_source_becomes_ptx_and_ltoir_and_both_become_machine_code() -> None:
    """No driver takes part; each way ends in the same kind of instructions as the direct one."""
    from burstproof.compile.code import ptx_isa

    source = CudaSource("scale.cu", SCALE)
    ptx = source.ptx((8, 0))
    assert ".target sm_80" in ptx
    assert ptx_isa(ptx) >= (8, 0)
    direct = _counts(source.image(HOPPER).cubin, "scale")
    assert direct is not None
    for code in (PtxCode("scale", ptx), LtoirCode("scale", source.ltoir((8, 0)))):
        found = _counts(code.image(HOPPER).cubin, "scale")
        assert found is not None
        assert (found.global_loads, found.global_stores) == (direct.global_loads, direct.global_stores) == (1, 1)


@pytest.mark.parametrize("form", ["ptx", "ltoir"])
def test_a_bad_source_names_its_line_in_every_form(form: str) -> None:
    with pytest.raises(CompileError, match=r"bad\.cu, line 2: does not compile.*missing"):
        getattr(CudaSource("bad.cu", "\n__global__ void k(int* a) { *a = missing; }"), form)(HOPPER)


def test_what_is_no_ltoir_is_refused() -> None:
    with pytest.raises(CompileError, match="does not link"):
        LtoirCode("s", b"no code").image(HOPPER)


def test_the_cubin_for_the_device_is_picked() -> None:
    code = CubinCode("c", {(8, 0): b"a", (8, 6): b"b", (9, 0): b"c"})
    assert [code.image(own).cubin for own in ((8, 0), (8, 6), (8, 9), (9, 0))] == [b"a", b"b", b"b", b"c"]
    with pytest.raises(CompileError, match=r"no image runs on this capability \(got '7\.5'; .*8\.0, 8\.6, 9\.0"):
        code.image((7, 5))


def test_a_numba_function_takes_what_its_signature_says() -> None:
    """Arrays are seven values each: owner, parent, elements, bytes of one, address, shape, strides."""
    from numba import types

    from burstproof.compile.parameters import size_of
    from burstproof.compile.resources import parameter_bytes_of
    from burstproof.device.numba_cuda import cuda

    def scaled(values, factor):
        i = cuda.grid(1)
        if i < values.size:
            values[i] *= factor

    code = NumbaCode(scaled, types.void(types.float32[::1], types.float32))
    assert [str(parameter) for parameter in code.parameters] == ["float32[:]", "float32"]
    declared = tuple(size_of(format_code) for parameter in code.parameters for format_code in parameter.formats)
    assert parameter_bytes_of(code.image(HOPPER), "scaled") == declared == (8,) * 7 + (4,)


def test_a_numba_kernel_is_kept_by_what_it_means(own_cache: Path) -> None:
    """Its code, what it takes from around it, its types and its bound on registers; not if it takes an array."""
    from numba import types

    def made(number: object, name: str = "put") -> Callable[..., None]:
        def put(values):
            values[0] = number

        put.__name__ = name
        return put

    def put_nothing(values):
        values[0] = array[0]

    array, floats = np.zeros(1, np.float32), types.void(types.float32[::1])
    first = NumbaCode(made(1), floats).image(HOPPER)
    again = NumbaCode(made(1), floats).image(HOPPER)
    assert (again.cubin, again.symbols, _kept(own_cache)) == (first.cubin, first.symbols, 1)
    assert first.symbols["put"].encode() in first.cubin
    NumbaCode(made(2), floats).image(HOPPER)
    NumbaCode(made(1), types.void(types.float64[::1])).image(HOPPER)
    NumbaCode(made(1), floats, 32).image(HOPPER)
    NumbaCode(made(1), floats).image((8, 0))
    assert _kept(own_cache) == 5
    other = NumbaCode(made(1, "other"), floats).image(HOPPER)
    assert other.symbols["other"].encode() in other.cubin
    assert _kept(own_cache) == 6
    assert NumbaCode(put_nothing, floats).image(HOPPER).cubin.startswith(b"\x7fELF")
    assert _kept(own_cache) == 6


def test_a_numba_signature_that_no_launch_can_pass_is_refused() -> None:
    from numba import types

    def kernel(values):
        values[0] = 0

    for kind in (types.float32[:], types.unicode_type):
        with pytest.raises(InputError, match=r"kernel kernel, signature: not a type that a launch can pass"):
            _ = NumbaCode(kernel, types.void(kind)).parameters
