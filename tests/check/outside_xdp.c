/* Reads a byte of the payload. The bug does not compare with the packet's end. */
#include <xdp.h>

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 256);
    __type(key, __u32);
    __type(value, __u64);
} values SEC(".maps");

SEC("xdp") int first(struct xdp_md *context) {
    __u8 *data = xdp_data(context);
#ifndef BUG
    if ((void *)(data + 80) > xdp_end(context))
        return XDP_PASS;
#endif
    __u32 value = data[79]; // bug
    __u64 *count = bpf_map_lookup_elem(&values, &value);
    if (count)
        __sync_fetch_and_add(count, 1);
    return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
