/* Passes all packets. */
#include <xdp.h>

SEC("xdp") int flow_pass(struct xdp_md *context) { return XDP_PASS; }

char _license[] SEC("license") = "GPL";
