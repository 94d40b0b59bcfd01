// The rounding error of the product a * b, which is 0 where fma() rounds twice.
uniform float a;
uniform float b;
layout(location = 0) out float remainder;

void main() {
    precise float product = a * b;
    precise float exact = fma(a, b, -product);
    remainder = exact;
}
