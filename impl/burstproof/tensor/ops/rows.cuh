// One row per group of THREADS threads, held in registers: loads, stores and reductions.
//
// Macros of the build: KIND, VEC (elements per access), ITEMS (accesses per thread), THREADS (per row), ROWS (rows per
// block; more than one only where a row belongs to one warp), STAGED (rows come through shared memory, the next under way
// while this one is worked on). THREADS * ITEMS * VEC is at least the number of columns, and VEC divides it.

typedef Kind<KIND>::stored stored;
typedef Kind<KIND>::number number;
typedef Pack<stored, VEC> pack_t;

struct Row {
    number values[ITEMS][VEC];
};

__device__ __forceinline__ int lane_of_row() { return ROWS == 1 ? threadIdx.x : threadIdx.x % 32; }

__device__ __forceinline__ index_t first_row() {
    return static_cast<index_t>(blockIdx.x) * ROWS + (ROWS == 1 ? 0 : threadIdx.x / 32);
}

__device__ __forceinline__ index_t row_step() { return static_cast<index_t>(gridDim.x) * ROWS; }

__device__ __forceinline__ int column_of(int item) { return (item * THREADS + lane_of_row()) * VEC; }

// Elements beyond the last column get ``fill``.
__device__ __forceinline__ void load_row(Row& row, const stored* source, index_t offset, int columns, number fill) {
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        if (column_of(i) < columns) {
            const pack_t pack = load_once(reinterpret_cast<const pack_t*>(source + offset + column_of(i)));
#pragma unroll
            for (int j = 0; j < VEC; ++j) row.values[i][j] = Kind<KIND>::load(pack.values[j]);
        } else {
#pragma unroll
            for (int j = 0; j < VEC; ++j) row.values[i][j] = fill;
        }
    }
}

#if STAGED
// Where rows wait, SETS of them at a time. A thread writes and reads its own slots only, so that no barrier is needed.
__shared__ pack_t staged[SETS][ITEMS][THREADS * ROWS];

// Start to copy this thread's part of a row.
__device__ __forceinline__ void request_row(int set, const stored* source, index_t offset, int columns) {
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
        if (column_of(i) < columns) {
            const stored* from = source + offset + column_of(i);
#if __CUDA_ARCH__ >= 800
            const unsigned int to = static_cast<unsigned int>(__cvta_generic_to_shared(&staged[set][i][threadIdx.x]));
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
            staged[set][i][threadIdx.x] = *reinterpret_cast<const pack_t*>(from);
#endif
        }
}

__device__ __forceinline__ void await_rows() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// What was requested; elements beyond the last column get 0.
__device__ __forceinline__ void take_row(Row& row, int set, int columns) {
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        const pack_t pack = staged[set][i][threadIdx.x];
#pragma unroll
        for (int j = 0; j < VEC; ++j)
            row.values[i][j] = column_of(i) < columns ? Kind<KIND>::load(pack.values[j]) : static_cast<number>(0);
    }
}
#endif

__device__ __forceinline__ void store_row(const Row& row, stored* target, index_t offset, int columns) {
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
        if (column_of(i) < columns) {
            pack_t pack;
#pragma unroll
            for (int j = 0; j < VEC; ++j) pack.values[j] = Kind<KIND>::store(row.values[i][j]);
            store_once(reinterpret_cast<pack_t*>(target + offset + column_of(i)), pack);
        }
    }
}

// Parameters along the columns, in the computing type; they stay in the caches.
__device__ __forceinline__ void load_columns(Row& row, const number* source, int columns) {
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
#pragma unroll
        for (int j = 0; j < VEC; ++j)
            row.values[i][j] = column_of(i) < columns ? source[column_of(i) + j] : static_cast<number>(0);
}

__device__ __forceinline__ void store_columns(const Row& row, number* target, int columns) {
#pragma unroll
    for (int i = 0; i < ITEMS; ++i)
#pragma unroll
        for (int j = 0; j < VEC; ++j)
            if (column_of(i) < columns) target[column_of(i) + j] = row.values[i][j];
}

template <class T, class Combine> __device__ __forceinline__ T reduce_warp(T value, Combine combine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance >>= 1) value = combine(value, value.from_lane(distance));
    return value;
}

// Combines one value per thread of the row; every thread gets the result, in an order that is always the same.
// ``turn`` alternates between two scratch areas, so that one barrier per reduction suffices.
template <class T, class Combine> __device__ __forceinline__ T reduce_row(T value, Combine combine, int& turn) {
    value = reduce_warp(value, combine);
#if THREADS > 32
    __shared__ T scratch[2][THREADS / 32];
    if (threadIdx.x % 32 == 0) scratch[turn][threadIdx.x / 32] = value;
    __syncthreads();
    value = scratch[turn][0];
#pragma unroll
    for (int warp = 1; warp < THREADS / 32; ++warp) value = combine(value, scratch[turn][warp]);
    turn ^= 1;
#endif
    return value;
}

// One or two sums at once.
struct Sums {
    number first, second;
    __device__ __forceinline__ Sums from_lane(int distance) const {
        return {__shfl_xor_sync(0xffffffff, first, distance), __shfl_xor_sync(0xffffffff, second, distance)};
    }
};

__device__ __forceinline__ Sums add(const Sums& a, const Sums& b) { return {a.first + b.first, a.second + b.second}; }
