/* check.c: checks of a program that no verifier has seen. The code of the program calls them in front of each access and each
 * helper, and traps where the result is not 0. Verified programs have none of this code. */
#include "check.h"

#ifdef NICETY_XDP_UNVERIFIED

#if __riscv_xlen == 64
#define REGISTERS ".equ X, 8\n.macro load r, at\nld \\r, \\at\n.endm\n.macro store r, at\nsd \\r, \\at\n.endm\n" \
                  ".macro word r, at\nlwu \\r, \\at\n.endm\n"
#else
#define REGISTERS ".equ X, 4\n.macro load r, at\nlw \\r, \\at\n.endm\n.macro store r, at\nsw \\r, \\at\n.endm\n" \
                  ".macro word r, at\nlw \\r, \\at\n.endm\n"
#endif

/* Both take the check in t1 and return its result there, by t2. They keep all other registers. s10 has the core's state.
 *
 * nicety_xdp_guard: an access at t0. Bytes of the packet, the usual case, need no call.
 * nicety_xdp_guard_call: a call of a helper. */
__asm__(REGISTERS
        ".section .text.nicety_xdp_guard, \"ax\", @progbits\n"
        ".globl nicety_xdp_guard, nicety_xdp_guard_call\n"
        "nicety_xdp_guard:\n"
        "addi sp, sp, -16\n"
        "store a0, 0(sp)\n"
        "store a1, X(sp)\n"
        "word a0, 0(s10)\n"
        "word a1, 8(a0)\n"
        "bltu t0, a1, 1f\n"
        "andi a1, t1, 255\n"
        "add a1, a1, t0\n"
        "bltu a1, t0, 1f\n"
        "word a0, 4(a0)\n"
        "bltu a0, a1, 1f\n"
        "li t1, 0\n"
        "load a0, 0(sp)\n"
        "load a1, X(sp)\n"
        "addi sp, sp, 16\n"
        "jr t2\n"
        "1:\n"
        "load a0, 0(sp)\n"
        "load a1, X(sp)\n"
        "addi sp, sp, 16\n"
        "nicety_xdp_guard_call:\n"
        "addi sp, sp, -16*X\n"
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7\n"
        "store a\\n, \\n*X(sp)\n"
        ".endr\n"
        ".irp n, 3, 4, 5, 6\n"
        "store t\\n, (\\n+5)*X(sp)\n"
        ".endr\n"
        "store ra, 12*X(sp)\n"
        "store t2, 13*X(sp)\n"
        "store t0, 14*X(sp)\n"
        "store t1, 15*X(sp)\n"
        "mv a0, sp\n"
        "mv a1, s10\n"
        "call nicety_xdp_check\n"
        "mv t1, a0\n"
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7\n"
        "load a\\n, \\n*X(sp)\n"
        ".endr\n"
        ".irp n, 3, 4, 5, 6\n"
        "load t\\n, (\\n+5)*X(sp)\n"
        ".endr\n"
        "load ra, 12*X(sp)\n"
        "load t2, 13*X(sp)\n"
        "load t0, 14*X(sp)\n"
        "addi sp, sp, 16*X\n"
        "jr t2\n"
        ".text\n");

/* The registers as nicety_xdp_guard_call leaves them on the stack. */
struct saved {
    uintptr_t a[8], t[4], ra, back, address, what;
};

/* A check: bytes, and whether they are written; or the number of a helper. The place of a pointer is known or not. */
enum { BYTES = 255, WRITE = 1 << 8, HELPER = 1 << 9, PLACE = 10, ANY = 0, CONTEXT, PACKET, STACK, VALUE };

/* A map with its memory, or a data section. crates/ebpf/src/card writes them. */
struct area {
    uint32_t begin, bytes;
    uint32_t map;           /* the address of the descriptor, or 0 */
    uint32_t constant;      /* whether programs may only read it */
};
extern const struct {
    uint32_t count;
    struct area areas[];
} nicety_xdp_areas;

static bool in_range(const struct xdp_range *range, uint64_t at, uint64_t bytes) {
    return at >= range->begin && at + bytes <= range->end;
}

static bool in_packet(const struct xdp_run *run, uint64_t at, uint64_t bytes) {
    const struct nicety_xdp_context *context = AT(const struct nicety_xdp_context, run->context);
    const struct xdp_range packet = {context->data_meta, context->data_end};
    return in_range(&packet, at, bytes);
}

static bool in_stack(const struct xdp_run *run, uint64_t at, uint64_t bytes) {
    for (uint32_t number = 0; number < run->depth; number++) {
        if (in_range(&run->stacks[number], at, bytes)) {
            return true;
        }
    }
    return false;
}

