// Softmax along the last axis, forward and backward: one kernel each, every element read and written once.
// Built behind element.cuh and rows.cuh; see nn_kernels.py for the macros.

// Maximum of some elements, and the sum of exp(element - maximum).
struct Partial {
    number largest, sum;
    __device__ __forceinline__ Partial from_lane(int distance) const {
        return {__shfl_xor_sync(0xffffffff, largest, distance), __shfl_xor_sync(0xffffffff, sum, distance)};
    }
};

// exp(x - largest), with 0 instead of exp(-inf + inf) where nothing but -inf has been seen yet.
__device__ __forceinline__ number rescale(number x, number largest) {
    return x == largest ? static_cast<number>(1) : exponential(x - largest);
}

__device__ __forceinline__ Partial merge(const Partial& a, const Partial& b) {
    const number largest = a.largest > b.largest ? a.largest : b.largest;
    return {largest, a.sum * rescale(a.largest, largest) + b.sum * rescale(b.largest, largest)};
}

extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
softmax_forward(stored* result, const stored* source, index_t rows, int columns) {
    const number lowest = -static_cast<number>(__int_as_float(0x7f800000));
    int turn = 0;
    for (index_t row = first_row(); row < rows; row += row_step()) {
        Row x;
        load_row(x, source, row * columns, columns, lowest);
        Partial mine = {x.values[0][0], 0};
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
#pragma unroll
            for (int j = 0; j < VEC; ++j) mine.largest = x.values[i][j] > mine.largest ? x.values[i][j] : mine.largest;
        const number shift = mine.largest == lowest ? static_cast<number>(0) : mine.largest;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                x.values[i][j] = exponential(x.values[i][j] - shift);
                mine.sum += x.values[i][j];
            }
        const Partial all = reduce_row(mine, merge, turn);
        const number factor = rescale(mine.largest, all.largest) / all.sum;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
#pragma unroll
            for (int j = 0; j < VEC; ++j) x.values[i][j] *= factor;
        store_row(x, result, row * columns, columns);
    }
}

// dx = y * (dy - sum(dy * y))
extern "C" __global__ void __launch_bounds__(THREADS * ROWS)
softmax_backward(stored* result, const stored* gradient, const stored* output, index_t rows, int columns) {
    int turn = 0;
    for (index_t row = first_row(); row < rows; row += row_step()) {
        Row y, dy;
        load_row(y, output, row * columns, columns, 0);
        load_row(dy, gradient, row * columns, columns, 0);
        Sums mine = {0, 0};
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
#pragma unroll
            for (int j = 0; j < VEC; ++j) mine.first += y.values[i][j] * dy.values[i][j];
        const number dot = reduce_row(mine, add, turn).first;
#pragma unroll
        for (int i = 0; i < ITEMS; ++i)
#pragma unroll
            for (int j = 0; j < VEC; ++j) y.values[i][j] *= dy.values[i][j] - dot;
        store_row(y, result, row * columns, columns);
    }
}
