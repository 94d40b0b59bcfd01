// What fibers.cpp (groups, their threads and who runs) and waits.cpp (what threads wait for) share.
#pragma once
#include "races.h"
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace emulation {

constexpr size_t PAGE = 4096, STACK = 256 << 10, LOCAL = 256 << 10, LARGEST_WARP = 32, GAP = 64;
constexpr size_t MOST_THREADS = 8192, MOST_GROUPS = 64;  // that run at a time
constexpr unsigned RANK_SHIFT = 24;  // a shared address: the rank in the cluster, then the byte
constexpr unsigned char MARK = 0xA5;  // between arrays of local memory

struct Index { unsigned x, y, z; };
struct Thread {  // EmulatedThread of words.h
    Index thread, block, grid;
    unsigned char *local;
};
enum { WARP_SYNC, WARP_BALLOT, WARP_SHUFFLE, WARP_MAX, WARP_MIN, WARP_ADD, WARP_AND, WARP_OR, WARP_XOR, WARP_MATCH };
enum State { READY, BARRIER, WARP, CLUSTER, BOX, ENDED };
struct Copy { unsigned char *to; const unsigned char *from; unsigned bytes, valid; const void *code; };
struct Group;
struct Fiber {
    Thread thread;
    Standing *standing;
    void *stack_pointer;
    Group *group;
    State state;
    unsigned lane;
    int operation;  // of the warp's collective it waits for
    unsigned mask, parameter;
    uint64_t value;
    unsigned box, parity;
    uint64_t arrived;  // barriers of the cluster it arrived at and did not wait for yet: 0 or 1
    uint64_t cluster_phase;
    std::vector<Copy> open;
    std::vector<std::vector<Copy>> closed;
};
struct Box { unsigned count, pending, phase; long bytes; };
struct Cluster;
struct Group {
    Cluster *cluster;
    unsigned rank, living, waiting;
    unsigned char *local;
    Fiber *fibers;
    Standing *standings;
    std::unordered_map<unsigned, Box> boxes;
};
struct Mail { unsigned to, bytes, box; uint64_t value; };
struct Cluster {
    std::vector<Group> groups;
    std::vector<Mail> mail;
    unsigned living, arrived;
    uint64_t phase;
};
struct Array { unsigned at, bytes; const char *name; };
struct Module { unsigned end = GAP; std::vector<Array> arrays; };

struct Launch {
    void (*entry)(const char *);
    const char *packed;
    unsigned groups, threads, cluster, next_cluster;
    bool races;
    unsigned char *image;  // the kernel's own code, tables and variables
    size_t image_size;
    Module *module;
    std::vector<Cluster> running;
    std::vector<Fiber *> ready;
    int manner;  // of choose()
};

extern Launch *launch;
extern Fiber *now;

uint64_t draw();
unsigned draw(unsigned below);
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void make_ready(Fiber *fiber);
void leave();  // to the scheduler; the fiber's state says when it goes on
void touch(bool writes, bool atomic, const void *address, size_t size, const void *code);  // checks an access for races
// What is waited for may have come: for the lanes of a warp, the threads of a group, of a cluster.
void try_warp(Group *group, unsigned first, unsigned mask);
void try_barrier(Group *group);
void try_cluster_barrier(Cluster *cluster);
void deliver(Cluster *cluster);  // some mail

}  // namespace emulation
