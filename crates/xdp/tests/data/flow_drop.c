/* Drops all packets. */
#include <xdp.h>

SEC("xdp") int flow_drop(struct xdp_md *context) { return XDP_DROP; }

char _license[] SEC("license") = "GPL";
