// Flash attention, backward, in three kernels without atomics, so that every result is the same bits on every run:
// row sums of out x dout; dk and dv by a block that owns keys and streams queries; dq by one that owns queries and
// streams keys. Probabilities are computed again from lse. Formulas: Dao 2023, "FlashAttention-2", algorithm 2.

// delta (batch, head, query), float32: sum over the head of out x dout. One warp a row; grid: rows / WARPS x heads x batch.
extern "C" __global__ void __launch_bounds__(THREADS) flash_delta(
    const half_bits* out, const half_bits* dout, float* delta, long long out_batch, long long out_head,
    long long out_row, int queries) {
    const int row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= queries) return;
    const long long place = Rows{out_batch, out_head, out_row}.start(blockIdx.z, blockIdx.y) + row * out_row;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < HEAD / 32; i++)
        sum += unpack(out[place + i * 32 + lane]) * unpack(dout[place + i * 32 + lane]);
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) delta[((long long)blockIdx.z * gridDim.y + blockIdx.y) * queries + row] = sum;
}

__device__ __forceinline__ void fetch_floats(word target, const float* source, int valid) {
    if (threadIdx.x < BLOCK)
        copy_async_4(target + threadIdx.x * 4, source + (threadIdx.x < valid ? threadIdx.x : 0), threadIdx.x < valid ? 4 : 0);
}

constexpr int QUERY_STAGE = 2 * TILE_BYTES + 2 * BLOCK * 4;  // q, dout, lse, delta

// Scores (keys x queries) become probabilities, and products become d scores (without the softmax scale).
__device__ __forceinline__ void differentiate_columns(
    Scores& scores, Scores& products, word lse, word delta, int key, int query, bool edge, float scale) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int column = 0; column < BLOCK / 8; column++) {
        const int at = column * 8 + (lane & 3) * 2;
        float shift[2], mean[2];
        shared_pair(shift[0], shift[1], lse + at * 4);
        shared_pair(mean[0], mean[1], delta + at * 4);
#pragma unroll
        for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int at_key = key + strip * 16 + (i >> 1) * 8 + (lane >> 2), odd = i & 1;
                float& score = scores[strip][column][i];
                float& product = products[strip][column][i];
                score = edge && at_key > query + at + odd ? 0.0f : power_of_two(score * scale - shift[odd] * LOG2_E);
                product = score * (product - mean[odd]);
            }
    }
}

// dk and dv of OWN keys. scale: softmax scale x log2(e). Grid: heads x key tiles x batch.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) flash_backward_keys(
    const half_bits* q, const half_bits* k, const half_bits* v, const half_bits* dout, const float* lse,
    const float* delta, half_bits* dk, half_bits* dv, const Strides by, int queries, int keys, float scale) {
    const Rows q_rows{by.q_batch, by.q_head, by.q_row}, k_rows{by.k_batch, by.k_head, by.k_row};
    const Rows out_rows{by.out_batch, by.out_head, by.out_row};
    const int batch = blockIdx.z, head = blockIdx.x;
    const int first = blockIdx.y * OWN;  // with a causal mask the first keys are seen by most queries
    const int own = (threadIdx.x / 32) * STRIPS * 16;
    const long long own_place = k_rows.start(batch, head) + first * k_rows.row;
    q += q_rows.start(batch, head);
    dout += out_rows.start(batch, head);
    lse += ((long long)batch * gridDim.x + head) * queries;
    delta += ((long long)batch * gridDim.x + head) * queries;

    const word k_tile = shared_start(), v_tile = k_tile + OWN * ROW_BYTES, stages = v_tile + OWN * ROW_BYTES;
    const int begin = CAUSAL ? first / BLOCK : 0, end = (queries + BLOCK - 1) / BLOCK;
    const auto fetch = [&](int tile) {
        const word stage = stages + (tile & 1) * QUERY_STAGE;
        const int query = tile * BLOCK;
        fetch_rows<BLOCK>(stage, q + query * q_rows.row, q_rows.row, queries - query);
        fetch_rows<BLOCK>(stage + TILE_BYTES, dout + query * out_rows.row, out_rows.row, queries - query);
        fetch_floats(stage + 2 * TILE_BYTES, lse + query, queries - query);
        fetch_floats(stage + 2 * TILE_BYTES + BLOCK * 4, delta + query, queries - query);
    };
    fetch_rows<OWN>(k_tile, k + own_place, k_rows.row, keys - first);
    fetch_rows<OWN>(v_tile, v + own_place, k_rows.row, keys - first);
    if (begin < end) fetch(begin);
    copies_end_group();
    copies_wait();
    __syncthreads();
    Held held_k, held_v;
    held_k.take(k_tile, own);
    held_v.take(v_tile, own);
    Sums dk_sums, dv_sums;
    clear(dk_sums);
    clear(dv_sums);
    for (int tile = begin; tile < end; tile++) {
        if (tile > begin) {
            copies_wait();
            __syncthreads();
        }
        const word stage = stages + (tile & 1) * QUERY_STAGE;
        const int query = tile * BLOCK;
        if (tile + 1 < end) {
            fetch(tile + 1);
            copies_end_group();
        }
        Scores scores, products;
        multiply_transposed(scores, held_k, stage);
        multiply_transposed(products, held_v, stage + TILE_BYTES);
        const bool edge = CAUSAL && query < first + own + STRIPS * 16;
        const word lse_stage = stage + 2 * TILE_BYTES;
        differentiate_columns(scores, products, lse_stage, lse_stage + BLOCK * 4, first + own, query, edge, scale);
        multiply_into(dv_sums, scores, stage + TILE_BYTES);
        multiply_into(dk_sums, products, stage);
    }
    float one[STRIPS][2], softmax_scale[STRIPS][2];
#pragma unroll
    for (int i = 0; i < STRIPS * 2; i++) {
        one[i / 2][i % 2] = 1.0f;
        softmax_scale[i / 2][i % 2] = scale / LOG2_E;
    }
    store_rows(dv + own_place, k_rows.row, own, keys - first, dv_sums, one);
    store_rows(dk + own_place, k_rows.row, own, keys - first, dk_sums, softmax_scale);
}

