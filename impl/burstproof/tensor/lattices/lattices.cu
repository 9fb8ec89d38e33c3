// Nearest point of the lattice E8, one thread per point. Built without contraction of products and sums, so that ties
// fall as on the CPU.

#define DIMENSIONS 8

// Nearest point of D8 (integers with an even sum) to x - shift, plus shift; returns the squared distance. J. H. Conway
// and N. J. A. Sloane, "Fast quantizing and decoding algorithms for lattice quantizers and codes" (1982), section IV.
__device__ __forceinline__ double nearest_in_coset(double* found, const double* x, double shift) {
    double sum = 0.0, largest = -1.0;
    int worst = 0;
#pragma unroll
    for (int i = 0; i < DIMENSIONS; ++i) {
        found[i] = rint(x[i] - shift);
        sum += found[i];
        const double off = fabs((x[i] - shift) - found[i]);
        if (off > largest) {
            largest = off;
            worst = i;
        }
    }
    const bool odd = rint(sum * 0.5) != sum * 0.5;
    double distance = 0.0;
#pragma unroll
    for (int i = 0; i < DIMENSIONS; ++i) {
        if (odd && i == worst) found[i] += (x[i] - shift) - found[i] >= 0.0 ? 1.0 : -1.0;
        found[i] += shift;
        const double off = x[i] - found[i];
        distance += off * off;
    }
    return distance;
}

extern "C" __global__ void __launch_bounds__(256)
e8_nearest(double* nearest, const double* points, long long count) {
    const long long point = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (point >= count) return;
    double x[DIMENSIONS], whole[DIMENSIONS], half[DIMENSIONS];
#pragma unroll
    for (int i = 0; i < DIMENSIONS; ++i) x[i] = points[point * DIMENSIONS + i];
    const double to_whole = nearest_in_coset(whole, x, 0.0);
    const double to_half = nearest_in_coset(half, x, 0.5);
    const bool finite = to_whole < __longlong_as_double(0x7ff0000000000000LL);
    const double invalid = __longlong_as_double(0x7ff8000000000000LL);
#pragma unroll
    for (int i = 0; i < DIMENSIONS; ++i)
        nearest[point * DIMENSIONS + i] = !finite ? invalid : (to_whole <= to_half ? whole[i] : half[i]);
}
