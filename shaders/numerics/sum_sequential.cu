// Recursive, Kahan and Neumaier summation by one work-item in the precision of the numbers, for textbook.py (W. Kahan
// 1965; A. Neumaier 1974). `state` carries them from chunk to chunk: plain sum; Kahan's sum and its error; Neumaier's
// sum and its correction. Needs STRICT=1: contraction into fused multiply-adds would change the results.
KERNEL sum_sequential(GLOBAL const ELEMENT *numbers, const ulong count, GLOBAL ELEMENT *state) {
    if (thread_index() != 0) return;
    ELEMENT plain = state[0], kahan = state[1], lost = state[2], neumaier = state[3], rest = state[4];
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
    state[0] = plain;
    state[1] = kahan;
    state[2] = lost;
    state[3] = neumaier;
    state[4] = rest;
}
