/* Programs that ask whether a helper, a type of map or a function of the kernel exists, or have an option for it, and another
 * way without it. */
#include <xdp.h>

#define EXISTS(type, value) __builtin_preserve_enum_value(*(type *)value, 0)

/* A helper of this number that no machine has, and one that nicety lacks. */
enum bpf_func_id {
    BPF_FUNC_xdp_load_bytes = 189,
    BPF_FUNC_xdp_no_such = 9999,
    BPF_FUNC_fib_lookup = 69,
    BPF_FUNC_loop___other = 181,
};

enum bpf_map_type___asked {
    BPF_MAP_TYPE_RINGBUF___asked = 27,
    BPF_MAP_TYPE_ARENA___asked = 33,
};

static long (*const fib_lookup)(void *context, void *parameters, int size, __u32 flags) = (void *)69;

extern int no_such_function(struct xdp_md *context) __attribute__((section(".ksyms"), weak));

SEC("xdp") int helpers(struct xdp_md *context) {
    return EXISTS(enum bpf_func_id, BPF_FUNC_xdp_load_bytes) + 2 * EXISTS(enum bpf_func_id, BPF_FUNC_xdp_no_such) +
           4 * EXISTS(enum bpf_func_id, BPF_FUNC_fib_lookup) + 8 * EXISTS(enum bpf_func_id, BPF_FUNC_loop___other);
}

SEC("xdp") int maps(struct xdp_md *context) {
    return EXISTS(enum bpf_map_type___asked, BPF_MAP_TYPE_RINGBUF___asked) +
           2 * EXISTS(enum bpf_map_type___asked, BPF_MAP_TYPE_ARENA___asked);
}

/* The call is in the program, and no run reaches it. */
SEC("xdp") int route(struct xdp_md *context) {
    __u32 parameters[16] = {};
    if (EXISTS(enum bpf_func_id, BPF_FUNC_fib_lookup)) {
        return fib_lookup(context, parameters, sizeof(parameters), 0) == 0 ? XDP_TX : XDP_DROP;
    }
    return context->rx_queue_index == 3 ? XDP_DROP : XDP_PASS;
}

const volatile struct {
    __u32 ports[2];
    __u8 routed;
} options = {.ports = {53, 80}};

/* A loader sets the option, or leaves it. */
SEC("xdp") int optional(struct xdp_md *context) {
    __u32 parameters[16] = {};
    if (options.routed && fib_lookup(context, parameters, sizeof(parameters), 0) == 0) {
        return XDP_TX;
    }
    return context->rx_queue_index == 3 ? XDP_DROP : XDP_PASS;
}

SEC("xdp") int weak(struct xdp_md *context) {
    if (no_such_function) {
        return no_such_function(context);
    }
    return context->rx_queue_index == 3 ? XDP_DROP : XDP_PASS;
}

SEC("xdp") int unasked(struct xdp_md *context) {
    return no_such_function(context);
}

SEC("xdp") int late(struct xdp_md *context) {
    __u32 parameters[16] = {};
    if (context->rx_queue_index != 3 || EXISTS(enum bpf_func_id, BPF_FUNC_xdp_load_bytes)) {
        return fib_lookup(context, parameters, sizeof(parameters), 0);
    }
    return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
