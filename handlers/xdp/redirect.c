/* Packets leave by the interface that a map has for the one they came from; others pass. */
#include <xdp.h>

struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
    __uint(max_entries, 64);
    __type(key, __u32);
    __type(value, __u32);
} ports SEC(".maps");

SEC("xdp") int redirect(struct xdp_md *context) {
    return bpf_redirect_map(&ports, context->ingress_ifindex, XDP_PASS);
}

char _license[] SEC("license") = "GPL";
