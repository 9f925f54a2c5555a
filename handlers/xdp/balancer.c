/* A load balancer: a flow to a service goes to a server by a table of places, as Maglev (NSDI 2016) fills it. The packet is sent
 * to the server in an IP-in-IP tunnel. A cache keeps the servers of flows while the table changes. */
#include <xdp.h>

/* Places of a service: a prime. */
#define PLACES 251

struct service {
    __be32 address;
    __be16 port;
    __u8 protocol;
    __u8 unused;
};

struct flow {
    __be32 source;
    __be32 destination;
    __be16 ports[2];
    __u32 protocol;
};

struct server {
    __be32 address;
    __u8 station[6];
    __u8 unused[2];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16);
    __type(key, struct service);
    __type(value, __u32);
} services SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 16 * PLACES);
    __type(key, __u32);
    __type(value, __u32);
} places SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 64);
    __type(key, __u32);
    __type(value, struct server);
} servers SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __type(key, struct flow);
    __type(value, __u32);
} known SEC(".maps");

const volatile __be32 own_address = 0;

/* FNV-1a over words. */
static __always_inline __u32 hashed(const struct flow *flow) {
    const __u32 *words = (const __u32 *)flow;
    __u32 hash = 2166136261u;
    for (int i = 0; i < 4; i++) {
        hash = (hash ^ words[i]) * 16777619u;
        hash ^= hash >> 15;
    }
    return hash;
}

SEC("xdp") int balancer(struct xdp_md *context) {
    void *end = xdp_end(context);
    struct ethhdr *eth = xdp_data(context);
    struct iphdr *ip = (void *)(eth + 1);
    struct udphdr *ports = (void *)(ip + 1);
    if ((void *)(ports + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5) {
        return XDP_PASS;
    }
    struct service service = {.address = ip->daddr, .port = ports->dest, .protocol = ip->protocol};
    __u32 *number = bpf_map_lookup_elem(&services, &service);
    if (!number) {
        return XDP_PASS;
    }
    struct flow flow = {
        .source = ip->saddr,
        .destination = ip->daddr,
        .ports = {ports->source, ports->dest},
        .protocol = ip->protocol,
    };
    __u32 chosen;
    __u32 *kept = bpf_map_lookup_elem(&known, &flow);
    if (kept) {
        chosen = *kept;
    } else {
        __u32 place = *number * PLACES + hashed(&flow) % PLACES;
        __u32 *server = bpf_map_lookup_elem(&places, &place);
        if (!server) {
            return XDP_DROP;
        }
        chosen = *server;
        bpf_map_update_elem(&known, &flow, &chosen, BPF_ANY);
    }
    struct server *server = bpf_map_lookup_elem(&servers, &chosen);
    return server ? xdp_into_tunnel(context, own_address, server->address, server->station) : XDP_DROP;
}

char _license[] SEC("license") = "GPL";
