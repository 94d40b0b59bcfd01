// Sums of huge arrays (paper 2 and beyond): fast, reproducible and exact, dot products, integers, extremes, sums by key.
//   ELEMENT       the C type of the numbers; SINGLE 1 for float, 0 for double
//   DOT           0 sums x, 1 sums x * y;  ABSOLUTE 1 sums |x|
//                 y begins y_start numbers into its buffer, a multiple of 64 bytes
//   CONTIGUOUS    1 on processors of one lane: a work item reads a run of its own; 0: neighbours read neighbouring words
// A group takes `tiles_each` tiles of TILE elements one after another; the last tile is padded with -0, which changes no sum.
#define WIDTH 8
#define TILE (GROUP_SIZE * WIDTH)

// ------------------------------------------------------------------------------------------------ integer accumulators
// A number is kept as limbs, signed 64-bit integers of weight 2^(32 i + LIMB_BASE), and as a pair of 32-bit words that are
// added with carry, so that 32-bit atomics do. An addition changes a limb by less than 2^33: 2^30 of them cannot overflow.
#define FLAG_NAN 1u
#define FLAG_PLUS_INFINITY 2u
#define FLAG_MINUS_INFINITY 4u
#define FLAG_NOT_MINUS_ZERO 8u

#define ADD_LIMB(limbs, i, value)                                                                                      \
    {                                                                                                                  \
        uint low_word = (uint)(value), old_word = atomic_add(&(limbs)[2 * (i)], low_word);                             \
        uint high_word = (uint)((ulong)(value) >> 32) + (old_word + low_word < old_word ? 1u : 0u);                    \
        if (high_word) atomic_add(&(limbs)[2 * (i) + 1], high_word);                                                   \
    }
// Adds (or subtracts) m * 2^exponent; m has up to 64 bits.
#define ADD_INTEGER(limbs, m, exponent, negative)                                                                      \
    {                                                                                                                  \
        uint position = (uint)((exponent) - LIMB_BASE), limb = position >> 5, shift = position & 31u;                  \
        ulong low = ((m) & 0xfffffffful) << shift, high = ((m) >> 32) << shift;                                        \
        ulong middle = (low >> 32) + (high & 0xfffffffful);                                                            \
        low &= 0xfffffffful;                                                                                           \
        high >>= 32;                                                                                                   \
        if (negative) { low = 0 - low; middle = 0 - middle; high = 0 - high; }                                         \
        if (low) ADD_LIMB(limbs, limb, low)                                                                            \
        if (middle) ADD_LIMB(limbs, limb + 1, middle)                                                                  \
        if (high) ADD_LIMB(limbs, limb + 2, high)                                                                      \
    }
// Adds a double, whatever it is; flags is a word in the same memory.
#define ADD_DOUBLE(limbs, flags, number)                                                                               \
    {                                                                                                                  \
        ulong bits = as_ulong(number), mantissa = bits & 0xffffffffffffful;                                            \
        int biased = (int)(bits >> 52) & 0x7ff;                                                                        \
        bool minus = (bits >> 63) != 0;                                                                                \
        if (biased == 0x7ff) {                                                                                         \
            atomic_or(&(flags), mantissa ? FLAG_NAN : minus ? FLAG_MINUS_INFINITY : FLAG_PLUS_INFINITY);               \
        } else if (biased || mantissa) {                                                                               \
            ulong m = biased ? mantissa | 0x10000000000000ul : mantissa;                                               \
            int exponent = (biased ? biased : 1) - 1075;                                                               \
            atomic_or(&(flags), FLAG_NOT_MINUS_ZERO);                                                                  \
            ADD_INTEGER(limbs, m, exponent, minus)                                                                     \
        } else if (!minus)                                                                                             \
            atomic_or(&(flags), FLAG_NOT_MINUS_ZERO);                                                                  \
    }

#ifdef SINGLE  // ----------------------------------------------------------------------------- float and double numbers
#if SINGLE
#define RAW float8
#define PAD -0.0f
#else
#define RAW double8
#define PAD -0.0
#endif

// Eight elements of a whole tile. Order is free in every kernel here, so a thread takes 16-byte words GROUP_SIZE apart.
DEVICE RAW load_whole(GLOBAL const ELEMENT *numbers, ulong tile) {
#if CONTIGUOUS
    return vload8(tile, numbers);
#elif SINGLE
    GLOBAL const float4 *words = (GLOBAL const float4 *)numbers + tile * (2 * GROUP_SIZE) + local_index();
    return join_float4(words[0], words[GROUP_SIZE]);
#else
    GLOBAL const double2 *words = (GLOBAL const double2 *)numbers + tile * (4 * GROUP_SIZE) + local_index();
    return join_double2(words[0], words[GROUP_SIZE], words[2 * GROUP_SIZE], words[3 * GROUP_SIZE]);
#endif
}

