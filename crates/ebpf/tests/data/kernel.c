/* A program that reads a type of the kernel with CO-RE. */
#include <xdp.h>

struct xdp_rxq_info {
    __u32 queue_index;
} __attribute__((preserve_access_index));

struct xdp_buff {
    void *data;
    struct xdp_rxq_info *rxq;
} __attribute__((preserve_access_index));

SEC("xdp") int inside(struct xdp_md *context) {
    struct xdp_buff *buffer = (void *)context;
    return buffer->rxq->queue_index;
}

char _license[] SEC("license") = "GPL";
