/* Maps with sizes that a loader sets, as tools with several programs have them. */
#include <xdp.h>

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, __u32);
    __type(value, __u64);
} used SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __type(key, __u32);
    __type(value, __u64);
} other SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
} events SEC(".maps");

SEC("xdp") int sizes(struct xdp_md *context) {
    __u32 key = 3;
    __u64 *value = bpf_map_lookup_elem(&used, &key);
    if (!value) {
        return XDP_DROP;
    }
    *value += 1;
    bpf_perf_event_output(context, &events, 0xffffffff, value, sizeof(*value));
    return XDP_TX;
}

char _license[] SEC("license") = "GPL";
