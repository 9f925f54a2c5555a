/* Swaps the Ethernet addresses and sends the frame back: XDP_TX of section 5.2.2 of the hXDP paper. */

#include <xdp.h>

SEC("xdp") int tx(struct xdp_md *context) {
    unsigned short *data = xdp_data(context);
    if ((void *)(data + 7) > xdp_end(context)) {
        return XDP_DROP;
    }
    unsigned short swapped[3] = {data[0], data[1], data[2]};
    data[0] = data[3];
    data[1] = data[4];
    data[2] = data[5];
    data[3] = swapped[0];
    data[4] = swapped[1];
    data[5] = swapped[2];
    return XDP_TX;
}

char _license[] SEC("license") = "GPL";
