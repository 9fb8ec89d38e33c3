"""How adapters are looked for: not by way of wgpu where there can be none (BE-16)."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = [
    pytest.mark.requirement("BE-16"),
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere wgpu has interfaces other than Vulkan"),
]

_ASK = """
import sys
from burstproof.engine.wgpu import adapters

adapters._LOADER = sys.argv[1]
facts = adapters.list_adapters()
print(facts.obstacle, facts.adapters, "wgpu" in sys.modules)
"""


def asked(loader: str) -> str:
    done = subprocess.run([sys.executable, "-c", _ASK, loader], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_without_a_loader_of_vulkan_there_is_no_adapter_and_wgpu_is_not_imported() -> None:
    assert asked("libvulkan-of-nowhere.so") == "None () False"


def test_with_one_wgpu_answers() -> None:
    """Any library stands in for the loader here: what wgpu then finds, it says itself."""
    pytest.importorskip("wgpu", reason="wgpu is not installed")
    assert asked("libc.so.6").endswith(" True")
