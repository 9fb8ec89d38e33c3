// Cross entropy of one row of logits per block: the loss, and in the same pass over the row its gradient in place of
// the logits (softmax - one-hot) x factor. Columns from `classes` on are padding: they do not count, their gradient is 0.
// Macros: KIND, VEC, THREADS. Compiled behind element.cuh.

typedef Kind<KIND>::stored stored;
typedef Kind<KIND>::number number;
typedef Pack<stored, VEC> pack_t;

__device__ __forceinline__ number lowest() { return -static_cast<number>(__int_as_float(0x7f800000)); }
__device__ __forceinline__ float logarithm(float x) { return logf(x); }
__device__ __forceinline__ double logarithm(double x) { return log(x); }

struct Powers {
    number largest, sum;  // sum of exp(x - largest)
};

__device__ __forceinline__ Powers merged(const Powers& a, const Powers& b) {
    const number top = a.largest > b.largest ? a.largest : b.largest;
    if (top == lowest()) return {top, a.sum + b.sum};
    return {top, a.sum * exponential(a.largest - top) + b.sum * exponential(b.largest - top)};
}

__device__ __forceinline__ Powers merged_over_block(Powers own) {
    __shared__ Powers warps[THREADS / 32];
#pragma unroll
    for (int step = 16; step > 0; step >>= 1)
        own = merged(own, {__shfl_xor_sync(0xffffffffu, own.largest, step), __shfl_xor_sync(0xffffffffu, own.sum, step)});
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = own;
    __syncthreads();
    own = warps[0];
#pragma unroll
    for (int warp = 1; warp < THREADS / 32; ++warp) own = merged(own, warps[warp]);
    return own;
}

// losses (rows,): -log softmax at the target. A negative target leaves its row out (loss and gradient 0); one that is no
// class makes the row's loss and gradient NaN.
extern "C" __global__ void __launch_bounds__(THREADS) cross_entropy(
    stored* logits, const int* targets, number* losses, int classes, int columns, number factor) {
    stored* row = logits + static_cast<index_t>(blockIdx.x) * columns;
    const int target = targets[blockIdx.x];
    Powers own = {lowest(), 0};
    for (int column = threadIdx.x * VEC; column < classes; column += THREADS * VEC) {
        const pack_t pack = *reinterpret_cast<const pack_t*>(row + column);
        number values[VEC], top = own.largest;
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            values[j] = column + j < classes ? Kind<KIND>::load(pack.values[j]) : lowest();
            top = values[j] > top ? values[j] : top;
        }
        number sum = 0;
#pragma unroll
        for (int j = 0; j < VEC; ++j) sum += exponential(values[j] - top);
        own = {top, own.sum * exponential(own.largest - top) + sum};
    }
    const Powers all = merged_over_block(own);
    const bool counts = target >= 0;
    const number nothing = target < classes ? 0 : lowest() - lowest();
    const number scale = counts ? factor / all.sum + nothing : 0;
    if (threadIdx.x == 0)
        losses[blockIdx.x] =
            counts ? logarithm(all.sum) + all.largest - Kind<KIND>::load(row[min(target, classes - 1)]) + nothing : 0;
    __syncthreads();
    for (int column = threadIdx.x * VEC; column < columns; column += THREADS * VEC) {
        pack_t pack = *reinterpret_cast<const pack_t*>(row + column);
#pragma unroll
        for (int j = 0; j < VEC; ++j) {
            const number chance = counts ? exponential(Kind<KIND>::load(pack.values[j]) - all.largest) * scale : 0;
            const number value = column + j < classes ? chance - (column + j == target ? factor : 0) : 0;
            pack.values[j] = Kind<KIND>::store(counts ? value : 0);
        }
        *reinterpret_cast<pack_t*>(row + column) = pack;
    }
}
