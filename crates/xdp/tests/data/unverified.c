/* Programs that Linux's verifier refuses, each for one access or argument. The first byte of the packet says whether it is made. */
#include <xdp.h>

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u32);
} values SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u64[3]);
} table SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_QUEUE);
    __uint(max_entries, 4);
    __type(value, __u64);
} queue SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} ring SEC(".maps");

const volatile __u32 constants[4] = {1, 2, 3, 4};
__u32 variables[4] = {1, 2, 3, 4};

/* Numbers that the compiler does not see through. */
#define FIRST(context) (*(volatile __u8 *)xdp_data(context))
#define SECOND(context) (((volatile __u8 *)xdp_data(context))[1])
#define BAD(name) SEC("xdp/" #name) int name(struct xdp_md *context)

BAD(packet_end) { return ((__u8 *)xdp_data(context))[FIRST(context) ? 1500 : 2] ? XDP_DROP : XDP_PASS; }

BAD(packet_begin) { return ((__u8 *)xdp_data(context) - FIRST(context))[0] == 0x77 ? XDP_DROP : XDP_PASS; }

BAD(packet_write) {
    ((volatile __u32 *)xdp_data(context))[FIRST(context) ? 400 : 2] = 5;
    return XDP_PASS;
}

BAD(stack_below) {
    volatile __u64 room[8] = {};
    return room[-(long)FIRST(context) * 100] ? XDP_DROP : XDP_PASS;
}

BAD(stack_above) {
    volatile __u64 room[8] = {};
    room[8 * FIRST(context)] = 1;
    return XDP_PASS;
}

BAD(value_index) {
    __u32 key = 1;
    __u32 *value = bpf_map_lookup_elem(&values, &key);
    return value && value[FIRST(context) * 100] == 9 ? XDP_DROP : XDP_PASS;
}

BAD(value_padding) {
    __u32 key = 1;
    __u32 *value = bpf_map_lookup_elem(&values, &key);
    /* A value of 4 bytes takes 8. */
    return value && value[FIRST(context)] == 9 ? XDP_DROP : XDP_PASS;
}

BAD(null) {
    __u32 key = FIRST(context);
    __u64 *value = bpf_map_lookup_elem(&table, &key);
    if (!FIRST(context)) {
        return XDP_PASS;
    }
    return value[1] ? XDP_DROP : XDP_PASS;
}

BAD(entry) {
    __u32 key = 3;
    __u64 first[3] = {1, 2, 3};
    bpf_map_update_elem(&table, &key, first, BPF_ANY);
    __u64 *value = bpf_map_lookup_elem(&table, &key);
    /* The key is in front of the value. */
    return value && value[-(long)FIRST(context)] == 3 ? XDP_DROP : XDP_PASS;
}

BAD(constant) {
    volatile __u32 *all = (volatile __u32 *)constants;
    if (FIRST(context)) {
        all[SECOND(context) & 3] = 7;
    }
    return XDP_PASS;
}

BAD(variable) {
    variables[4 * FIRST(context) + 1] = 7;
    return XDP_PASS;
}

BAD(context_word) { return ((volatile __u32 *)context)[FIRST(context) * 6] ? XDP_PASS : XDP_DROP; }

BAD(number) {
    volatile __u32 *place = (volatile __u32 *)(long)(FIRST(context) * 0x10000000ul);
    return FIRST(context) && *place ? XDP_DROP : XDP_PASS;
}

BAD(key) {
    __u8 *data = xdp_data(context);
    return bpf_map_lookup_elem(&table, data + 1400 * FIRST(context)) ? XDP_DROP : XDP_PASS;
}

BAD(map) {
    void *map = FIRST(context) ? (void *)context : (void *)&table;
    __u32 key = 1;
    return bpf_map_lookup_elem(map, &key) ? XDP_DROP : XDP_PASS;
}

BAD(kind) {
    __u64 value = 1;
    void *map = FIRST(context) ? (void *)&table : (void *)&queue;
    return bpf_map_push_elem(map, &value, 0) ? XDP_DROP : XDP_PASS;
}

BAD(buffer) {
    __u8 *data = xdp_data(context);
    return bpf_xdp_load_bytes(context, 0, data + 4, FIRST(context) ? 1400 : 4) ? XDP_DROP : XDP_PASS;
}

BAD(other_context) {
    __u64 room[8] = {};
    return bpf_xdp_adjust_tail(FIRST(context) ? (void *)room : context, -1) ? XDP_DROP : XDP_PASS;
}

BAD(record) {
    __u8 *record = bpf_ringbuf_reserve(&ring, 24, 0);
    if (!record) {
        return XDP_DROP;
    }
    record[24 * FIRST(context)] = 1;
    bpf_ringbuf_submit(record, 0);
    return XDP_PASS;
}

BAD(finished) {
    __u8 *record = bpf_ringbuf_reserve(&ring, 24, 0);
    if (!record) {
        return XDP_DROP;
    }
    bpf_ringbuf_submit(record, 0);
    if (FIRST(context)) {
        bpf_ringbuf_submit(record, 0);
    }
    return XDP_PASS;
}

static long visited(void *map, const __u32 *key, __u32 *value, __u32 *index) {
    return key[*index] + value[0] == 99;
}

BAD(callback) {
    __u32 index = FIRST(context);
    bpf_for_each_map_elem(&values, visited, &index, 0);
    return XDP_PASS;
}

static __noinline __u64 deeper(__u64 *room, __u64 at) { return room[at]; }

BAD(function) {
    __u64 room[8] = {};
    return deeper(room, 8 * FIRST(context)) ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
