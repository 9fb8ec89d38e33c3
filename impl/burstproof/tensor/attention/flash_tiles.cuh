// Tiles in shared memory and tensor-core products for flash attention; compiled in front of the kernels that use it.
//
// Compile-time constants: HEAD (32, 64 or 128 values a head), WARPS, STRIPS (strips of 16 rows that a warp owns),
// BLOCK (rows of a streamed tile), CAUSAL (0 or 1), BFLOAT (1: bfloat16, 0: float16).
//
// A tile is rows of HEAD 16-bit values. Its 16-byte chunks are permuted within a row (XOR with the row), so that the
// eight rows which one ldmatrix reads lie in different banks.

typedef unsigned short half_bits;
typedef unsigned int word;

constexpr int THREADS = WARPS * 32;
constexpr int OWN = WARPS * STRIPS * 16;    // rows that a block owns
constexpr int ROW_BYTES = HEAD * 2;
constexpr int CHUNKS = HEAD / 8;            // 16-byte chunks of a row
constexpr int DEPTH_STEPS = HEAD / 16;      // mma steps along the head
constexpr int BLOCK_STEPS = BLOCK / 16;     // mma steps along a streamed tile
constexpr int TILE_BYTES = BLOCK * ROW_BYTES;
constexpr float LOG2_E = 1.4426950408889634f;

// Where rows of one head start: element strides of batch, head and row; the values of a row are adjacent.
struct Rows {
    long long batch, head, row;
    __device__ __forceinline__ long long start(int batch_index, int head_index) const {
        return batch_index * batch + head_index * head;
    }
};

// Of all tensors: those of k are of v, too, and those of out of dout.
struct Strides {
    long long q_batch, q_head, q_row, k_batch, k_head, k_row, out_batch, out_head, out_row;
};

__device__ __forceinline__ word swizzled(int row, int chunk) {
    const int mix = CHUNKS == 4 ? (row >> 1) & 3 : row & 7;
    return row * ROW_BYTES + ((chunk ^ mix) << 4);
}

// Starts copying COUNT rows to shared memory; rows from `valid` on become zero.
template <int COUNT>
__device__ __forceinline__ void fetch_rows(word tile, const half_bits* source, long long stride, int valid) {
    constexpr int ROWS_AT_ONCE = THREADS / CHUNKS;
    static_assert(COUNT % ROWS_AT_ONCE == 0 && ROWS_AT_ONCE % 8 == 0, "whole rows for every thread, one permutation");
    const int row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    const word target = tile + swizzled(row, chunk);
    const half_bits* place = source + row * stride + chunk * 8;
#pragma unroll
    for (int i = 0; i < COUNT / ROWS_AT_ONCE; i++) {
        const bool inside = row + i * ROWS_AT_ONCE < valid;
        copy_async_16(target + i * ROWS_AT_ONCE * ROW_BYTES, inside ? place : source, inside ? 16 : 0);
        place += ROWS_AT_ONCE * stride;
    }
}

// Left operand: 16 rows from `row`, one mma step along the head.
__device__ __forceinline__ void load_left(word (&fragment)[4], word tile, int row, int step) {
    const int lane = threadIdx.x & 31;
    load_matrices(fragment, tile + swizzled(row + (lane & 15), step * 2 + (lane >> 4)));
}

// Right operand, transposed product (left x tile^T): 16 rows of the tile, one step along the head.
__device__ __forceinline__ void load_right_rows(word (&fragment)[4], word tile, int row, int step) {
    const int lane = threadIdx.x & 31;
    load_matrices(fragment, tile + swizzled(row + (lane & 7) + ((lane >> 4) << 3), step * 2 + ((lane >> 3) & 1)));
}

// Right operand, plain product (left x tile): 16 rows of the tile are the summed index, 16 columns the result's.
__device__ __forceinline__ void load_right_columns(word (&fragment)[4], word tile, int row, int step) {
    const int lane = threadIdx.x & 31;
    load_matrices_transposed(fragment, tile + swizzled(row + (lane & 15), step * 2 + (lane >> 4)));
}

