// float32 where the adapter may flush subnormals and know neither infinity nor NaN: comparisons of words, and products
// that integers round where a subnormal goes in or comes out.

const SIGN = 0x80000000u;
const MAGNITUDE = 0x7fffffffu;
const FRACTION = 0x7fffffu;
const HIDDEN_BIT = 0x800000u;
const INFINITE = 0x7f800000u;
const NO_NUMBER = 0x7fc00000u;

fn exponent_field(x: u32) -> u32 {
    return (x >> 23u) & 0xffu;
}

fn is_zero(x: u32) -> bool {
    return (x & MAGNITUDE) == 0u;
}

fn is_finite(x: u32) -> bool {
    return exponent_field(x) != 255u;
}

fn is_number(x: u32) -> bool {
    return (x & MAGNITUDE) <= INFINITE;
}

// An integer that is ordered as the numbers are; the same for both zeros.
fn place_in_order(x: u32) -> i32 {
    let magnitude = i32(x & MAGNITUDE);
    return select(magnitude, -magnitude, (x & SIGN) != 0u);
}

fn at_least(a: u32, b: u32) -> bool {
    return is_number(a) && is_number(b) && place_in_order(a) >= place_in_order(b);
}

fn above(a: u32, b: u32) -> bool {
    return is_number(a) && is_number(b) && place_in_order(a) > place_in_order(b);
}

// bits x 2^exponent, with bits from 2^23 on.
struct Scaled {
    bits: u32,
    exponent: i32,
}

fn scaled(x: u32) -> Scaled {
    let field = exponent_field(x);
    if (field == 0u) {
        let shift = countLeadingZeros(x & FRACTION) - 8u;
        return Scaled((x & FRACTION) << shift, -149 - i32(shift));
    }
    return Scaled((x & FRACTION) | HIDDEN_BIT, i32(field) - 150);
}

// The magnitude of a product of finite numbers other than 0 that does not overflow, to nearest even. Of its 48 bits 27
// are kept, the last of them set if anything lies below; that is at least one bit more than tells halves apart.
fn small_product(a: u32, b: u32) -> u32 {
    let x = scaled(a);
    let y = scaled(b);
    let x_high = x.bits >> 12u;
    let x_low = x.bits & 0xfffu;
    let y_high = y.bits >> 12u;
    let y_low = y.bits & 0xfffu;
    let last = x_low * y_low;
    let middle = x_high * y_low + x_low * y_high + (last >> 12u);
    let high = x_high * y_high + (middle >> 12u);
    let low = ((middle & 0xfffu) << 12u) | (last & 0xfffu);
    let kept = (high << 3u) | (low >> 21u) | select(0u, 1u, (low & 0x1fffffu) != 0u);
    return nearest(kept, x.exponent + y.exponent + 21);
}

// kept x 2^exponent to nearest even; kept has 26 or 27 bits, the last of them set if anything lies below.
fn nearest(kept: u32, exponent: i32) -> u32 {
    let of_last_place = max(exponent + select(2, 3, kept >= 0x4000000u), -149);
    let shift = u32(min(of_last_place - exponent, 28));
    let odd = (kept >> shift) & 1u;
    let rounded = (kept + (1u << (shift - 1u)) - 1u + odd) >> shift;
    return min((u32(of_last_place + 149) << 23u) + rounded, INFINITE);
}

// The magnitude of a quotient of finite numbers other than 0, to nearest even: 26 binary digits, then whether more follow.
fn quotient(a: u32, b: u32) -> u32 {
    let x = scaled(a);
    let y = scaled(b);
    let carries = x.bits < y.bits;
    var left = select(x.bits, x.bits << 1u, carries);
    var digits = 0u;
    for (var place = 0u; place < 26u; place++) {
        let fits = left >= y.bits;
        digits = (digits << 1u) | select(0u, 1u, fits);
        left = (left - select(0u, y.bits, fits)) << 1u;
    }
    let exponent = x.exponent - y.exponent - select(26, 27, carries);
    return nearest((digits << 1u) | select(0u, 1u, left != 0u), exponent);
}

// The adapter multiplies where the result is 2^-125 or more.
fn product(a: u32, b: u32) -> u32 {
    let sign = (a ^ b) & SIGN;
    if (!is_finite(a) || !is_finite(b)) {
        let none = !is_number(a) || !is_number(b) || is_zero(a) || is_zero(b);
        return select(sign | INFINITE, NO_NUMBER, none);
    }
    if (is_zero(a) || is_zero(b)) {
        return sign;
    }
    let x = exponent_field(a);
    let y = exponent_field(b);
    if (min(x, y) == 0u || x + y <= 128u) {
        return sign | small_product(a, b);
    }
    return times(a, b);
}

// The sum of any two numbers to nearest even, in integers alone: no adapter flushes anything of it, and none contracts
// it with a product before it. Three bits below the last place are kept, the last of them set if anything lies below.
fn total(a: u32, b: u32) -> u32 {
    if (!is_finite(a) || !is_finite(b)) {
        let none = !is_number(a) || !is_number(b) || (!is_finite(a) && !is_finite(b) && a != b);
        return select(select(a, b, is_finite(a)), NO_NUMBER, none);
    }
    let first = (a & MAGNITUDE) >= (b & MAGNITUDE);
    let more = select(b, a, first);
    let less = select(a, b, first);
    if (is_zero(less)) {
        return select(more, a & b, is_zero(more));
    }
    var field = max(exponent_field(more), 1u);
    let shift = min(field - max(exponent_field(less), 1u), 31u);
    let whole = places_of(less);
    let moved = (whole >> shift) | select(0u, 1u, (whole & ((1u << shift) - 1u)) != 0u);
    var bits = select(places_of(more) - moved, places_of(more) + moved, ((a ^ b) & SIGN) == 0u);
    if (bits == 0u) {
        return 0u;
    }
    if (bits >= 0x8000000u) {
        bits = (bits >> 1u) | (bits & 1u);
        field += 1u;
    } else {
        let up = min(countLeadingZeros(bits) - 5u, field - 1u);
        bits <<= up;
        field -= up;
    }
    let rounded = (bits + 3u + ((bits >> 3u) & 1u)) >> 3u;
    return (more & SIGN) | min(((field - 1u) << 23u) + rounded, INFINITE);
}

// The significant bits of a number, from the place of 2^-149 or of its exponent on, with three more below.
fn places_of(x: u32) -> u32 {
    return ((x & FRACTION) | select(0u, HIDDEN_BIT, exponent_field(x) != 0u)) << 3u;
}

fn bounded(x: u32, least: u32, most: u32) -> u32 {
    if (above(least, x)) {
        return least;
    }
    return select(x, most, above(x, most));
}
