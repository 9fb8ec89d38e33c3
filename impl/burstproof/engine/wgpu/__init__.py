"""The WGPU engine: bursts as WGSL compute shaders on any Vulkan, Metal or DX12 device (BE-16)."""
