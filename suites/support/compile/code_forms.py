"""Small kernels in CUDA C++ and in PTX."""

SCALE = 'extern "C" __global__ void scale(float* v, float f) { v[threadIdx.x] *= f; }'
PTX = """.version 9.4
.target sm_75
.address_size 64
.visible .entry put(.param .u64 to, .param .u32 value)
{
    .reg .b64 %a<3>;
    .reg .b32 %v<2>;
    ld.param.u64 %a1, [to];
    ld.param.u32 %v1, [value];
    cvta.to.global.u64 %a2, %a1;
    st.global.u32 [%a2], %v1;
    ret;
}
"""
