"""One network on two GPUs; where there are none, on two shards of the CPU. No split changes a result."""

import burstproof as bp

network = bp.synthetic(4000, 25, seed=5, threshold=2.0, refractory_period=1, excitability=0.3)
start = bp.Stimulation(network).force(ids=range(0, 4000, 10), bursts=1)

with bp.open_engine(network, "cpu") as engine:
    whole, state = engine.run(50, start), engine.state()

try:
    split = bp.open_engine(network, devices=[0, 1])
except bp.EnvironmentInvalidError as error:
    print(f"no two GPUs: {error}")
    split = bp.open_engine(network, shards=2)
with split:
    recording = split.run(50, start)
    print(f"{split.backend}: {recording}, the whole: {whole}")
    print("state:", split.state().differences(state) or "agrees")