DEVICE RAW load(GLOBAL const ELEMENT *numbers, ulong tile, ulong count) {
    if ((tile + 1) * TILE <= count) return load_whole(numbers, tile);
    ELEMENT padded[WIDTH];
    for (int i = 0; i < WIDTH; i++) {
        ulong at = tile * TILE + i * GROUP_SIZE + local_index();
        padded[i] = at < count ? numbers[at] : PAD;
    }
    return vload8(0, padded);
}

#define FIRST_TILE (group_index() * tiles_each)
#define LAST_TILE min((count + TILE - 1) / TILE, (ulong)(group_index() + 1ul) * tiles_each)

// Fast: eight running sums a thread in the numbers' own precision, then the paper's halving among the threads in double.
KERNEL fast(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_each,
            GLOBAL double *out) {
    y += y_start;
    LOCAL_ARRAY(double, halves, GROUP_SIZE);
    RAW sums = SPLAT(RAW, 0), others = SPLAT(RAW, 0);
    ulong tile = FIRST_TILE, last = LAST_TILE, whole = min(last, count / TILE);
#if DOT
    for (; tile < whole; tile++) sums += load_whole(x, tile) * load_whole(y, tile);
#else
    for (; tile + 4 <= whole; tile += 4) {  // four loads in flight
        RAW a = load_whole(x, tile), b = load_whole(x, tile + 1), c = load_whole(x, tile + 2), d = load_whole(x, tile + 3);
        sums += a + b;
        others += c + d;
    }
    for (; tile < whole; tile++) sums += load_whole(x, tile);
#endif
    for (; tile < last; tile++) {
#if DOT
        others += load(x, tile, count) * load(y, tile, count);
#else
        others += load(x, tile, count);
#endif
    }
    double8 both = double8_of(sums) + double8_of(others);
    double parts[WIDTH], sum = 0;
    vstore8(both, 0, parts);
    for (int i = 0; i < WIDTH; i++) sum += parts[i];
    halves[local_index()] = sum;
    BARRIER();
    for (uint half_count = GROUP_SIZE / 2; half_count > 0; half_count /= 2) {
        if (local_index() < half_count) halves[local_index()] += halves[local_index() + half_count];
        BARRIER();
    }
    if (local_index() == 0) out[group_index()] += halves[0];
}

// Exact: each lane keeps an expansion of LEVELS doubles by error-free additions (Knuth); what it cannot hold, and what is not
// finite or would overflow, goes to the group's integer limbs. LEVELS 1 holds floats of similar size without any rest, so
// that the test costs all there is to pay (after Collange, Defour, Graillat, Iakymchuk, and Neal's superaccumulator).
#define TWO_SUM(total, term, error)                                                                                    \
    {                                                                                                                  \
        double8 raised = total + term, part = raised - total;                                                          \
        error = (total - (raised - part)) + (term - part);                                                             \
        total = raised;                                                                                                \
    }
#define LIMB_TYPE LOCAL uint

// What stands in `error` could not be kept: to the limbs with it; where a sum is not finite, back to the old one.
DEVICE_NOINLINE void rescue(double *sums, const double *olds, double *uppers, const double *upper_olds,
                            const double *terms, const double *errors, LIMB_TYPE *limbs, LIMB_TYPE *flags) {
    for (int i = 0; i < WIDTH; i++) {
        if (errors[i] == 0) continue;
        if (isfinite(sums[i]) && isfinite(uppers[i]) && isfinite(errors[i])) {
            ADD_DOUBLE(limbs, *flags, errors[i])
        } else {
            sums[i] = olds[i];
            uppers[i] = upper_olds[i];
            ADD_DOUBLE(limbs, *flags, terms[i])
        }
    }
}

// Level 2 of floats is needed so seldom that it stands in local memory (`spare`), which leaves registers for loads.
#define RESCUE(term)                                                                                                   \
    {                                                                                                                  \
        double s[WIDTH], s_old[WIDTH], u[WIDTH], u_old[WIDTH], t[WIDTH], e[WIDTH];                                     \
        vstore8(sums, 0, s);                                                                                           \
        vstore8(sums_old, 0, s_old);                                                                                   \
        vstore8(uppers, 0, u);                                                                                         \
        vstore8(uppers_old, 0, u_old);                                                                                 \
        vstore8(term, 0, t);                                                                                           \
        vstore8(error, 0, e);                                                                                          \
        rescue(s, s_old, u, u_old, t, e, limbs, &flags[0]);                                                            \
        sums = vload8(0, s);                                                                                           \
        uppers = vload8(0, u);                                                                                         \
    }
