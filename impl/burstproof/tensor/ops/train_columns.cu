// What a linear layer needs besides its products: the bias, the residual sum, and the gradient of the bias.
// Macros: KIND, VEC (elements per access; divides the number of columns). Compiled behind element.cuh.

typedef Kind<KIND>::stored stored;
typedef Kind<KIND>::number number;
typedef Pack<stored, VEC> pack_t;

constexpr int LANES = 32;
constexpr int TEAMS = 8;

// target = (residual +) source (+ bias per column); count: packs in all.
extern "C" __global__ void __launch_bounds__(LANES * TEAMS) add_columns(
    stored* target, const stored* residual, const stored* source, const number* bias, index_t count, int columns) {
    const index_t step = static_cast<index_t>(gridDim.x) * blockDim.x;
    for (index_t i = static_cast<index_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        const pack_t given = reinterpret_cast<const pack_t*>(source)[i];
        pack_t kept = {}, result;
        if (residual) kept = reinterpret_cast<const pack_t*>(residual)[i];
        const int column = static_cast<int>(i % (columns / VEC)) * VEC;
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            number value = Kind<KIND>::load(given.values[j]);
            if (bias) value += bias[column + j];
            if (residual) value += Kind<KIND>::load(kept.values[j]);
            result.values[j] = Kind<KIND>::store(value);
        }
        reinterpret_cast<pack_t*>(target)[i] = result;
    }
}

// partial (gridDim.y, columns): sums of every gridDim.y-th team of rows. Grid: columns / (LANES VEC) x pieces.
extern "C" __global__ void __launch_bounds__(LANES * TEAMS) sum_rows(
    number* partial, const stored* source, int rows, int columns) {
    __shared__ number sums[TEAMS][LANES * VEC + 1];
    const int lane = threadIdx.x % LANES, team = threadIdx.x / LANES;
    const int column = (blockIdx.x * LANES + lane) * VEC;
    number sum[VEC] = {};
    if (column < columns)
        for (int row = blockIdx.y * TEAMS + team; row < rows; row += gridDim.y * TEAMS) {
            const pack_t pack = *reinterpret_cast<const pack_t*>(source + static_cast<index_t>(row) * columns + column);
#pragma unroll
            for (int j = 0; j < VEC; ++j) sum[j] += Kind<KIND>::load(pack.values[j]);
        }
#pragma unroll
    for (int j = 0; j < VEC; ++j) sums[team][lane * VEC + j] = sum[j];
    __syncthreads();
    for (int i = threadIdx.x; i < LANES * VEC; i += LANES * TEAMS) {
        number total = 0;
#pragma unroll
        for (int other = 0; other < TEAMS; ++other) total += sums[other][i];
        const int place = blockIdx.x * LANES * VEC + i;
        if (place < columns) partial[static_cast<index_t>(blockIdx.y) * columns + place] = total;
    }
}
