/* Passes frames. The bug returns a length in place of a verdict. */
#include <xdp.h>

SEC("xdp") int pass(struct xdp_md *context) {
#ifdef BUG
    return xdp_end(context) - xdp_data(context); // bug
#else
    return xdp_end(context) > xdp_data(context) ? XDP_PASS : XDP_DROP;
#endif
}

char _license[] SEC("license") = "GPL";
