// What the rules make of a table of cases, six words each: v, sum, unit, keep, threshold, excitability.
// Eight words come out of each: integrated, with the floor, leaked, reaches, exceeds, drawn, excited, float_of_wide.

@group(0) @binding(0) var<storage, read> cases: array<u32>;
@group(0) @binding(1) var<storage, read_write> answers: array<u32>;

@compute @workgroup_size(64)
fn probe(@builtin(global_invocation_id) place: vec3<u32>) {
    let i = place.x;
    if (i * 6u >= arrayLength(&cases)) {
        return;
    }
    let v = bitcast<f32>(cases[6u * i]);
    let sum = float_of_narrow(cases[6u * i + 1u]);
    let unit = bitcast<f32>(cases[6u * i + 2u]);
    let keep = bitcast<f32>(cases[6u * i + 3u]);
    let threshold = bitcast<f32>(cases[6u * i + 4u]);
    let excitability = bitcast<f32>(cases[6u * i + 5u]);
    answers[8u * i] = bitcast<u32>(integrated(v, sum, unit, false));
    answers[8u * i + 1u] = bitcast<u32>(integrated(v, sum, unit, true));
    answers[8u * i + 2u] = bitcast<u32>(leaked(v, keep));
    answers[8u * i + 3u] = u32(reaches(v, threshold));
    answers[8u * i + 4u] = u32(exceeds(v, threshold));
    answers[8u * i + 5u] = bitcast<u32>(drawn(cases[6u * i], cases[6u * i + 1u]));
    answers[8u * i + 6u] = u32(excited(excitability, cases[6u * i], cases[6u * i + 1u]));
    answers[8u * i + 7u] = bitcast<u32>(float_of_wide(cases[6u * i], cases[6u * i + 1u]));
}
