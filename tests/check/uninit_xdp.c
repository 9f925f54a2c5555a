/* A key with bytes of padding. The bug does not clear them before the lookup. */
#include <xdp.h>

struct key {
    __u32 source;
    __u8 protocol;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 64);
    __type(key, struct key);
    __type(value, __u64);
} flows SEC(".maps");

SEC("xdp") int flow(struct xdp_md *context) {
    void *data = xdp_data(context), *end = xdp_end(context);
    struct iphdr *ip = data + sizeof(struct ethhdr);
    if ((void *)(ip + 1) > end)
        return XDP_PASS;
#ifdef BUG
    struct key key;
#else
    struct key key;
    __builtin_memset(&key, 0, sizeof key);
#endif
    key.source = ip->saddr;
    key.protocol = ip->protocol;
    __u64 *count = bpf_map_lookup_elem(&flows, &key); // bug
    if (count)
        __sync_fetch_and_add(count, 1);
    return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
