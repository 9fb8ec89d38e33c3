// Element-wise expressions: every array is read once and the result written once, whatever the expression.
//
// Built behind element.cuh and followed by generated text (elementwise_kernels.py): ``value_of`` computes one element
// from its inputs, and the kernel hands arrays and scalars to ``run``. Macros: KIND, COMPLEX (1: elements are complex
// numbers of two doubles), REAL_RESULT (1: the result is real), VEC, ITEMS, THREADS, ARRAYS, HINTS.

struct complex_t {
    double re, im;
};

#if COMPLEX
typedef complex_t stored;
typedef complex_t number;
#if REAL_RESULT
typedef double result_t;
typedef double result_number;
#else
typedef complex_t result_t;
typedef complex_t result_number;
#endif
__device__ __forceinline__ number widened(const stored& x) { return x; }
__device__ __forceinline__ result_t narrowed(const result_number& x) { return x; }
#else
typedef Kind<KIND>::stored stored;
typedef Kind<KIND>::number number;
typedef stored result_t;
typedef number result_number;
__device__ __forceinline__ number widened(stored x) { return Kind<KIND>::load(x); }
__device__ __forceinline__ result_t narrowed(number x) { return Kind<KIND>::store(x); }
#endif

__device__ __forceinline__ complex_t operator+(complex_t a, complex_t b) { return {a.re + b.re, a.im + b.im}; }
__device__ __forceinline__ complex_t operator-(complex_t a, complex_t b) { return {a.re - b.re, a.im - b.im}; }
__device__ __forceinline__ complex_t operator-(complex_t a) { return {-a.re, -a.im}; }
__device__ __forceinline__ complex_t operator*(complex_t a, complex_t b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
// R. L. Smith, Algorithm 116 (1962): no overflow where the quotient is in range.
__device__ __forceinline__ complex_t operator/(complex_t a, complex_t b) {
    if (fabs(b.re) >= fabs(b.im)) {
        const double ratio = b.im / b.re, scale = 1.0 / (b.re + b.im * ratio);
        return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    const double ratio = b.re / b.im, scale = 1.0 / (b.im + b.re * ratio);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}

__device__ __forceinline__ complex_t lifted(complex_t x) { return x; }
__device__ __forceinline__ complex_t lifted(double x) { return {x, 0.0}; }

__device__ __forceinline__ float absolute(float x) { return fabsf(x); }
__device__ __forceinline__ double absolute(double x) { return fabs(x); }
__device__ __forceinline__ double absolute(complex_t x) { return hypot(x.re, x.im); }
__device__ __forceinline__ complex_t exponential(complex_t x) {
    double sine, cosine;
    sincos(x.im, &sine, &cosine);
    const double size = exp(x.re);
    return {size * cosine, size * sine};
}

template <class T> __device__ __forceinline__ T relu(T x) { return x < 0 ? static_cast<T>(0) : x; }
template <class T> __device__ __forceinline__ T sigmoid(T x) { return 1 / (1 + exponential(-x)); }
template <class T> __device__ __forceinline__ T gelu(T x) {
    return x * (static_cast<T>(0.5) * (1 + error_function(x * static_cast<T>(0.70710678118654752))));
}
template <class T> __device__ __forceinline__ T gelu_tanh(T x) {
    const T twice = static_cast<T>(1.5957691216057308), cubic = static_cast<T>(0.044715);
    return x * (1 / (1 + exponential(-twice * (x + cubic * x * x * x))));
}

__device__ __forceinline__ result_number value_of(const number* inputs, const number* scalars);

__device__ __forceinline__ void run(result_t* result, const stored* const* arrays, const number* scalars,
                                    index_t count) {
    typedef Pack<stored, VEC> pack_t;
    typedef Pack<result_t, VEC> result_pack_t;
    const index_t packs = count / VEC;
    const index_t first = static_cast<index_t>(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
    pack_t loaded[ITEMS][ARRAYS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k)
#pragma unroll
        for (int a = 0; a < ARRAYS; ++a)
            if (first + k * THREADS < packs)
                loaded[k][a] = load_once(reinterpret_cast<const pack_t*>(arrays[a]) + first + k * THREADS);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k)
        if (first + k * THREADS < packs) {
            result_pack_t pack;
#pragma unroll
            for (int j = 0; j < VEC; ++j) {
                number inputs[ARRAYS];
#pragma unroll
                for (int a = 0; a < ARRAYS; ++a) inputs[a] = widened(loaded[k][a].values[j]);
                pack.values[j] = narrowed(value_of(inputs, scalars));
            }
            store_once(reinterpret_cast<result_pack_t*>(result) + first + k * THREADS, pack);
        }
    const index_t left = packs * VEC + threadIdx.x;
    if (blockIdx.x == 0 && left < count) {
        number inputs[ARRAYS];
#pragma unroll
        for (int a = 0; a < ARRAYS; ++a) inputs[a] = widened(arrays[a][left]);
        result[left] = narrowed(value_of(inputs, scalars));
    }
}
