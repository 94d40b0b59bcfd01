"""OpenCL: the device contract over PyOpenCL, its drivers, and PoCL's cache of kernels."""
