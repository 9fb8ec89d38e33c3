"""A retina follows an object: in every burst the world goes in, and what the motors fire moves the gaze."""

import numpy as np

import burstproof as bp

WIDTH, MIDDLE, LEFT, RIGHT = 21, 10, 21, 22
pixels = np.delete(np.arange(WIDTH), MIDDLE)
network = bp.Network.from_arrays(
    neurons={"thresholds": 1.0},
    synapses={"source_neurons": pixels, "target_neurons": np.where(pixels < MIDDLE, LEFT, RIGHT)},
    areas={"retina": range(WIDTH), "left": [LEFT], "right": [RIGHT]},
    count=WIDTH + 2,
)

gaze, missed, steps = 0, [], []
with bp.open_engine(network) as engine:
    for time in range(200):
        world = round(20 * np.sin(time / 20))
        pixel = np.clip(world - gaze + MIDDLE, 0, WIDTH - 1)
        burst = engine.step(ids=[pixel], amount=1)
        gaze += int(RIGHT in burst.fired_ids) - int(LEFT in burst.fired_ids)
        missed.append(abs(world - gaze))
        steps.append(burst)
    recording = engine.recording_of(steps)

print(f"{len(recording.fired_ids)} firings; the gaze was never more than {max(missed)} away")
print(bp.statistics(recording))