/* Five words, of four bytes each. */
static bool in_context(const struct xdp_run *run, uint64_t at, uint64_t bytes) {
    const uint64_t offset = at - run->context;
    return bytes == 4 && offset <= 16 && offset % 4 == 0;
}

/* Whether bytes are inside one value of a map. `lock` says that they are its lock. */
static bool in_map(const struct area *area, uint64_t at, uint64_t bytes, bool write, bool lock) {
    const struct nicety_map *map = AT(const struct nicety_map, area->map);
    uint32_t offset = (uint32_t)at - area->begin, value_at = map->value_at;
    if (!map->entry_bytes || offset < map->entries || area->constant & write) {
        return false;
    }
    switch (map->type) {
    case MAP_ARRAY:
    case MAP_PERCPU_ARRAY:
    case MAP_HASH:
    case MAP_PERCPU_HASH:
    case MAP_LRU_HASH:
    case MAP_LRU_PERCPU_HASH:
    case MAP_LPM:
        break;
    case MAP_DEVICE_HASH:
        if (write) {
            return false;
        }
        break;
    case MAP_DEVICES:
    case MAP_SOCKETS:
        if (write) {
            return false;
        }
        value_at = 8;
        break;
    default:
        return false;
    }
    offset = (offset - map->entries) % map->entry_bytes;
    if (offset < value_at) {
        return false;
    }
    offset = (offset - value_at) % map->stride;
    return lock ? offset == map->lock_at : offset + bytes <= map->value_size;
}

static bool in_value(const struct xdp_run *run, uint64_t at, uint64_t bytes, bool write, bool lock) {
    for (uint32_t number = 0; number < MOST_RECORDS && !lock; number++) {
        if (in_range(&run->records[number], at, bytes)) {
            return true;
        }
    }
    for (uint32_t number = 0; number < nicety_xdp_areas.count; number++) {
        const struct area *area = &nicety_xdp_areas.areas[number];
        if (at < area->begin || at + bytes > (uint64_t)area->begin + area->bytes) {
            continue;
        }
        return area->map ? in_map(area, at, bytes, write, lock) : !lock && !(area->constant & write);
    }
    return false;
}

static bool allowed(const struct xdp_run *run, uint64_t at, uint64_t bytes, bool write, uint32_t place) {
    if (at >> 32 || bytes >> 32) {
        return false;
    }
    switch (place) {
    case CONTEXT:
        return !write && in_context(run, at, bytes);
    case PACKET:
        return in_packet(run, at, bytes);
    case STACK:
        return in_stack(run, at, bytes);
    case VALUE:
        return in_value(run, at, bytes, write, false);
    default:
        return in_packet(run, at, bytes) || in_stack(run, at, bytes) || in_value(run, at, bytes, write, false) ||
               (!write && (in_context(run, at, bytes) || in_range(&run->key, at, bytes)));
    }
}

/* Memory that a helper reads or writes. It takes no context. */
static bool buffer(const struct xdp_run *run, uint64_t at, uint64_t bytes, bool write) {
    return bytes == 0 || (!(at >> 32 || bytes >> 32) &&
                          (in_packet(run, at, bytes) || in_stack(run, at, bytes) ||
                           in_value(run, at, bytes, write, false) || (!write && in_range(&run->key, at, bytes))));
}

/* The map at an address, if it has one of these types. */
static const struct nicety_map *map_of(uint64_t at, uint32_t types) {
    for (uint32_t number = 0; at && number < nicety_xdp_areas.count; number++) {
        const struct nicety_map *map = AT(const struct nicety_map, nicety_xdp_areas.areas[number].map);
        if (ADDRESS(map) == at && types >> map->type & 1) {
            return map;
        }
    }
    return NULL;
}

#define TYPE(name) (1u << MAP_##name)
#define HASHES (TYPE(HASH) | TYPE(PERCPU_HASH) | TYPE(LRU_HASH) | TYPE(LRU_PERCPU_HASH))
#define ARRAYS (TYPE(ARRAY) | TYPE(PERCPU_ARRAY))
#define MAPS (TYPE(ARRAY_OF_MAPS) | TYPE(HASH_OF_MAPS))
#define QUEUES (TYPE(QUEUE) | TYPE(STACK))
#define TARGETS (TYPE(DEVICES) | TYPE(DEVICE_HASH) | TYPE(CPUS) | TYPE(SOCKETS))
#define LOOKED_UP (HASHES | ARRAYS | MAPS | TYPE(LPM) | TYPE(DEVICES) | TYPE(DEVICE_HASH) | TYPE(SOCKETS))