#if LEVELS == 1
#define ADD_TERM(term)                                                                                                 \
    {                                                                                                                  \
        double8 sums_old = sums, error;                                                                                \
        TWO_SUM(sums, term, error)                                                                                     \
        if (any_nonzero(error)) {                                                                                      \
            double8 rest = error, uppers = vload8(local_index(), spare), uppers_old = uppers;                          \
            TWO_SUM(uppers, rest, error)                                                                               \
            if (any_nonzero(error)) RESCUE(term)                                                                       \
            vstore8(uppers, local_index(), spare);                                                                     \
        }                                                                                                              \
    }
#else
#define ADD_TERM(term)                                                                                                 \
    {                                                                                                                  \
        double8 sums_old = sums, uppers_old = uppers, error, rest;                                                     \
        TWO_SUM(sums, term, rest)                                                                                      \
        TWO_SUM(uppers, rest, error)                                                                                   \
        if (any_nonzero(error)) RESCUE(term)                                                                           \
    }
#endif

#if DOT && !SINGLE
// Products that leave the range in which head and tail are doubles: by integers, four partial products of 32 bits.
DEVICE_NOINLINE void rescue_products(const double *xs, const double *ys, LIMB_TYPE *limbs, LIMB_TYPE *flags) {
    for (int i = 0; i < WIDTH; i++) {
        double product = xs[i] * ys[i];
        if (!isfinite(xs[i]) || !isfinite(ys[i]) || xs[i] == 0 || ys[i] == 0) {
            ADD_DOUBLE(limbs, *flags, product)
            continue;
        }
        ulong a = as_ulong(xs[i]), b = as_ulong(ys[i]);
        int p = (int)(a >> 52) & 0x7ff, q = (int)(b >> 52) & 0x7ff;
        bool negative = ((a ^ b) >> 63) != 0;
        a = (a & 0xffffffffffffful) | (p ? 0x10000000000000ul : 0);
        b = (b & 0xffffffffffffful) | (q ? 0x10000000000000ul : 0);
        int power = (p ? p : 1) + (q ? q : 1) - 2150;
        ulong a_low = a & 0xfffffffful, a_high = a >> 32, b_low = b & 0xfffffffful, b_high = b >> 32;
        atomic_or(flags, FLAG_NOT_MINUS_ZERO);
        ulong term = a_low * b_low;
        ADD_INTEGER(limbs, term, power, negative)
        term = a_low * b_high + a_high * b_low;  // below 2^54
        ADD_INTEGER(limbs, term, power + 32, negative)
        term = a_high * b_high;
        ADD_INTEGER(limbs, term, power + 64, negative)
    }
}
#endif

#if SINGLE
#define AHEAD 2
#else
#define AHEAD 1
#endif
#if ABSOLUTE
#define MAGNITUDE(x) fabs(x)
#else
#define MAGNITUDE(x) (x)
#endif

#if SINGLE && !DOT && !CONTIGUOUS
// Exact, for floats on processors of many lanes. A running double takes every float of WINDOW successive exponents without a
// rounding, LONGEST_SUM times: floats of 24 bits times 2^20 in size times 2^10 in number are 54 bits less one. So one test of
// the smallest and the largest of eight takes the place of eight error-free additions. What lies outside goes by error-free
// additions to two doubles in local memory (`spare`) and on to the limbs; after MOST_MISSES tiles with such numbers the
// window moves to where the numbers are. Sizes of floats are compared by their bits, shifted left by one: without the sign.
#define WINDOW (20u << 24)
#define LONGEST_SUM 1023u
#define MOST_MISSES 16u
#define NOT_FINITE 0xff000000u
#define LOW_FOR(highest) ((min(max((highest) >> 24, 17u), 252u) - 17u) << 24)  // two binades above the highest, 17 below
#define SPARE(level, i) spare[((level) * WIDTH + (i)) * GROUP_SIZE + local_index()]

// What two doubles could not keep, and numbers that are not finite, to the limbs.
DEVICE_NOINLINE void leave_outside(const float *numbers, const double *rests, LIMB_TYPE *limbs, LIMB_TYPE *flags) {
    for (int i = 0; i < WIDTH; i++) {
        double number = numbers[i];
        if (isfinite(number)) {
            if (rests[i] != 0) ADD_DOUBLE(limbs, *flags, rests[i])
        } else
            ADD_DOUBLE(limbs, *flags, number)
    }
}

