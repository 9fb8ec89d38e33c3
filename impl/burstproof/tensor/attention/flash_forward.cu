// Flash attention, forward (Dao 2023, "FlashAttention-2", algorithm 1): a block owns OWN query rows and streams the keys
// and values through two stages of shared memory; scores live in registers only. Grid: heads x query tiles x batch.

__device__ __forceinline__ float quad_max(float value) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
    return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float quad_sum(float value) {
    value += __shfl_xor_sync(0xffffffffu, value, 1);
    return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// Scores of keys that a query must not see become -infinity.
__device__ __forceinline__ void hide(Scores& scores, int query, int key, int keys) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
        for (int column = 0; column < BLOCK / 8; column++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int at_key = key + column * 8 + (lane & 3) * 2 + (i & 1);
                const int at_query = query + strip * 16 + (lane >> 2) + (i >> 1) * 8;
                if (at_key >= keys || (CAUSAL && at_key > at_query)) scores[strip][column][i] = minus_infinity();
            }
}

// New row maxima after one tile of the online softmax, to which earlier sums are rescaled; but only where some maximum of
// the warp's grew by more than SLACK powers of two. Until then probabilities relative to the old maximum are at most
// 2^SLACK, within the range of 16 bits, and the final division makes the result the same.
__device__ __forceinline__ void rescale(
    const Scores& scores, Sums& sums, float (&largest)[STRIPS][2], float (&total)[STRIPS][2], float scale) {
    constexpr float SLACK = 8.0f;
    float tops[STRIPS][2];
    bool rises = false;
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float top = largest[strip][half];
#pragma unroll
            for (int column = 0; column < BLOCK / 8; column++)
                top = fmaxf(top, fmaxf(scores[strip][column][2 * half], scores[strip][column][2 * half + 1]));
            tops[strip][half] = quad_max(top);  // finite: the first tile holds key 0, which every query sees
            rises |= (tops[strip][half] - largest[strip][half]) * scale > SLACK;
        }
    if (!__any_sync(0xffffffffu, rises)) return;
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float shrink = power_of_two((largest[strip][half] - tops[strip][half]) * scale);
            largest[strip][half] = tops[strip][half];
            total[strip][half] *= shrink;
#pragma unroll
            for (int column = 0; column < HEAD / 8; column++) {
                sums[strip][column][2 * half] *= shrink;
                sums[strip][column][2 * half + 1] *= shrink;
            }
        }
}

// Scores become probabilities relative to the row maxima, which are added up.
__device__ __forceinline__ void soften(
    Scores& scores, const float (&largest)[STRIPS][2], float (&total)[STRIPS][2], float scale) {
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float shift = largest[strip][half] * scale;
            float sum = total[strip][half];
#pragma unroll
            for (int column = 0; column < BLOCK / 8; column++)
#pragma unroll
                for (int i = 2 * half; i < 2 * half + 2; i++) {
                    scores[strip][column][i] = power_of_two(scores[strip][column][i] * scale - shift);
                    sum += scores[strip][column][i];
                }
            total[strip][half] = sum;
        }
}

// scale: softmax scale x log2(e), positive. lse: natural logarithm of the sums of exponentials, float32 (batch, head, query).
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) flash_forward(
    const half_bits* q, const half_bits* k, const half_bits* v, half_bits* out, float* lse, const Strides by,
    int queries, int keys, float scale) {
    const Rows q_rows{by.q_batch, by.q_head, by.q_row}, k_rows{by.k_batch, by.k_head, by.k_row};
    const Rows out_rows{by.out_batch, by.out_head, by.out_row};
    const int batch = blockIdx.z, head = blockIdx.x;
    const int first = (gridDim.y - 1 - blockIdx.y) * OWN;  // the longest causal rows of all heads start first
    const int own = (threadIdx.x / 32) * STRIPS * 16;      // first row of this warp within the block's
    q += q_rows.start(batch, head) + first * q_rows.row;
    k += k_rows.start(batch, head);
    v += k_rows.start(batch, head);
    out += out_rows.start(batch, head) + first * out_rows.row;
    lse += ((long long)batch * gridDim.x + head) * queries + first;

    const word q_tile = shared_start(), stages = q_tile + OWN * ROW_BYTES;
    const int tiles = ((CAUSAL ? min(keys, first + OWN) : keys) + BLOCK - 1) / BLOCK;
    const int whole = (CAUSAL ? min(keys, first + 1) : keys) / BLOCK;  // tiles of which every query sees every key
    const auto fetch = [&](int tile) {
        const word stage = stages + (tile & 1) * 2 * TILE_BYTES;
        const int key = tile * BLOCK;
        fetch_rows<BLOCK>(stage, k + key * k_rows.row, k_rows.row, keys - key);
        fetch_rows<BLOCK>(stage + TILE_BYTES, v + key * k_rows.row, k_rows.row, keys - key);
        copies_end_group();
    };
    fetch_rows<OWN>(q_tile, q, q_rows.row, queries - first);
    fetch(0);
    copies_wait();
    __syncthreads();
    Held held;
    held.take(q_tile, own);

    Sums sums;
    clear(sums);
    float largest[STRIPS][2], total[STRIPS][2];
#pragma unroll
    for (int i = 0; i < STRIPS * 2; i++) {
        largest[i / 2][i % 2] = minus_infinity();
        total[i / 2][i % 2] = 0.0f;
    }
    const auto attend = [&](int tile, bool edge) {
        if (tile > 0) {
            copies_wait();
            __syncthreads();
        }
        if (tile + 1 < tiles) fetch(tile + 1);
        const word here = stages + (tile & 1) * 2 * TILE_BYTES;
        const int key = tile * BLOCK;
        if (edge && CAUSAL && key >= first + own + STRIPS * 16) return;  // hidden from all queries of this warp
        Scores scores;
        multiply_transposed(scores, held, here);
        if (edge) hide(scores, first + own, key, keys);
        rescale(scores, sums, largest, total, scale);
        soften(scores, largest, total, scale);
        multiply_into(sums, scores, here + TILE_BYTES);
    };
    for (int tile = 0; tile < whole; tile++) attend(tile, false);  // two copies of the code: this one without a mask
    for (int tile = whole; tile < tiles; tile++) attend(tile, true);

    const int lane = threadIdx.x & 31;
    float factor[STRIPS][2];
#pragma unroll
    for (int i = 0; i < STRIPS * 2; i++) {
        const float sum = quad_sum(total[i / 2][i % 2]);
        factor[i / 2][i % 2] = 1.0f / sum;
        const int row = own + (i / 2) * 16 + (i % 2) * 8 + (lane >> 2);
        if ((lane & 3) == 0 && first + row < queries) lse[row] = largest[i / 2][i % 2] * scale / LOG2_E + logf(sum);
    }
    store_rows(out, out_rows.row, own, queries - first, sums, factor);
}
