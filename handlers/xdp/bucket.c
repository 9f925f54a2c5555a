/* A rate limiter: each source address has a token bucket. A packet takes as many tokens as it has bytes, or it is dropped. */
#include <xdp.h>

struct bucket {
    struct bpf_spin_lock lock;
    __u32 unused;
    __u64 tokens;
    __u64 filled_ns;
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4096);
    __type(key, __be32);
    __type(value, struct bucket);
} buckets SEC(".maps");

/* Bytes a second, and the bytes of a full bucket. */
const volatile __u64 rate = 1000000;
const volatile __u64 depth = 3000;

SEC("xdp") int bucket(struct xdp_md *context) {
    void *data = xdp_data(context), *end = xdp_end(context);
    struct ethhdr *eth = data;
    struct iphdr *ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP)) {
        return XDP_PASS;
    }
    __be32 source = ip->saddr;
    __u64 now = bpf_ktime_get_ns(), bytes = end - data;
    struct bucket *own = bpf_map_lookup_elem(&buckets, &source);
    if (!own) {
        struct bucket full = {.tokens = depth, .filled_ns = now};
        bpf_map_update_elem(&buckets, &source, &full, BPF_NOEXIST);
        own = bpf_map_lookup_elem(&buckets, &source);
        if (!own) {
            return XDP_DROP;
        }
    }
    int verdict = XDP_DROP;
    bpf_spin_lock(&own->lock);
    /* At most a second's tokens, so that no product overflows. */
    __u64 passed = now - own->filled_ns;
    passed = passed > 1000000000 ? 1000000000 : passed;
    __u64 tokens = own->tokens + passed * rate / 1000000000;
    tokens = tokens > depth ? depth : tokens;
    if (tokens >= bytes) {
        tokens -= bytes;
        verdict = XDP_PASS;
    }
    own->tokens = tokens;
    own->filled_ns = now;
    bpf_spin_unlock(&own->lock);
    return verdict;
}

char _license[] SEC("license") = "GPL";
