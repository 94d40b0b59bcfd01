// Asks a device whether its kernels have warps of 32 with ballots (renderer/gpu/warps.py).

KERNEL query_ballot(GLOBAL uint *answer) { answer[0] = HAS_BALLOT; }
