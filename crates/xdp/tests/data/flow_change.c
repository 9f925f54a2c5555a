/* Divides, shortens and lengthens packets as far as a network flow processor does. */
#include <xdp.h>

static __noinline __u32 seventh(__u32 number) { return number / 7 + number / 12 + (number & 7) * 3; }

SEC("xdp") int flow_change(struct xdp_md *context) {
    struct ethhdr *eth = xdp_data(context);
    struct iphdr *ip = (void *)(eth + 1);
    if ((void *)(ip + 1) > xdp_end(context)) {
        return XDP_PASS;
    }
    __u32 number = ip->saddr, kind = ip->protocol;
    if (kind == 17 && bpf_xdp_adjust_head(context, -8)) {
        return XDP_ABORTED;
    }
    if (kind == 6 && bpf_xdp_adjust_head(context, 12)) {
        return XDP_ABORTED;
    }
    if (kind == 1 && bpf_xdp_adjust_tail(context, -9)) {
        return XDP_ABORTED;
    }
    __u32 *data = xdp_data(context);
    if ((void *)(data + 2) > xdp_end(context)) {
        return XDP_DROP;
    }
    data[0] = seventh(number);
    data[1] = number / 10;
    return kind == 47 ? XDP_PASS : XDP_TX;
}

char _license[] SEC("license") = "GPL";
