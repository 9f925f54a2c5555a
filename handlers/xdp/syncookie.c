/* SYN cookies: a SYN to a protected port is answered from the card, and the number of the answer proves the client's address. A
 * later ACK with that number makes the flow known; other packets to the port are dropped. */
#include <xdp.h>

struct flow {
    __be32 source;
    __be32 destination;
    __be16 ports[2];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16);
    __type(key, __be16);
    __type(value, __u32);
} protected_ports SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, struct flow);
    __type(value, __u32);
} proved SEC(".maps");

const volatile __u32 secret = 0x5eed1e55;

static __always_inline __u32 cookie(const struct flow *flow, __u32 number) {
    const __u32 *words = (const __u32 *)flow;
    __u32 hash = secret ^ number;
    for (int i = 0; i < 3; i++) {
        hash = (hash ^ words[i]) * 0x85ebca6bu;
        hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
        hash ^= hash >> 16;
    }
    return hash;
}

struct pseudo {
    __be32 source;
    __be32 destination;
    __u8 zero;
    __u8 protocol;
    __be16 length;
};

/* Turns a SYN into its SYN and ACK. */
static __always_inline int answer(struct ethhdr *eth, struct iphdr *ip, struct tcphdr *tcp, __u32 own) {
    struct ethhdr old = *eth;
    __builtin_memcpy(eth->h_dest, old.h_source, 6);
    __builtin_memcpy(eth->h_source, old.h_dest, 6);
    __be32 source = ip->saddr;
    *ip = (struct iphdr){
        .version = 4,
        .ihl = 5,
        .tot_len = bpf_htons(sizeof(*ip) + sizeof(*tcp)),
        .ttl = 64,
        .protocol = IPPROTO_TCP,
        .saddr = ip->daddr,
        .daddr = source,
    };
    ip->check = xdp_folded(bpf_csum_diff(0, 0, (__be32 *)ip, sizeof(*ip), 0));
    __be16 port = tcp->source;
    *tcp = (struct tcphdr){
        .source = tcp->dest,
        .dest = port,
        .seq = bpf_htonl(own),
        .ack_seq = bpf_htonl(bpf_ntohl(tcp->seq) + 1),
        .doff = 5,
        .syn = 1,
        .ack = 1,
        .window = bpf_htons(65535),
    };
    struct pseudo pseudo = {
        .source = ip->saddr,
        .destination = ip->daddr,
        .protocol = IPPROTO_TCP,
        .length = bpf_htons(sizeof(*tcp)),
    };
    __u32 sum = bpf_csum_diff(0, 0, (__be32 *)&pseudo, sizeof(pseudo), 0);
    tcp->check = xdp_folded(bpf_csum_diff(0, 0, (__be32 *)tcp, sizeof(*tcp), sum));
    return XDP_TX;
}

SEC("xdp") int syncookie(struct xdp_md *context) {
    void *end = xdp_end(context);
    struct ethhdr *eth = xdp_data(context);
    struct iphdr *ip = (void *)(eth + 1);
    struct tcphdr *tcp = (void *)(ip + 1);
    if ((void *)(tcp + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->protocol != IPPROTO_TCP || ip->ihl != 5) {
        return XDP_PASS;
    }
    __be16 port = tcp->dest;
    if (!bpf_map_lookup_elem(&protected_ports, &port)) {
        return XDP_PASS;
    }
    struct flow flow = {.source = ip->saddr, .destination = ip->daddr, .ports = {tcp->source, tcp->dest}};
    if (tcp->syn && !tcp->ack) {
        __u32 own = cookie(&flow, bpf_ntohl(tcp->seq));
        int options = xdp_end(context) - (void *)(tcp + 1);
        if (answer(eth, ip, tcp, own) == XDP_TX && options > 0 && bpf_xdp_adjust_tail(context, -options)) {
            return XDP_DROP;
        }
        return XDP_TX;
    }
    if (bpf_map_lookup_elem(&proved, &flow)) {
        return XDP_PASS;
    }
    if (tcp->ack && !tcp->syn && bpf_ntohl(tcp->ack_seq) - 1 == cookie(&flow, bpf_ntohl(tcp->seq) - 1)) {
        __u32 yes = 1;
        bpf_map_update_elem(&proved, &flow, &yes, BPF_ANY);
        return XDP_PASS;
    }
    return XDP_DROP;
}

char _license[] SEC("license") = "GPL";
