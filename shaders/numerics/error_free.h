// Error-free addition (TwoSum: D. E. Knuth, The Art of Computer Programming, volume 2, section 4.2.2) for the kernels
// of sums and residuals. Compile with STRICT: contraction into fused multiply-adds would change the errors.

// total = fl(total + term); error = the exact rounding error of that addition.
#define TWO_SUM(type, total, term, error)                                             \
    {                                                                                 \
        type two_sum_total = (total) + (term);                                        \
        type two_sum_term = two_sum_total - (total);                                  \
        error = ((total) - (two_sum_total - two_sum_term)) + ((term) - two_sum_term); \
        total = two_sum_total;                                                        \
    }
