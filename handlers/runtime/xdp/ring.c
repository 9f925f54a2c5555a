/* ring.c: records for the host: ring buffers and perf events. */
#include "check.h"

/* Bits of a record's length. */
#define BUSY (1u << 31)
#define DISCARDED (1u << 30)
#define HEADER 8u
/* The longest record. */
#define LONGEST (UINT32_MAX / 4)

struct ring {
    uint32_t lock;
    uint32_t failed;
    uint64_t consumer, producer;
    uint64_t unused;
    uint8_t bytes[];        /* twice the size: a record that passes the end goes on behind it */
};

struct record {
    uint32_t length, offset;
    uint8_t bytes[];
};

static struct ring *ring_of(uint64_t map) { return AT(struct ring, AT(const struct nicety_map, map)->memory); }

static struct record *record_at(const struct nicety_map *map, uint64_t position) {
    return (struct record *)(AT(struct ring, map->memory)->bytes + ((uint32_t)position & (map->max_entries - 1)));
}

static struct record *reserve(const struct nicety_map *map, uint64_t size) {
    struct ring *ring = AT(struct ring, map->memory);
    const uint64_t length = (size + HEADER + 7) & ~(uint64_t)7;
    struct record *record = NULL;
    if (size > LONGEST || length > map->max_entries) {
        return NULL;
    }
    lock_word(&ring->lock);
    if (ring->producer + length - ring->consumer < map->max_entries) {
        record = record_at(map, ring->producer);
        record->length = (uint32_t)size | BUSY;
        record->offset = ADDRESS(record) - map->memory;
        ring->producer += length;
    } else {
        ring->failed++;
    }
    unlock_word(&ring->lock);
    return record;
}

static void finish(struct record *record, uint32_t bits) {
    __atomic_store_n(&record->length, (record->length & ~BUSY) | bits, __ATOMIC_RELEASE);
}

static struct record *record_of(uint64_t bytes) { return AT(struct record, bytes) - 1; }

uint64_t nicety_bpf_ringbuf_reserve(uint64_t map, uint64_t size, uint64_t flags) {
    struct record *record = flags ? NULL : reserve(AT(const struct nicety_map, map), size);
    if (record && !xdp_reserved(record->bytes, (uint32_t)size)) {
        finish(record, DISCARDED);
        record = NULL;
    }
    return record ? ADDRESS(record->bytes) : 0;
}

uint64_t nicety_bpf_ringbuf_submit(uint64_t bytes) {
    xdp_finished(bytes);
    finish(record_of(bytes), 0);
    return 0;
}

uint64_t nicety_bpf_ringbuf_discard(uint64_t bytes) {
    xdp_finished(bytes);
    finish(record_of(bytes), DISCARDED);
    return 0;
}

uint64_t nicety_bpf_ringbuf_output(uint64_t map, uint64_t data, uint64_t size, uint64_t flags) {
    if (flags & ~(uint64_t)3) {
        return refused(EINVAL);
    }
    struct record *record = reserve(AT(const struct nicety_map, map), size);
    if (!record) {
        return refused(EAGAIN);
    }
    memcpy(record->bytes, AT(const void, data), (uint32_t)size);
    finish(record, 0);
    return 0;
}

uint64_t nicety_bpf_ringbuf_query(uint64_t map, uint64_t what) {
    const struct ring *ring = ring_of(map);
    switch (what) {
    case 0:
        return ring->producer - ring->consumer;
    case 1:
        return AT(const struct nicety_map, map)->max_entries;
    case 2:
        return ring->consumer;
    case 3:
        return ring->producer;
    default:
        return 0;
    }
}

/* The samples of a core. */
struct events {
    uint32_t used, lost;
    uint8_t bytes[];
};

#define THIS_CPU 0xffffffffu

static int perf_event(struct nicety_xdp_context *context, const struct nicety_map *map, uint64_t flags,
                      const void *data, uint32_t size) {
    const uint64_t from_packet = flags >> 32 & 0xfffff;
    const uint32_t self = this_cpu(), cpu = (uint32_t)flags == THIS_CPU ? self : (uint32_t)flags;
    if (flags >> 52) {
        return -EINVAL;
    }
    if (from_packet > context->data_end - context->data) {
        return -EFAULT;
    }
    if (cpu >= map->max_entries) {
        return -E2BIG;
    }
    if (cpu >= map->cpus) {
        return -ENOENT;
    }
    if (cpu != self) {
        return -EOPNOTSUPP;
    }
    struct events *events = AT(struct events, map->memory + cpu * map->entry_bytes);
    const uint32_t bytes = size + (uint32_t)from_packet, length = (4 + bytes + 7) & ~7u;
    if (bytes > map->entry_bytes || length > map->entry_bytes - sizeof *events - events->used) {
        events->lost++;
        return -ENOSPC;
    }
    uint8_t *to = events->bytes + events->used;
    copy_bytes(to, &bytes, 4);
    memcpy(to + 4, data, size);
    events->used += length;
    return packet_copy(context, 0, to + 4 + size, (uint32_t)from_packet, false);
}

uint64_t nicety_bpf_perf_event_output(uint64_t r1, uint64_t map, uint64_t flags, uint64_t data, uint64_t size) {
    struct nicety_xdp_context *context = AT(struct nicety_xdp_context, r1);
    return returned(
        perf_event(context, AT(const struct nicety_map, map), flags, AT(const void, data), (uint32_t)size));
}
