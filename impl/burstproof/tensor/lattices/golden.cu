// Recursions of the golden ratio, one thread per member of a batch. Built without contraction of products and sums.

__device__ __forceinline__ long long own_index() {
    return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// x(n+1) = x(n) + x(n-1), ``steps`` times from x(0), x(1): x(steps)
template <class T>
__device__ __forceinline__ void recur(T* result, const T* first, const T* second, int steps, long long count) {
    const long long i = own_index();
    if (i >= count) return;
    T before = first[i], now = second[i];
    for (int step = 0; step < steps; ++step) {
        const T next = before + now;
        before = now;
        now = next;
    }
    result[i] = before;
}

extern "C" __global__ void __launch_bounds__(256)
golden_recurrence_float64(double* result, const double* first, const double* second, int steps, long long count) {
    recur(result, first, second, steps, count);
}

extern "C" __global__ void __launch_bounds__(256)
golden_recurrence_int64(long long* result, const long long* first, const long long* second, int steps,
                        long long count) {
    recur(result, first, second, steps, count);
}

// x = 1 + 1 / x, ``steps`` times
extern "C" __global__ void __launch_bounds__(256)
golden_fraction(double* result, const double* start, int steps, long long count) {
    const long long i = own_index();
    if (i >= count) return;
    double x = start[i];
    for (int step = 0; step < steps; ++step) x = 1.0 + 1.0 / x;
    result[i] = x;
}

// Fractional part of n times the golden ratio, from 64 exact bits of it, cut to the 53 bits of a double.
extern "C" __global__ void __launch_bounds__(256)
golden_rotation(double* result, const long long* index, unsigned long long multiplier, long long count) {
    const long long i = own_index();
    if (i >= count) return;
    const unsigned long long turned = static_cast<unsigned long long>(index[i]) * multiplier;
    result[i] = static_cast<double>(turned >> 11) * 1.1102230246251565e-16;
}
