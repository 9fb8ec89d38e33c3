// Token and position embeddings, and their gradients in an order that is always the same: no atomics.
// Macros: KIND (of the rows), VEC. Compiled behind element.cuh.

typedef Kind<KIND>::stored stored;
typedef Kind<KIND>::number number;
typedef Pack<stored, VEC> pack_t;

// rows (batch x length, width) = table[token] + places[position]. One block a row.
extern "C" __global__ void embed(
    stored* rows, const int* tokens, const stored* table, const stored* places, int length, int width) {
    const index_t row = blockIdx.x;
    const stored* token = table + static_cast<index_t>(tokens[row]) * width;
    const stored* place = places + (row % length) * width;
    for (int column = threadIdx.x * VEC; column < width; column += blockDim.x * VEC) {
        const pack_t a = *reinterpret_cast<const pack_t*>(token + column), b = *reinterpret_cast<const pack_t*>(place + column);
        pack_t sum;
#pragma unroll
        for (int j = 0; j < VEC; ++j)
            sum.values[j] = Kind<KIND>::store(Kind<KIND>::load(a.values[j]) + Kind<KIND>::load(b.values[j]));
        *reinterpret_cast<pack_t*>(rows + row * width + column) = sum;
    }
}

// table_gradient[token] += rows of that token, in ascending order of row. order: rows sorted by token (stable), sorted:
// their tokens. One block per sorted place; the first of a run of equal tokens adds the whole run.
extern "C" __global__ void embed_backward_tokens(
    number* table_gradient, const stored* gradient, const int* order, const int* sorted, int count, int width) {
    const int begin = blockIdx.x, token = sorted[begin];
    if (begin > 0 && sorted[begin - 1] == token) return;
    number* target = table_gradient + static_cast<index_t>(token) * width;
    for (int column = threadIdx.x * VEC; column < width; column += blockDim.x * VEC) {
        number sum[VEC] = {};
#pragma unroll 4
        for (int i = begin; i < count && sorted[i] == token; ++i) {
            const pack_t pack = *reinterpret_cast<const pack_t*>(gradient + static_cast<index_t>(order[i]) * width + column);
#pragma unroll
            for (int j = 0; j < VEC; ++j) sum[j] += Kind<KIND>::load(pack.values[j]);
        }
#pragma unroll
        for (int j = 0; j < VEC; ++j) target[column + j] += sum[j];
    }
}

// place_gradient[position] = sum over the batch. One block a position.
extern "C" __global__ void embed_backward_places(
    number* place_gradient, const stored* gradient, int batch, int length, int width) {
    const index_t place = blockIdx.x;
    for (int column = threadIdx.x * VEC; column < width; column += blockDim.x * VEC) {
        number sum[VEC] = {};
        for (int i = 0; i < batch; ++i) {
            const pack_t pack = *reinterpret_cast<const pack_t*>(gradient + (i * static_cast<index_t>(length) + place) * width + column);
#pragma unroll
            for (int j = 0; j < VEC; ++j) sum[j] += Kind<KIND>::load(pack.values[j]);
        }
#pragma unroll
        for (int j = 0; j < VEC; ++j) place_gradient[place * width + column + j] = sum[j];
    }
}
