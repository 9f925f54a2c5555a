/* Programs that a verifier refuses: each traps on a line of its own. */
#include <xdp.h>

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 4);
    __type(key, __u32);
    __type(value, __u32);
} table SEC(".maps");

SEC("xdp") int beyond(struct xdp_md *context) {
    __u8 *data = xdp_data(context);
    return data[100];
}

SEC("xdp") int unchecked(struct xdp_md *context) {
    __u32 key = 5;
    __u32 *value = bpf_map_lookup_elem(&table, &key);
    return *value;
}

SEC("xdp") int endless(struct xdp_md *context) {
    for (;;) {
        __asm__ volatile("" ::: "memory");
    }
}

char _license[] SEC("license") = "GPL";
