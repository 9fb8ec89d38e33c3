// FEATURES.md: signals (2.1) and what is in force of a neuron (2.2), homeostats (1), spike trains (3), the 8-bit range
// (6). Each switch is a constant of `Variant.header`; products, sums and quotients are those of `small.wgsl`.

const FULL = 0x437f0000u; // 255

// The word of a neuron's features: its area class, and whether its firings start a train.
const CLASS = 0xffffu;
const CAN_TRAIN = 0x10000u;

// Flags of a class in one burst: its homeostat updates the leaks after it; leaks are the homeostat's; parameters are
// scaled.
const UPDATES = 1u;
const REGULATED = 2u;
const SCALES_THRESHOLD = 4u;
const SCALES_LEAK = 8u;
const SCALES_EXCITABILITY = 16u;
const HOMEOSTATIC = 32u;

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

// Behind the words of a batch: factors of threshold, leak and excitability of each class, those in force in burst b in
// row b mod 2; then the first neuron of each driver area that fired in the burst, then their potentials.
fn factors_of(number: u32) -> u32 {
    return BATCH_WORDS + (number & 1u) * 3u * burst.class_count;
}

fn factor(kind: u32, parameter: u32) -> u32 {
    return atomicLoad(&counted[factors_of(burst.number) + 3u * kind + parameter]);
}

// The parameters of a neuron that hold in this burst.
fn in_force(neuron: u32) -> Parameters {
    var p = parameters_of(neuron);
    if (!HOMEOSTATS && !MODULATED) {
        return p;
    }
    let kind = class_of(neuron);
    let flags = stimuli[burst.class_flags + kind];
    let homeostatic = HOMEOSTATS && (flags & HOMEOSTATIC) != 0u;
    if (homeostatic && (flags & REGULATED) != 0u) {
        p.decays = complement(states[neuron * STATE_WORDS + LEAK]);
    }
    if (!MODULATED) {
        return p;
    }
    if ((flags & SCALES_THRESHOLD) != 0u) {
        p.thresholds = product(p.thresholds, factor(kind, 0u));
        p.thresholds = kept(select(p.thresholds, 0u, above(0u, p.thresholds)));
    }
    if ((flags & SCALES_LEAK) != 0u) {
        var base = parameters[neuron * PARAMETER_WORDS + BASE_LEAK];
        if (homeostatic) {
            base = states[neuron * STATE_WORDS + LEAK];
        }
        p.decays = complement(bounded(product(base, factor(kind, 1u)), 0u, ONE));
    }
    if ((flags & SCALES_EXCITABILITY) != 0u) {
        p.excitabilities = bounded(product(p.excitabilities, factor(kind, 2u)), 0u, ONE);
    }
    return p;
}

// The homeostat of a neuron after a burst in which it fired or not.
fn regulate(neuron: u32, fired: bool) {
    let kind = class_of(neuron);
    let flags = stimuli[burst.class_flags + kind];
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

const NOBODY = 0xffffffffu;
const ITEM_WORDS = 3u;

// The signal of an item of a list: magnitude, full scale, number of the driver area.
fn signal(item: u32) -> u32 {
    let first = burst.drivers + stimuli[item + 2u];
    var share = 0u;
    if (atomicLoad(&counted[first]) != NOBODY) {
        share = strength(atomicLoad(&counted[first + burst.driver_count]), stimuli[item + 1u]);
    }
    return product(stimuli[item], share);
}

// One workgroup: from what fired in this burst to the factors of the next one, unless the batch halts. Of a driver area
// the neuron of the lowest id decides.
@compute @workgroup_size(WORKGROUP)
fn modulate(@builtin(local_invocation_index) lane: u32) {
    let first = list_begin();
    let end = atomicLoad(&counted[0]);
    for (var d = lane; d < burst.driver_count; d += WORKGROUP) {
        atomicStore(&counted[burst.drivers + d], NOBODY);
    }
    storageBarrier();
    for (var k = first + lane; k < end; k += WORKGROUP) {
        let driver = parameters[log[k].x * PARAMETER_WORDS + DRIVER];
        if (driver != 0u) {
            atomicMin(&counted[burst.drivers + driver - 1u], log[k].x);
        }
    }
    storageBarrier();
    for (var k = first + lane; k < end; k += WORKGROUP) {
        let driver = parameters[log[k].x * PARAMETER_WORDS + DRIVER];
        if (driver != 0u && atomicLoad(&counted[burst.drivers + driver - 1u]) == log[k].x) {
            atomicStore(&counted[burst.drivers + burst.driver_count + driver - 1u], log[k].y);
        }
    }
    storageBarrier();
    if (halted()) {
        return;
    }
    for (var f = lane; f < 3u * burst.class_count; f += WORKGROUP) {
        var made = ONE;
        for (var i = stimuli[burst.lists + f]; i < stimuli[burst.lists + f + 1u]; i++) {
            made = product(made, total(ONE, signal(burst.lists + ITEM_WORDS * i)));
        }
        atomicStore(&counted[factors_of(burst.number + 1u) + f], made);
    }
}
