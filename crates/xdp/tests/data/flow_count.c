/* Counts packets, and their bytes, by protocol. */
#include <xdp.h>

struct count {
    __u64 packets;
    __u64 bytes;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 18);
    __type(key, __u32);
    __type(value, struct count);
} counts SEC(".maps");

SEC("xdp") int flow_count(struct xdp_md *context) {
    struct ethhdr *eth = xdp_data(context);
    struct iphdr *ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > xdp_end(context)) {
        return XDP_PASS;
    }
    __u32 protocol = ip->protocol;
    struct count *count = bpf_map_lookup_elem(&counts, &protocol);
    if (!count) {
        return XDP_ABORTED;
    }
    __atomic_fetch_add(&count->packets, 1, __ATOMIC_RELAXED);
    /* The upper word carries a part of the number, and carries of the lower one. */
    __atomic_fetch_add(&count->bytes, ((__u64)ip->tot_len << 40) + 0xc0000000u, __ATOMIC_RELAXED);
    return XDP_DROP;
}

char _license[] SEC("license") = "GPL";
