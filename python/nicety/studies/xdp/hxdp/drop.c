/* Drops each frame: the first program of section 5.2.2 of the hXDP paper. */

#include <xdp.h>

SEC("xdp") int drop(struct xdp_md *context) {
    (void)context;
    return XDP_DROP;
}

char _license[] SEC("license") = "GPL";