// Sums of numbers of a window, to the limbs: multiples of the window's last bit below 2^54 of it, added up as integers.
DEVICE_NOINLINE void leave_sums(const double *sums, uint low, LIMB_TYPE *limbs, LIMB_TYPE *flags) {
    int exponent = (int)max(low >> 24, 1u) - 150;
    double scale = as_double((ulong)(1023 - exponent) << 52);
    long units = 0;
    bool told = false;
    for (int i = 0; i < WIDTH; i++) {
        units += (long)(sums[i] * scale);
        told |= as_ulong(sums[i]) != 0x8000000000000000ul;
    }
    bool negative = units < 0;
    ulong size = negative ? 0ul - (ulong)units : (ulong)units;
    ADD_INTEGER(limbs, size, exponent, negative)
    if (told) atomic_or(flags, FLAG_NOT_MINUS_ZERO);
}
DEVICE_NOINLINE void leave_doubles(const double *sums, LIMB_TYPE *limbs, LIMB_TYPE *flags) {
    for (int i = 0; i < WIDTH; i++)
        if (sums[i] != 0) ADD_DOUBLE(limbs, *flags, sums[i])
}
#define LEAVE_SUMS                                                                                                     \
    {                                                                                                                  \
        double left[WIDTH];                                                                                            \
        UNROLL for (int i = 0; i < WIDTH; i++) { left[i] = sums[i]; sums[i] = -0.0; }                                  \
        leave_sums(left, low, limbs, &flags[0]);                                                                       \
        run = 0;                                                                                                       \
    }
// total + term, and what of the term is lost, which becomes the term.
#define ADD_ERROR_FREE(total, term)                                                                                    \
    {                                                                                                                  \
        double old = total, raised = old + term, part = raised - old;                                                  \
        term = (old - (raised - part)) + (term - part);                                                                \
        total = raised;                                                                                                \
    }
#define ADD_OUTSIDE(numbers)                                                                                           \
    {                                                                                                                  \
        double rests[WIDTH];                                                                                           \
        bool more = false;                                                                                             \
        UNROLL for (int i = 0; i < WIDTH; i++) {                                                                       \
            rests[i] = isfinite(numbers[i]) ? (double)numbers[i] : 0.0;                                                \
            ADD_ERROR_FREE(SPARE(0, i), rests[i])                                                                      \
            more |= rests[i] != 0 || !isfinite(numbers[i]);                                                            \
        }                                                                                                              \
        if (more) {                                                                                                    \
            more = false;                                                                                              \
            UNROLL for (int i = 0; i < WIDTH; i++) {                                                                   \
                ADD_ERROR_FREE(SPARE(1, i), rests[i])                                                                  \
                more |= rests[i] != 0 || !isfinite(numbers[i]);                                                        \
            }                                                                                                          \
            if (more) leave_outside(numbers, rests, limbs, &flags[0]);                                                 \
        }                                                                                                              \
    }
#define ADD_TILE(raw)                                                                                                  \
    {                                                                                                                  \
        float numbers[WIDTH];                                                                                          \
        vstore8(raw, 0, numbers);                                                                                      \
        uint highest = 0, lowest = 0xffffffffu; /* a zero is no lowest: one less, it is the largest there is */        \
        UNROLL for (int i = 0; i < WIDTH; i++) {                                                                       \
            uint bits = 2 * as_uint(numbers[i]);                                                                       \
            highest = max(highest, bits);                                                                              \
            lowest = min(lowest, bits - 1);                                                                            \
        }                                                                                                              \
        if (highest >= low + WINDOW || (lowest < low - 1 && low)) {                                                    \
            bool moves = ++misses >= MOST_MISSES && highest < NOT_FINITE;                                              \
            if (moves) {                                                                                               \
                misses = 0;                                                                                            \
                LEAVE_SUMS                                                                                             \
                low = LOW_FOR(highest);                                                                                \
            }                                                                                                          \
            float outside[WIDTH];                                                                                      \
            UNROLL for (int i = 0; i < WIDTH; i++) {                                                                   \
                uint bits = 2 * as_uint(numbers[i]);                                                                   \
                bool inside = bits - low < WINDOW || bits == 0;                                                        \
                outside[i] = inside ? 0.0f : MAGNITUDE(numbers[i]);                                                    \
                numbers[i] = inside ? numbers[i] : -0.0f;                                                              \
            }                                                                                                          \
            missed = true;                                                                                             \
            UNROLL for (int i = 0; i < WIDTH; i++) any_finite |= outside[i] != 0 && isfinite(outside[i]);              \
            ADD_OUTSIDE(outside)                                                                                       \
        }                                                                                                              \
        UNROLL for (int i = 0; i < WIDTH; i++) sums[i] += (double)MAGNITUDE(numbers[i]);                               \
        if (++run >= LONGEST_SUM) LEAVE_SUMS                                                                           \
    }

