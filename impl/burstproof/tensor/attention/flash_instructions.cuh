// The instructions of flash attention that C++ has no words for (PTX ISA, sm_80 and newer), compiled in front of the tiles.

__device__ __forceinline__ void copy_async_16(unsigned target, const void* source, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copy_async_4(unsigned target, const void* source, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(target), "l"(source), "r"(bytes) : "memory");
}

__device__ __forceinline__ void copies_end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

__device__ __forceinline__ void copies_wait() { asm volatile("cp.async.wait_group 0;" ::: "memory"); }

__device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

#if BFLOAT
#define OPERAND "bf16"
#else
#define OPERAND "f16"
#endif

// sums (16 x 8, float32) += left (16 x 16) x right (16 x 8)
__device__ __forceinline__ void multiply_add(float (&sums)[4], const unsigned (&left)[4], unsigned right0, unsigned right1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." OPERAND "." OPERAND ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
}

// Two values rounded to 16 bits, the first in the low half.
__device__ __forceinline__ unsigned pack(float low, float high) {
    unsigned both;
    asm("cvt.rn." OPERAND "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ float unpack(unsigned short bits) {
    float value;
#if BFLOAT
    value = __uint_as_float((unsigned)bits << 16);
#else
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
#endif
    return value;
}

__device__ __forceinline__ float power_of_two(float exponent) {
    float value;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(exponent));
    return value;
}

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

__device__ __forceinline__ unsigned shared_start() {
    extern __shared__ __align__(128) unsigned char memory[];
    return (unsigned)__cvta_generic_to_shared(memory);
}

__device__ __forceinline__ void shared_pair(float& first, float& second, unsigned address) {
    asm volatile("ld.shared.v2.f32 {%0,%1}, [%2];" : "=f"(first), "=f"(second) : "r"(address) : "memory");
}
