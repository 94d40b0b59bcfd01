// What threads wait for: the collectives of warps, barriers of groups and clusters, mailboxes, async copies.

#include "fibers.h"
#include <cstring>

namespace emulation {

static void wait_as(State why) {
    now->state = why;
    leave();
}

// ---------------------------------------------------------------------------------------------------------------- warps
static uint64_t combine(int operation, uint64_t a, uint64_t b) {
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

static Box &box_of(Group *group, unsigned at) {
    auto found = group->boxes.find(at);
    if (found == group->boxes.end()) fail("a mailbox at byte %u of local memory of rank %u that is not open", at, group->rank);
    return found->second;
}

static void settle(Group *group, unsigned at, Box &box) {
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

static void make_copy(const Copy &copy) {
    if (launch->races) {
        if (copy.valid) touch(false, false, copy.from, copy.valid, copy.code);
        touch(true, false, copy.to, copy.bytes, copy.code);
    }
    memcpy(copy.to, copy.from, copy.valid);
    memset(copy.to + copy.valid, 0, copy.bytes - copy.valid);
}

}  // namespace emulation

using namespace emulation;

extern "C" {

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

}  // extern "C"
