/* Older forms: maps without BTF, names of sections, the context by CO-RE, strings, and things that are refused. */
#define xdp_md whole_context
#include <xdp.h>
#undef xdp_md

struct bpf_map_def {
    __u32 type;
    __u32 key_size;
    __u32 value_size;
    __u32 max_entries;
    __u32 map_flags;
};

struct bpf_map_def table SEC("maps") = {.type = BPF_MAP_TYPE_HASH, .key_size = 8, .value_size = 4, .max_entries = 2};
struct bpf_map_def other SEC("maps") = {.type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 3};

/* Another order than the kernel's. */
struct xdp_md {
    __u32 rx_queue_index;
    __u32 data_end;
    __u32 data;
} __attribute__((preserve_access_index));

int placed SEC(".data.own") = 11;

static void *(*const unknown)(void *) = (void *)9999;
static void *(*const refused)(void *) = (void *)112;

SEC("xdp_old") int by_name(struct xdp_md *context) {
    char key[8] = "key 123";
    __u32 value = context->data_end - context->data;
    bpf_map_update_elem(&table, key, &value, BPF_ANY);
    __u32 two = 2;
    __u64 *count = bpf_map_lookup_elem(&other, &two);
    if (count) {
        *count += placed;
    }
    return context->rx_queue_index;
}

SEC("xdp.frags/devmap") int in_map(struct xdp_md *context) {
    return XDP_PASS;
}

SEC("xdp/unknown") int calls_unknown(struct xdp_md *context) {
    return unknown(context) != 0;
}

SEC("xdp/refused") int calls_refused(struct xdp_md *context) {
    return refused(context) != 0;
}

SEC("socket") int of_a_socket(void *context) {
    return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
