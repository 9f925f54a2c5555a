/* Packets over a limit are cut, and go back as ICMP's "fragmentation needed" with the limit. */
#include <xdp.h>

/* Bytes of the packet that the answer repeats: its IP header and 8 bytes. */
#define REPEATED (sizeof(struct iphdr) + 8)

const volatile __u32 most = 600;

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} answers SEC(".maps");

SEC("xdp") int too_long(struct xdp_md *context) {
    const int added = sizeof(struct iphdr) + sizeof(struct icmphdr);
    const int length = sizeof(struct ethhdr) + added + REPEATED;
    void *data = xdp_data(context), *end = xdp_end(context);
    struct ethhdr *eth = data;
    struct iphdr *ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || end - data <= most) {
        return XDP_PASS;
    }
    struct ethhdr old = *eth;
    struct iphdr sent = *ip;
    if (bpf_xdp_adjust_tail(context, (int)(length - added) - (int)(end - data)) ||
        bpf_xdp_adjust_head(context, -added)) {
        return XDP_DROP;
    }
    data = xdp_data(context);
    end = xdp_end(context);
    if (data + length > end) {
        return XDP_DROP;
    }
    eth = data;
    __builtin_memcpy(eth->h_dest, old.h_source, 6);
    __builtin_memcpy(eth->h_source, old.h_dest, 6);
    eth->h_proto = old.h_proto;
    ip = (void *)(eth + 1);
    *ip = (struct iphdr){
        .version = 4,
        .ihl = 5,
        .tot_len = bpf_htons(length - sizeof(*eth)),
        .ttl = 64,
        .protocol = IPPROTO_ICMP,
        .saddr = sent.daddr,
        .daddr = sent.saddr,
    };
    ip->check = xdp_folded(bpf_csum_diff(0, 0, (__be32 *)ip, sizeof(*ip), 0));
    struct icmphdr *icmp = (void *)(ip + 1);
    *icmp = (struct icmphdr){.type = 3, .code = 4, .sequence = bpf_htons(most)};
    icmp->checksum = xdp_folded(bpf_csum_diff(0, 0, (__be32 *)icmp, sizeof(*icmp) + REPEATED, 0));
    __u32 key = 0;
    __u64 *count = bpf_map_lookup_elem(&answers, &key);
    if (count) {
        (*count)++;
    }
    return XDP_TX;
}

char _license[] SEC("license") = "GPL";
