// Sums down the columns, and bias + GELU, where a thread owns VEC neighbouring columns. Built behind element.cuh.
//
// Macros: KIND, VEC, THREADS (per block), UNROLL (accesses or rows under way at once per thread), TANH (1: the
// approximation by tanh; 0: the error function), HINTS.

typedef Kind<KIND>::stored stored;
typedef Kind<KIND>::number number;
typedef Pack<stored, VEC> pack_t;

// result[set][column] = sum over ``groups`` rows of partial[set], in ascending order within each of 32 strands, which are
// then added in a fixed order. Block: 32 columns x 32 strands; blockIdx.y is the set.
extern "C" __global__ void __launch_bounds__(1024)
reduce_columns(number* result, const number* partial, int groups, int columns) {
    __shared__ number strands[32][33];
    const int lane = threadIdx.x % 32, strand = threadIdx.x / 32;
    const int column = blockIdx.x * 32 + lane;
    number sum = 0;
    partial += static_cast<index_t>(blockIdx.y) * groups * columns;
    result += static_cast<index_t>(blockIdx.y) * columns;
    if (column < columns)
        for (int group = strand; group < groups; group += 32) sum += partial[static_cast<index_t>(group) * columns + column];
    strands[strand][lane] = sum;
    __syncthreads();
    sum = strands[lane][strand];
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, distance);
    if (lane == 0 && blockIdx.x * 32 + strand < columns) result[blockIdx.x * 32 + strand] = sum;
}

// GELU and its derivative. With tanh: x * sigmoid(2u), u = sqrt(2 / pi) * (x + 0.044715 x^3) (Hendrycks and Gimpel).
struct Gelu {
    number value, slope;
};

__device__ __forceinline__ Gelu gelu_of(number x) {
#if TANH
    const number twice = static_cast<number>(1.5957691216057308);
    const number cubic = static_cast<number>(0.044715);
    const number gate = 1 / (1 + exponential(-twice * (x + cubic * x * x * x)));
    return {x * gate, gate + x * gate * (1 - gate) * twice * (1 + 3 * cubic * x * x)};
#else
    const number half_root = static_cast<number>(0.70710678118654752);
    const number density = static_cast<number>(0.39894228040143268);
    const number gate = static_cast<number>(0.5) * (1 + error_function(x * half_root));
    return {x * gate, gate + x * density * exponential(static_cast<number>(-0.5) * x * x)};
#endif
}

__device__ __forceinline__ void load_bias(number* own, const number* bias) {
    constexpr int width = VEC * sizeof(number) > 16 ? 16 / sizeof(number) : VEC;
#pragma unroll
    for (int i = 0; i < VEC / width; ++i) {
        const Pack<number, width> pack = reinterpret_cast<const Pack<number, width>*>(bias)[i];
#pragma unroll
        for (int j = 0; j < width; ++j) own[i * width + j] = pack.values[j];
    }
}

// gelu(x + bias), with the rows as one run of elements: neighbouring blocks work on neighbouring memory.
extern "C" __global__ void __launch_bounds__(THREADS)
bias_gelu_forward(stored* result, const stored* source, const number* bias, index_t rows, int columns) {
    const int per_row = columns / VEC;
    const index_t count = rows * per_row;
    const index_t first = static_cast<index_t>(blockIdx.x) * (THREADS * UNROLL) + threadIdx.x;
    pack_t packs[UNROLL];
#pragma unroll
    for (int k = 0; k < UNROLL; ++k)
        if (first + k * THREADS < count)
            packs[k] = load_once(reinterpret_cast<const pack_t*>(source) + first + k * THREADS);
    int place = first < 0x7fffffff ? static_cast<int>(first) % per_row : static_cast<int>(first % per_row);
#pragma unroll
    for (int k = 0; k < UNROLL; ++k) {
        if (first + k * THREADS < count) {
            number own[VEC];
            load_bias(own, bias + place * VEC);
#pragma unroll
            for (int j = 0; j < VEC; ++j)
                packs[k].values[j] = Kind<KIND>::store(gelu_of(Kind<KIND>::load(packs[k].values[j]) + own[j]).value);
            store_once(reinterpret_cast<pack_t*>(result) + first + k * THREADS, packs[k]);
        }
        place += THREADS % per_row;
        if (place >= per_row) place -= per_row;
    }
}

// dx = dy * gelu'(x + bias); the sums of dx over this block's rows go to one row of ``partial``, for reduce_columns.
extern "C" __global__ void __launch_bounds__(THREADS)
bias_gelu_backward(stored* result, number* partial, const stored* gradient, const stored* source, const number* bias,
                   index_t rows, int columns) {
    const int column = (blockIdx.x * THREADS + threadIdx.x) * VEC;
    if (column >= columns) return;
    number own[VEC], sums[VEC];
    load_bias(own, bias + column);
#pragma unroll
    for (int j = 0; j < VEC; ++j) sums[j] = 0;
    const index_t step = gridDim.y;
    for (index_t row = blockIdx.y; row < rows; row += step * UNROLL) {
        pack_t x[UNROLL], dy[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            if (row + k * step < rows) {
                x[k] = load_once(reinterpret_cast<const pack_t*>(source + (row + k * step) * columns + column));
                dy[k] = load_once(reinterpret_cast<const pack_t*>(gradient + (row + k * step) * columns + column));
            }
#pragma unroll
        for (int k = 0; k < UNROLL; ++k)
            if (row + k * step < rows) {
#pragma unroll
                for (int j = 0; j < VEC; ++j) {
                    const number slope = gelu_of(Kind<KIND>::load(x[k].values[j]) + own[j]).slope;
                    const number dx = slope * Kind<KIND>::load(dy[k].values[j]);
                    sums[j] += dx;
                    x[k].values[j] = Kind<KIND>::store(dx);
                }
                store_once(reinterpret_cast<pack_t*>(result + (row + k * step) * columns + column), x[k]);
            }
    }
#pragma unroll
    for (int j = 0; j < VEC; ++j) partial[static_cast<index_t>(blockIdx.y) * columns + column + j] = sums[j];
}
