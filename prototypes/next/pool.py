"""Why three cases of suites/stage3_create/test_tensor_memory.py fail where the default device is not the first."""
import cupy

from burstproof.device import memory
from burstproof.tensor.array.backend import backend, default_device

now = cupy.cuda.runtime.getDevice
print("default", default_device(), "current", now(), "count", cupy.cuda.runtime.getDeviceCount())
pool = cupy.get_default_memory_pool()
print("allocator", cupy.cuda.get_allocator(), pool.malloc)
for number in range(cupy.cuda.runtime.getDeviceCount()):
    place = backend("cupy", number)
    with place.use():
        pool.free_all_blocks()
        before = now()
        with memory.observe(number) as found, memory.observe(0) as first:
            array = place.zeros(1 << 20)
        print(number, "current", before, now(), "array on", array.device.id, "seen", found, "as 0", first, pool.used_bytes())
        pool.set_limit(size=pool.total_bytes() + (1 << 20))
        try:
            place.empty(64 << 20)
            print("   no limit")
        except Exception as error:
            print("   limited:", type(error).__name__)
        pool.set_limit(size=0)
