// Finds data races: two accesses of one word by different threads, not both atomic, at least one of which changes it, that no
// barrier, collective, atomic operation or mailbox lies between. Kernels compiled with -fsanitize=thread call it. A plain look at
// a word in global memory that others change by atomic operations is let pass: kernels save such operations by it.
//
// Atomic operations and fences are taken to order everything before them in their warp (for other groups: in their group) with
// everything after the next such operation of another, whatever word they are on and whichever lane made them: races that hide
// behind an unrelated atomic operation are not found.

#include "races.h"
#include <cstring>
#include <vector>

namespace {

struct Record {
    uint32_t thread, group, cluster, group_epoch, cluster_epoch, warp_epoch;
    uint64_t at;
    const void *code;
    uint8_t bytes;  // of the word, a bit each; 0: no record
    bool atomic, changed;
};
struct Cell {
    uint64_t key;
    uint32_t launch;
    Record write, reads[2];
};

std::vector<Cell> cells(1 << 12);
size_t used;
uint32_t launch_number;
uint64_t clock_now;
std::vector<uint64_t> group_atomic_at;
struct {
    unsigned char *at;
    size_t size;
    unsigned char old[16];
    bool suspect;
    const void *code, *other_code;
    uint32_t other_group, other_thread;
} pending;

Cell &cell_of(uint64_t key) {
    if (used * 2 > cells.size()) {
        std::vector<Cell> before(cells.size() * 2);
        before.swap(cells);
        used = 0;
        for (const Cell &cell : before)
            if (cell.launch == launch_number) cell_of(cell.key) = cell;
    }
    size_t at = key * 0x9E3779B97F4A7C15ull >> 20 & (cells.size() - 1);
    while (cells[at].launch == launch_number && cells[at].key != key) at = (at + 1) & (cells.size() - 1);
    Cell &cell = cells[at];
    if (cell.launch != launch_number) {
        used++;
        cell = {key, launch_number, {}, {}};
    }
    return cell;
}

bool ordered(const Record &a, const Standing &now, const Standing *standings, bool local) {
    bool parted = now.cluster_epoch / 2 > (a.cluster_epoch + 1) / 2;
    if (a.group == now.group) {
        if (a.thread == now.thread || a.group_epoch != now.group_epoch || parted) return true;
        if (a.thread / 32 == now.thread / 32 && a.warp_epoch < now.warp_epoch) return true;
        return standings[a.thread / 32 * 32].atomic_at > a.at && standings[now.thread / 32 * 32].atomic_at > a.at;
    }
    if (a.cluster == now.cluster && parted) return true;
    if (a.cluster != now.cluster && local) return true;  // the place of a group that has ended
    return group_atomic_at[a.group] > a.at && group_atomic_at[now.group] > a.at;
}

void suspect(const Record &other, const void *address, const void *code) {
    if (pending.suspect) return;
    pending.suspect = true;
    pending.at = (unsigned char *)address;
    pending.code = code;
    pending.other_code = other.code;
    pending.other_group = other.group;
    pending.other_thread = other.thread;
}

}  // namespace

void races_begin(uint32_t groups) {
    launch_number++;
    used = 0;
    clock_now = 0;
    group_atomic_at.assign(groups, 0);
    pending = {};
}

void races_atomic(uint32_t thread, Standing *standings) {
    standings[thread / 32 * 32].atomic_at = group_atomic_at[standings[thread].group] = ++clock_now;
}

// Whether the last write changed anything is known when the thread comes here again.
void races_settle() {
    if (!pending.size) return;
    size_t size = pending.size;
    pending.size = 0;
    bool changed = memcmp(pending.at, pending.old, size < 16 ? size : 16) != 0 || size > 16;
    if (changed && pending.suspect) {
        pending.suspect = false;
        races_found("written", pending.at, pending.code, pending.other_code, pending.other_group, pending.other_thread);
    }
    pending.suspect = false;
    if (changed)
        for (uint64_t key = (uint64_t)pending.at / 4; key <= ((uint64_t)pending.at + size - 1) / 4; key++)
            cell_of(key).write.changed = true;
}

void races_check(bool writes, bool atomic, const void *address, size_t size, const void *code, const Standing &now,
                 const Standing *standings, bool local) {
    uint64_t first = (uint64_t)address, end = first + size;
    races_settle();
    clock_now++;
    for (uint64_t key = first / 4; key <= (end - 1) / 4; key++) {
        Cell &cell = cell_of(key);
        uint8_t bytes = 0;
        for (unsigned k = 0; k < 4; k++) bytes |= (uint8_t)((key * 4 + k >= first && key * 4 + k < end) << k);
        Record record = {now.thread, now.group, now.cluster, now.group_epoch, now.cluster_epoch, now.warp_epoch, clock_now, code, bytes,
                         atomic, false};
        Record &write = cell.write;
        if (write.bytes & bytes && !(atomic && write.atomic) && !ordered(write, now, standings, local)) {
            if (writes) suspect(write, address, code);
            else if (write.changed && (local || !write.atomic)) races_found("read", address, code, write.code, write.group, write.thread);
        }
        if (!writes) {
            Record *old = &cell.reads[cell.reads[0].at > cell.reads[1].at];
            for (Record &read : cell.reads)
                if (!read.bytes || (read.thread == now.thread && read.group == now.group)) old = &read;
            *old = record;
            continue;
        }
        for (const Record &read : cell.reads)
            if (read.bytes & bytes && (local || !atomic) && !(atomic && read.atomic) && !ordered(read, now, standings, local)) suspect(read, address, code);
        write = record;
    }
    if (writes) {
        pending.at = (unsigned char *)address;
        pending.size = size;
        memcpy(pending.old, address, size < 16 ? size : 16);
    }
}
