/* Forms that other loaders than libbpf read: maps of iproute2, of Linux's samples and of gobpf, and sections without a type. */
#include <xdp.h>

struct bpf_elf_map {
    __u32 type, key_size, value_size, max_entries, map_flags, id, pinning, inner_id, inner_idx;
};

struct sample_map {
    __u32 type, key_size, value_size, max_entries, map_flags, inner_map_idx, numa_node;
};

struct gobpf_map {
    __u32 type, key_size, value_size, max_entries, map_flags, pinning;
    char path[256];
};

/* Their places in the section are their numbers for inner_map_idx. */
struct bpf_elf_map calls SEC("maps") = {
    .type = BPF_MAP_TYPE_PROG_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 32, .id = 2, .inner_idx = -1};
struct bpf_elf_map inside SEC("maps") = {
    .type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 4, .id = 5, .inner_idx = 1};
struct bpf_elf_map tables SEC("maps") = {
    .type = BPF_MAP_TYPE_ARRAY_OF_MAPS, .key_size = 4, .value_size = 4, .max_entries = 2, .id = 6, .pinning = 2,
    .inner_id = 5, .inner_idx = -1};
struct sample_map copies SEC("maps") = {
    .type = BPF_MAP_TYPE_HASH_OF_MAPS, .key_size = 4, .value_size = 4, .max_entries = 2, .inner_map_idx = 1};
struct gobpf_map counts SEC("maps") = {
    .type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 2, .pinning = 1, .path = "host"};

static __always_inline void count(__u32 key) {
    __u64 *count = bpf_map_lookup_elem(&counts, &key);
    if (count) {
        (*count)++;
    }
}

/* Without a type, and with a label as old compilers write it. */
SEC("from-netdev") int start(struct xdp_md *context) {
    __u32 one = 1;
    void *table = bpf_map_lookup_elem(&tables, &one);
    __u64 *value = table ? bpf_map_lookup_elem(table, &one) : 0;
    if (value) {
        (*value)++;
    }
    count(bpf_map_lookup_elem(&copies, &one) != 0);
    __asm__ volatile("LBB0_15:");
    bpf_tail_call(context, &calls, context->rx_queue_index);
    return XDP_DROP;
}

SEC("2/0") int first(struct xdp_md *context) {
    return XDP_TX;
}

SEC("2/0x12") int second(struct xdp_md *context) {
    return XDP_PASS;
}

/* An array that the object lacks. */
SEC("3/1") int nowhere(struct xdp_md *context) {
    return 44;
}

SEC("static") __attribute__((noinline)) int called(int value) {
    __asm__ volatile("" ::: "memory");
    return value + 1;
}

SEC("other") int calls_it(struct xdp_md *context) {
    return called(context->rx_queue_index);
}

char _license[] SEC("license") = "GPL";
