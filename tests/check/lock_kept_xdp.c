/* Counts under the lock of a value. The bug returns with the lock taken. */
#include <xdp.h>

struct count {
    struct bpf_spin_lock lock;
    __u32 packets;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 4096);
    __type(key, __u32);
    __type(value, struct count);
} counts SEC(".maps");

SEC("xdp") int count(struct xdp_md *context) {
    struct iphdr *ip = xdp_data(context) + sizeof(struct ethhdr);
    if ((void *)(ip + 1) > xdp_end(context))
        return XDP_PASS;
    __u32 key = bpf_ntohl(ip->saddr) & 4095;
    struct count *own = bpf_map_lookup_elem(&counts, &key);
    if (!own)
        return XDP_PASS;
    bpf_spin_lock(&own->lock); // bug
    own->packets++;
    if (key & 1) {
#ifndef BUG
        bpf_spin_unlock(&own->lock);
#endif
        return XDP_DROP;
    }
    bpf_spin_unlock(&own->lock);
    return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
