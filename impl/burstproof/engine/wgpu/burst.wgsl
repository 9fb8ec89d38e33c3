// One burst: stimulus, count (where the batch path is emulated), dynamics, propagate. The constants in capitals that
// are not declared here come from `Variant.header`.

// Floats are kept as their words everywhere; `operations.wgsl` says why. `Parameters` comes from `Variant.header` too,
// a word per parameter of a neuron, and so do the places of the words that `features.wgsl` adds to those of a neuron.

// Three words: v; the refractory countdown below, consecutive fires in the upper 16 bits; status.
struct State {
    v: u32,
    rc: u32,
    cc: u32,
    status: u32,
}

struct Burst {
    number: u32,
    slot: u32,
    index: u32,
    neurons: u32,
    slots: u32,
    capacity: u32,
    stimulus_first: u32,
    stimulus_count: u32,
    forced_first: u32,
    forced_count: u32,
    power_neuron: u32,
    power_low: u32,
    power_high: u32,
    unit: u32,
    classes: u32,
    class_flags: u32,
    class_count: u32,
    drivers: u32,
    driver_count: u32,
    lists: u32,
}

// A candidate that did not fire and does not accumulate.
const WAS_CANDIDATE = 1u;
const FORCED = 2u;
const FIRED = 4u;
const IN_TRAIN = 8u;
const UNLIMITED_FIRES = 65535u;
const FORCED_POTENTIAL = 0x42c80000u; // 100

// ring: planes of slots x neurons words: the sums, their upper words where they take two, then the flags.
@group(0) @binding(0) var<storage, read> parameters: array<u32>;
@group(0) @binding(1) var<storage, read_write> states: array<u32>;
@group(0) @binding(2) var<storage, read_write> ring: array<atomic<u32>>;
// The same words for a shader that has a cell to itself; an entry point uses one of the two.
@group(0) @binding(2) var<storage, read_write> cells: array<u32>;
@group(0) @binding(3) var<storage, read> offsets: array<u32>;
@group(0) @binding(4) var<storage, read> synapses: array<u32>;
@group(0) @binding(5) var<storage, read_write> log: array<vec2<u32>>;
// used entries of the log; then, burst by burst, where its list begins (and one end more); then its candidates; then what
// modulators make of the area classes.
@group(0) @binding(6) var<storage, read_write> counted: array<atomic<u32>>;
// stimulus of the bursts, then what the area classes of neurons have: constants, lists of modulators, flags by burst.
@group(0) @binding(7) var<storage, read> stimuli: array<u32>;
@group(1) @binding(0) var<uniform> burst: Burst;

fn neuron_of(group: vec3<u32>, groups: vec3<u32>, lane: u32) -> u32 {
    return (group.y * groups.x + group.x) * WORKGROUP + lane;
}

fn state_of(neuron: u32) -> State {
    let own = neuron * STATE_WORDS;
    let counts = states[own + 1u];
    return State(states[own], counts & 0xffffu, counts >> 16u, states[own + 2u]);
}

fn put_state(neuron: u32, s: State) {
    let own = neuron * STATE_WORDS;
    states[own] = s.v;
    states[own + 1u] = s.rc | (s.cc << 16u);
    states[own + 2u] = s.status;
}

fn list_begin() -> u32 {
    return atomicLoad(&counted[1u + burst.index]);
}

// Whether the log has no room for a burst in which everything fires; no later burst of the batch runs then either.
fn halted() -> bool {
    return burst.capacity - list_begin() < burst.neurons;
}

fn plane(number: u32) -> u32 {
    return number * burst.slots * burst.neurons;
}

// Every wrap of the lower word is seen by just the addition that makes it, so the carries are complete in any order.
fn add_to(cell: u32, low: u32, high: u32) {
    let old = atomicAdd(&ring[cell], low);
    if (WIDE) {
        let carried = high + select(0u, 1u, old + low < old);
        if (carried != 0u) {
            atomicAdd(&ring[cell + plane(1u)], carried);
        }
    }
    if (FLAGGED) {
        atomicStore(&ring[cell + plane(FLAG_PLANE)], 1u);
    }
}

fn upper_word(cell: u32) -> u32 {
    if (WIDE) {
        return cells[cell + plane(1u)];
    }
    return 0u;
}

