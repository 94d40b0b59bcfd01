// Runs the threads of a CUDA kernel as fibers of one host thread. A cluster (one group, where there are none) runs at a time,
// or a few at a time; which thread goes on at a barrier, warp operation, atomic operation or wait is drawn.
//
// Exact: barriers, warp collectives with their masks, clusters, mailboxes, async copies (which happen as late as they may, or at
// once), and that local memory is garbage at the start. Told as errors: deadlocks, faults, a word beyond an array of local memory
// that was written, collectives that disagree, a group that ends while mail is on its way to it.
// Not shown: memory orders weaker than sequential consistency, races of threads between two of these places (unless the order
// of whole pieces changes the result), the GPU's own rounding of functions such as sin.

#include "fibers.h"
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <xmmintrin.h>

namespace emulation {

const char *const WAITS[] = {"ready", "at a barrier of the group", "at a warp's operation", "at a barrier of the cluster",
                             "for a mailbox", "ended"};

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

void fail(const char *format, ...) {
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

}  // namespace emulation

using namespace emulation;

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

namespace emulation {

void make_ready(Fiber *fiber) {
    fiber->state = READY;
    launch->ready.push_back(fiber);
}

void leave() {  // to the scheduler; the fiber's state says when it goes on
    if (launch->races) races_settle();
    emulated_switch(&now->stack_pointer, scheduler);
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

// Which ready fiber goes on: any; the last that became ready; one of the first three; or any, some warps last. One of 16
// choices is of any, so that what a thread waits for by reading it again and again does come.
Fiber *choose() {
    std::vector<Fiber *> &ready = launch->ready;
    unsigned size = (unsigned)ready.size(), which;
    switch (draw(16) ? launch->manner : 0) {
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

}  // namespace emulation

void races_found(const char *what, const void *address, const void *code, const void *other_code, uint32_t other_group,
                 uint32_t other_thread) {
    Dl_info where = {};
    dladdr(code, &where);
    size_t start = (size_t)where.dli_fbase;
    fail("a race on address %p, %s; code at +0x%zx of %s; the other thread is %u of group %u; code at +0x%zx of %s", address, what,
         (size_t)code - start - 1, where.dli_fname, other_thread, other_group, (size_t)other_code - start - 1, where.dli_fname);
}

namespace emulation {
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
}  // namespace emulation

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
