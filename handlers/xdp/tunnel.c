/* A tunnel: packets to a known destination get an outer IP header, IP in IP, and leave the way they came. */
#include <xdp.h>

struct ends {
    __be32 source;
    __be32 destination;
    __u8 station[6];
    __u8 unused[2];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 256);
    __type(key, __be32);
    __type(value, struct ends);
} tunnels SEC(".maps");

SEC("xdp") int tunnel(struct xdp_md *context) {
    struct ethhdr *eth = xdp_data(context);
    struct iphdr *ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > xdp_end(context) || eth->h_proto != bpf_htons(ETH_P_IP)) {
        return XDP_PASS;
    }
    __be32 destination = ip->daddr;
    struct ends *ends = bpf_map_lookup_elem(&tunnels, &destination);
    return ends ? xdp_into_tunnel(context, ends->source, ends->destination, ends->station) : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
