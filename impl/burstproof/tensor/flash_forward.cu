// Flash attention, forward (Dao 2023, "FlashAttention-2", algorithm 1): a block owns OWN query rows and streams the keys
// and values through two stages of shared memory; scores live in registers only. Grid: query tiles x heads x batch.

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

// One tile of the online softmax: scores become probabilities relative to the new row maxima, earlier sums are rescaled.
__device__ __forceinline__ void soften(
    Scores& scores, Sums& sums, float (&largest)[STRIPS][2], float (&total)[STRIPS][2], float scale) {
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float top = largest[strip][half];
#pragma unroll
            for (int column = 0; column < BLOCK / 8; column++)
                top = fmaxf(top, fmaxf(scores[strip][column][2 * half], scores[strip][column][2 * half + 1]));
            top = quad_max(top);
            const float shift = top * scale;  // finite: the first tile holds key 0, which every query sees
            const float shrink = power_of_two(largest[strip][half] * scale - shift);
            largest[strip][half] = top;
            float sum = total[strip][half] * shrink;
#pragma unroll
            for (int column = 0; column < BLOCK / 8; column++)
#pragma unroll
                for (int i = 2 * half; i < 2 * half + 2; i++) {
                    scores[strip][column][i] = power_of_two(scores[strip][column][i] * scale - shift);
                    sum += scores[strip][column][i];
                }
            total[strip][half] = sum;
#pragma unroll
            for (int column = 0; column < HEAD / 8; column++) {
                sums[strip][column][2 * half] *= shrink;
                sums[strip][column][2 * half + 1] *= shrink;
            }
        }
}

// scale: softmax scale x log2(e), positive. lse: natural logarithm of the sums of exponentials, float32 (batch, head, query).
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) flash_forward(
    const half_bits* q, const half_bits* k, const half_bits* v, half_bits* out, float* lse, long long q_batch,
    long long q_head, long long q_row, long long k_batch, long long k_head, long long k_row, long long out_batch,
    long long out_head, long long out_row, int queries, int keys, float scale) {
    const int batch = blockIdx.z, head = blockIdx.y;
    const int first = (gridDim.x - 1 - blockIdx.x) * OWN;  // the longest causal rows start first
    const int own = (threadIdx.x / 32) * STRIPS * 16;      // first row of this warp within the block's
    const Rows q_rows{q_batch, q_head, q_row}, k_rows{k_batch, k_head, k_row}, out_rows{out_batch, out_head, out_row};
    q += q_rows.start(batch, head) + first * q_row;
    k += k_rows.start(batch, head);
    v += k_rows.start(batch, head);
    out += out_rows.start(batch, head) + first * out_row;
    lse += ((long long)batch * gridDim.y + head) * queries + first;

    const word q_tile = shared_start(), stages = q_tile + OWN * ROW_BYTES;
    const int tiles = ((CAUSAL ? min(keys, first + OWN) : keys) + BLOCK - 1) / BLOCK;
    fetch_rows<OWN>(q_tile, q, q_row, queries - first);
    fetch_rows<BLOCK>(stages, k, k_row, keys);
    fetch_rows<BLOCK>(stages + TILE_BYTES, v, k_row, keys);
    copies_end_group();
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
    for (int tile = 0; tile < tiles; tile++) {
        if (tile > 0) {
            copies_wait();
            __syncthreads();
        }
        const word here = stages + (tile & 1) * 2 * TILE_BYTES, next = stages + (~tile & 1) * 2 * TILE_BYTES;
        const int key = tile * BLOCK, next_key = key + BLOCK;
        if (tile + 1 < tiles) {
            fetch_rows<BLOCK>(next, k + next_key * k_row, k_row, keys - next_key);
            fetch_rows<BLOCK>(next + TILE_BYTES, v + next_key * k_row, k_row, keys - next_key);
            copies_end_group();
        }
        Scores scores;
        multiply_transposed(scores, held, here);
        if (next_key > keys || (CAUSAL && next_key > first + own)) hide(scores, first + own, key, keys);
        soften(scores, sums, largest, total, scale);
        multiply_into(sums, scores, here + TILE_BYTES);
    }

    const int lane = threadIdx.x & 31;
    float factor[STRIPS][2];
#pragma unroll
    for (int i = 0; i < STRIPS * 2; i++) {
        const float sum = quad_sum(total[i / 2][i % 2]);
        factor[i / 2][i % 2] = 1.0f / sum;
        const int row = own + (i / 2) * 16 + (i % 2) * 8 + (lane >> 2);
        if ((lane & 3) == 0 && first + row < queries) lse[row] = largest[i / 2][i % 2] * scale / LOG2_E + logf(sum);
    }
    store_rows(out, out_row, own, queries - first, sums, factor);
}
