// What fibers.cpp tells races.cpp of the threads of a launch.
#pragma once
#include <cstddef>
#include <cstdint>

struct Standing {  // of a thread: what orders its accesses
    uint32_t thread, group, cluster;
    uint32_t group_epoch, warp_epoch;  // barriers it has passed
    uint32_t cluster_epoch;  // twice the barriers of the cluster it has passed, and 1 if it has arrived at the next
    uint64_t atomic_at;  // of a warp's first: when a thread of it made an atomic operation, a fence, or a step of a mailbox
};

void races_begin(uint32_t groups);
void races_atomic(uint32_t thread, Standing *standings);  // orders what the thread did before it, and does after it, with others
// Checks an access that the running thread is about to make. `standings` are those of its group; `local`: of local memory.
void races_check(bool writes, bool atomic, const void *address, size_t size, const void *code, const Standing &now,
                 const Standing *standings, bool local);
void races_settle();  // before another thread runs, or makes an access
[[noreturn]] void races_found(const char *what, const void *address, const void *code, const void *other_code, uint32_t other_group,
                              uint32_t other_thread);  // in fibers.cpp
