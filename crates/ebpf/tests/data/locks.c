/* Values with locks: one program that uses them well, and two that do not. */
#include <xdp.h>

#define BPF_F_LOCK 4

struct account {
    struct bpf_spin_lock lock;
    __u32 unused;
    __u64 sum;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, struct account);
} accounts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, struct account);
} copies SEC(".maps");

SEC("xdp") int locked(struct xdp_md *context) {
    __u32 key = 1;
    struct account *account = bpf_map_lookup_elem(&accounts, &key);
    if (!account) {
        return XDP_ABORTED;
    }
    bpf_spin_lock(&account->lock);
    account->sum += xdp_end(context) - xdp_data(context);
    bpf_spin_unlock(&account->lock);
    struct account copy = {.unused = 9, .sum = account->sum};
    long absent = bpf_map_update_elem(&copies, &key, &copy, BPF_F_LOCK | BPF_EXIST);
    long created = bpf_map_update_elem(&copies, &key, &copy, BPF_F_LOCK);
    long present = bpf_map_update_elem(&copies, &key, &copy, BPF_F_LOCK | BPF_NOEXIST);
    return absent * 10000 + present * 100 + created;
}

SEC("xdp") int forgotten(struct xdp_md *context) {
    __u32 key = 1;
    struct account *account = bpf_map_lookup_elem(&accounts, &key);
    if (account) {
        bpf_spin_lock(&account->lock);
    }
    return XDP_PASS;
}

SEC("xdp") int twice(struct xdp_md *context) {
    __u32 key = 1;
    struct account *account = bpf_map_lookup_elem(&accounts, &key);
    if (account) {
        bpf_spin_lock(&account->lock);
        bpf_spin_lock(&account->lock);
    }
    return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
