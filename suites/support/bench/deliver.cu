// Plain kernels of the ways to deliver contributions, which show what each allows on a card.

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

// Additions at random places in shared memory, eight places a thread at once; in the end the blocks add up their sums.
extern "C" __global__ void __launch_bounds__(1024)
add_shared(const unsigned short* places, unsigned* sums, long long count, int span) {
    extern __shared__ unsigned own[];
    for (int place = threadIdx.x; place < span; place += blockDim.x) own[place] = 0;
    __syncthreads();
    const uint4* groups = reinterpret_cast<const uint4*>(places);
    const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long item = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; item < count / 8; item += step) {
        const uint4 group = groups[item];
        const unsigned pairs[] = {group.x, group.y, group.z, group.w};
        for (unsigned pair : pairs) {
            atomicAdd(&own[pair & 0xffffu], 1u);
            atomicAdd(&own[pair >> 16], 1u);
        }
    }
    __syncthreads();
    for (int place = threadIdx.x; place < span; place += blockDim.x) atomicAdd(&sums[place], own[place]);
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