// A warp's strips of the operand that stays: kept in registers where they fit, read again from shared memory else.
struct Held {
#if HOLD
    word fragments[STRIPS][DEPTH_STEPS][4];
    __device__ __forceinline__ void take(word tile, int row) {
#pragma unroll
        for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
            for (int step = 0; step < DEPTH_STEPS; step++)
                load_left(fragments[strip][step], tile, row + strip * 16, step);
    }
    __device__ __forceinline__ void get(word (&fragment)[4], int strip, int step) const {
#pragma unroll
        for (int i = 0; i < 4; i++) fragment[i] = fragments[strip][step][i];
    }
#else
    word tile;
    int row;
    __device__ __forceinline__ void take(word tile_, int row_) {
        tile = tile_;
        row = row_;
    }
    __device__ __forceinline__ void get(word (&fragment)[4], int strip, int step) const {
        load_left(fragment, tile, row + strip * 16, step);
    }
#endif
};

typedef float Scores[STRIPS][BLOCK / 8][4];  // a warp's strips x a streamed tile
typedef float Sums[STRIPS][HEAD / 8][4];     // a warp's strips x a head

__device__ __forceinline__ void clear(Sums& sums) {
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
        for (int column = 0; column < HEAD / 8; column++)
#pragma unroll
            for (int i = 0; i < 4; i++) sums[strip][column][i] = 0.0f;
}

// scores = held x tile^T
__device__ __forceinline__ void multiply_transposed(Scores& scores, const Held& held, word tile) {
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
        for (int column = 0; column < BLOCK / 8; column++)
#pragma unroll
            for (int i = 0; i < 4; i++) scores[strip][column][i] = 0.0f;
#pragma unroll
    for (int step = 0; step < DEPTH_STEPS; step++) {
        word left[STRIPS][4];
#pragma unroll
        for (int strip = 0; strip < STRIPS; strip++) held.get(left[strip], strip, step);
#pragma unroll
        for (int column = 0; column < BLOCK_STEPS; column++) {
            word right[4];
            load_right_rows(right, tile, column * 16, step);
#pragma unroll
            for (int strip = 0; strip < STRIPS; strip++) {
                multiply_add(scores[strip][2 * column], left[strip], right[0], right[1]);
                multiply_add(scores[strip][2 * column + 1], left[strip], right[2], right[3]);
            }
        }
    }
}

// sums += round(scores) x tile
__device__ __forceinline__ void multiply_into(Sums& sums, const Scores& scores, word tile) {
#pragma unroll
    for (int step = 0; step < BLOCK_STEPS; step++) {
        word left[STRIPS][4];
#pragma unroll
        for (int strip = 0; strip < STRIPS; strip++) {
            const float(&low)[4] = scores[strip][2 * step];
            const float(&high)[4] = scores[strip][2 * step + 1];
            left[strip][0] = pack(low[0], low[1]);
            left[strip][1] = pack(low[2], low[3]);
            left[strip][2] = pack(high[0], high[1]);
            left[strip][3] = pack(high[2], high[3]);
        }
#pragma unroll
        for (int column = 0; column < DEPTH_STEPS; column++) {
            word right[4];
            load_right_columns(right, tile, step * 16, column);
#pragma unroll
            for (int strip = 0; strip < STRIPS; strip++) {
                multiply_add(sums[strip][2 * column], left[strip], right[0], right[1]);
                multiply_add(sums[strip][2 * column + 1], left[strip], right[2], right[3]);
            }
        }
    }
}

// Writes a warp's strips, every row times its factor; rows from `valid` on are left alone.
__device__ __forceinline__ void store_rows(
    half_bits* target, long long stride, int row, int valid, const Sums& sums, const float (&factor)[STRIPS][2]) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int strip = 0; strip < STRIPS; strip++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int here = row + strip * 16 + half * 8 + (lane >> 2);
            if (here >= valid) continue;
            half_bits* place = target + here * stride + (lane & 3) * 2;
#pragma unroll
            for (int column = 0; column < HEAD / 8; column++)
                *reinterpret_cast<word*>(place + column * 8) =
                    pack(sums[strip][column][2 * half] * factor[strip][half],
                         sums[strip][column][2 * half + 1] * factor[strip][half]);
        }
}
