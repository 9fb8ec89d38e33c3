// Arithmetic of SEMANTICS section 3. The probe runs exactly these functions before any network does.
//
// A contraction of `v + x` with the product in x changes nothing: unit is a power of two, so the product is exact. The
// product with `keep` is stored, and nothing is added to it in the same invocation.

// A 64-bit integer of two words, to nearest even: 32 bits of it from the first significant one on, with what lies below
// in the last, are converted, and moved back by an exact product.
fn float_of_wide(low: u32, high: u32) -> f32 {
    let negative = (high >> 31u) != 0u;
    var l = low;
    var h = high;
    if (negative) {
        l = ~low + 1u;
        h = ~high + select(0u, 1u, low == 0u);
    }
    var converted = f32(l);
    if (h != 0u) {
        let shift = firstLeadingBit(h) + 1u;
        var kept = h;
        var lost = l;
        if (shift < 32u) {
            kept = (h << (32u - shift)) | (l >> shift);
            lost = l << (32u - shift);
        }
        converted = f32(kept | select(0u, 1u, lost != 0u)) * bitcast<f32>((127u + shift) << 23u);
    }
    return select(converted, -converted, negative);
}

fn float_of_narrow(low: u32) -> f32 {
    return f32(bitcast<i32>(low));
}

fn integrated(v: f32, sum: f32, unit: f32, floors: bool) -> f32 {
    var x = sum * unit;
    if (floors && x < 0.0) {
        x = 0.0;
    }
    return v + x;
}

fn leaked(v: f32, keep: f32) -> f32 {
    return v * keep;
}

fn reaches(v: f32, threshold: f32) -> bool {
    return v >= threshold;
}

fn exceeds(v: f32, limit: f32) -> bool {
    return v > limit;
}

fn drawn(neuron: u32, burst: u32) -> f32 {
    let seed = neuron * 2654435761u + burst * 1597334677u;
    let s = seed * 747796405u + 2891336453u;
    let w = ((s >> ((s >> 28u) + 4u)) ^ s) * 277803737u;
    let h = (w >> 22u) ^ w;
    return f32(h) * 0x1p-32f;
}

fn excited(excitability: f32, neuron: u32, burst: u32) -> bool {
    if (excitability >= 0.999f) {
        return true;
    }
    return excitability > 0.0f && drawn(neuron, burst) < excitability;
}
