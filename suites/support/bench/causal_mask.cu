// The causal mask of standard attention, written into bfloat16 scores in one pass that touches nothing but what it hides.

// scores (matrices, length, length), length a multiple of 8: column > row becomes -infinity. Grid: rows x matrices.
extern "C" __global__ void __launch_bounds__(256) hide_later_keys(unsigned short* scores, int length) {
    const unsigned short hidden = 0xff80;
    const int row = blockIdx.x;
    unsigned short* place = scores + (static_cast<long long>(blockIdx.y) * length + row) * length;
    const int edge = (row + 8) & ~7;  // the first column after the row's that begins a group of eight
    const int column = row + 1 + threadIdx.x;
    if (column < edge) place[column] = hidden;
    for (int group = edge + 8 * threadIdx.x; group < length; group += 8 * 256)
        *reinterpret_cast<uint4*>(place + group) = make_uint4(0xff80ff80u, 0xff80ff80u, 0xff80ff80u, 0xff80ff80u);
}