KERNEL_RESIDENT(EXACT_RESIDENT) exact(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count,
                                      ulong tiles_each, GLOBAL uint *out) {
    LOCAL_ARRAY(uint, limbs, 2 * LIMBS);
    LOCAL_ARRAY(uint, flags, 1);
    LOCAL_ARRAY(double, spare, 2 * GROUP_SIZE *WIDTH);
    for (uint i = local_index(); i < 2 * LIMBS; i += GROUP_SIZE) limbs[i] = 0;
    for (uint i = local_index(); i < 2 * GROUP_SIZE * WIDTH; i += GROUP_SIZE) spare[i] = 0.0;
    if (local_index() == 0) flags[0] = 0;
    BARRIER();
    double sums[WIDTH];
    UNROLL for (int i = 0; i < WIDTH; i++) sums[i] = -0.0;
    uint low = 0, misses = 0, run = 0, first_highest = 0;
    bool missed = false, any_finite = false;  // whether some number lay outside, and a finite one
    ulong tile = FIRST_TILE, last = LAST_TILE, whole = min(last, count / TILE);
    float firsts[WIDTH];
    vstore8(load(x, tile, count), 0, firsts);
    UNROLL for (int i = 0; i < WIDTH; i++) first_highest = max(first_highest, 2 * as_uint(firsts[i]));
    low = LOW_FOR(first_highest < NOT_FINITE && first_highest ? first_highest : 127u << 24);
    for (; tile + 4 <= whole; tile += 4) {  // four loads in flight
        RAW a = load_whole(x, tile), b = load_whole(x, tile + 1), c = load_whole(x, tile + 2), d = load_whole(x, tile + 3);
        ADD_TILE(a)
        ADD_TILE(b)
        ADD_TILE(c)
        ADD_TILE(d)
    }
    for (; tile < last; tile++) {
        RAW a = load(x, tile, count);
        ADD_TILE(a)
    }
    LEAVE_SUMS
    if (missed) {
        for (int level = 0; level < 2; level++) {
            UNROLL for (int i = 0; i < WIDTH; i++) sums[i] = SPARE(level, i);
            leave_doubles(sums, limbs, &flags[0]);
        }
        atomic_or(&flags[0], any_finite ? FLAG_NOT_MINUS_ZERO : 0);
    }
    BARRIER();
    for (uint i = local_index(); i < LIMBS; i += GROUP_SIZE) {
        ulong limb = (ulong)limbs[2 * i] | (ulong)limbs[2 * i + 1] << 32;
        if (limb) ADD_LIMB(out, i, limb)
    }
    if (local_index() == 0 && flags[0]) atomic_or(&out[2 * LIMBS], flags[0]);
}
#else
KERNEL_RESIDENT(2) exact(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_each,
             GLOBAL uint *out) {
    y += y_start;
    LOCAL_ARRAY(uint, limbs, 2 * LIMBS);
    LOCAL_ARRAY(uint, flags, 1);
    for (uint i = local_index(); i < 2 * LIMBS; i += GROUP_SIZE) limbs[i] = 0;
    if (local_index() == 0) flags[0] = 0;
    BARRIER();
    double8 sums = SPLAT(double8, -0.0);
#if LEVELS == 1
    LOCAL_ARRAY(double, spare, GROUP_SIZE *WIDTH);
    vstore8(SPLAT(double8, 0.0), local_index(), spare);
#else
    double8 uppers = SPLAT(double8, 0.0);
#endif
    ulong tile = FIRST_TILE, last = LAST_TILE, whole = min(last, count / TILE);
#if !DOT
    if (tile < whole) {  // floats are half as long: two loads of them must be in flight where one of doubles is enough
        RAW next = load_whole(x, tile), after = load_whole(x, min(tile + AHEAD - 1, whole - 1));
        for (; tile < whole; tile++) {
            double8 term = MAGNITUDE(double8_of(next));
#if AHEAD == 2
            next = after;
            after = load_whole(x, min(tile + 2, whole - 1));
#else
            next = load_whole(x, min(tile + 1, whole - 1));
#endif
            ADD_TERM(term)
        }
    }
#endif
    for (; tile < last; tile++) {
        double8 term = double8_of(load(x, tile, count));
#if DOT
        double8 factor = double8_of(load(y, tile, count));
#endif
#if DOT && SINGLE
        term = term * factor;  // 48 bits: no rounding
        ADD_TERM(term)
#elif DOT
        double8 head = term * factor;
        if (any_outside(head, 0x1p-960, 0x1p1000)) {
            double xs[WIDTH], ys[WIDTH];
            vstore8(term, 0, xs);
            vstore8(factor, 0, ys);
            rescue_products(xs, ys, limbs, &flags[0]);
        } else {
            double8 tail = fma(term, factor, SPLAT(double8, 0.0) - head);
            ADD_TERM(head)
            ADD_TERM(tail)
        }
#else
        term = MAGNITUDE(term);
        ADD_TERM(term)
#endif
    }
    double parts[WIDTH];
    vstore8(sums, 0, parts);
    for (int i = 0; i < WIDTH; i++) ADD_DOUBLE(limbs, flags[0], parts[i])
#if LEVELS == 1
    vstore8(vload8(local_index(), spare), 0, parts);
#else
    vstore8(uppers, 0, parts);
#endif
    for (int i = 0; i < WIDTH; i++)
        if (parts[i] != 0) ADD_DOUBLE(limbs, flags[0], parts[i])
    BARRIER();
    for (uint i = local_index(); i < LIMBS; i += GROUP_SIZE) {
        ulong limb = (ulong)limbs[2 * i] | (ulong)limbs[2 * i + 1] << 32;
        if (limb) ADD_LIMB(out, i, limb)
    }
    if (local_index() == 0 && flags[0]) atomic_or(&out[2 * LIMBS], flags[0]);
}
#endif

