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
    void *data = xdp_data(context), *end = xdp_end(context);
    struct ethhdr *eth = data;
    struct iphdr *ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP)) {
        return XDP_PASS;
    }
    __be32 destination = ip->daddr;
    struct ends *ends = bpf_map_lookup_elem(&tunnels, &destination);
    if (!ends) {
        return XDP_PASS;
    }
    struct ethhdr old = *eth;
    __u16 length = bpf_ntohs(ip->tot_len) + sizeof(*ip);
    if (bpf_xdp_adjust_head(context, -(int)sizeof(*ip))) {
        return XDP_DROP;
    }
    data = xdp_data(context);
    end = xdp_end(context);
    eth = data;
    ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > end) {
        return XDP_DROP;
    }
    __builtin_memcpy(eth->h_dest, ends->station, 6);
    __builtin_memcpy(eth->h_source, old.h_dest, 6);
    eth->h_proto = old.h_proto;
    *ip = (struct iphdr){
        .version = 4,
        .ihl = 5,
        .tot_len = bpf_htons(length),
        .ttl = 64,
        .protocol = IPPROTO_IPIP,
        .saddr = ends->source,
        .daddr = ends->destination,
    };
    ip->check = xdp_folded(bpf_csum_diff(0, 0, (__be32 *)ip, sizeof(*ip), 0));
    return XDP_TX;
}

char _license[] SEC("license") = "GPL";
