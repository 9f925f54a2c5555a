/* Calls of helpers with arguments of the packet's bytes. Their results are in a map. */
#include <xdp.h>

static __u64 (*const bpf_ringbuf_query)(void *ring, __u64 what) = (void *)134;

#define SIZE 32

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 64);
    __type(key, __u32);
    __type(value, __u64);
} results SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4096);
} ring SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_STACK);
    __uint(max_entries, 3);
    __type(value, __u64);
} last SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u32);
} ports SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_CPUMAP);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u32);
} cpus SEC(".maps");

struct inner {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, __u64);
} first SEC(".maps"), second SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 3);
    __type(key, __u32);
    __array(values, struct inner);
} outer SEC(".maps") = {.values = {[0] = &first, [2] = &second}};

int tail(struct xdp_md *context);

struct {
    __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
    __uint(max_entries, 3);
    __uint(key_size, 4);
    __array(values, int(void *));
} next SEC(".maps") = {.values = {[1] = (void *)&tail}};

struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    __uint(key_size, 4);
    __uint(value_size, 4);
} events SEC(".maps");

__u64 runs = 0;
__u32 begun = 7;

static __always_inline void keep(__u32 at, __u64 value) {
    __u64 *place = bpf_map_lookup_elem(&results, &at);
    if (place) {
        *place = value;
    }
}

static int add(__u32 index, void *sum) {
    *(__u64 *)sum += index * 3 + 1;
    return index == 5;
}

static int gather(void *map, const void *key, void *value, void *sum) {
    *(__u64 *)sum += *(__u32 *)key * 1000003 + *(__u64 *)value;
    return 0;
}

SEC("xdp") int tail(struct xdp_md *context) {
    keep(40, bpf_xdp_get_buff_len(context));
    runs += begun;
    return XDP_TX;
}

SEC("xdp") int helpers(struct xdp_md *context) {
    __u8 bytes[SIZE] = {};
    keep(0, bpf_xdp_load_bytes(context, 60, bytes, SIZE));
    keep(1, bpf_xdp_load_bytes(context, 60000, bytes, 4));
    keep(2, bpf_xdp_load_bytes(context, 70000, bytes, 4));
    __u8 *random = bytes + 16;
    __u32 from = random[0] & 15, to = random[1] & 15;
    keep(3, bpf_csum_diff((void *)bytes, from, (void *)(bytes + 16), to, random[2] << 12));
    keep(4, bpf_csum_diff((void *)(bytes + 1), from & ~3, 0, 0, random[3]));
    keep(5, bpf_csum_diff(0, 0, (void *)(bytes + 4), to & ~3, ~(__u32)random[3]));
    keep(6, bpf_xdp_adjust_tail(context, (int)random[4] - 128));
    keep(7, bpf_xdp_get_buff_len(context));
    keep(8, bpf_xdp_adjust_meta(context, -(int)(random[5] & 60)));
    keep(9, bpf_xdp_adjust_head(context, (int)random[6] - 128));
    keep(10, bpf_xdp_adjust_meta(context, (int)(random[7] & 15) - 8));
    keep(11, context->data - context->data_meta);
    keep(12, bpf_xdp_store_bytes(context, random[8], bytes, random[9] & 31));
    __u64 sum = 0;
    keep(13, bpf_loop(random[10] & 7, add, &sum, 0));
    keep(14, bpf_loop(9000000, add, &sum, 0));
    keep(15, bpf_loop(3, add, &sum, 1));
    __u32 key = random[11] & 15;
    keep(16, bpf_map_update_elem(&counts, &key, &sum, random[12] & 3));
    keep(17, bpf_for_each_map_elem(&counts, gather, &sum, 0));
    keep(18, sum);
    keep(19, bpf_ringbuf_output(&ring, bytes, random[9] & 31, 0));
    __u64 *record = bpf_ringbuf_reserve(&ring, 200 + (random[10] & 127), 0);
    keep(20, record != 0);
    if (record) {
        record[0] = sum;
        if (random[10] & 1) {
            bpf_ringbuf_submit(record, 0);
        } else {
            bpf_ringbuf_discard(record, 0);
        }
    }
    for (int what = 0; what < 5; what++) {
        keep(21 + what, bpf_ringbuf_query(&ring, what));
    }
    keep(26, bpf_map_push_elem(&last, &sum, random[13] & 3));
    if (random[13] & 4) {
        keep(27, bpf_map_pop_elem(&last, &sum));
    }
    keep(28, bpf_map_peek_elem(&last, &sum));
    keep(29, sum);
    key = random[14] & 3;
    void *map = bpf_map_lookup_elem(&outer, &key);
    keep(30, map != 0);
    if (map) {
        __u32 zero = 0;
        bpf_map_update_elem(map, &zero, &sum, BPF_ANY);
        bpf_map_delete_elem(&counts, &key);
    }
    keep(31, bpf_redirect_map(&ports, random[15] & 7, random[14] >> 3));
    keep(32, bpf_redirect_map(&cpus, random[15] & 7, random[14] >> 5));
    keep(33, bpf_redirect(2, random[15] >> 7));
    if (random[0] < 8) {
        __u64 flags = (random[1] & 1 ? random[1] >> 1 & 3 : 0xffffffff) | (__u64)(random[2] & 127) << 32;
        keep(34, bpf_perf_event_output(context, &events, flags, bytes, random[9] & 31));
    }
    if (random[15] & 1) {
        bpf_tail_call(context, &next, random[15] >> 1 & 3);
    }
    runs++;
    return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