fn is_candidate(cell: u32, neuron: u32) -> bool {
    if (neuron == burst.power_neuron) {
        return true;
    }
    if (FLAGGED) {
        return cells[cell + plane(FLAG_PLANE)] != 0u;
    }
    return (cells[cell] | upper_word(cell)) != 0u;
}

// The sum of a cell, with the power neuron's share, as a float; the cell is empty afterwards.
fn taken_sum(cell: u32, neuron: u32) -> u32 {
    var low = cells[cell];
    var high = upper_word(cell);
    cells[cell] = 0u;
    if (WIDE) {
        cells[cell + plane(1u)] = 0u;
    }
    if (FLAGGED) {
        cells[cell + plane(FLAG_PLANE)] = 0u;
    }
    if (neuron == burst.power_neuron) {
        low += burst.power_low;
        high += burst.power_high + select(0u, 1u, low < burst.power_low);
    }
    if (WIDE) {
        return float_of_wide(low, high);
    }
    return float_of_narrow(low);
}

@compute @workgroup_size(WORKGROUP)
fn stimulus(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32
) {
    let i = neuron_of(group, groups, lane);
    if (halted()) {
        return;
    }
    if (i < burst.stimulus_count) {
        let entry = burst.stimulus_first + 3u * i;
        add_to(burst.slot * burst.neurons + stimuli[entry], stimuli[entry + 1u], stimuli[entry + 2u]);
    }
    if (i < burst.forced_count) {
        states[stimuli[burst.forced_first + i] * STATE_WORDS + 2u] |= FORCED;
    }
}

// Potential, countdown and count after the dynamics, whether the neuron fired, and the potential before a reset.
struct Outcome {
    v: u32,
    rc: u32,
    cc: u32,
    fired: bool,
    shown: u32,
}

fn dynamics_of(neuron: u32, p: Parameters, old: u32, sum: u32, cc_before: u32, batch: bool) -> Outcome {
    let limit = p.consecutive_fire_limits;
    let finite = limit != 0u && limit != UNLIMITED_FIRES;
    let v = kept(integrated(old, sum, burst.unit, p.mp_charge_accumulation != 0u && !NEGATIVE_SUM_LOWERS));
    var inside = reaches(v, p.thresholds);
    if (exceeds(v, p.threshold_limits) && !(batch && BATCH_ZEROES)) {
        inside = false;
    }
    if (inside && cc_before >= select(UNLIMITED_FIRES, limit, finite)) {
        if (!batch) {
            return Outcome(v, 0u, 0u, false, v);
        }
        let cc = select(cc_before, 0u, finite);
        if (BATCH_ZEROES) {
            return Outcome(0u, 0u, cc, false, v);
        }
        return Outcome(kept(leaked(v, p.decays)), 0u, cc, false, v);
    }
    if (inside && excited(p.excitabilities, neuron, burst.number)) {
        let cc = min(cc_before + 1u, 65535u);
        var rc = p.refractory_periods;
        if (finite && cc >= limit && !batch) {
            rc = min(p.refractory_periods + p.snooze_periods, 65535u);
        }
        return Outcome(0u, rc, cc, true, v);
    }
    return Outcome(kept(leaked(v, p.decays)), 0u, select(cc_before, 0u, finite), false, v);
}

fn restarts(accumulates: bool, status: u32, rc: u32) -> bool {
    if (RESTART == RESTART_CANDIDATES) {
        return (status & WAS_CANDIDATE) != 0u && rc == 0u;
    }
    if (RESTART == RESTART_ALL) {
        return !accumulates;
    }
    return !accumulates && (status & FIRED) != 0u;
}

fn append(neuron: u32, potential: u32) {
    let place = atomicAdd(&counted[0], 1u);
    log[place] = vec2<u32>(neuron, potential);
}

