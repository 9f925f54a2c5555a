/* All parts of an object: two programs in a section, maps, data, constants, calls, a callback, and types with CO-RE. */
#include <xdp.h>

struct statistics {
    __u64 packets;
    __u32 bytes;
    __u16 flags : 3;
    __u16 ports : 7;
} __attribute__((preserve_access_index));

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, struct statistics);
} counters SEC(".maps");

struct inner {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8);
    __uint(key_size, 4);
    __uint(value_size, 8);
};

struct inner first SEC(".maps"), second SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 2);
    __type(key, __u32);
    __array(values, struct inner);
} tables SEC(".maps") = {.values = {&first, &second}};

int other(struct xdp_md *context);

struct {
    __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
    __uint(max_entries, 4);
    __type(key, __u32);
    __array(values, int(struct xdp_md *));
} jumps SEC(".maps") = {.values = {[2] = &other}};

int seen;
int start = 40;
static int hidden = 2;
const volatile __u32 limit = 1000;

static __noinline int sum(const __u32 *from, int count) {
    int total = hidden;
    for (int i = 0; i < count && i < 8; i++) {
        total += from[i & 7];
    }
    return total;
}

__noinline int doubled(int value) {
    __asm__ volatile("" ::: "memory");
    return 2 * value;
}

static long step(__u32 index, __u64 *total) {
    *total += index;
    return index == 3;
}

static const __u32 primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};

SEC("xdp") int parts(struct xdp_md *context) {
    __u32 key = 1;
    __u64 total = 0, one = 1;
    seen++;
    struct statistics *counter = bpf_map_lookup_elem(&counters, &key);
    if (counter == 0) {
        return XDP_ABORTED;
    }
    counter->packets++;
    counter->bytes += xdp_end(context) - xdp_data(context);
    counter->ports = 5;
    bpf_loop(10, step, &total, 0);
    void *table = bpf_map_lookup_elem(&tables, &key);
    if (table != 0) {
        bpf_map_update_elem(table, &key, &one, BPF_ANY);
    }
    if (context->rx_queue_index == 7) {
        bpf_tail_call(context, &jumps, 2);
    }
    return doubled(sum(primes, context->rx_queue_index)) + start + total + (limit == 1000);
}

SEC("xdp") int other(struct xdp_md *context) {
    return 99;
}

char _license[] SEC("license") = "GPL";