// Reproducible: each number is cut at fixed binary places into FOLDS slices (Demmel, Nguyen; ReproBLAS), beginning at the
// bin of the largest number seen. Bin j counts units of 2^(BIN_WIDTH j - 1074). The slices of a number do not depend on the
// bin they begin at, so that keeping the FOLDS highest bins in the end gives the same bits in any order. No data slow it.
#define BIN_WIDTH 40
#define HIGHEST_BIN 51  // the last whose 1.5 * 2^52 units are a finite double
#define UNITS_OF(j) as_double(((ulong)(BIN_WIDTH * (j) - 1074 + 52 + 1023) << 52) | 0x8000000000000ul)
#define LIMIT_OF(j) as_double((ulong)(BIN_WIDTH * (j) - 1074 + BIN_WIDTH - 1 + 1023) << 52)
#define LONGEST_RUN 2048u  // additions of 2^39 units that keep a sum between 2^52 and 2^53 units

DEVICE void leave_slices(LOCAL uint *bins, const double *sums, double start, uint bin) {
    for (int i = 0; i < WIDTH; i++) {
        long units = (long)as_ulong(sums[i]) - (long)as_ulong(start);  // in one binade: a difference of bits
        ulong low = (ulong)units & 0xfffffffful, high = (ulong)(units >> 32);
        if (low) ADD_LIMB(bins, 2 * bin, low)
        if (high) ADD_LIMB(bins, 2 * bin + 1, high)
    }
}

// Numbers of 2^1005 and more, cut after scaling by 2^-200, which is exact.
DEVICE void cut_huge(LOCAL uint *bins, double x) {
    double rest = x * 0x1p-200;
    for (int fold = 0; fold < FOLDS; fold++) {
        uint bin = HIGHEST_BIN + 1 - fold;
        double start = as_double(((ulong)(BIN_WIDTH * (int)bin - 1074 + 52 - 200 + 1023) << 52) | 0x8000000000000ul);
        double sum = start + as_double(as_ulong(rest) | 1ul);
        long units = (long)as_ulong(sum) - (long)as_ulong(start);
        rest -= sum - start;
        ADD_LIMB(bins, 2 * bin, (ulong)units & 0xfffffffful)
        ADD_LIMB(bins, 2 * bin + 1, (ulong)(units >> 32))
    }
}

// The bin that a batch needs; takes what is not finite, and what is huge, out of it.
DEVICE_NOINLINE uint bin_for(double *numbers, LOCAL uint *bins, LOCAL uint *flags, LOCAL uint *top) {
    uint needed = FOLDS - 1;
    for (int i = 0; i < WIDTH; i++) {
        uint biased = (uint)(as_ulong(numbers[i]) >> 52) & 0x7ffu;
        if (biased == 0x7ffu) {
            bool minus = (as_ulong(numbers[i]) >> 63) != 0;
            bool nan = (as_ulong(numbers[i]) & 0xffffffffffffful) != 0;
            atomic_or(flags, nan ? FLAG_NAN : minus ? FLAG_MINUS_INFINITY : FLAG_PLUS_INFINITY);
            numbers[i] = 0;
        } else if (biased >= 1005 + 1023) {
            cut_huge(bins, numbers[i]);
            atomic_max(top, HIGHEST_BIN + 1);
            numbers[i] = 0;
        } else
            while (fabs(numbers[i]) >= LIMIT_OF(needed)) needed++;
    }
    return needed;
}