// What the burst does to neuron i; whether it was a candidate.
fn advance(i: u32) -> bool {
    let cell = burst.slot * burst.neurons + i;
    let candidate = is_candidate(cell, i);
    let before = state_of(i);
    if (!candidate && before.rc == 0u && before.status == 0u && RESTART != RESTART_ALL) {
        if (HOMEOSTATS) {
            regulate(i, false);
        }
        return false;
    }
    var sum = 0u;
    if (candidate) {
        sum = taken_sum(cell, i);
    }
    let p = parameters_of(i);
    let accumulates = p.mp_charge_accumulation != 0u;
    var s = before;
    s.status = before.status & IN_TRAIN;
    if (restarts(accumulates, before.status, before.rc)) {
        s.v = 0u;
    }
    let forced = (before.status & (FORCED | IN_TRAIN)) != 0u;
    var fired = false;
    var shown = 0u;
    if (before.rc > 0u) {
        if ((candidate || !COUNTDOWN_ONLY_CANDIDATES) && !forced) {
            s.rc -= 1u;
            let limit = p.consecutive_fire_limits;
            if (s.rc == 0u && limit != 0u && limit != UNLIMITED_FIRES && s.cc >= limit) {
                s.cc = 0u;
            }
        }
    } else if (candidate) {
        var batch = false;
        if (BATCH_PATH) {
            batch = atomicLoad(&counted[FIRST_CANDIDATES + burst.index]) >= BATCH_PATH_CANDIDATES;
        }
        let outcome = dynamics_of(i, in_force(i), s.v, sum, s.cc, batch);
        s.v = outcome.v;
        s.rc = outcome.rc;
        s.cc = outcome.cc;
        fired = outcome.fired;
        shown = outcome.shown;
    }
    if (!fired && forced) {
        shown = FORCED_POTENTIAL;
        if (TRAINS && s.status == IN_TRAIN) {
            shown = states[i * STATE_WORDS + HELD];
        }
        fired = true;
    }
    if (fired) {
        append(i, shown);
        s.status |= FIRED;
        if (TRAINS) {
            s = train(i, shown, p, s);
        }
    } else if (candidate && !accumulates) {
        s.status |= WAS_CANDIDATE;
    }
    put_state(i, s);
    if (HOMEOSTATS) {
        regulate(i, fired);
    }
    return candidate;
}

var<workgroup> candidates_here: atomic<u32>;

// The workgroup adds one number to the words of the batch, as all those atomic additions to one word would queue. The
// variable is set to 0 here, since a driver was seen (llvmpipe of Mesa 22.3) that keeps the last workgroup's count.
fn tally(candidate: bool, lane: u32) {
    if (lane == 0u) {
        atomicStore(&candidates_here, 0u);
    }
    workgroupBarrier();
    if (candidate) {
        atomicAdd(&candidates_here, 1u);
    }
    workgroupBarrier();
    let found = atomicLoad(&candidates_here);
    if (lane == 0u && found != 0u) {
        atomicAdd(&counted[FIRST_CANDIDATES + burst.index], found);
    }
}

@compute @workgroup_size(WORKGROUP)
fn count(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32
) {
    let i = neuron_of(group, groups, lane);
    var candidate = false;
    if (i < burst.neurons && !halted()) {
        candidate = is_candidate(burst.slot * burst.neurons + i, i);
    }
    tally(candidate, lane);
}

@compute @workgroup_size(WORKGROUP)
fn dynamics(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32
) {
    let i = neuron_of(group, groups, lane);
    var candidate = false;
    if (i < burst.neurons && !halted()) {
        candidate = advance(i);
    }
    if (!BATCH_PATH) {
        tally(candidate, lane);
    }
}

// A workgroup takes a fired neuron at a time; its lanes share out the row.
@compute @workgroup_size(ROW_LANES)
fn propagate(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32
) {
    let first = list_begin();
    let end = atomicLoad(&counted[0]);
    if (group.x == 0u && lane == 0u) {
        atomicStore(&counted[2u + burst.index], end);
    }
    for (var k = first + group.x; k < end; k += groups.x) {
        let source = log[k].x;
        let row_end = offsets[source + 1u];
        for (var s = offsets[source] + lane; s < row_end; s += ROW_LANES) {
            let entry = s * WORDS_PER_SYNAPSE;
            var slot = burst.slot + 1u;
            if (DELAYED) {
                slot = burst.slot + synapses[entry + WORDS_PER_SYNAPSE - 1u];
            }
            var high = 0u;
            if (WIDE) {
                high = synapses[entry + 2u];
            }
            add_to((slot % burst.slots) * burst.neurons + synapses[entry], synapses[entry + 1u], high);
        }
    }
}
