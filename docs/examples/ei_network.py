"""800 excitatory and 200 inhibitory neurons under noise, with a pulse in between: spikes, potentials, a raster."""

import numpy as np

import burstproof as bp

NEURONS, EXCITATORY, FAN, BURSTS = 1000, 800, 100, 400
rng = np.random.default_rng(1)

sources = np.repeat(np.arange(NEURONS), FAN)
inhibits = sources >= EXCITATORY
network = bp.Network.from_arrays(
    neurons={"thresholds": 20.0, "leak_coefficients": 0.1, "refractory_periods": 2},
    synapses={
        "source_neurons": sources,
        "target_neurons": rng.integers(0, NEURONS, NEURONS * FAN),
        "weights": np.where(inhibits, 4.0, 1.0),
        "types": inhibits,
        "delay_bursts": rng.integers(1, 5, NEURONS * FAN),
    },
    areas={"excitatory": range(EXCITATORY), "inhibitory": range(EXCITATORY, NEURONS)},
    count=NEURONS,
)

drive = bp.Stimulation(network)
for burst in range(1, BURSTS + 1):
    drive.add(4, ids=rng.choice(NEURONS, 300, replace=False), bursts=burst)
drive.add(8, area="excitatory", bursts=range(200, 205))

with bp.open_engine(network, stimulus=drive) as engine:
    recording = engine.run(BURSTS, drive, watch=[0, 1, EXCITATORY])

bursts, ids = recording.spikes()
print(f"{len(ids)} spikes, the first of neuron {ids[0]} in burst {bursts[0]}")
print("potentials of neuron 0:", *recording.watched_potentials[:12, 0].round(1))
print(bp.statistics(recording))
print(bp.raster(recording, "ei_network.svg", title="800 excitatory and 200 inhibitory neurons"))
