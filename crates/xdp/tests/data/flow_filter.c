/* A firewall for a network flow processor: the verdict of a known flow, and drops others. It counts verdicts. */
#include <xdp.h>

struct flow {
    __be32 source;
    __be32 destination;
    __be16 source_port;
    __be16 destination_port;
    __u32 protocol;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 64);
    __type(key, struct flow);
    __type(value, __u32);
} flows SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u64);
} verdicts SEC(".maps");

SEC("xdp") int flow_filter(struct xdp_md *context) {
    struct ethhdr *eth = xdp_data(context);
    struct iphdr *ip = (void *)(eth + 1);
    struct udphdr *ports = (void *)(ip + 1);
    if ((void *)(ports + 1) > xdp_end(context) || eth->h_proto != bpf_htons(ETH_P_IP)) {
        return XDP_PASS;
    }
    struct flow flow = {ip->saddr, ip->daddr, ports->source, ports->dest, ip->protocol};
    __u32 *known = bpf_map_lookup_elem(&flows, &flow);
    __u32 verdict = known ? *known : XDP_DROP;
    __u64 *count = bpf_map_lookup_elem(&verdicts, &verdict);
    if (count) {
        __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
    }
    return verdict;
}

char _license[] SEC("license") = "GPL";
