// The only operations on float32 of all shaders, on the words that hold the numbers. WGSL lets an adapter flush
// subnormals in each of them, what goes in as well as what comes out, so everything else handles words.

fn plus(a: u32, b: u32) -> u32 {
    return bitcast<u32>(bitcast<f32>(a) + bitcast<f32>(b));
}

fn times(a: u32, b: u32) -> u32 {
    return bitcast<u32>(bitcast<f32>(a) * bitcast<f32>(b));
}

fn float_of_unsigned(x: u32) -> u32 {
    return bitcast<u32>(f32(x));
}

fn float_of_signed(x: u32) -> u32 {
    return bitcast<u32>(f32(bitcast<i32>(x)));
}
