"""The same network on every backend that this machine has: the same spikes and the same state, bit for bit."""

import numpy as np

import burstproof as bp

network = bp.synthetic(
    2000, 20, seed=3, weights=(1, 4), delays=(1, 3), inhibitory_fraction=0.2, threshold=6.0, leak=0.25, excitability=0.8
)
rng = np.random.default_rng(0)
drive = bp.Stimulation(network)
for burst in range(1, 41):
    drive.add(6, ids=rng.choice(2000, 200, replace=False), bursts=burst)

with bp.open_engine(network, "reference", stimulus=drive) as engine:
    expected, state = engine.run(40, drive), engine.state()
print(f"reference: {len(expected.fired_ids)} firings")

for backend in ("cpu", "cuda", "wgpu"):
    try:
        with bp.open_engine(network, backend, stimulus=drive) as engine:
            same = np.array_equal(engine.run(40, drive).spikes(), expected.spikes())
            other = engine.state().differences(state) or "nothing"
            print(f"{backend}: spikes {'agree' if same else 'DIFFER'}, in the state differs: {other}")
    except bp.EnvironmentInvalidError as error:
        print(f"{backend}: {error}")
