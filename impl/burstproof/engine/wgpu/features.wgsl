// FEATURES.md for one neuron: what is in force (2.2), homeostats (1), spike trains (3), the 8-bit range (6). Each switch
// is a constant of `Variant.header`; products and sums are those of `small.wgsl`.

const ONE = 0x3f800000u;
const FULL = 0x437f0000u; // 255

// The word of a neuron's features: its area class, and whether its firings start a train.
const CLASS = 0xffffu;
const CAN_TRAIN = 0x10000u;

// Flags of a class in one burst: its homeostat updates the leaks after it; leaks are the homeostat's; parameters are
// scaled. The factors of threshold, leak and excitability follow.
const UPDATES = 1u;
const REGULATED = 2u;
const SCALES_THRESHOLD = 4u;
const SCALES_LEAK = 8u;
const SCALES_EXCITABILITY = 16u;
const HOMEOSTATIC = 32u;
const ROW_WORDS = 4u;

// Constants of a class: keep, alpha, target, gain, least and most leak.
const CLASS_WORDS = 6u;

fn class_of(neuron: u32) -> u32 {
    return parameters[neuron * PARAMETER_WORDS + FEATURES] & CLASS;
}

fn kept(potential: u32) -> u32 {
    if (CLAMPS) {
        return bounded(potential, 0u, FULL);
    }
    return potential;
}

fn complement(leak: u32) -> u32 {
    return total(ONE, leak ^ SIGN);
}

// The parameters of a neuron that hold in this burst.
fn in_force(neuron: u32) -> Parameters {
    var p = parameters_of(neuron);
    if (!HOMEOSTATS && !MODULATED) {
        return p;
    }
    let row = burst.class_rows + ROW_WORDS * class_of(neuron);
    let flags = stimuli[row];
    let homeostatic = HOMEOSTATS && (flags & HOMEOSTATIC) != 0u;
    if (homeostatic && (flags & REGULATED) != 0u) {
        p.decays = complement(states[neuron * STATE_WORDS + LEAK]);
    }
    if (!MODULATED) {
        return p;
    }
    if ((flags & SCALES_THRESHOLD) != 0u) {
        p.thresholds = product(p.thresholds, stimuli[row + 1u]);
        p.thresholds = kept(select(p.thresholds, 0u, above(0u, p.thresholds)));
    }
    if ((flags & SCALES_LEAK) != 0u) {
        var base = parameters[neuron * PARAMETER_WORDS + BASE_LEAK];
        if (homeostatic) {
            base = states[neuron * STATE_WORDS + LEAK];
        }
        p.decays = complement(bounded(product(base, stimuli[row + 2u]), 0u, ONE));
    }
    if ((flags & SCALES_EXCITABILITY) != 0u) {
        p.excitabilities = bounded(product(p.excitabilities, stimuli[row + 3u]), 0u, ONE);
    }
    return p;
}

// The homeostat of a neuron after a burst in which it fired or not.
fn regulate(neuron: u32, fired: bool) {
    let kind = class_of(neuron);
    let flags = stimuli[burst.class_rows + ROW_WORDS * kind];
    if ((flags & HOMEOSTATIC) == 0u) {
        return;
    }
    let numbers = burst.classes + CLASS_WORDS * kind;
    let own = neuron * STATE_WORDS;
    let rate = total(product(stimuli[numbers], states[own + RATE]), select(0u, stimuli[numbers + 1u], fired));
    states[own + RATE] = rate;
    if ((flags & UPDATES) != 0u) {
        let step = product(stimuli[numbers + 3u], total(rate, stimuli[numbers + 2u] ^ SIGN));
        let leak = total(states[own + LEAK], step);
        states[own + LEAK] = bounded(leak, stimuli[numbers + 4u], stimuli[numbers + 5u]);
    }
}

// The train of a neuron that fired with ``potential``: it starts, goes on or ends.
fn train(neuron: u32, potential: u32, p: Parameters, after: State) -> State {
    var s = after;
    if ((parameters[neuron * PARAMETER_WORDS + FEATURES] & CAN_TRAIN) == 0u) {
        return s;
    }
    let limit = p.consecutive_fire_limits;
    if ((s.status & IN_TRAIN) == 0u) {
        if (s.cc < limit) {
            states[neuron * STATE_WORDS + HELD] = potential;
            s.status |= IN_TRAIN;
            s.rc = 1u;
        }
        return s;
    }
    s.cc += 1u;
    s.rc = 1u;
    if (s.cc >= limit) {
        s.status &= ~IN_TRAIN;
        s.rc = min(p.refractory_periods + p.snooze_periods, 65535u);
    }
    return s;
}
