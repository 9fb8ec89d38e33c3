// Element types: how a number is stored in memory, and the type that it is computed in.
//
// KIND (a macro of the build) is one of the names below. Half precision is stored in 16 bits and computed in float;
// conversions are written without the toolkit's headers, so that a run-time compiler needs no include path.

#define FLOAT32 0
#define FLOAT64 1
#define FLOAT16 2
#define BFLOAT16 3

typedef long long index_t;

template <int K> struct Kind;

template <> struct Kind<FLOAT32> {
    typedef float stored;
    typedef float number;
    static __device__ __forceinline__ float load(float value) { return value; }
    static __device__ __forceinline__ float store(float value) { return value; }
};

template <> struct Kind<FLOAT64> {
    typedef double stored;
    typedef double number;
    static __device__ __forceinline__ double load(double value) { return value; }
    static __device__ __forceinline__ double store(double value) { return value; }
};

template <> struct Kind<FLOAT16> {
    typedef unsigned short stored;
    typedef float number;
    static __device__ __forceinline__ float load(unsigned short bits) {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
    }
    static __device__ __forceinline__ unsigned short store(float value) {
        unsigned short bits;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
        return bits;
    }
};

template <> struct Kind<BFLOAT16> {
    typedef unsigned short stored;
    typedef float number;
    static __device__ __forceinline__ float load(unsigned short bits) {
        return __uint_as_float(static_cast<unsigned int>(bits) << 16);
    }
    static __device__ __forceinline__ unsigned short store(float value) {
#if __CUDA_ARCH__ >= 800
        unsigned short bits;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
        return bits;
#else
        unsigned int bits = __float_as_uint(value);
        if (value != value) return static_cast<unsigned short>((bits >> 16) | 0x40);
        return static_cast<unsigned short>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
#endif
    }
};

// Several neighbouring elements that move in one load or store, up to 16 bytes.
template <class T, int N> struct alignas(sizeof(T) * N) Pack {
    T values[N];
};

// Streaming access: what is read or written once need not stay in the caches.
template <class P> __device__ __forceinline__ P load_once(const P* address) {
#if HINTS
    if constexpr (sizeof(P) == 16) {
        uint4 words = __ldcs(reinterpret_cast<const uint4*>(address));
        return *reinterpret_cast<P*>(&words);
    }
#endif
    return *address;
}

template <class P> __device__ __forceinline__ void store_once(P* address, const P& pack) {
#if HINTS
    if constexpr (sizeof(P) == 16) {
        __stcs(reinterpret_cast<uint4*>(address), *reinterpret_cast<const uint4*>(&pack));
        return;
    }
#endif
    *address = pack;
}

__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
__device__ __forceinline__ float root_inverse(float x) { return 1.0f / sqrtf(x); }
__device__ __forceinline__ double root_inverse(double x) { return 1.0 / sqrt(x); }
__device__ __forceinline__ float error_function(float x) { return erff(x); }
__device__ __forceinline__ double error_function(double x) { return erf(x); }
