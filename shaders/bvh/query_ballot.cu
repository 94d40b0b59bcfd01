// Asks a device whether its kernels have warps of 32 with ballots; the schedules of the ray tracer depend on it.
#include "common/portable.h"

KERNEL query_ballot(GLOBAL uint *answer) { answer[0] = HAS_BALLOT; }
