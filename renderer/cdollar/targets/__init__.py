"""The targets that run programs: the NumPy interpreter, CUDA and OpenCL kernels, GLSL passes."""