/* A key, and a value, of a map with one of these types. */
static bool entry(const struct xdp_run *run, const uint64_t *r, uint32_t types, bool value) {
    const struct nicety_map *map = map_of(r[1], types);
    return map && buffer(run, r[2], map->key_size, false) && (!value || buffer(run, r[3], map->value_size, false));
}

static bool queue(const struct xdp_run *run, const uint64_t *r, uint32_t types, bool write) {
    const struct nicety_map *map = map_of(r[1], types);
    return map && buffer(run, r[2], map->value_size, write && map->type != MAP_BLOOM);
}

static bool is_record(const struct xdp_run *run, uint64_t at) {
    for (uint32_t number = 0; number < MOST_RECORDS; number++) {
        if (run->records[number].end && run->records[number].begin == at) {
            return true;
        }
    }
    return false;
}

/* Helpers by number, as Linux has them. Lower halves alone count where Linux has 32-bit numbers. */
static bool call_allowed(const struct xdp_run *run, uint32_t number, const uint64_t *r) {
    switch (number) {
    case 1:     /* map_lookup_elem */
        return entry(run, r, LOOKED_UP, false);
    case 2:     /* map_update_elem */
        return entry(run, r, HASHES | ARRAYS | TYPE(LPM), true);
    case 3:     /* map_delete_elem */
        return entry(run, r, HASHES | ARRAYS | TYPE(LPM), false);
    case 195:   /* map_lookup_percpu_elem */
        return entry(run, r, TYPE(PERCPU_ARRAY) | TYPE(PERCPU_HASH) | TYPE(LRU_PERCPU_HASH), false);
    case 6:     /* trace_printk */
        return buffer(run, r[1], (uint32_t)r[2], false);
    case 177:   /* trace_vprintk */
        return buffer(run, r[1], (uint32_t)r[2], false) && buffer(run, r[3], (uint32_t)r[4], false);
    case 25:    /* perf_event_output */
        return r[1] == run->context && map_of(r[2], TYPE(PERF_EVENTS)) && buffer(run, r[4], (uint32_t)r[5], false);
    case 28:    /* csum_diff */
        return buffer(run, r[1], (uint32_t)r[2], false) && buffer(run, r[3], (uint32_t)r[4], false);
    case 44:    /* xdp_adjust_head, xdp_adjust_meta, xdp_adjust_tail, xdp_get_buff_len */
    case 54:
    case 65:
    case 188:
        return r[1] == run->context;
    case 189:   /* xdp_load_bytes, xdp_store_bytes */
    case 190:
        return r[1] == run->context && buffer(run, r[3], (uint32_t)r[4], number == 189);
    case 51:    /* redirect_map */
        return map_of(r[1], TARGETS);
    case 87:    /* map_push_elem, map_pop_elem, map_peek_elem */
        return queue(run, r, QUEUES | TYPE(BLOOM), false);
    case 88:
        return queue(run, r, QUEUES, true);
    case 89:
        return queue(run, r, QUEUES | TYPE(BLOOM), true);
    case 93:    /* spin_lock, spin_unlock */
    case 94:
        return !(r[1] >> 32) && in_value(run, r[1], 4, true, true);
    case 130:   /* ringbuf_output */
        return map_of(r[1], TYPE(RING)) && buffer(run, r[2], (uint32_t)r[3], false);
    case 131:   /* ringbuf_reserve, ringbuf_query */
    case 134:
        return map_of(r[1], TYPE(RING));
    case 132:   /* ringbuf_submit, ringbuf_discard */
    case 133:
        return is_record(run, r[1]);
    case 164:   /* for_each_map_elem */
        return map_of(r[1], HASHES | ARRAYS);
    default:
        return true;
    }
}

/* Returns 0 where the program may go on. */
uint32_t nicety_xdp_check(const struct saved *saved, const struct xdp_run *run) {
    const uint32_t what = (uint32_t)saved->what;
    if (!(what & HELPER)) {
        return !allowed(run, saved->address, what & BYTES, what & WRITE, what >> PLACE);
    }
#if __riscv_xlen == 64
    const uint64_t r[6] = {0, saved->a[0], saved->a[1], saved->a[2], saved->a[3], saved->a[4]};
#else
    const uint64_t r[6] = {0, saved->a[0], saved->a[2], saved->a[4], saved->a[6], saved->t[2]};
#endif
    return !call_allowed(run, what >> PLACE, r);
}

#endif
