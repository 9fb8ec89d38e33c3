"""The configuration file, the environment and the command line (BE-14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from burstproof.config import CONFIG_FILE, environment_name, load_configuration
from burstproof.errors import ConfigError

pytestmark = pytest.mark.requirement("BE-14")

DEFAULTS: dict[str, Any] = {
    "compute.backend": "auto",
    "compute.auto_selection.gpu_min_neurons": 50000,
    "compute.auto_selection.gpu_min_firing_rate": 0.15,
    "compute.auto_selection.prefer_cuda_over_wgpu": True,
    "cuda.device_id": 0,
    "cuda.enable_cuda_graphs": True,
    "cuda.use_unified_memory": False,
    "cuda.stream_count": 4,
    "cuda.multi_gpu.enabled": False,
    "cuda.multi_gpu.num_gpus": 8,
    "cuda.multi_gpu.sharding_strategy": "round_robin",
    "cuda.multi_gpu.enable_p2p": True,
    "cuda.multi_gpu.use_nccl": True,
}

EVERY_KEY = """
[compute]
backend = "cuda"
[compute.auto_selection]
gpu_min_neurons = 1000
gpu_min_firing_rate = 1
prefer_cuda_over_wgpu = false
[cuda]
device_id = 2
enable_cuda_graphs = false
use_unified_memory = true
stream_count = 8
[cuda.multi_gpu]
enabled = true
num_gpus = 4
sharding_strategy = "by_cortical_area"
enable_p2p = false
use_nccl = false
"""


def write(folder: Path, text: str) -> Path:
    path = folder / CONFIG_FILE
    path.write_text(text, "utf-8")
    return path


def values(config: Any) -> dict[str, Any]:
    return {item.key: item.value for item in config.settings()}


def test_defaults_are_those_of_the_deployment_notes() -> None:
    config = load_configuration()
    assert values(config) == DEFAULTS
    assert {item.origin for item in config.settings()} == {"default"}


def test_every_key_is_read_from_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, EVERY_KEY)
    config = load_configuration(path)
    assert values(config) == {
        "compute.backend": "cuda",
        "compute.auto_selection.gpu_min_neurons": 1000,
        "compute.auto_selection.gpu_min_firing_rate": 1.0,
        "compute.auto_selection.prefer_cuda_over_wgpu": False,
        "cuda.device_id": 2,
        "cuda.enable_cuda_graphs": False,
        "cuda.use_unified_memory": True,
        "cuda.stream_count": 8,
        "cuda.multi_gpu.enabled": True,
        "cuda.multi_gpu.num_gpus": 4,
        "cuda.multi_gpu.sharding_strategy": "by_cortical_area",
        "cuda.multi_gpu.enable_p2p": False,
        "cuda.multi_gpu.use_nccl": False,
    }
    assert {item.origin for item in config.settings()} == {f"file {path}"}
    assert isinstance(config.compute.auto_selection.gpu_min_firing_rate, float)


def test_a_file_in_the_working_folder_is_found(tmp_path: Path) -> None:
    assert load_configuration(folder=tmp_path).file is None
    path = write(tmp_path, "[cuda]\ndevice_id = 3\n")
    config = load_configuration(folder=tmp_path)
    assert (config.file, config.cuda.device_id) == (path, 3)


def test_command_line_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    path = write(tmp_path, "[cuda]\ndevice_id = 1\nstream_count = 1\n[compute]\nbackend = 'cpu'\n")
    config = load_configuration(
        path,
        environment={"BURSTPROOF_CUDA_DEVICE_ID": "2", "BURSTPROOF_CUDA_STREAM_COUNT": "2"},
        options={"cuda.device_id": ("--device", 3)},
    )
    assert (config.cuda.device_id, config.cuda.stream_count, config.compute.backend) == (3, 2, "cpu")
    origins = {item.key: item.origin for item in config.settings()}
    assert origins["cuda.device_id"] == "command line --device"
    assert origins["cuda.stream_count"] == "environment variable BURSTPROOF_CUDA_STREAM_COUNT"
    assert origins["compute.backend"] == f"file {path}"
    assert origins["cuda.enable_cuda_graphs"] == "default"


@pytest.mark.parametrize("key", DEFAULTS)
def test_every_key_has_an_environment_variable(key: str) -> None:
    default = DEFAULTS[key]
    other: dict[type, tuple[str, Any]] = {
        bool: (str(not default), not default),
        int: ("7", 7),
        float: ("0.25", 0.25),
        str: ("cpu", "cpu") if key == "compute.backend" else ("dynamic", "dynamic"),
    }
    text, expected = other[type(default)]
    assert environment_name(key) == "BURSTPROOF_" + key.upper().replace(".", "_")
    assert values(load_configuration(environment={environment_name(key): text})) == {**DEFAULTS, key: expected}


@pytest.mark.parametrize(
    ("text", "place", "shown", "cure"),
    [
        ("[compute]\nbackand = 'cpu'\n", "compute.backand", "'cpu'", "Did you mean backend?"),
        ("[cuda]\nenable_graphs = true\n", "cuda.enable_graphs", "True", "enable_cuda_graphs"),
        ("[cuda.multigpu]\nenabled = true\n", "cuda.multigpu", "enabled", "Did you mean multi_gpu?"),
        ("[computer]\n", "computer", "{}", "Did you mean compute?"),
        ("zzz = 1\n", "zzz", "1", "compute, cuda"),
        ("compute = 'cpu'\n", "compute", "'cpu'", "Write [compute]"),
    ],
    ids=["a key", "a key of cuda", "a table of cuda", "a table", "neither", "a value for a table"],
)
def test_an_unknown_key_is_named_with_file_value_and_cure(
    tmp_path: Path, text: str, place: str, shown: str, cure: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_configuration(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: {place}: ")
    assert shown in message
    assert cure in message


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("compute", "backend", "'gpu'"),
        ("compute", "backend", "1"),
        ("compute.auto_selection", "gpu_min_neurons", "-1"),
        ("compute.auto_selection", "gpu_min_neurons", "5e4"),
        ("compute.auto_selection", "gpu_min_neurons", "true"),
        ("compute.auto_selection", "gpu_min_firing_rate", "1.5"),
        ("compute.auto_selection", "gpu_min_firing_rate", "nan"),
        ("compute.auto_selection", "gpu_min_firing_rate", "'0.1'"),
        ("compute.auto_selection", "prefer_cuda_over_wgpu", "1"),
        ("cuda", "device_id", "-1"),
        ("cuda", "stream_count", "0"),
        ("cuda", "stream_count", "[4]"),
        ("cuda.multi_gpu", "num_gpus", "0"),
        ("cuda.multi_gpu", "sharding_strategy", "'hash'"),
        ("cuda.multi_gpu", "enabled", "'yes'"),
        ("cuda.multi_gpu", "enabled", "{}"),
    ],
)
def test_an_ill_typed_value_is_named_with_what_is_allowed(tmp_path: Path, table: str, key: str, value: str) -> None:
    path = write(tmp_path, f"[{table}]\n{key} = {value}\n")
    with pytest.raises(ConfigError) as caught:
        load_configuration(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: {table}.{key}: ")
    assert "got " in message
    assert "allowed: " in message


@pytest.mark.parametrize(("value", "said"), [("15", "value out of range"), ("'0.1'", "ill-typed value")])
def test_a_whole_number_is_a_number_that_may_be_out_of_range(tmp_path: Path, value: str, said: str) -> None:
    path = write(tmp_path, f"[compute.auto_selection]\ngpu_min_firing_rate = {value}\n")
    with pytest.raises(ConfigError, match=said):
        load_configuration(path)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BURSTPROOF_CUDA_DEVICE_ID", "first"),
        ("BURSTPROOF_CUDA_DEVICE_ID", "1.0"),
        ("BURSTPROOF_CUDA_ENABLE_CUDA_GRAPHS", "on"),
        ("BURSTPROOF_COMPUTE_BACKEND", ""),
        ("BURSTPROOF_CUDA_DEVICEID", "0"),
        ("BURSTPROOF_COMPUTE_BACKND", "cpu"),
    ],
)
def test_a_bad_environment_variable_is_named(variable: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"environment variable {variable}"):
        load_configuration(environment={variable: value})


def test_other_variables_are_left_alone() -> None:
    environment = {"BURSTPROOF_SOMETHING_ELSE": "1", "PATH": "/bin", "CUDA_VISIBLE_DEVICES": ""}
    assert values(load_configuration(environment=environment)) == DEFAULTS


@pytest.mark.parametrize(
    "content",
    [b"[compute\n", b"\xff\xfe", b"a = 1\na = 2\n", b"a = " + b"[" * 100_000, b"[cuda]\ndevice_id = \n"],
    ids=["open bracket", "not UTF-8", "a key twice", "nested too deep", "no value"],
)
def test_a_file_that_is_no_toml_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / CONFIG_FILE
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=CONFIG_FILE):
        load_configuration(path)


def test_a_missing_file_is_an_error_when_it_was_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_configuration(tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_configuration(tmp_path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace"))))
def test_no_file_gets_past_as_anything_but_a_configuration_or_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "fuzzed.toml"
    path.write_bytes(content)
    try:
        found = set(values(load_configuration(path)))
        refused = ""
    except ConfigError as error:
        found, refused = set(), str(error)
    assert found == set(DEFAULTS) or str(path) in refused
