// Tests whether a driver's fma() rounds once, for renderer/cdollar/targets/glsl/target.py: writes fma(a, b, -(a * b)),
// the rounding error of the product, which is 0 if fma() rounds the product first.
uniform float a;
uniform float b;
layout(location = 0) out float remainder;

void main() {
    precise float product = a * b;
    precise float exact = fma(a, b, -product);
    remainder = exact;
}
