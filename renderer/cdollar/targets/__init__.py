"""Where programs run: the NumPy interpreter, CUDA and OpenCL kernels, GLSL passes."""
