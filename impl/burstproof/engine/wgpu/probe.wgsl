// What the rules make of a table of cases, six words each: v, sum, unit, decay, threshold, excitability.
// Ten words come out of each: integrated, with the floor, leaked, reaches, exceeds, drawn, excited, float_of_wide, the
// threshold added to what is leaked, and the share of v in the threshold's magnitude.

@group(0) @binding(0) var<storage, read> cases: array<u32>;
@group(0) @binding(1) var<storage, read_write> answers: array<u32>;

@compute @workgroup_size(64)
fn probe(@builtin(global_invocation_id) place: vec3<u32>) {
    let i = place.x;
    if (i * 6u >= arrayLength(&cases)) {
        return;
    }
    let v = cases[6u * i];
    let number = cases[6u * i + 1u];
    let sum = float_of_narrow(number);
    let unit = cases[6u * i + 2u];
    let threshold = cases[6u * i + 4u];
    answers[10u * i] = integrated(v, sum, unit, false);
    answers[10u * i + 1u] = integrated(v, sum, unit, true);
    answers[10u * i + 2u] = leaked(v, cases[6u * i + 3u]);
    answers[10u * i + 3u] = u32(reaches(v, threshold));
    answers[10u * i + 4u] = u32(exceeds(v, threshold));
    answers[10u * i + 5u] = drawn(v, number);
    answers[10u * i + 6u] = u32(excited(cases[6u * i + 5u], v, number));
    answers[10u * i + 7u] = float_of_wide(v, number);
    answers[10u * i + 8u] = total(leaked(v, cases[6u * i + 3u]), threshold);
    answers[10u * i + 9u] = strength(v, threshold & MAGNITUDE);
}
