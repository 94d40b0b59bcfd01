// Recursive, Kahan and Neumaier summation by one work-item in the precision of the numbers, for textbook.py (W. Kahan
// 1965; A. Neumaier 1974). In: `count` numbers. Out, (5): the plain sum; Kahan's sum and its error; Neumaier's sum and
// its correction. Needs STRICT=1: contraction into fused multiply-adds would change the results.
KERNEL sum_sequential(GLOBAL const ELEMENT *numbers, const ulong count, GLOBAL ELEMENT *out) {
    if (thread_index() != 0) return;
    ELEMENT plain = 0, kahan = 0, lost = 0, neumaier = 0, rest = 0;
    for (ulong i = 0; i < count; i++) {
        ELEMENT number = numbers[i];
        plain += number;
        ELEMENT corrected = number - lost, total = kahan + corrected;
        lost = (total - kahan) - corrected;
        kahan = total;
        ELEMENT sum = neumaier + number;
        rest += fabs(neumaier) >= fabs(number) ? (neumaier - sum) + number : (number - sum) + neumaier;
        neumaier = sum;
    }
    out[0] = plain;
    out[1] = kahan;
    out[2] = lost;
    out[3] = neumaier;
    out[4] = rest;
}
