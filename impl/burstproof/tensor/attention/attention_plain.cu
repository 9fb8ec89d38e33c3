// Online-softmax attention in float32 arithmetic, forward and backward, without tensor cores: for float32, and for the
// 16-bit types on devices before compute capability 8.0. Compiled behind element.cuh.
//
// Macros: KIND, HEAD, TILE (rows of a tile), CAUSAL. A block has TILE x 8 threads; a team of 8 lanes owns one row of
// the block's tile: its scores against every eighth row of the streamed tile, and every eighth value of its sums.

typedef Kind<KIND>::stored stored;

constexpr int TEAM = 8;
constexpr int THREADS = TILE * TEAM;
constexpr int SCORES = TILE / TEAM;
constexpr int VALUES = HEAD / TEAM;
constexpr float LOG2_E = 1.4426950408889634f;

typedef float Tile[TILE][HEAD + 1];  // one value more, so that a column's rows lie in different banks
typedef float Chances[TILE][TILE + 1];

// Where rows of one head start: element strides of batch, head and row; the values of a row are adjacent.
struct Rows {
    index_t batch, head, row;
    __device__ __forceinline__ index_t start(int batch_index, int head_index) const {
        return batch_index * batch + head_index * head;
    }
};

// Of all tensors: those of k are of v, too, and those of out of dout. A __grid_constant__, so that a kernel reads them in
// place: plain_backward_keys needs 48 registers then, else 76.
struct Strides {
    index_t q_batch, q_head, q_row, k_batch, k_head, k_row, out_batch, out_head, out_row;
};

struct Place {
    int row, lane;
    __device__ __forceinline__ Place() : row(threadIdx.x / TEAM), lane(threadIdx.x % TEAM) {}
};

__device__ __forceinline__ void load_tile(Tile& tile, const stored* source, index_t stride, int valid) {
    for (int i = threadIdx.x; i < TILE * HEAD; i += THREADS) {
        const int row = i / HEAD, column = i % HEAD;
        tile[row][column] = row < valid ? Kind<KIND>::load(source[row * stride + column]) : 0.0f;
    }
}