KERNEL reproducible(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_each,
                    GLOBAL uint *out) {
    y += y_start;
    LOCAL_ARRAY(uint, bins, 2 * LIMBS);
    LOCAL_ARRAY(uint, flags, 1);
    LOCAL_ARRAY(uint, top, 1);
    for (uint i = local_index(); i < 2 * LIMBS; i += GROUP_SIZE) bins[i] = 0;
    if (local_index() == 0) flags[0] = top[0] = 0;
    BARRIER();
    uint bin = FOLDS - 1, run = 0;
    double limit = LIMIT_OF(bin), starts[FOLDS];
    double8 sums[FOLDS];
    double parts[WIDTH];
    UNROLL for (int f = 0; f < FOLDS; f++) sums[f] = SPLAT(double8, starts[f] = UNITS_OF(bin - f));
#define LEAVE_ALL                                                                                                      \
    {                                                                                                                  \
        UNROLL for (int f = 0; f < FOLDS; f++) {                                                                       \
            vstore8(sums[f], 0, parts);                                                                                \
            leave_slices(bins, parts, starts[f], bin - f);                                                             \
        }                                                                                                              \
        run = 0;                                                                                                       \
    }
    ulong tile = FIRST_TILE, last = LAST_TILE, whole = min(last, count / TILE);
    for (; tile < last; tile++) {
        double8 rest = double8_of(tile < whole ? load_whole(x, tile) : load(x, tile, count));
        if (any_outside(rest, 0.0, limit * (1 - 0x1p-53)) || run == LONGEST_RUN) {
            LEAVE_ALL
            vstore8(rest, 0, parts);
            uint needed = bin_for(parts, bins, flags, top);
            rest = vload8(0, parts);
            bin = max(bin, needed);
            limit = LIMIT_OF(bin);
            UNROLL for (int f = 0; f < FOLDS; f++) sums[f] = SPLAT(double8, starts[f] = UNITS_OF(bin - f));
        }
        run++;
        UNROLL for (int f = 0; f < FOLDS; f++) {  // the odd bit keeps a number from lying halfway between two units
            double8 before = sums[f];
            sums[f] = before + with_odd_bits(rest);
            if (f < FOLDS - 1) rest = rest - (sums[f] - before);
        }
    }
    LEAVE_ALL
    atomic_max(&top[0], bin);
    BARRIER();
    for (uint i = local_index(); i < LIMBS; i += GROUP_SIZE) {
        ulong limb = (ulong)bins[2 * i] | (ulong)bins[2 * i + 1] << 32;
        if (limb) ADD_LIMB(out, i, limb)
    }
    if (local_index() == 0) {
        if (flags[0]) atomic_or(&out[2 * LIMBS], flags[0]);
        atomic_max(&out[2 * LIMBS + 1], top[0]);
    }
}

// The paper's step: an array of 2 * half_count numbers (the odd one padded) becomes one of half_count.
KERNEL halve(GLOBAL ELEMENT *numbers, uint count, uint half_count) {
    uint i = thread_index();
    if (i < count - half_count) numbers[i] += numbers[i + half_count];
}
#endif

DEVICE long units_of_half(ushort bits) {  // of 2^-24, which every finite float16 is a multiple of
    uint biased = bits >> 10 & 31u, mantissa = bits & 1023u;
    long units = biased ? (long)(mantissa | 1024u) << (biased - 1) : (long)mantissa;
    return bits >> 15 ? -units : units;
}

#ifdef WHOLE  // -------------------------------------------------------------------------- integers, and float16 as such
// Numbers are integers: float16 ones in units of 2^-24. Sums stand in limbs of weight 2^(32 i); SIGNED 1: a limb has a sign.
#if WHOLE == 16
#define LONG_LONG long
DEVICE long whole_of(ushort bits, LOCAL uint *flags) {
    if ((bits >> 10 & 31u) == 31u) {
        atomic_or(flags, bits & 1023u ? FLAG_NAN : bits >> 15 ? FLAG_MINUS_INFINITY : FLAG_PLUS_INFINITY);
        return 0;
    }
    if (bits != 0x8000u) flags[1] = 1;
    long units = units_of_half(bits);
#if ABSOLUTE
    return units < 0 ? -units : units;
#else
    return units;
#endif
}
#elif ABSOLUTE && SIGNED
#define LONG_LONG long
#define whole_of(number, flags) ((long)(number) < 0 ? -(long)(number) : (long)(number))
#else
#if SIGNED
#define LONG_LONG long
#else
#define LONG_LONG ulong
#endif
#define whole_of(number, flags) ((LONG_LONG)(number))
#endif