// Products (queries x keys) become d scores (without the softmax scale); keys that a query must not see get 0.
__device__ __forceinline__ void differentiate_rows(
    const Scores& scores, Scores& products, const float (&shift)[STRIPS][2], const float (&mean)[STRIPS][2], int query,
    int key, int keys, bool edge, float scale) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
        for (int column = 0; column < BLOCK / 8; column++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int half = i >> 1, at_key = key + column * 8 + (lane & 3) * 2 + (i & 1);
                const int at_query = query + strip * 16 + (lane >> 2) + half * 8;
                const bool hidden = edge && (at_key >= keys || (CAUSAL && at_key > at_query));
                const float chance = power_of_two(scores[strip][column][i] * scale - shift[strip][half]);
                products[strip][column][i] = hidden ? 0.0f : chance * (products[strip][column][i] - mean[strip][half]);
            }
}

// dq of OWN queries. scale: softmax scale x log2(e). Grid: heads x query tiles x batch.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) flash_backward_queries(
    const half_bits* q, const half_bits* k, const half_bits* v, const half_bits* dout, const float* lse,
    const float* delta, half_bits* dq, const Strides by, int queries, int keys, float scale) {
    const Rows q_rows{by.q_batch, by.q_head, by.q_row}, k_rows{by.k_batch, by.k_head, by.k_row};
    const Rows out_rows{by.out_batch, by.out_head, by.out_row};
    const int batch = blockIdx.z, head = blockIdx.x;
    const int first = (gridDim.y - 1 - blockIdx.y) * OWN;  // the longest causal rows of all heads start first
    const int own = (threadIdx.x / 32) * STRIPS * 16;
    const long long own_place = q_rows.start(batch, head) + first * q_rows.row;
    k += k_rows.start(batch, head);
    v += k_rows.start(batch, head);
    dout += out_rows.start(batch, head) + first * out_rows.row;
    lse += ((long long)batch * gridDim.x + head) * queries + first;
    delta += ((long long)batch * gridDim.x + head) * queries + first;

    const word q_tile = shared_start(), dout_tile = q_tile + OWN * ROW_BYTES, stages = dout_tile + OWN * ROW_BYTES;
    const int tiles = ((CAUSAL ? min(keys, first + OWN) : keys) + BLOCK - 1) / BLOCK;
    const auto fetch = [&](int tile) {
        const word stage = stages + (tile & 1) * 2 * TILE_BYTES;
        const int key = tile * BLOCK;
        fetch_rows<BLOCK>(stage, k + key * k_rows.row, k_rows.row, keys - key);
        fetch_rows<BLOCK>(stage + TILE_BYTES, v + key * k_rows.row, k_rows.row, keys - key);
    };
    fetch_rows<OWN>(q_tile, q + own_place, q_rows.row, queries - first);
    fetch_rows<OWN>(dout_tile, dout, out_rows.row, queries - first);
    fetch(0);
    copies_end_group();
    float shift[STRIPS][2], mean[STRIPS][2], softmax_scale[STRIPS][2];
#pragma unroll
    for (int i = 0; i < STRIPS * 2; i++) {
        const int row = own + (i / 2) * 16 + (i % 2) * 8 + ((threadIdx.x & 31) >> 2);
        const bool inside = first + row < queries;
        shift[i / 2][i % 2] = inside ? lse[row] * LOG2_E : 0.0f;
        mean[i / 2][i % 2] = inside ? delta[row] : 0.0f;
        softmax_scale[i / 2][i % 2] = scale / LOG2_E;
    }
    copies_wait();
    __syncthreads();
    Held held_q, held_dout;
    held_q.take(q_tile, own);
    held_dout.take(dout_tile, own);
    Sums sums;
    clear(sums);
    for (int tile = 0; tile < tiles; tile++) {
        if (tile > 0) {
            copies_wait();
            __syncthreads();
        }
        const word stage = stages + (tile & 1) * 2 * TILE_BYTES;
        const int key = tile * BLOCK;
        if (tile + 1 < tiles) {
            fetch(tile + 1);
            copies_end_group();
        }
        Scores scores, products;
        multiply_transposed(scores, held_q, stage);
        multiply_transposed(products, held_dout, stage + TILE_BYTES);
        const bool edge = key + BLOCK > keys || (CAUSAL && key + BLOCK > first + own);
        differentiate_rows(scores, products, shift, mean, first + own, key, keys, edge, scale);
        multiply_into(sums, products, stage);
    }
    store_rows(dq + own_place, q_rows.row, own, queries - first, sums, softmax_scale);
}