__device__ __forceinline__ float team_sum(float value) {
#pragma unroll
    for (int step = TEAM / 2; step > 0; step >>= 1) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__device__ __forceinline__ float team_max(float value) {
#pragma unroll
    for (int step = TEAM / 2; step > 0; step >>= 1) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// products[i] = own row . row (lane + 8 i) of the other tile
__device__ __forceinline__ void products_with(float (&products)[SCORES], const Tile& own, const Tile& other) {
    const Place at;
#pragma unroll
    for (int i = 0; i < SCORES; i++) products[i] = 0.0f;
#pragma unroll 8
    for (int column = 0; column < HEAD; column++) {
        const float value = own[at.row][column];
#pragma unroll
        for (int i = 0; i < SCORES; i++) products[i] += value * other[at.lane + TEAM * i][column];
    }
}

// sums[i] += chances of the own row . column (lane + 8 i) of the tile
__device__ __forceinline__ void add_weighted(float (&sums)[VALUES], const Chances& chances, const Tile& tile) {
    const Place at;
#pragma unroll 4
    for (int other = 0; other < TILE; other++) {
        const float weight = chances[at.row][other];
#pragma unroll
        for (int i = 0; i < VALUES; i++) sums[i] += weight * tile[other][at.lane + TEAM * i];
    }
}

__device__ __forceinline__ void store_sums(stored* target, index_t stride, int valid, const float (&sums)[VALUES], float factor) {
    const Place at;
    if (at.row >= valid) return;
#pragma unroll
    for (int i = 0; i < VALUES; i++) target[at.row * stride + at.lane + TEAM * i] = Kind<KIND>::store(sums[i] * factor);
}

// scale: softmax scale x log2(e). lse (batch, head, query). Grid: query tiles x heads x batch.
extern "C" __global__ void __launch_bounds__(THREADS) plain_forward(
    const stored* q, const stored* k, const stored* v, stored* out, float* lse,
    const __grid_constant__ Strides by, int queries, int keys, float scale) {
    const Rows q_rows{by.q_batch, by.q_head, by.q_row}, k_rows{by.k_batch, by.k_head, by.k_row};
    const Rows out_rows{by.out_batch, by.out_head, by.out_row};
    __shared__ Tile own, other;
    __shared__ Chances chances;
    const Place at;
    const int batch = blockIdx.z, head = blockIdx.y, first = blockIdx.x * TILE;
    q += q_rows.start(batch, head) + first * q_rows.row;
    k += k_rows.start(batch, head);
    v += k_rows.start(batch, head);
    load_tile(own, q, q_rows.row, queries - first);
    float sums[VALUES] = {}, largest = __int_as_float(0xff800000), total = 0.0f;
    const int end = CAUSAL ? min(keys, first + TILE) : keys;
    for (int key = 0; key < end; key += TILE) {
        __syncthreads();
        load_tile(other, k + key * k_rows.row, k_rows.row, keys - key);
        __syncthreads();
        float scores[SCORES], top = largest;
        products_with(scores, own, other);
#pragma unroll
        for (int i = 0; i < SCORES; i++) {
            const int at_key = key + at.lane + TEAM * i;
            const bool hidden = at_key >= keys || (CAUSAL && at_key > first + at.row);
            scores[i] = hidden ? __int_as_float(0xff800000) : scores[i] * scale;
            top = fmaxf(top, scores[i]);
        }
        top = team_max(top);
        const float shrink = exp2f(largest - top);
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < SCORES; i++) {
            const float chance = exp2f(scores[i] - top);
            chances[at.row][at.lane + TEAM * i] = chance;
            sum += chance;
        }
        total = total * shrink + team_sum(sum);
        largest = top;
#pragma unroll
        for (int i = 0; i < VALUES; i++) sums[i] *= shrink;
        __syncthreads();
        load_tile(other, v + key * k_rows.row, k_rows.row, keys - key);
        __syncthreads();
        add_weighted(sums, chances, other);
    }
    out += out_rows.start(batch, head) + first * out_rows.row;
    store_sums(out, out_rows.row, queries - first, sums, 1.0f / total);
    if (at.lane == 0 && first + at.row < queries)
        lse[(static_cast<index_t>(batch) * gridDim.y + head) * queries + first + at.row] = largest / LOG2_E + logf(total);
}

// delta (batch, head, query): sum over the head of out x dout. A thread a row, in the order and with the roundings of
// products_with: where the difference of both should be 0, as with a single key, it is 0 to the bit.
extern "C" __global__ void __launch_bounds__(THREADS) plain_delta(
    const stored* out, const stored* dout, float* delta, index_t out_batch, index_t out_head, index_t out_row,
    int queries) {
    const int row = blockIdx.x * THREADS + threadIdx.x;
    if (row >= queries) return;
    const index_t place = blockIdx.z * out_batch + blockIdx.y * out_head + row * out_row;
    float sum = 0.0f;
#pragma unroll 8
    for (int column = 0; column < HEAD; column++)
        sum += Kind<KIND>::load(dout[place + column]) * Kind<KIND>::load(out[place + column]);
    delta[(static_cast<index_t>(blockIdx.z) * gridDim.y + blockIdx.y) * queries + row] = sum;
}

// dk and dv: a block owns TILE keys and streams the queries. scale: softmax scale x log2(e).
extern "C" __global__ void __launch_bounds__(THREADS) plain_backward_keys(
    const stored* q, const stored* k, const stored* v, const stored* dout, const float* lse, const float* delta,
    stored* dk, stored* dv, const __grid_constant__ Strides by, int queries, int keys, float scale) {
    const Rows q_rows{by.q_batch, by.q_head, by.q_row}, k_rows{by.k_batch, by.k_head, by.k_row};
    const Rows out_rows{by.out_batch, by.out_head, by.out_row};
    __shared__ Tile own_k, own_v, other_q, other_dout;
    __shared__ Chances chances;
    const Place at;
    const int batch = blockIdx.z, head = blockIdx.y, first = blockIdx.x * TILE;
    const index_t place = k_rows.start(batch, head) + first * k_rows.row;
    q += q_rows.start(batch, head);
    dout += out_rows.start(batch, head);
    lse += (static_cast<index_t>(batch) * gridDim.y + head) * queries;
    delta += (static_cast<index_t>(batch) * gridDim.y + head) * queries;
    load_tile(own_k, k + place, k_rows.row, keys - first);
    load_tile(own_v, v + place, k_rows.row, keys - first);
    float dk_sums[VALUES] = {}, dv_sums[VALUES] = {};
    for (int query = CAUSAL ? first : 0; query < queries; query += TILE) {
        __syncthreads();
        load_tile(other_q, q + query * q_rows.row, q_rows.row, queries - query);
        load_tile(other_dout, dout + query * out_rows.row, out_rows.row, queries - query);
        __syncthreads();
        float scores[SCORES], products[SCORES];
        products_with(scores, own_k, other_q);
        products_with(products, own_v, other_dout);
#pragma unroll
        for (int i = 0; i < SCORES; i++) {
            const int at_query = query + at.lane + TEAM * i;
            const bool hidden = at_query >= queries || (CAUSAL && first + at.row > at_query);
            const float chance = hidden ? 0.0f : exp2f(scores[i] * scale - lse[at_query] * LOG2_E);
            chances[at.row][at.lane + TEAM * i] = chance;
            products[i] = hidden ? 0.0f : chance * (products[i] - delta[at_query]);
        }
        __syncwarp();
        add_weighted(dv_sums, chances, other_dout);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < SCORES; i++) chances[at.row][at.lane + TEAM * i] = products[i];
        __syncwarp();
        add_weighted(dk_sums, chances, other_q);
    }
    store_sums(dv + place, k_rows.row, keys - first, dv_sums, 1.0f);
    store_sums(dk + place, k_rows.row, keys - first, dk_sums, scale / LOG2_E);
}

