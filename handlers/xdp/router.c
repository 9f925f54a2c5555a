/* A router: the longest prefix of the destination gives the next hop. Packets with too few hops left are dropped. */
#include <xdp.h>

struct prefix {
    __u32 bits;
    __be32 address;
};

struct hop {
    __u8 destination[6];
    __u8 source[6];
    __u32 interface;
};

struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 4096);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct prefix);
    __type(value, struct hop);
} routes SEC(".maps");

SEC("xdp") int router(struct xdp_md *context) {
    void *data = xdp_data(context), *end = xdp_end(context);
    struct ethhdr *eth = data;
    struct iphdr *ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP)) {
        return XDP_PASS;
    }
    struct prefix key = {.bits = 32, .address = ip->daddr};
    struct hop *hop = bpf_map_lookup_elem(&routes, &key);
    if (!hop) {
        return XDP_PASS;
    }
    if (ip->ttl <= 1) {
        return XDP_DROP;
    }
    /* One hop less in the upper byte of a word: the sum of RFC 1624. */
    __u32 check = ip->check + (__u32)bpf_htons(0x0100);
    ip->check = (__u16)(check + (check >= 0xffff));
    ip->ttl--;
    __builtin_memcpy(eth->h_dest, hop->destination, 6);
    __builtin_memcpy(eth->h_source, hop->source, 6);
    return bpf_redirect(hop->interface, 0);
}

char _license[] SEC("license") = "GPL";
