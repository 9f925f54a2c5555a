/* Sections that say XDP in other words, an own size of a bloom filter, and names of the kernel. */
#include <xdp.h>

#define __ulong(name, value) enum { name##_value = value } name

struct {
    __uint(type, BPF_MAP_TYPE_BLOOM_FILTER);
    __uint(max_entries, 8);
    __type(value, __u32);
    __ulong(map_extra, 3);
} seen SEC(".maps");

extern int bpf_inside(struct xdp_md *context) SEC(".ksyms");
extern unsigned LINUX_KERNEL_VERSION SEC(".kconfig");
extern int missing(void);

SEC("prog") int of_iproute2(struct xdp_md *context) {
    __u32 queue = context->rx_queue_index;
    return bpf_map_push_elem(&seen, &queue, 0);
}

SEC("?xdp") int on_request(struct xdp_md *context) {
    return XDP_TX;
}

SEC("xdp") int asks_kernel(struct xdp_md *context) {
    return bpf_inside(context);
}

SEC("xdp") int asks_version(struct xdp_md *context) {
    return LINUX_KERNEL_VERSION > 5;
}

SEC("xdp") int asks_nobody(struct xdp_md *context) {
    return missing();
}

char _license[] SEC("license") = "GPL";
