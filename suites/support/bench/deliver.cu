// Plain kernels of the ways to deliver contributions, which show what each allows on a card.

#define CHUNK 8192
#define BIN_THREADS 512
#define BINS 128

// 64-bit additions at random places: a word a thread, as `reduce` of limit_kernels.py does with 32 bits.
extern "C" __global__ void add_wide(const unsigned* places, unsigned long long* sums, long long count) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long item = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; item < count; item += step)
        atomicAdd(&sums[places[item]], 1ull);
}

// 32-bit additions at random places, four places a thread at once.
extern "C" __global__ void add_four(const unsigned* places, unsigned* sums, long long count) {
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    const uint4* groups = reinterpret_cast<const uint4*>(places);
    for (long long item = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; item < count / 4; item += step) {
        const uint4 place = groups[item];
        atomicAdd(&sums[place.x], 1u);
        atomicAdd(&sums[place.y], 1u);
        atomicAdd(&sums[place.z], 1u);
        atomicAdd(&sums[place.w], 1u);
    }
}

// Sort targets into a queue per bin of 2^shift neurons, by their places there: a chunk through shared memory, runs to
// each queue.
extern "C" __global__ void __launch_bounds__(BIN_THREADS)
bin_targets(const unsigned* targets, unsigned short* queues, unsigned* lengths, int chunks, int shift,
            unsigned capacity) {
    __shared__ unsigned sorted[CHUNK];
    __shared__ unsigned counts[BINS], starts[BINS], bases[BINS];
    for (int chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        if (threadIdx.x < BINS) counts[threadIdx.x] = 0;
        __syncthreads();
        const uint4* from = reinterpret_cast<const uint4*>(targets + static_cast<long long>(chunk) * CHUNK);
        unsigned own[CHUNK / BIN_THREADS], ranks[CHUNK / BIN_THREADS];
        for (int group = 0; group < CHUNK / BIN_THREADS / 4; group++)
            *reinterpret_cast<uint4*>(own + 4 * group) = from[group * BIN_THREADS + threadIdx.x];
        for (int item = 0; item < CHUNK / BIN_THREADS; item++) ranks[item] = atomicAdd(&counts[own[item] >> shift], 1u);
        __syncthreads();
        if (threadIdx.x < 32) {
            unsigned running = 0;
            for (int group = 0; group < BINS / 32; group++) {
                const unsigned count = counts[32 * group + threadIdx.x];
                unsigned sum = count;
                for (int step = 1; step < 32; step *= 2) {
                    const unsigned below = __shfl_up_sync(~0u, sum, step);
                    if (threadIdx.x >= step) sum += below;
                }
                starts[32 * group + threadIdx.x] = running + sum - count;
                running += __shfl_sync(~0u, sum, 31);
            }
        }
        __syncthreads();
        if (threadIdx.x < BINS && counts[threadIdx.x])
            bases[threadIdx.x] = atomicAdd(&lengths[threadIdx.x], counts[threadIdx.x]) - starts[threadIdx.x];
        for (int item = 0; item < CHUNK / BIN_THREADS; item++) sorted[starts[own[item] >> shift] + ranks[item]] = own[item];
        __syncthreads();
        for (int place = threadIdx.x; place < CHUNK; place += BIN_THREADS) {
            const unsigned bin = sorted[place] >> shift;
            const unsigned local = sorted[place] & ((1u << shift) - 1);
            queues[static_cast<long long>(bin) * capacity + (bases[bin] + place)] = static_cast<unsigned short>(local);
        }
        __syncthreads();
    }
}

// A block owns a bin: it adds its queue up in shared memory, writes the sums and leaves the queue empty.
extern "C" __global__ void __launch_bounds__(1024)
own_targets(const unsigned short* queues, unsigned* lengths, unsigned* sums, int shift, unsigned capacity) {
    extern __shared__ unsigned own[];
    const unsigned span = 1u << shift, length = lengths[blockIdx.x];
    const unsigned short* queue = queues + static_cast<long long>(blockIdx.x) * capacity;
    for (unsigned place = threadIdx.x; place < span; place += blockDim.x) own[place] = 0;
    __syncthreads();
    for (unsigned item = threadIdx.x; item < length; item += blockDim.x) atomicAdd(&own[queue[item]], 1u);
    __syncthreads();
    for (unsigned place = threadIdx.x; place < span; place += blockDim.x) sums[blockIdx.x * span + place] = own[place];
    if (threadIdx.x == 0) lengths[blockIdx.x] = 0;
}

// Gather: look up for every synapse whether its source fired; a thread's sum stands for its rows.
extern "C" __global__ void __launch_bounds__(1024)
gather_sources(const unsigned* sources, const unsigned* fired, unsigned* sums, long long count, int words) {
    extern __shared__ unsigned bits[];
    for (int word = threadIdx.x; word < words; word += blockDim.x) bits[word] = fired[word];
    __syncthreads();
    const uint4* groups = reinterpret_cast<const uint4*>(sources);
    const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    unsigned sum = 0;
    for (long long item = thread; item < count / 4; item += step) {
        const uint4 source = groups[item];
        sum += bits[source.x >> 5] >> (source.x & 31) & 1;
        sum += bits[source.y >> 5] >> (source.y & 31) & 1;
        sum += bits[source.z >> 5] >> (source.z & 31) & 1;
        sum += bits[source.w >> 5] >> (source.w & 31) & 1;
    }
    sums[thread] = sum;
}
