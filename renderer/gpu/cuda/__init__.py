"""CUDA: the device contract over the driver API, NVRTC and cuBLAS."""
