// The actions of a frame that the paper measures: each program counts the frame by three lookups in arrays.
#include <xdp.h>

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} settings SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} frames SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 64);
    __type(key, __u32);
    __type(value, __u64);
} of_queue SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} ports SEC(".maps");

static __always_inline int counted(struct xdp_md *context) {
    __u32 key = 0, queue = context->rx_queue_index;
    __u64 *setting = bpf_map_lookup_elem(&settings, &key);
    __u64 *all = bpf_map_lookup_elem(&frames, &key);
    __u64 *own = bpf_map_lookup_elem(&of_queue, &queue);
    if (!setting || !all || !own) {
        return 0;
    }
    (*all)++;
    (*own)++;
    return 1;
}

static __always_inline int swapped(struct xdp_md *context) {
    __u16 *words = xdp_data(context);
    if ((void *)(words + 7) > xdp_end(context)) {
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        __u16 word = words[i];
        words[i] = words[i + 3];
        words[i + 3] = word;
    }
    return 1;
}

SEC("xdp") int drop(struct xdp_md *context) {
    return counted(context) ? XDP_DROP : XDP_ABORTED;
}

SEC("xdp") int pass(struct xdp_md *context) {
    return counted(context) ? XDP_PASS : XDP_ABORTED;
}

SEC("xdp") int send(struct xdp_md *context) {
    return counted(context) && swapped(context) ? XDP_TX : XDP_ABORTED;
}

SEC("xdp") int forward(struct xdp_md *context) {
    __u32 key = 0;
    __u64 *all = bpf_map_lookup_elem(&frames, &key);
    if (!all || !swapped(context)) {
        return XDP_ABORTED;
    }
    (*all)++;
    return (int)bpf_redirect_map(&ports, 0, 0);
}

char _license[] SEC("license") = "GPL";
