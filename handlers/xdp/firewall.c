/* A firewall: UDP and TCP packets of a flow in the map have its verdict, others the default. Flows are five-tuples in network
 * order. Each verdict is counted. */
#include <xdp.h>

struct flow {
    __be32 source;
    __be32 destination;
    __be16 source_port;
    __be16 destination_port;
    __u8 protocol;
    __u8 unused[3];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __type(key, struct flow);
    __type(value, __u32);
} flows SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 5);
    __type(key, __u32);
    __type(value, __u64);
} verdicts SEC(".maps");

const volatile __u32 otherwise = XDP_DROP;

static __always_inline int counted(__u32 verdict) {
    __u64 *count = bpf_map_lookup_elem(&verdicts, &verdict);
    if (count) {
        (*count)++;
    }
    return verdict;
}

SEC("xdp") int firewall(struct xdp_md *context) {
    void *data = xdp_data(context), *end = xdp_end(context);
    struct ethhdr *eth = data;
    struct iphdr *ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > end) {
        return counted(XDP_DROP);
    }
    if (eth->h_proto != bpf_htons(ETH_P_IP)) {
        return counted(XDP_PASS);
    }
    __u32 length = ip->ihl * 4;
    struct udphdr *ports = (void *)ip + length;
    if (length < sizeof(*ip) || (void *)(ports + 1) > end) {
        return counted(XDP_DROP);
    }
    if (ip->protocol != IPPROTO_UDP && ip->protocol != IPPROTO_TCP) {
        return counted(otherwise);
    }
    struct flow flow = {
        .source = ip->saddr,
        .destination = ip->daddr,
        .source_port = ports->source,
        .destination_port = ports->dest,
        .protocol = ip->protocol,
    };
    __u32 *verdict = bpf_map_lookup_elem(&flows, &flow);
    return counted(verdict ? *verdict & 3 : otherwise);
}

char _license[] SEC("license") = "GPL";
