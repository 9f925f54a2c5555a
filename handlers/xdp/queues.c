/* The queues that packets come through: counts, and a note in front of each packet for the host. */
#include <xdp.h>

struct note {
    __u32 interface;
    __u32 queue;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 64);
    __type(key, __u32);
    __type(value, __u64);
} counts SEC(".maps");

SEC("xdp") int queues(struct xdp_md *context) {
    __u32 queue = context->rx_queue_index;
    __u64 *count = bpf_map_lookup_elem(&counts, &queue);
    if (count) {
        __sync_fetch_and_add(count, 1);
    }
    if (bpf_xdp_adjust_meta(context, -(int)sizeof(struct note))) {
        return XDP_PASS;
    }
    struct note *note = (void *)(long)context->data_meta;
    if ((void *)(note + 1) > xdp_data(context)) {
        return XDP_ABORTED;
    }
    note->interface = context->ingress_ifindex;
    note->queue = queue;
    return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
