/* Linux's interface of XDP programs: the context, verdicts, maps, and helpers by number. With this file, a program
 * compiles without the headers of the kernel and of libbpf. Programs that include those headers also work. */
#ifndef NICETY_XDP_H
#define NICETY_XDP_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef signed short __s16;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;

struct xdp_md {
    __u32 data;
    __u32 data_end;
    __u32 data_meta;
    __u32 ingress_ifindex;
    __u32 rx_queue_index;
    __u32 egress_ifindex;
};

enum xdp_action { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };

enum bpf_map_type {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PROG_ARRAY = 3,
    BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
    BPF_MAP_TYPE_PERCPU_HASH = 5,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_LRU_PERCPU_HASH = 10,
    BPF_MAP_TYPE_LPM_TRIE = 11,
    BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
    BPF_MAP_TYPE_HASH_OF_MAPS = 13,
    BPF_MAP_TYPE_DEVMAP = 14,
    BPF_MAP_TYPE_CPUMAP = 16,
    BPF_MAP_TYPE_XSKMAP = 17,
    BPF_MAP_TYPE_QUEUE = 22,
    BPF_MAP_TYPE_STACK = 23,
    BPF_MAP_TYPE_DEVMAP_HASH = 25,
    BPF_MAP_TYPE_RINGBUF = 27,
    BPF_MAP_TYPE_BLOOM_FILTER = 30,
};

#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_EXIST 2
#define BPF_F_NO_PREALLOC 1

#define SEC(name) __attribute__((section(name), used))
/* A header of the kernel makes it a hint alone. */
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))

/* Members of a map's definition. */
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name
#define __array(name, value) typeof(value) *name[]

