/* Two counters: packets and bytes by IP protocol, on each CPU, and by source address, with the least recently used forgotten. */
#include <xdp.h>

struct count {
    __u64 packets;
    __u64 bytes;
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 256);
    __type(key, __u32);
    __type(value, struct count);
} protocols SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __type(key, __u32);
    __type(value, struct count);
} sources SEC(".maps");

SEC("xdp") int counters(struct xdp_md *context) {
    void *data = xdp_data(context), *end = xdp_end(context);
    struct ethhdr *eth = data;
    struct iphdr *ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP)) {
        return XDP_PASS;
    }
    __u64 bytes = end - data;
    __u32 protocol = ip->protocol;
    struct count *own = bpf_map_lookup_elem(&protocols, &protocol);
    if (own) {
        own->packets++;
        own->bytes += bytes;
    }
    __u32 source = ip->saddr;
    struct count *known = bpf_map_lookup_elem(&sources, &source);
    if (known) {
        __sync_fetch_and_add(&known->packets, 1);
        __sync_fetch_and_add(&known->bytes, bytes);
    } else {
        struct count first = {.packets = 1, .bytes = bytes};
        bpf_map_update_elem(&sources, &source, &first, BPF_ANY);
    }
    return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
