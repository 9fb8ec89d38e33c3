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

gaze, missed, moves = 0, [], 0
amount = np.ones(1, np.float32)
with bp.open_engine(network) as engine, engine.closed_loop(areas=["left", "right"]) as loop:
    for time in range(200):
        world = round(20 * np.sin(time / 20))
        pixel = np.clip(world - gaze + MIDDLE, 0, WIDTH - 1)
        fired = loop.step(np.array([pixel], np.uint32), amount)
        gaze += int(RIGHT in fired) - int(LEFT in fired)
        moves += len(fired)
        missed.append(abs(world - gaze))
    bursts = engine.burst_count

print(f"{moves} moves in {bursts} bursts; the gaze was never more than {max(missed)} away")