// dq: a block owns TILE queries and streams the keys. scale: softmax scale x log2(e).
extern "C" __global__ void __launch_bounds__(THREADS) plain_backward_queries(
    const stored* q, const stored* k, const stored* v, const stored* dout, const float* lse, const float* delta,
    stored* dq, const __grid_constant__ Strides by, int queries, int keys, float scale) {
    const Rows q_rows{by.q_batch, by.q_head, by.q_row}, k_rows{by.k_batch, by.k_head, by.k_row};
    const Rows out_rows{by.out_batch, by.out_head, by.out_row};
    __shared__ Tile own_q, own_dout, other_k, other_v;
    __shared__ Chances chances;
    const Place at;
    const int batch = blockIdx.z, head = blockIdx.y, first = blockIdx.x * TILE, query = first + at.row;
    const index_t place = q_rows.start(batch, head) + first * q_rows.row;
    const index_t row = (static_cast<index_t>(batch) * gridDim.y + head) * queries + query;
    k += k_rows.start(batch, head);
    v += k_rows.start(batch, head);
    load_tile(own_q, q + place, q_rows.row, queries - first);
    load_tile(own_dout, dout + out_rows.start(batch, head) + first * out_rows.row, out_rows.row, queries - first);
    const float shift = query < queries ? lse[row] * LOG2_E : 0.0f, mean = query < queries ? delta[row] : 0.0f;
    float sums[VALUES] = {};
    const int end = CAUSAL ? min(keys, first + TILE) : keys;
    for (int key = 0; key < end; key += TILE) {
        __syncthreads();
        load_tile(other_k, k + key * k_rows.row, k_rows.row, keys - key);
        load_tile(other_v, v + key * k_rows.row, k_rows.row, keys - key);
        __syncthreads();
        float scores[SCORES], products[SCORES];
        products_with(scores, own_q, other_k);
        products_with(products, own_dout, other_v);
#pragma unroll
        for (int i = 0; i < SCORES; i++) {
            const int at_key = key + at.lane + TEAM * i;
            const bool hidden = at_key >= keys || (CAUSAL && at_key > query);
            const float chance = hidden ? 0.0f : exp2f(scores[i] * scale - shift);
            chances[at.row][at.lane + TEAM * i] = chance * (products[i] - mean);
        }
        __syncwarp();
        add_weighted(sums, chances, other_k);
    }
    store_sums(dq + place, q_rows.row, queries - first, sums, scale / LOG2_E);
}
