/* nfp.c: a program on the contexts of a network flow processor. Each context takes a frame, runs the program on it, and takes the
 * next one. The frame is in CTM, maps are in EMEM, the stack is in local memory. A load or a store outside local memory puts the
 * context to sleep until it is done. */
#include "helper.h"

/* The calls of this runtime to its card. crates/nic-nfp/src/processor/intrinsics.rs has the same numbers. */
enum { CALL_WORK = 0x211, CALL_TAKE = 0x320, CALL_END = 0x321 };
/* The firmware's own work for a frame: in front of the program, and behind it. */
enum { WORK_BEFORE, WORK_BEHIND };

/* Bytes that the port writes in front of a frame, and bytes of the firmware's list of actions. */
#define PREPEND 8u
#define ACTIONS 64u

/* The parameters of a frame that a context has taken. */
struct taken {
    uint32_t data;          /* its first byte, in CTM */
    uint32_t length;
    uint32_t descriptor;    /* the place of its descriptor, in CTM */
};

/* The card's table of maps in IMEM, an entry of 64 bytes for each number. The firmware reads an entry at each lookup. */
struct table {
    uint32_t type, key_size, max_entries, memory, entry_bytes, buckets, shift, value_at;
};
#define TABLE_ENTRY 64u

static void take(struct taken *taken) {
    uint8_t from_port[PREPEND], actions[ACTIONS];
    nfp_call(CALL_TAKE, ADDRESS(taken), 0, 0);
    nfp_read(from_port, AT(const void, taken->data - PREPEND), PREPEND);
    nfp_read(actions, nfp_cls(0), ACTIONS);
    nfp_call(CALL_WORK, WORK_BEFORE, 0, 0);
}

static void end(const struct taken *taken, const struct nicety_xdp_context *context, uint32_t verdict) {
    const uint32_t descriptor[4] = {context->data, context->data_end - context->data, verdict, 0};
    nfp_call(CALL_WORK, WORK_BEHIND, 0, 0);
    nfp_write(AT(void, taken->descriptor), descriptor, sizeof(descriptor));
    nfp_call(CALL_END, verdict, context->data, context->data_end - context->data);
}

__process uint32_t nicety_xdp_context_runs(void) {
    for (;;) {
        struct taken taken;
        struct nicety_xdp_context context;
        take(&taken);
        context.data = context.data_meta = taken.data;
        context.data_end = taken.data + taken.length;
        context.ingress_ifindex = nicety_xdp_card.interface;
        context.rx_queue_index = context.egress_ifindex = 0;
        context.frame = NULL;
        context.first = taken.data;
        context.changed = 0;
        const uint32_t verdict = nicety_xdp_program(&context);
        if (verdict == XDP_ABORTED) {
            count_verdict(&nicety_xdp_counts.aborted);
        } else if (verdict > XDP_TX) {
            /* Linux's driver has no redirects in its code: the card drops such a frame. */
            count_verdict(&nicety_xdp_counts.invalid);
        }
        end(&taken, &context, verdict);
    }
}

/* A lookup: the map's entry of the table, then the value of an array, or the chain of a bucket. */
uint64_t nicety_bpf_map_lookup_elem(uint64_t r1, uint64_t r2) {
    const struct nicety_map *map = AT(const struct nicety_map, r1);
    const uint8_t *key = AT(const uint8_t, r2);
    struct table own;
    nfp_read(&own, nfp_imem(TABLE_ENTRY * map->id), sizeof(own));
    if (own.type == MAP_ARRAY) {
        const uint32_t number = *(const uint32_t *)key;
        return number < own.max_entries ? own.memory + number * own.entry_bytes : 0;
    }
    const uint32_t hash = hash_key(key, own.key_size), number = hash >> own.shift;
    const volatile struct map_bucket *bucket = AT(struct map_bucket, own.memory + own.buckets) + number;
    for (;;) {
        uint32_t next = bucket->first;
        while (next && !(next & 1)) {
            struct near_entry near;
            fetch_entry(&near, AT(struct map_entry, next), own.key_size);
            if (near.head.hash == hash && same_near(&near, key, own.key_size)) {
                return next + own.value_at;
            }
            next = near.head.next;
        }
        /* An entry that was moved meanwhile leads to the end of another chain. */
        if (next == 0 || next == (number << 1 | 1)) {
            return 0;
        }
    }
}

/* A microengine has a register of random numbers, which this model lacks. The counter of cycles and the context's number stand for
 * it. */
uint64_t nicety_bpf_get_prandom_u32(void) {
    uint32_t next = (nfp_cycle() ^ nfp_hart() << 24) * 0x9e3779b9u;
    next = (next ^ next >> 15) * 0x85ebca6bu;
    return next ^ next >> 13;
}
