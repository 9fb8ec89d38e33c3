"""burstproof: the FEAGI burst engine on CPU and CUDA, exact to the bit on every backend.

What is listed here is the public interface; ``docs/api.md`` describes it. A name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from burstproof.version import __version__ as __version__

if TYPE_CHECKING:
    from burstproof.analysis.picture import raster as raster
    from burstproof.analysis.recording import RunRecording as RunRecording
    from burstproof.analysis.statistics import Statistics as Statistics
    from burstproof.analysis.statistics import statistics as statistics
    from burstproof.engine.replay import Replay as Replay
    from burstproof.engine.state import Burst as Burst
    from burstproof.engine.state import EngineState as EngineState
    from burstproof.engine.state import Stimulus as Stimulus
    from burstproof.engine.stimulation import Stimulation as Stimulation
    from burstproof.errors import BurstproofError as BurstproofError
    from burstproof.errors import EnvironmentInvalidError as EnvironmentInvalidError
    from burstproof.network.model import Area as Area
    from burstproof.network.model import Network as Network
    from burstproof.network.plasticity import PlasticMapping as PlasticMapping
    from burstproof.network.synthetic.kinds import seeded_network as seeded_network
    from burstproof.session import Session as Session
    from burstproof.session import open_engine as open_engine
    from burstproof.sources import grow as grow
    from burstproof.sources import load as load
    from burstproof.sources import save as save
    from burstproof.sources import synthetic as synthetic
    from burstproof.verification import verify as verify


_MODULES = {
    "analysis.picture": ("raster",),
    "analysis.recording": ("RunRecording",),
    "analysis.statistics": ("Statistics", "statistics"),
    "engine.state": ("Burst", "EngineState", "Stimulus"),
    "engine.replay": ("Replay",),
    "engine.stimulation": ("Stimulation",),
    "errors": ("BurstproofError", "EnvironmentInvalidError"),
    "network.model": ("Area", "Network"),
    "network.plasticity": ("PlasticMapping",),
    "network.synthetic.kinds": ("seeded_network",),
    "session": ("Session", "open_engine"),
    "sources": ("grow", "load", "save", "synthetic"),
    "verification": ("verify",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
