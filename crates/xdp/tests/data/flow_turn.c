/* Sends packets back: it exchanges their addresses. */
#include <xdp.h>

SEC("xdp") int flow_turn(struct xdp_md *context) {
    __u16 *word = xdp_data(context);
    if ((void *)(word + 7) > xdp_end(context)) {
        return XDP_DROP;
    }
    __u16 first = word[0], second = word[1], third = word[2];
    word[0] = word[3], word[1] = word[4], word[2] = word[5];
    word[3] = first, word[4] = second, word[5] = third;
    return XDP_TX;
}

char _license[] SEC("license") = "GPL";
