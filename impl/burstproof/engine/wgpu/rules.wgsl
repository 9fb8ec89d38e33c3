// Arithmetic of SEMANTICS section 3 and FEATURES section 2.1, on the words of float32 numbers. The probe runs exactly
// these functions before any network does.
//
// A contraction of `v + x` with the product in x changes nothing: unit is a power of two, so the product is exact. The
// product with `decay` is stored, and nothing is added to it in the same invocation.

// A 64-bit integer of two words, to nearest even: 32 bits of it from the first significant one on, with what lies below
// in the last, are converted, and moved back by an exact product.
fn float_of_wide(low: u32, high: u32) -> u32 {
    let sign = high & SIGN;
    var l = low;
    var h = high;
    if (sign != 0u) {
        l = ~low + 1u;
        h = ~high + select(0u, 1u, low == 0u);
    }
    if (h == 0u) {
        return sign | float_of_unsigned(l);
    }
    let shift = firstLeadingBit(h) + 1u;
    var kept = h;
    var lost = l;
    if (shift < 32u) {
        kept = (h << (32u - shift)) | (l >> shift);
        lost = l << (32u - shift);
    }
    return sign | times(float_of_unsigned(kept | select(0u, 1u, lost != 0u)), (127u + shift) << 23u);
}

fn float_of_narrow(low: u32) -> u32 {
    return float_of_signed(low);
}

// sum is an integer and unit from 2^-62 to 1, so x is 0, or so large that a subnormal v adds nothing to it and v + x is
// no subnormal either. Where x is 0 or v is not finite, v stays; only -0 becomes 0.
fn integrated(v: u32, sum: u32, unit: u32, floors: bool) -> u32 {
    let x = times(sum, unit);
    if (!is_finite(v) || is_zero(x) || (floors && (x & SIGN) != 0u)) {
        return select(v, 0u, is_zero(v));
    }
    return plus(v, x);
}

fn leaked(v: u32, decay: u32) -> u32 {
    return product(v, decay);
}

fn reaches(v: u32, threshold: u32) -> bool {
    return at_least(v, threshold);
}

fn exceeds(v: u32, limit: u32) -> bool {
    return above(v, limit);
}

const TWO_TO_MINUS_32 = 0x2f800000u;
const ALWAYS_EXCITED = 0x3f7fbe77u; // 0.999

fn drawn(neuron: u32, burst: u32) -> u32 {
    let seed = neuron * 2654435761u + burst * 1597334677u;
    let s = seed * 747796405u + 2891336453u;
    let w = ((s >> ((s >> 28u) + 4u)) ^ s) * 277803737u;
    let h = (w >> 22u) ^ w;
    return times(float_of_unsigned(h), TWO_TO_MINUS_32);
}

fn excited(excitability: u32, neuron: u32, burst: u32) -> bool {
    if (at_least(excitability, ALWAYS_EXCITED)) {
        return true;
    }
    return above(excitability, 0u) && above(excitability, drawn(neuron, burst));
}

const ONE = 0x3f800000u;

// Strength of a driver that fired: the potential's share in the full scale, at most 1; at a full scale of 0 always 1.
fn strength(potential: u32, full: u32) -> u32 {
    if (is_zero(full) || !is_number(potential) || !is_number(full) || at_least(potential, full)) {
        return ONE;
    }
    if (!is_finite(potential)) {
        return select(ONE, potential, is_finite(full));
    }
    if (is_zero(potential) || !is_finite(full)) {
        return potential & SIGN;
    }
    return (potential & SIGN) | quotient(potential, full);
}
