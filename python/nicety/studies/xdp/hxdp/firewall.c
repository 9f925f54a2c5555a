/* The simple firewall of section 2.3 of the hXDP paper, from its description: flows begin inside, on interface 1. */

#include <xdp.h>

#define INSIDE 1

struct flow {
    __be32 low_address;
    __be32 high_address;
    __be16 low_port;
    __be16 high_port;
    __u32 protocol;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, struct flow);
    __type(value, __u32);
} flows SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, __u32);
} ports SEC(".maps");

SEC("xdp") int firewall(struct xdp_md *context) {
    struct ethhdr *eth = xdp_data(context);
    struct iphdr *ip = (void *)(eth + 1);
    struct udphdr *transport = (void *)(ip + 1);
    if ((void *)(transport + 1) > xdp_end(context) || eth->h_proto != bpf_htons(ETH_P_IP)) {
        return XDP_DROP;
    }
    if (ip->protocol != IPPROTO_UDP && ip->protocol != IPPROTO_TCP) {
        return XDP_DROP;
    }
    /* Both directions of a flow have one key. */
    int forward = ip->saddr < ip->daddr;
    struct flow flow = {
        .low_address = forward ? ip->saddr : ip->daddr,
        .high_address = forward ? ip->daddr : ip->saddr,
        .protocol = ip->protocol,
    };
    forward = transport->source < transport->dest;
    flow.low_port = forward ? transport->source : transport->dest;
    flow.high_port = forward ? transport->dest : transport->source;

    int inside = context->ingress_ifindex == INSIDE;
    if (!bpf_map_lookup_elem(&flows, &flow)) {
        if (!inside) {
            return XDP_DROP;
        }
        __u32 known = 1;
        bpf_map_update_elem(&flows, &flow, &known, BPF_ANY);
    }
    return (int)bpf_redirect_map(&ports, inside ? 0 : 1, 0);
}

char _license[] SEC("license") = "GPL";
