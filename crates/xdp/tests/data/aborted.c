/* Ends with XDP_ABORTED of each kind: behind a check, behind a lookup, with a result of the packet, of a function and of a helper. */
#include <xdp.h>

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u32);
} none SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, __u32);
} few SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, __u32);
} ports SEC(".maps");

static __attribute__((noinline)) int decide(__u32 number) {
    return number & 4 ? XDP_DROP : XDP_ABORTED;
}

SEC("xdp") int aborted(struct xdp_md *context) {
    unsigned char *data = xdp_data(context);
    if (data + 34 > (unsigned char *)xdp_end(context)) {
        return XDP_ABORTED;
    }
    __u32 key = data[29];
    if (data[23] == IPPROTO_ICMP) {
        __u32 *value = bpf_map_lookup_elem(&none, &key);
        if (!value) {
            return XDP_ABORTED;
        }
        return XDP_PASS;
    }
    if (data[23] == 47) {
        __u32 *value = bpf_map_lookup_elem(&few, &key);
        if (!value) {
            return XDP_ABORTED;
        }
        *value += 1;
        return XDP_PASS;
    }
    if (data[23] == IPPROTO_TCP) {
        return data[33] & 3;
    }
    if (key & 1) {
        return decide(data[33]);
    }
    return bpf_redirect_map(&ports, key & 1, data[33] & 1);
}

char _license[] SEC("license") = "GPL";
