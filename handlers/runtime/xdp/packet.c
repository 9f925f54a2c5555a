/* packet.c: helpers of programs on the packet. Metadata is a part of the frame in front of the packet until the verdict. */
#include "helper.h"

/* The most metadata that Linux counts. */
#define MOST_METADATA 252u

#define CONTEXT(r1) AT(struct nicety_xdp_context, r1)

static uint32_t length_of(const struct nicety_xdp_context *context) { return context->data_end - context->data; }

static void place(struct nicety_xdp_context *context, uint32_t meta, uint32_t data, uint32_t end) {
    context->data_meta = meta;
    context->data = data;
    context->data_end = end;
    context->changed = 1;
}

/* Moves the begin of a packet that has metadata in front of it. */
__attribute__((noinline)) static uint64_t move_with_metadata(struct nicety_xdp_context *context, int32_t delta) {
    const uint32_t metadata = context->data - context->data_meta, end = context->data_end;
    const int64_t data = (int64_t)context->data + delta;
    if (data < (int64_t)packet_room(context) + metadata || data > (int64_t)end - SHORTEST) {
        return refused(EINVAL);
    }
    uint8_t *old = AT(uint8_t, context->data_meta);
    if (delta < 0) {
        memmove(packet_push(context, (uint32_t)-delta), old, metadata);
    } else if (delta > 0) {
        memmove(old + delta, old, metadata);
        packet_pull(context, (uint32_t)delta);
    }
    place(context, (uint32_t)data - metadata, (uint32_t)data, end);
    return 0;
}

uint64_t nicety_bpf_xdp_adjust_head(uint64_t r1, uint64_t r2) {
    struct nicety_xdp_context *context = CONTEXT(r1);
    const int32_t delta = (int32_t)r2;
    const uint32_t data = context->data;
    if (context->data_meta != data) {
        return move_with_metadata(context, delta);
    }
    if (delta < 0) {
        const uint32_t more = -(uint32_t)delta;
        if (more > data - packet_room(context)) {
            return refused(EINVAL);
        }
        packet_push(context, more);
    } else if (delta > 0) {
        if ((uint32_t)delta + SHORTEST > length_of(context)) {
            return refused(EINVAL);
        }
        packet_pull(context, (uint32_t)delta);
    }
    context->data_meta = context->data = data + (uint32_t)delta;
    context->changed = 1;
    return 0;
}

uint64_t nicety_bpf_xdp_adjust_meta(uint64_t r1, uint64_t r2) {
    struct nicety_xdp_context *context = CONTEXT(r1);
    const int64_t meta = (int64_t)context->data_meta + (int32_t)r2;
    if (meta < packet_room(context) || meta > context->data) {
        return refused(EINVAL);
    }
    const uint32_t size = context->data - (uint32_t)meta;
    if (size % 4 || size > MOST_METADATA) {
        return refused(EACCES);
    }
    if (meta < context->data_meta) {
        packet_push(context, context->data_meta - (uint32_t)meta);
    } else if (meta > context->data_meta) {
        packet_pull(context, (uint32_t)meta - context->data_meta);
    }
    place(context, (uint32_t)meta, context->data, context->data_end);
    return 0;
}

uint64_t nicety_bpf_xdp_adjust_tail(uint64_t r1, uint64_t r2) {
    struct nicety_xdp_context *context = CONTEXT(r1);
    const int32_t delta = (int32_t)r2;
    const int64_t length = (int64_t)length_of(context) + delta;
    if (length < SHORTEST || (delta > 0 && length > packet_longest(context))) {
        return refused(EINVAL);
    }
    const uint32_t end = context->data + (uint32_t)length;
    if (delta) {
        packet_resize(context, end - context->data_meta);
    }
    if (delta > 0) {
        memset(AT(void, context->data_end), 0, (uint32_t)delta);
    }
    place(context, context->data_meta, context->data, end);
    return 0;
}

uint64_t nicety_bpf_xdp_get_buff_len(uint64_t r1) { return length_of(CONTEXT(r1)); }

int packet_copy(struct nicety_xdp_context *context, uint32_t offset, void *other, uint32_t length, bool store) {
    if (offset > 0xffff || length > 0xffff) {
        return -EFAULT;
    }
    if (offset + length > length_of(context)) {
        return -EINVAL;
    }
    uint8_t *own = AT(uint8_t, context->data + offset);
    memcpy(store ? own : other, store ? other : own, length);
    return 0;
}

uint64_t nicety_bpf_xdp_load_bytes(uint64_t r1, uint64_t offset, uint64_t to, uint64_t length) {
    return returned(packet_copy(CONTEXT(r1), (uint32_t)offset, AT(void, to), (uint32_t)length, false));
}

uint64_t nicety_bpf_xdp_store_bytes(uint64_t r1, uint64_t offset, uint64_t from, uint64_t length) {
    return returned(packet_copy(CONTEXT(r1), (uint32_t)offset, AT(void, from), (uint32_t)length, true));
}

/* A sum with end-around carry. */
static uint32_t add(uint32_t a, uint32_t b) {
    const uint32_t sum = a + b;
    return sum + (sum < a);
}

