"""CUDA C++ of your own beside the engine: compiled without a GPU, launched where there is one."""

import numpy as np

import burstproof as bp
from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource
from burstproof.device.memory import download, upload

SOURCE = CudaSource(
    "decay.cu",
    """
extern "C" __global__ void decay(float* potentials, float factor, unsigned count)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) potentials[i] *= factor;
}
""",
)
DECAY = Entry(SOURCE, "decay", "float32[] float32 uint32")

try:
    print(len(SOURCE.image((9, 0)).cubin), "bytes for compute capability 9.0")
    potentials = upload(np.arange(1000, dtype=np.float32))
    DECAY.on(0)(4, 256, potentials, 0.5, 1000)  # device 0; 4 blocks of 256 threads; the arguments
    print(download(potentials)[:4])  # [0. 0.5 1. 1.5]
except bp.EnvironmentInvalidError as error:
    print(f"not here: {error}")
