/* Counts packets by protocol. The bug's array is shared by the cores, and its counter is no atomic one. */
#include <xdp.h>

struct {
#ifdef BUG
    __uint(type, BPF_MAP_TYPE_ARRAY);
#else
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
#endif
    __uint(max_entries, 256);
    __type(key, __u32);
    __type(value, __u64);
} protocols SEC(".maps");

SEC("xdp") int count(struct xdp_md *context) {
    struct iphdr *ip = xdp_data(context) + sizeof(struct ethhdr);
    if ((void *)(ip + 1) > xdp_end(context))
        return XDP_PASS;
    __u32 protocol = ip->protocol;
    __u64 *packets = bpf_map_lookup_elem(&protocols, &protocol);
    if (packets)
        (*packets)++; // bug
    return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