struct bpf_spin_lock {
    __u32 val;
};

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static long (*const bpf_trace_printk)(const char *format, __u32 size, ...) = (void *)6;
static __u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static __u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static long (*const bpf_tail_call)(void *context, void *map, __u32 index) = (void *)12;
static long (*const bpf_redirect)(__u32 interface, __u64 flags) = (void *)23;
static long (*const bpf_perf_event_output)(void *context, void *map, __u64 flags, void *data, __u64 size) = (void *)25;
static __s64 (*const bpf_csum_diff)(__be32 *from, __u32 from_size, __be32 *to, __u32 to_size, __u32 seed) = (void *)28;
static long (*const bpf_xdp_adjust_head)(struct xdp_md *context, int delta) = (void *)44;
static long (*const bpf_redirect_map)(void *map, __u64 key, __u64 flags) = (void *)51;
static long (*const bpf_xdp_adjust_meta)(struct xdp_md *context, int delta) = (void *)54;
static long (*const bpf_xdp_adjust_tail)(struct xdp_md *context, int delta) = (void *)65;
static long (*const bpf_map_push_elem)(void *map, const void *value, __u64 flags) = (void *)87;
static long (*const bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static long (*const bpf_map_peek_elem)(void *map, void *value) = (void *)89;
static long (*const bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*const bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*const bpf_ringbuf_output)(void *ring, void *data, __u64 size, __u64 flags) = (void *)130;
static void *(*const bpf_ringbuf_reserve)(void *ring, __u64 size, __u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static void (*const bpf_ringbuf_discard)(void *data, __u64 flags) = (void *)133;
static long (*const bpf_for_each_map_elem)(void *map, void *callback, void *context, __u64 flags) = (void *)164;
static long (*const bpf_loop)(__u32 count, void *callback, void *context, __u64 flags) = (void *)181;
static __u64 (*const bpf_xdp_get_buff_len)(struct xdp_md *context) = (void *)188;
static long (*const bpf_xdp_load_bytes)(struct xdp_md *context, __u32 offset, void *to, __u32 size) = (void *)189;
static long (*const bpf_xdp_store_bytes)(struct xdp_md *context, __u32 offset, void *from, __u32 size) = (void *)190;

/* Network byte order. */
#define bpf_htons(x) ((__be16)__builtin_bswap16(x))
#define bpf_ntohs(x) ((__u16)__builtin_bswap16(x))
#define bpf_htonl(x) ((__be32)__builtin_bswap32(x))
#define bpf_ntohl(x) ((__u32)__builtin_bswap32(x))

#define ETH_P_IP 0x0800
#define ETH_P_ARP 0x0806
#define ETH_P_8021Q 0x8100
#define ETH_P_IPV6 0x86dd
#define ETH_P_8021AD 0x88A8

/* A program may include headers of the kernel for other parts of IPv6. Those in front of this file define these numbers
 * and structures themselves, and those behind it must not define them again. */
#if !defined(_LINUX_IN_H) && !defined(_NETINET_IN_H)
#define __UAPI_DEF_IN_IPPROTO 0
#define IPPROTO_IP 0
#define IPPROTO_ICMP 1
#define IPPROTO_IGMP 2
#define IPPROTO_IPIP 4
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_DCCP 33
#define IPPROTO_IPV6 41
#define IPPROTO_GRE 47
#define IPPROTO_ESP 50
#define IPPROTO_AH 51
#define IPPROTO_PIM 103
#define IPPROTO_L2TP 115
#define IPPROTO_SCTP 132
#define IPPROTO_UDPLITE 136
#define IPPROTO_MPLS 137
#define IPPROTO_RAW 255
#endif

#if !defined(_LINUX_IN6_H) && !defined(_NETINET_IN_H)
#define __UAPI_DEF_IN6_ADDR 0
#define IPPROTO_HOPOPTS 0
#define IPPROTO_ROUTING 43
#define IPPROTO_FRAGMENT 44
#define IPPROTO_ICMPV6 58
#define IPPROTO_NONE 59
#define IPPROTO_DSTOPTS 60
#define IPPROTO_MH 135

struct in6_addr {
    union {
        __u8 u6_addr8[16];
        __be16 u6_addr16[8];
        __be32 u6_addr32[4];
    } in6_u;
};

#define s6_addr in6_u.u6_addr8
#define s6_addr16 in6_u.u6_addr16
#define s6_addr32 in6_u.u6_addr32
#endif

struct ethhdr {
    __u8 h_dest[6];
    __u8 h_source[6];
    __be16 h_proto;
} __attribute__((packed));

struct iphdr {
    __u8 ihl : 4;
    __u8 version : 4;
    __u8 tos;
    __be16 tot_len;
    __be16 id;
    __be16 frag_off;
    __u8 ttl;
    __u8 protocol;
    __u16 check;
    __be32 saddr;
    __be32 daddr;
};

struct udphdr {
    __be16 source;
    __be16 dest;
    __be16 len;
    __u16 check;
};

struct tcphdr {
    __be16 source;
    __be16 dest;
    __be32 seq;
    __be32 ack_seq;
    __u16 res1 : 4;
    __u16 doff : 4;
    __u16 fin : 1;
    __u16 syn : 1;
    __u16 rst : 1;
    __u16 psh : 1;
    __u16 ack : 1;
    __u16 urg : 1;
    __u16 ece : 1;
    __u16 cwr : 1;
    __be16 window;
    __u16 check;
    __be16 urg_ptr;
};

struct icmphdr {
    __u8 type;
    __u8 code;
    __u16 checksum;
    __be16 id;
    __be16 sequence;
};

#ifndef _IPV6_H
#define _IPV6_H
struct ipv6hdr {
    __u8 priority : 4;
    __u8 version : 4;
    __u8 flow_lbl[3];
    __be16 payload_len;
    __u8 nexthdr;
    __u8 hop_limit;
    union {
        struct {
            struct in6_addr saddr;
            struct in6_addr daddr;
        };
        struct {
            struct in6_addr saddr;
            struct in6_addr daddr;
        } addrs;
    };
};

struct ipv6_opt_hdr {
    __u8 nexthdr;
    __u8 hdrlen;
} __attribute__((packed));

#define ipv6_destopt_hdr ipv6_opt_hdr
#define ipv6_hopopt_hdr ipv6_opt_hdr

struct ipv6_rt_hdr {
    __u8 nexthdr;
    __u8 hdrlen;
    __u8 type;
    __u8 segments_left;
};
#endif

#ifndef _LINUX_ICMPV6_H
#define _LINUX_ICMPV6_H
#define ICMPV6_DEST_UNREACH 1
#define ICMPV6_PKT_TOOBIG 2
#define ICMPV6_TIME_EXCEED 3
#define ICMPV6_PARAMPROB 4
#define ICMPV6_ECHO_REQUEST 128
#define ICMPV6_ECHO_REPLY 129
#define ICMPV6_MGM_QUERY 130
#define ICMPV6_MGM_REPORT 131
#define ICMPV6_MGM_REDUCTION 132
#define ICMPV6_MLD2_REPORT 143

struct icmp6hdr {
    __u8 icmp6_type;
    __u8 icmp6_code;
    __u16 icmp6_cksum;
    union {
        __be32 un_data32[1];
        __be16 un_data16[2];
        __u8 un_data8[4];
        struct icmpv6_echo {
            __be16 identifier;
            __be16 sequence;
        } u_echo;
        struct icmpv6_nd_advt {
            __u32 reserved : 5;
            __u32 override : 1;
            __u32 solicited : 1;
            __u32 router : 1;
            __u32 reserved2 : 24;
        } u_nd_advt;
        struct icmpv6_nd_ra {
            __u8 hop_limit;
            __u8 reserved : 3;
            __u8 router_pref : 2;
            __u8 home_agent : 1;
            __u8 other : 1;
            __u8 managed : 1;
            __be16 rt_lifetime;
        } u_nd_ra;
    } icmp6_dataun;
};

#define icmp6_identifier icmp6_dataun.u_echo.identifier
#define icmp6_sequence icmp6_dataun.u_echo.sequence
#define icmp6_pointer icmp6_dataun.un_data32[0]
#define icmp6_mtu icmp6_dataun.un_data32[0]
#endif

/* The bounds of the frame. The context has 32 bits of each bound, and the kernel makes these a pointer. The empty
 * assembly hides this from the compiler. Otherwise the compiler would keep 32 bits of the pointer on the stack, and the
 * verifier would refuse the program. */
static __always_inline void *xdp_data(struct xdp_md *context) {
    void *data = (void *)(long)context->data;
    __asm__("" : "+r"(data));
    return data;
}

static __always_inline void *xdp_end(struct xdp_md *context) {
    void *end = (void *)(long)context->data_end;
    __asm__("" : "+r"(end));
    return end;
}

/* Returns the complement of a folded sum, the form in headers. */
static __always_inline __u16 xdp_folded(__u64 sum) {
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (__u16)~sum;
}

/* Puts an IP packet into an IP-in-IP tunnel. Returns the action for the packet. The packet leaves by the port of its
 * arrival. It is dropped if the headroom is too short for the outer header. */
static __always_inline int xdp_into_tunnel(struct xdp_md *context, __be32 source, __be32 destination,
                                           const __u8 *station) {
    struct ethhdr *eth = xdp_data(context);
    struct iphdr *ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > xdp_end(context)) {
        return XDP_DROP;
    }
    struct ethhdr old = *eth;
    __u16 length = bpf_ntohs(ip->tot_len) + sizeof(*ip);
    if (bpf_xdp_adjust_head(context, -(int)sizeof(*ip))) {
        return XDP_DROP;
    }
    eth = xdp_data(context);
    ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > xdp_end(context)) {
        return XDP_DROP;
    }
    __builtin_memcpy(eth->h_dest, station, 6);
    __builtin_memcpy(eth->h_source, old.h_dest, 6);
    eth->h_proto = old.h_proto;
    *ip = (struct iphdr){
        .version = 4,
        .ihl = 5,
        .tot_len = bpf_htons(length),
        .ttl = 64,
        .protocol = IPPROTO_IPIP,
        .saddr = source,
        .daddr = destination,
    };
    ip->check = xdp_folded(bpf_csum_diff(0, 0, (__be32 *)ip, sizeof(*ip), 0));
    return XDP_TX;
}

#endif