KERNEL whole(GLOBAL const ELEMENT *x, GLOBAL const ELEMENT *y, ulong y_start, ulong count, ulong tiles_each,
             GLOBAL uint *out) {
    y += y_start;
    LOCAL_ARRAY(uint, flags, 2);
    LOCAL_ARRAY(uint, limbs, 2 * LIMBS);
    for (uint i = local_index(); i < 2 * LIMBS; i += GROUP_SIZE) limbs[i] = 0;
    if (local_index() == 0) flags[0] = flags[1] = 0;
    BARRIER();
    ulong sums[4] = {0, 0, 0, 0};
    ulong first = group_index() * tiles_each * TILE, last = min(count, first + tiles_each * TILE);
    for (ulong i = first + local_index(); i < last; i += GROUP_SIZE) {
        LONG_LONG a = whole_of(x[i], flags);
#if DOT
        LONG_LONG b = whole_of(y[i], flags);
        ulong a_low = (ulong)a & 0xfffffffful, b_low = (ulong)b & 0xfffffffful;
        LONG_LONG a_high = a >> 32, b_high = b >> 32;
        ulong least = a_low * b_low;
        LONG_LONG cross = (LONG_LONG)a_low * b_high, other = a_high * (LONG_LONG)b_low, most = a_high * b_high;
        sums[0] += least & 0xfffffffful;
        sums[1] += (least >> 32) + ((ulong)cross & 0xfffffffful) + ((ulong)other & 0xfffffffful);
        sums[2] += (ulong)(cross >> 32) + (ulong)(other >> 32) + ((ulong)most & 0xfffffffful);
        sums[3] += (ulong)(most >> 32);
#elif NARROW
        sums[0] += (ulong)a;  // at most 32 bits: 2^30 of them fit
#else
        sums[0] += (ulong)a & 0xfffffffful;
        sums[1] += (ulong)(a >> 32);
#endif
    }
    for (int s = 0; s < 4; s++)
        if (sums[s]) ADD_LIMB(limbs, s, sums[s])
    BARRIER();
    for (uint i = local_index(); i < LIMBS; i += GROUP_SIZE) {
        ulong limb = (ulong)limbs[2 * i] | (ulong)limbs[2 * i + 1] << 32;
        if (limb) ADD_LIMB(out, i, limb)
    }
    if (local_index() == 0 && (flags[0] || flags[1])) atomic_or(&out[2 * LIMBS], flags[0] | (flags[1] ? FLAG_NOT_MINUS_ZERO : 0));
}
#endif

#ifdef LOWEST  // ---------------------------------------------------------------------------------- smallest and largest
// out holds two numbers a group; nans[0] is 1 when there is no number among the numbers. float16 is compared as float.
#if LOWEST == 16
#define VALUE float
DEVICE float value_of(ushort bits) {
    if ((bits >> 10 & 31u) == 31u) return as_float((bits >> 15) << 31 | 0x7f800000u | (uint)(bits & 1023u) << 13);
    return (float)units_of_half(bits) * 5.9604644775390625e-8f;
}
#else
#define VALUE ELEMENT
#define value_of(number) (number)
#endif

KERNEL extremes(GLOBAL const ELEMENT *x, ulong count, ulong tiles_each, GLOBAL VALUE *out, GLOBAL uint *nans) {
    LOCAL_ARRAY(VALUE, lows, GROUP_SIZE);
    LOCAL_ARRAY(VALUE, highs, GROUP_SIZE);
    ulong first = group_index() * tiles_each * TILE, last = min(count, first + tiles_each * TILE);
    VALUE low = value_of(x[0]), high = low;
    bool nan = false;
    for (ulong i = first + local_index(); i < last; i += GROUP_SIZE) {
        VALUE value = value_of(x[i]);
        low = value < low || low != low ? value : low;
        high = value > high || high != high ? value : high;
        nan |= value != value;
    }
    lows[local_index()] = low;
    highs[local_index()] = high;
    BARRIER();
    for (uint half_count = GROUP_SIZE / 2; half_count > 0; half_count /= 2) {
        if (local_index() < half_count) {
            VALUE a = lows[local_index() + half_count], b = highs[local_index() + half_count];
            if (a < lows[local_index()]) lows[local_index()] = a;
            if (b > highs[local_index()]) highs[local_index()] = b;
        }
        BARRIER();
    }
    if (local_index() == 0) {
        out[2 * group_index()] = lows[0];
        out[2 * group_index() + 1] = highs[0];
    }
    if (nan) atomic_or(&nans[0], 1u);
}
#endif

#ifdef BY_KEY  // ---------------------------------------------------------------------------------------- sums by key
// Adds numbers[i] to the LIMBS limbs and one word of flags of key keys[i]. BY_KEY 1: floating-point; 2: signed; 3: unsigned.
KERNEL add_by_key(GLOBAL const ELEMENT *numbers, GLOBAL const uint *keys, ulong count, GLOBAL uint *out) {
    ulong i = thread_index_long();
    if (i >= count) return;
    GLOBAL uint *limbs = out + (ulong)keys[i] * (2 * LIMBS + 2);
#if BY_KEY == 1
#if HALF
    ushort half_bits = numbers[i];
    bool infinite = (half_bits >> 10 & 31u) == 31u;
    double number = infinite ? as_double((ulong)(half_bits >> 15) << 63 | 0x7ff0000000000000ul | (half_bits & 1023u))
                             : (double)units_of_half(half_bits) * 0x1p-24;
    if (half_bits == 0x8000u) number = -0.0;
#else
    double number = numbers[i];
#endif
    ADD_DOUBLE(limbs, limbs[2 * LIMBS], number)
#else
    bool negative = BY_KEY == 2 && (long)numbers[i] < 0;
    ulong magnitude = negative ? 0 - (ulong)(long)numbers[i] : (ulong)numbers[i];
    ADD_INTEGER(limbs, magnitude, 0, negative)
#endif
}
#endif