static uint32_t partial(const uint8_t *bytes, uint32_t length, uint32_t sum) {
#if __riscv_xlen == 64
    /* The upper half has the carries until the end. */
    uint64_t words = sum;
    for (; length >= 4; length -= 4, bytes += 4) {
        words += word_at(bytes);
    }
    sum = add((uint32_t)words, (uint32_t)(words >> 32));
#else
    for (; length >= 4; length -= 4, bytes += 4) {
        sum = add(sum, word_at(bytes));
    }
#endif
    uint32_t last = 0;
    for (uint32_t at = 0; at < length; at++) {
        last |= (uint32_t)bytes[at] << (8 * at);
    }
    return length ? add(sum, last) : sum;
}

/* A sum folded to 16 bits as Linux does from 6.13 on. */
static uint64_t folded(uint32_t sum) { return (sum + (sum << 16 | sum >> 16)) >> 16; }

/* Code for the sizes of two frequent calls: a new IP header without options, and a word in the place of another. */
uint64_t nicety_bpf_csum_diff_0_20(uint64_t from, uint64_t from_size, uint64_t to, uint64_t to_size, uint64_t r5) {
    (void)from, (void)from_size, (void)to_size;
    return folded(partial(AT(const uint8_t, to), 20, (uint32_t)r5));
}

uint64_t nicety_bpf_csum_diff_4_4(uint64_t from, uint64_t from_size, uint64_t to, uint64_t to_size, uint64_t r5) {
    (void)from_size, (void)to_size;
    return folded(add(add(word_at(AT(const uint8_t, to)), (uint32_t)r5), ~word_at(AT(const uint8_t, from))));
}

/* The difference of two sums of the Internet checksum. */
uint64_t nicety_bpf_csum_diff(uint64_t from, uint64_t from_size, uint64_t to, uint64_t to_size, uint64_t r5) {
    const uint32_t gone = (uint32_t)from_size, come = (uint32_t)to_size, seed = (uint32_t)r5;
    const uint8_t *old = AT(const uint8_t, from), *new = AT(const uint8_t, to);
    uint32_t sum = seed;
    if (gone && come) {
        sum = add(partial(new, come, seed), ~partial(old, gone, 0));
    } else if (come) {
        sum = partial(new, come, seed);
    } else if (gone) {
        sum = ~partial(old, gone, ~seed);
    }
    return folded(sum);
}

uint64_t nicety_bpf_redirect(uint64_t r1, uint64_t flags) {
    (void)r1;
    if (flags) {
        return XDP_ABORTED;
    }
    /* Each interface is reached by the card's wire. */
    nicety_xdp_redirects[this_cpu()].kind = REDIRECT_WIRE;
    return XDP_REDIRECT;
}

/* Flags of redirect_map: all devices, not the packet's own one, and the result where nothing is found. */
enum { BROADCAST = 8, EXCLUDE_INGRESS = 16, MISSING = 3 };

/* Whether a map has a device that a packet may go to. */
static bool has_device(const struct nicety_map *map, uint32_t without);

struct wanted {
    uint32_t without;
    bool found;
};

static uint64_t look(const struct nicety_map *map, const void *key, uint8_t *value, void *context) {
    (void)map, (void)key;
    struct wanted *wanted = context;
    wanted->found = *(const uint32_t *)value != wanted->without;
    return wanted->found;
}

static bool has_device(const struct nicety_map *map, uint32_t without) {
    struct wanted wanted = {without, false};
    if (map->type == MAP_DEVICE_HASH) {
        hash_walk(map, look, &wanted);
        return wanted.found;
    }
    for (uint32_t key = 0; key < map->max_entries && !wanted.found; key++) {
        const uint32_t *device = slot_find(map, key);
        wanted.found = device && *device != without;
    }
    return wanted.found;
}

uint64_t nicety_bpf_redirect_map(uint64_t r1, uint64_t key, uint64_t flags) {
    const struct nicety_map *map = AT(const struct nicety_map, r1);
    const bool devices = map->type == MAP_DEVICES || map->type == MAP_DEVICE_HASH;
    struct xdp_redirect *own = &nicety_xdp_redirects[this_cpu()];
    if (flags & ~(uint64_t)(MISSING | (devices ? BROADCAST | EXCLUDE_INGRESS : 0))) {
        return XDP_ABORTED;
    }
    if (flags & BROADCAST) {
        /* The card has one port, and sends one copy. Not even that where the packet's own interface is left out. */
        const uint32_t without = flags & EXCLUDE_INGRESS ? nicety_xdp_card.interface : 0;
        own->kind = has_device(map, without) ? REDIRECT_WIRE : REDIRECT_NONE;
        return XDP_REDIRECT;
    }
    if (!slot_find(map, (uint32_t)key)) {
        own->kind = REDIRECT_NONE;
        return flags & MISSING;
    }
    own->kind = devices ? REDIRECT_WIRE : REDIRECT_QUEUE;
    own->queue = (uint32_t)key;
    return XDP_REDIRECT;
}
