// Proof kernels: a sum of vectors, a matrix product on tiles in shared memory, a softmax over rows.

extern "C" __global__ void vector_add(const float* __restrict__ a, const float* __restrict__ b,
                                      float* __restrict__ sum, unsigned long long count)
{
    const unsigned long long first = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long stride = gridDim.x * (unsigned long long)blockDim.x;
    const bool aligned = (((size_t)a | (size_t)b | (size_t)sum) & 15) == 0;
    const unsigned long long quads = aligned ? count / 4 : 0;
    for (unsigned long long i = first; i < quads; i += stride) {
        const float4 x = reinterpret_cast<const float4*>(a)[i];
        const float4 y = reinterpret_cast<const float4*>(b)[i];
        reinterpret_cast<float4*>(sum)[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
    for (unsigned long long i = 4 * quads + first; i < count; i += stride) {
        sum[i] = a[i] + b[i];
    }
}

#ifndef BLOCKS_PER_MULTIPROCESSOR
#define BLOCKS_PER_MULTIPROCESSOR 2
#endif

constexpr int kThreads = 256;
constexpr int kBlocks = BLOCKS_PER_MULTIPROCESSOR;  // that the registers must leave room for
constexpr int kDepth = 16;   // columns of a and rows of b that are in shared memory at once
constexpr int kSpan = 64;    // rows that 16 threads of 4 rows each cover
constexpr int kPadding = 4;  // spreads the transposed slab over the banks and keeps 16-byte alignment

// Four neighbours of a row; zero outside the matrix.
__device__ __forceinline__ float4 load4(const float* matrix, unsigned row, unsigned column, unsigned rows,
                                        unsigned columns, bool vectors)
{
    float4 found = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row >= rows || column >= columns) {
        return found;
    }
    const float* from = matrix + (size_t)row * columns + column;
    if (vectors) {
        return *reinterpret_cast<const float4*>(from);
    }
    found.x = from[0];
    if (column + 1 < columns) found.y = from[1];
    if (column + 2 < columns) found.z = from[2];
    if (column + 3 < columns) found.w = from[3];
    return found;
}

// c = a b (m x n, from m x k and k x n, row-major), plus a bias per column where there is one, then relu where asked.
// A block of 256 threads makes a tile of kEdge x kEdge; a thread, (kEdge / 16)^2 elements of it in registers.
template <int kEdge>
__global__ void __launch_bounds__(kThreads, kBlocks)
    dense(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ bias,
          float* __restrict__ c, unsigned m, unsigned n, unsigned k, bool rectify)
{
    constexpr int kGroups = kEdge / kSpan;
    __shared__ __align__(16) float slab_a[2][kDepth][kEdge + kPadding];
    __shared__ __align__(16) float slab_b[2][kDepth][kEdge];
    const unsigned thread = threadIdx.x, across = thread % 16, down = thread / 16;
    const unsigned top = blockIdx.y * kEdge, left = blockIdx.x * kEdge;
    const bool vectors_a = k % 4 == 0 && ((size_t)a & 15) == 0;
    const bool vectors_b = n % 4 == 0 && ((size_t)b & 15) == 0;
    float4 next_a[kGroups], next_b[kGroups];
    float sums[kGroups][4][kGroups][4] = {};

    auto fetch = [&](unsigned depth) {
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            next_a[g] = load4(a, top + thread / 4 + g * kSpan, depth + thread % 4 * 4, m, k, vectors_a);
            const unsigned item = thread + g * kThreads;
            next_b[g] = load4(b, depth + item / (kEdge / 4), left + item % (kEdge / 4) * 4, k, n, vectors_b);
        }
    };
    auto put = [&](int side) {
#pragma unroll
        for (int g = 0; g < kGroups; ++g) {
            const unsigned row = thread / 4 + g * kSpan, depth = thread % 4 * 4;
            slab_a[side][depth + 0][row] = next_a[g].x;
            slab_a[side][depth + 1][row] = next_a[g].y;
            slab_a[side][depth + 2][row] = next_a[g].z;
            slab_a[side][depth + 3][row] = next_a[g].w;
            const unsigned item = thread + g * kThreads;
            *reinterpret_cast<float4*>(&slab_b[side][item / (kEdge / 4)][item % (kEdge / 4) * 4]) = next_b[g];
        }
    };

    fetch(0);
    put(0);
    __syncthreads();
    int side = 0;
    for (unsigned depth = 0; depth < k; depth += kDepth, side ^= 1) {
        const bool more = depth + kDepth < k;
        if (more) fetch(depth + kDepth);
#pragma unroll
        for (int d = 0; d < kDepth; ++d) {
            float rows[kGroups][4], columns[kGroups][4];
#pragma unroll
            for (int g = 0; g < kGroups; ++g) {
                *reinterpret_cast<float4*>(rows[g]) =
                    *reinterpret_cast<const float4*>(&slab_a[side][d][g * kSpan + down * 4]);
                *reinterpret_cast<float4*>(columns[g]) =
                    *reinterpret_cast<const float4*>(&slab_b[side][d][g * kSpan + across * 4]);
            }
#pragma unroll
            for (int g = 0; g < kGroups; ++g)
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int h = 0; h < kGroups; ++h)
#pragma unroll
                        for (int j = 0; j < 4; ++j) sums[g][i][h][j] += rows[g][i] * columns[h][j];
        }
        if (more) put(side ^ 1);
        __syncthreads();
    }

    const bool vectors_c = n % 4 == 0 && ((size_t)c & 15) == 0;
#pragma unroll
    for (int h = 0; h < kGroups; ++h) {
        const unsigned column = left + h * kSpan + across * 4;
        float added[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) added[j] = bias && column + j < n ? bias[column + j] : 0.0f;
#pragma unroll
        for (int g = 0; g < kGroups; ++g)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const unsigned row = top + g * kSpan + down * 4 + i;
                if (row >= m || column >= n) continue;
                float* to = c + (size_t)row * n + column;
                float own[4];
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    const float sum = sums[g][i][h][j] + added[j];
                    own[j] = rectify ? fmaxf(sum, 0.0f) : sum;
                }
                if (vectors_c) {
                    *reinterpret_cast<float4*>(to) = make_float4(own[0], own[1], own[2], own[3]);
                    continue;
                }
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    if (column + j < n) to[j] = own[j];
            }
    }
}

// Softmax of each row in place, a warp to a row, after subtracting the row's largest element.
extern "C" __global__ void softmax_rows(float* __restrict__ values, unsigned rows, unsigned columns)
{
    const unsigned row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float* own = values + (size_t)row * columns;
    float largest = -__int_as_float(0x7f800000);  // minus infinity
    for (unsigned i = lane; i < columns; i += 32) largest = fmaxf(largest, own[i]);
    for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
    float sum = 0.0f;
    for (unsigned i = lane; i < columns; i += 32) {
        const float raised = expf(own[i] - largest);
        own[i] = raised;
        sum += raised;
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    for (unsigned i = lane; i < columns; i += 32) own[i] /= sum;
}
