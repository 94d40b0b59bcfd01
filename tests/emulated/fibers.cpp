// Runs the threads of a CUDA kernel as fibers of one host thread. A cluster (one group, where there are none) runs at a time,
// or a few at a time; which thread goes on at a barrier, warp operation, atomic operation or wait is drawn.
//
// Exact: barriers, warp collectives with their masks, clusters, mailboxes, async copies (which happen as late as they may, or at
// once), and that local memory is garbage at the start. Told as errors: deadlocks, faults, a word beyond an array of local memory
// that was written, collectives that disagree, a group that ends while mail is on its way to it.
// Not shown: memory orders weaker than sequential consistency, races of threads between two of these places (unless the order
// of whole pieces changes the result), the GPU's own rounding of functions such as sin.

#include "races.h"
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unordered_map>
#include <vector>
#include <xmmintrin.h>

namespace {

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
const char *const WAITS[] = {"ready", "at a barrier of the group", "at a warp's operation", "at a barrier of the cluster",
                             "for a mailbox", "ended"};

struct Copy { unsigned char *to; const unsigned char *from; unsigned bytes, valid; const void *code; };
struct Group;
struct Fiber {
    Thread thread;
    Standing *standing;
    void *stack_pointer;
    Group *group;
    State state;
    unsigned lane, ready_at;  // its place in the list of ready fibers
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

uint64_t state = 1;
uint64_t draw() {  // xorshift64*
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1Dull;
}
unsigned draw(unsigned below) { return (unsigned)((draw() >> 32) * below >> 32); }

std::unordered_map<const void *, Module> modules;
std::vector<Fiber> fibers;
std::vector<Standing> standings;
unsigned char *stacks, *locals;  // room for MOST_THREADS and MOST_GROUPS, of which fibers.size() and groups_made are open
size_t groups_made;
Launch *launch;
Fiber *now;
void *scheduler;
sigjmp_buf way_out;
char *told;
size_t room;
void *fault_at, *fault_code;
int fault_signal;

__attribute__((format(printf, 1, 2), noreturn)) void fail(const char *format, ...) {
    char words[512];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    if (now) {
        const Thread &t = now->thread;
        snprintf(told, room, "%s (group %u, thread %u)", words, t.block.x, t.thread.x);
    } else snprintf(told, room, "%s", words);
    siglongjmp(way_out, 1);
}

}  // namespace

extern "C" {
Thread *emulated_now;

void emulated_switch(void **save, void *load);
asm(R"(
.text
.globl emulated_switch
.type emulated_switch,@function
emulated_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
}

namespace {

void make_ready(Fiber *fiber) {
    fiber->state = READY;
    launch->ready.push_back(fiber);
}

void leave() {  // to the scheduler; the fiber's state says when it goes on
    if (launch->races) races_settle();
    emulated_switch(&now->stack_pointer, scheduler);
}

void wait_as(State why) {
    now->state = why;
    leave();
}

// ---------------------------------------------------------------------------------------------------------------- warps
uint64_t combine(int operation, uint64_t a, uint64_t b) {
    switch (operation) {
        case WARP_MAX: return a > b ? a : b;
        case WARP_MIN: return a < b ? a : b;
        case WARP_ADD: return (uint32_t)(a + b);
        case WARP_AND: return a & b;
        case WARP_OR: return a | b;
        default: return a ^ b;
    }
}

// Ends the collective that waits for the lanes of this mask when all that live have come.
void try_warp(Group *group, unsigned first, unsigned mask) {
    unsigned size = launch->threads - first < LARGEST_WARP ? launch->threads - first : LARGEST_WARP;
    Fiber *lanes = group->fibers + first, *one = nullptr;
    for (unsigned k = 0; k < size; k++) {
        if (!(mask >> k & 1) || lanes[k].state == ENDED) continue;
        if (lanes[k].state != WARP || lanes[k].mask != mask) return;
        if (one && lanes[k].operation != one->operation)
            fail("lanes %u and %u of a warp are at different operations", one->lane, k);
        one = lanes + k;
    }
    if (!one) return;
    int operation = one->operation;
    unsigned epoch = 0;
    uint64_t values[LARGEST_WARP], result = operation == WARP_MIN || operation == WARP_AND ? 0xffffffffu : 0;
    for (unsigned k = 0; k < LARGEST_WARP; k++) {
        bool here = k < size && mask >> k & 1 && lanes[k].state == WARP;
        values[k] = here ? lanes[k].value : draw();  // of a lane that takes no part anything comes
        if (here && epoch <= lanes[k].standing->warp_epoch) epoch = lanes[k].standing->warp_epoch + 1;
        if (here) result = operation == WARP_BALLOT ? result | values[k] << k : combine(operation, result, values[k]);
    }
    for (unsigned k = 0; k < size; k++) {
        if (!(mask >> k & 1) || lanes[k].state != WARP) continue;
        Fiber &lane = lanes[k];
        if (operation == WARP_SHUFFLE) lane.value = values[lane.parameter];
        else if (operation == WARP_MATCH) {
            uint64_t same = 0;
            for (unsigned m = 0; m < size; m++) same |= (uint64_t)(mask >> m & 1 && values[m] == values[k]) << m;
            lane.parameter = (unsigned)same;
        } else lane.value = result;
    }
    for (unsigned k = 0; k < size; k++) {
        if (!(mask >> k & 1) || lanes[k].state != WARP) continue;
        if (operation == WARP_MATCH) lanes[k].value = lanes[k].parameter;
        if (operation == WARP_SYNC) lanes[k].standing->warp_epoch = epoch;  // the others do not order memory
        make_ready(lanes + k);
    }
}

// --------------------------------------------------------------------------------------------------- groups and clusters
void try_barrier(Group *group) {
    if (!group->waiting || group->waiting < group->living) return;
    if (group->living < launch->threads)
        fail("%u threads of group %u ended before a barrier at which %u wait", launch->threads - group->living,
             group->fibers->thread.block.x, group->living);
    group->waiting = 0;
    for (unsigned k = 0; k < launch->threads; k++) {
        group->standings[k].group_epoch++;
        make_ready(group->fibers + k);
    }
}

void try_cluster_barrier(Cluster *cluster) {
    if (cluster->arrived < cluster->living || !cluster->arrived) return;
    cluster->arrived = 0;
    cluster->phase++;
    for (Group &group : cluster->groups)
        for (unsigned k = 0; k < launch->threads; k++)
            if (group.fibers[k].state == CLUSTER) make_ready(group.fibers + k);
}

Box &box_of(Group *group, unsigned at) {
    auto found = group->boxes.find(at);
    if (found == group->boxes.end()) fail("a mailbox at byte %u of local memory of rank %u that is not open", at, group->rank);
    return found->second;
}

void settle(Group *group, unsigned at, Box &box) {
    if (box.pending || box.bytes) return;
    box.phase++;
    box.pending = box.count;
    for (unsigned k = 0; k < launch->threads; k++) {
        Fiber &fiber = group->fibers[k];
        if (fiber.state == BOX && fiber.box == at && (box.phase & 1) != fiber.parity) make_ready(&fiber);
    }
}

void deliver(Cluster *cluster) {
    unsigned which = draw((unsigned)cluster->mail.size());
    Mail mail = cluster->mail[which];
    cluster->mail[which] = cluster->mail.back();
    cluster->mail.pop_back();
    Group *group = &cluster->groups[mail.to >> RANK_SHIFT];
    unsigned at = mail.box & ((1u << RANK_SHIFT) - 1);
    if (!group->living) fail("mail for rank %u of a cluster, which has ended", group->rank);
    memcpy(group->local + (mail.to & ((1u << RANK_SHIFT) - 1)), &mail.value, mail.bytes);
    Box &box = box_of(group, at);
    box.bytes -= mail.bytes;
    settle(group, at, box);
}

void check_local(Group *group) {
    for (const Array &array : launch->module->arrays)
        for (unsigned k = 0; k < GAP; k++)
            if (group->local[array.at + array.bytes + k] != MARK || group->local[array.at - 1 - k] != MARK)
                fail("group %u wrote beside its local array %s (%u bytes)", group->fibers->thread.block.x, array.name, array.bytes);
}

void end_thread() {
    Group *group = now->group;
    Cluster *cluster = group->cluster;
    if (now->arrived) fail("a thread ended between the halves of a barrier of its cluster");
    now->state = ENDED;
    group->living--;
    cluster->living--;
    unsigned first = now->thread.thread.x / LARGEST_WARP * LARGEST_WARP;
    for (unsigned k = first; k < first + LARGEST_WARP && k < launch->threads; k++)
        if (group->fibers[k].state == WARP) try_warp(group, first, group->fibers[k].mask);
    try_barrier(group);
    try_cluster_barrier(cluster);
    leave();
    __builtin_unreachable();
}

void begin_thread() {
    launch->entry(launch->packed);
    end_thread();
}

// ------------------------------------------------------------------------------------------------------------ scheduling
void fill_local(Group *group) {
    unsigned end = launch->module->arrays.empty() ? (unsigned)LOCAL : launch->module->end + (unsigned)GAP;
    memset(group->local, 0xFF, end);
    if (draw(2))
        for (unsigned k = 0; k + 8 <= end; k += 8) {
            uint64_t word = draw();
            memcpy(group->local + k, &word, 8);
        }
    for (const Array &array : launch->module->arrays) {
        memset(group->local + array.at - GAP, MARK, GAP);
        memset(group->local + array.at + array.bytes, MARK, GAP);
    }
}

unsigned char *local_of(size_t slot) { return locals + slot * (LOCAL + PAGE) + PAGE; }

// Starts the next cluster of the grid in the places of `cluster`.
void begin_cluster(Cluster &cluster) {
    unsigned place = (unsigned)(&cluster - launch->running.data()), which = launch->next_cluster++;
    cluster.living = launch->cluster * launch->threads;
    cluster.arrived = 0;
    cluster.phase = 0;
    cluster.groups.resize(launch->cluster);
    for (unsigned rank = 0; rank < launch->cluster; rank++) {
        Group &group = cluster.groups[rank];
        unsigned slot = place * launch->cluster + rank;
        group.cluster = &cluster;
        group.rank = rank;
        group.living = launch->threads;
        group.waiting = 0;
        group.local = local_of(slot);
        group.fibers = &fibers[(size_t)slot * launch->threads];
        group.standings = &standings[(size_t)slot * launch->threads];
        group.boxes.clear();
        fill_local(&group);
        for (unsigned k = 0; k < launch->threads; k++) {
            Fiber &fiber = group.fibers[k];
            fiber.thread = {{k, 0, 0}, {which * launch->cluster + rank, 0, 0}, {launch->groups, 1, 1}, group.local};
            fiber.group = &group;
            fiber.lane = k % LARGEST_WARP;
            fiber.arrived = 0;
            fiber.open.clear();
            fiber.closed.clear();
            fiber.standing = group.standings + k;
            *fiber.standing = {k, fiber.thread.block.x, which, 0, 0, 0, 0};
            void **top = (void **)(stacks + (size_t)(&fiber - fibers.data() + 1) * (STACK + PAGE)) - 2;
            *top = (void *)begin_thread;  // where the first switch returns to, with the stack as after a call
            fiber.stack_pointer = top - 6;
            make_ready(&fiber);
        }
    }
}

unsigned char *reserved(size_t count) {
    void *memory = mmap(nullptr, count, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) fail("no room for the threads");
    return (unsigned char *)memory;
}

void make_room(size_t count, size_t groups) {
    if (count > MOST_THREADS || groups > MOST_GROUPS) fail("%zu threads in %zu groups at a time", count, groups);
    if (!stacks) stacks = reserved(MOST_THREADS * (STACK + PAGE));
    if (!locals) locals = reserved(MOST_GROUPS * (LOCAL + PAGE) + PAGE);
    for (; fibers.size() < count; fibers.emplace_back())
        mprotect(stacks + fibers.size() * (STACK + PAGE) + PAGE, STACK, PROT_READ | PROT_WRITE);
    for (; groups_made < groups; groups_made++) mprotect(local_of(groups_made), LOCAL, PROT_READ | PROT_WRITE);
    standings.resize(fibers.size());
}

// Which ready fiber goes on: any; the last that became ready; one of the first three; or any, some warps last.
Fiber *choose() {
    std::vector<Fiber *> &ready = launch->ready;
    unsigned size = (unsigned)ready.size(), which;
    switch (launch->manner) {
        case 0: which = draw(size); break;
        case 1: which = size - 1; break;
        case 2: which = draw(size < 3 ? size : 3); break;
        default:
            which = draw(size);
            for (int tries = 0; tries < 8 && ready[which]->thread.thread.x / LARGEST_WARP % 4 == (unsigned)launch->manner % 4; tries++)
                which = draw(size);
    }
    Fiber *fiber = ready[which];
    ready[which] = ready.back();
    ready.pop_back();
    return fiber;
}

__attribute__((noreturn)) void tell_deadlock() {
    char words[400];
    size_t used = 0;
    words[0] = 0;
    for (Cluster &cluster : launch->running)
        for (Group &group : cluster.groups) {
            unsigned counts[6] = {};
            for (unsigned k = 0; k < launch->threads; k++) counts[group.fibers[k].state]++;
            for (int why = BARRIER; why <= ENDED; why++)
                if (counts[why] && group.living && used < sizeof words - 100)
                    used += (size_t)snprintf(words + used, sizeof words - used, "; group %u: %u threads %s",
                                             group.fibers->thread.block.x, counts[why], WAITS[why]);
        }
    now = nullptr;
    fail("deadlock%s", words);
}

void run() {
    unsigned clusters = launch->groups / launch->cluster;
    for (Cluster &cluster : launch->running) begin_cluster(cluster);
    for (;;) {
        for (Cluster &cluster : launch->running)
            if (!cluster.mail.empty() && (launch->ready.empty() || !draw(4))) deliver(&cluster);
        if (launch->ready.empty()) {
            bool waiting = false;
            for (Cluster &cluster : launch->running) waiting |= !cluster.mail.empty();
            if (waiting) continue;
            tell_deadlock();
        }
        now = choose();
        emulated_now = &now->thread;
        emulated_switch(&scheduler, now->stack_pointer);
        Cluster *cluster = now->group->cluster;
        if (!now->group->living && now->state == ENDED) check_local(now->group);
        now = nullptr;
        if (cluster->living) continue;
        if (!cluster->mail.empty()) fail("a cluster ended with mail on its way");
        if (launch->next_cluster < clusters) begin_cluster(*cluster);
        else {
            bool any = false;
            for (Cluster &other : launch->running) any |= other.living != 0;
            if (!any) return;
        }
    }
}

void on_fault(int number, siginfo_t *info, void *context) {
    fault_signal = number;
    fault_at = info->si_addr;
    fault_code = (void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    siglongjmp(way_out, 2);
}

void tell_fault() {
    Dl_info where = {};
    dladdr(fault_code, &where);
    const char *what = fault_signal == SIGILL ? "undefined behaviour (an index or a shift out of range)"
                       : fault_signal == SIGFPE ? "an integer is divided by zero" : "illegal memory access";
    const Thread *t = now ? &now->thread : nullptr;
    snprintf(told, room, "%s at address %p by group %u, thread %u; code at +0x%zx of %s", what, fault_at, t ? t->block.x : 0,
             t ? t->thread.x : 0, (size_t)fault_code - (size_t)where.dli_fbase, where.dli_fname ? where.dli_fname : "?");
}

}  // namespace

void races_found(const char *what, const void *address, const void *code, const void *other_code, uint32_t other_group,
                 uint32_t other_thread) {
    Dl_info where = {};
    dladdr(code, &where);
    size_t start = (size_t)where.dli_fbase;
    fail("a race on address %p, %s; code at +0x%zx of %s; the other thread is %u of group %u; code at +0x%zx of %s", address, what,
         (size_t)code - start - 1, where.dli_fname, other_thread, other_group, (size_t)other_code - start - 1, where.dli_fname);
}

namespace {
bool is_within(const void *address, const unsigned char *start, size_t size) {
    return (size_t)((const unsigned char *)address - start) < size;
}

void touch(bool writes, bool atomic, const void *address, size_t size, const void *code) {
    races_check(writes, atomic, address, size, code, *now->standing, now->group->standings,
                is_within(address, locals, MOST_GROUPS * (LOCAL + PAGE)));
}

// Of what a kernel does to its registers, tables and the offsets of its local arrays nobody is told.
void touch_plain(bool writes, bool is_volatile, void *address, size_t size, const void *code) {
    if (!launch || !launch->races || !now) return;
    if (is_within(address, stacks, MOST_THREADS * (STACK + PAGE)) || is_within(address, launch->image, launch->image_size)) return;
    if (!draw(is_volatile ? 4 : 128)) {
        make_ready(now);
        leave();
    }
    touch(writes, is_volatile, address, size, code);
}
}  // namespace

extern "C" {

void __tsan_init() {}
#define TOUCHES(size)                                                                               \
    void __tsan_read##size(void *p) { touch_plain(false, false, p, size, __builtin_return_address(0)); } \
    void __tsan_write##size(void *p) { touch_plain(true, false, p, size, __builtin_return_address(0)); } \
    void __tsan_volatile_read##size(void *p) { touch_plain(false, true, p, size, __builtin_return_address(0)); } \
    void __tsan_volatile_write##size(void *p) { touch_plain(true, true, p, size, __builtin_return_address(0)); }
TOUCHES(1) TOUCHES(2) TOUCHES(4) TOUCHES(8) TOUCHES(16)
void __tsan_read_range(void *p, size_t size) { touch_plain(false, false, p, size, __builtin_return_address(0)); }
void __tsan_write_range(void *p, size_t size) { touch_plain(true, false, p, size, __builtin_return_address(0)); }

unsigned emulated_reserve(const void *module, unsigned bytes, const char *name) {
    Module &owner = modules[module];
    unsigned at = owner.end;
    owner.end = (at + bytes + 2 * GAP + 127) / 128 * 128;
    if (owner.end + GAP > LOCAL) fail("local arrays of more than %zu bytes", LOCAL);
    owner.arrays.push_back({at, bytes, name});
    for (Cluster &cluster : launch->running)  // groups that run already
        for (Group &group : cluster.groups) {
            memset(group.local + at - GAP, MARK, GAP);
            memset(group.local + at + bytes, MARK, GAP);
        }
    return at;
}

void emulated_barrier() {
    now->group->waiting++;
    now->state = BARRIER;
    try_barrier(now->group);
    leave();
}

uint64_t emulated_warp(int operation, unsigned mask, uint64_t value, unsigned parameter) {
    if (!(mask >> now->lane & 1)) fail("a lane is not in the mask %08x of its own warp operation", mask);
    now->operation = operation;
    now->mask = mask;
    now->value = value;
    now->parameter = parameter;
    now->state = WARP;
    try_warp(now->group, now->thread.thread.x / LARGEST_WARP * LARGEST_WARP, mask);
    leave();
    return now->value;
}

void emulated_yield() {
    make_ready(now);
    leave();
}

void emulated_atomic(void *address, unsigned size) {
    if (!draw(8)) emulated_yield();
    if (!launch->races) return;
    touch(true, true, address, size, __builtin_return_address(0));
    races_atomic(now->thread.thread.x, now->group->standings);
}

void emulated_fence() {
    if (launch->races) races_atomic(now->thread.thread.x, now->group->standings);
    emulated_yield();
}

void emulated_cluster_arrive() {
    Cluster *cluster = now->group->cluster;
    if (now->arrived) fail("a thread arrives twice at a barrier of its cluster");
    now->arrived = 1;
    now->standing->cluster_epoch |= 1;
    now->cluster_phase = cluster->phase;
    cluster->arrived++;
    try_cluster_barrier(cluster);
}

void emulated_cluster_wait() {
    if (!now->arrived) fail("a thread waits at a barrier of its cluster that it did not arrive at");
    now->arrived = 0;
    if (now->group->cluster->phase == now->cluster_phase) wait_as(CLUSTER);
    else emulated_yield();
    now->standing->cluster_epoch++;
}

unsigned emulated_cluster_rank() { return now->group->rank; }

unsigned emulated_local_address(const void *p) {
    size_t at = (size_t)((const unsigned char *)p - now->group->local);
    if (at >= LOCAL) fail("%p is no address in local memory", p);
    return now->group->rank << RANK_SHIFT | (unsigned)at;
}

unsigned emulated_map_address(unsigned address, unsigned rank) {
    if (rank >= launch->cluster) fail("rank %u of a cluster of %u", rank, launch->cluster);
    return (address & ((1u << RANK_SHIFT) - 1)) | rank << RANK_SHIFT;
}

void emulated_send(unsigned to, uint64_t value, unsigned bytes, unsigned box) {
    if (to >> RANK_SHIFT != box >> RANK_SHIFT) fail("mail and its mailbox are of different groups");
    if (to % bytes) fail("mail of %u bytes to byte %u", bytes, to & ((1u << RANK_SHIFT) - 1));
    now->group->cluster->mail.push_back({to, bytes, box, value});
    if (launch->races) races_atomic(now->thread.thread.x, now->group->standings);
}

void emulated_box_open(unsigned box, unsigned count) {
    if (box % 8) fail("a mailbox at byte %u", box);
    now->group->boxes[box & ((1u << RANK_SHIFT) - 1)] = {count, count, 0, 0};
}

void emulated_box_expect(unsigned box, unsigned bytes) {
    unsigned at = box & ((1u << RANK_SHIFT) - 1);
    Box &mine = box_of(now->group, at);
    if (!mine.pending) fail("a mailbox expects more than was announced when it was opened");
    mine.bytes += bytes;
    mine.pending--;
    settle(now->group, at, mine);
}

void emulated_box_wait(unsigned box, unsigned parity) {
    unsigned at = box & ((1u << RANK_SHIFT) - 1);
    now->box = at;
    now->parity = parity;
    if ((box_of(now->group, at).phase & 1) == parity) wait_as(BOX);
    else emulated_yield();
    if (launch->races) races_atomic(now->thread.thread.x, now->group->standings);
}

}  // extern "C"

namespace {
void make_copy(const Copy &copy) {
    if (launch->races) {
        if (copy.valid) touch(false, false, copy.from, copy.valid, copy.code);
        touch(true, false, copy.to, copy.bytes, copy.code);
    }
    memcpy(copy.to, copy.from, copy.valid);
    memset(copy.to + copy.valid, 0, copy.bytes - copy.valid);
}
}  // namespace

extern "C" {

void emulated_copy(unsigned to, const void *from, unsigned bytes, unsigned valid) {
    if (to % bytes || (size_t)from % bytes) fail("an async copy of %u bytes from %p to byte %u", bytes, from, to);
    if (valid > bytes) fail("an async copy of %u bytes, %u of them valid", bytes, valid);
    now->open.push_back({now->group->local + (to & ((1u << RANK_SHIFT) - 1)), (const unsigned char *)from, bytes, valid,
                         __builtin_return_address(0)});
    if (draw(2)) make_copy(now->open.back());
    else if (valid) (void)*(volatile const unsigned char *)from;  // an illegal address is told here
}

void emulated_copies_close() {
    now->closed.push_back(now->open);
    now->open.clear();
}

void emulated_copies_wait(unsigned left) {
    while (now->closed.size() > left) {
        for (const Copy &copy : now->closed.front()) make_copy(copy);
        now->closed.erase(now->closed.begin());
    }
}

static void find_image(Launch &mine) {
    Dl_info where = {};
    dladdr((const void *)mine.entry, &where);
    mine.image = (unsigned char *)where.dli_fbase;
    auto *header = (const Elf64_Ehdr *)mine.image;
    auto *part = (const Elf64_Phdr *)(mine.image + header->e_phoff);
    for (int k = 0; k < header->e_phnum; k++)
        if (part[k].p_type == PT_LOAD && part[k].p_vaddr + part[k].p_memsz > mine.image_size)
            mine.image_size = part[k].p_vaddr + part[k].p_memsz;
}

// 0, or 1 with the reason in `message`. `module` tells texts apart; `races`: whether it is compiled to be checked for them.
int emulated_launch(void (*entry)(const char *), const char *packed, unsigned groups, unsigned threads, unsigned cluster,
                    const void *module, bool races, uint64_t seed, char *message, size_t size) {
    Launch mine = {};
    struct sigaction action = {}, before[4];
    const int numbers[4] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    static unsigned char signal_stack[64 << 10];
    stack_t stack = {}, stack_before;
    unsigned rounding = _mm_getcsr();
    told = message;
    room = size;
    state = seed * 0x9E3779B97F4A7C15ull | 1;
    now = nullptr;
    mine.entry = entry, mine.packed = packed, mine.groups = groups, mine.threads = threads, mine.cluster = cluster;
    mine.module = &modules[module];
    mine.races = races;
    if (races) {
        races_begin(groups);
        find_image(mine);
    }
    mine.manner = (int)(draw() >> 40) % 8;
    launch = &mine;
    stack.ss_sp = signal_stack, stack.ss_size = sizeof signal_stack;
    sigaltstack(&stack, &stack_before);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int k = 0; k < 4; k++) sigaction(numbers[k], &action, &before[k]);
    _mm_setcsr(0x1f80);  // subnormal numbers and no traps, whatever the caller's
    volatile int failed = sigsetjmp(way_out, 1);
    if (!failed) {
        if (groups % cluster) fail("%u groups are no whole clusters of %u", groups, cluster);
        unsigned together = 1 + draw(3);
        if (together > groups / cluster) together = groups / cluster;
        if (together * cluster * threads > MOST_THREADS) together = 1;
        make_room((size_t)together * cluster * threads, (size_t)together * cluster);
        mine.running.resize(together);
        run();
    } else if (failed == 2) tell_fault();
    _mm_setcsr(rounding);
    for (int k = 0; k < 4; k++) sigaction(numbers[k], &before[k], nullptr);
    sigaltstack(&stack_before, nullptr);
    launch = nullptr;
    return failed != 0;
}

}  // extern "C"
