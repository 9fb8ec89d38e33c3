// AdamW on one flat array of parameters (Loshchilov and Hutter 2019, algorithm 2): one read and one write of each state,
// and the 16-bit copy that the next step computes with. Four values a thread; `count` is a multiple of four.
// Macro: KIND (of the copy). Compiled behind element.cuh.

typedef Kind<KIND>::stored stored;

struct Rates {  // first and second: beta1 and beta2
    float step, first, second, epsilon, decay, second_correction;
};

__device__ __forceinline__ void update(float& weight, float gradient, float& first, float& second, const Rates& rates, float decay) {
    first = rates.first * first + (1.0f - rates.first) * gradient;
    second = rates.second * second + (1.0f - rates.second) * gradient * gradient;
    weight -= decay * weight;
    weight -= rates.step * first / (sqrtf(second) * rates.second_correction + rates.epsilon);
}

// step: rate / (1 - beta1^t); second_correction: 1 / sqrt(1 - beta2^t); decay: rate x weight decay, for the first
// `decayed` values only; the first `copied` values are written to `copy` as well.
extern "C" __global__ void __launch_bounds__(256) adamw(
    float* weights, const float* gradients, float* first, float* second, stored* copy, index_t count, index_t decayed,
    index_t copied, const Rates rates) {
    const index_t at = (static_cast<index_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 4;
    if (at >= count) return;
    Pack<float, 4> weight = *reinterpret_cast<const Pack<float, 4>*>(weights + at);
    Pack<float, 4> m = *reinterpret_cast<const Pack<float, 4>*>(first + at);
    Pack<float, 4> v = *reinterpret_cast<const Pack<float, 4>*>(second + at);
    const Pack<float, 4> gradient = *reinterpret_cast<const Pack<float, 4>*>(gradients + at);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        update(weight.values[i], gradient.values[i], m.values[i], v.values[i], rates, at < decayed ? rates.decay : 0.0f);
    *reinterpret_cast<Pack<float, 4>*>(weights + at) = weight;
    *reinterpret_cast<Pack<float, 4>*>(first + at) = m;
    *reinterpret_cast<Pack<float, 4>*>(second + at) = v;
    if (at < copied) {
        Pack<stored, 4> rounded;
#pragma unroll
        for (int i = 0; i < 4; ++i) rounded.values[i] = Kind<KIND>::store(weight.values[i]);
        *reinterpret_cast<Pack<stored, 4>*>(copy + at) = rounded;
    }
}
