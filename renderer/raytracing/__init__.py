"""The ray tracer below its picture: settings, geometry, the state of rays, kernels (shaders/raytracing/raytrace.cu)."""
