// Reports to renderer/gpu/warps.py whether kernels of this device have warp functions: answer[0] becomes HAS_BALLOT of
// common/portable.h, 1 or 0.

KERNEL query_ballot(GLOBAL uint *answer) { answer[0] = HAS_BALLOT; }
