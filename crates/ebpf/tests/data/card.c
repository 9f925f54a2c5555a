/* Runs translated programs on packets, and writes results, packets and arrays to standard output. Helpers are stand-ins.
 * The numbers of calls are those of Linux and of nicety's bare programs. */
#include <stdint.h>

struct context {
    uint32_t data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

enum { ENTRIES = 4, VALUE = 16, LONGEST = 8192 };

/* Written by the test: runs one behind another, each a program, its packet's length and the packet. */
extern const uint8_t runs[], runs_end[];
extern uint32_t (*const programs[])(struct context *);
extern uint64_t (*const targets[])(struct context *);

uint32_t nicety_map_array[1] = {0}, nicety_map_percpu_array[1] = {2}, nicety_map_prog_array[1] = {12};
uint64_t nicety_map_memory_array[ENTRIES * VALUE / 8], nicety_map_memory_percpu_array[ENTRIES * VALUE / 8];
uint32_t nicety_map_memory_prog_array[ENTRIES];

static uint8_t packet[LONGEST + 8] __attribute__((aligned(8)));
static struct context context;

static long call(long number, long a, long b, long c) {
    register long a0 __asm__("a0") = a, a1 __asm__("a1") = b, a2 __asm__("a2") = c, a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

static void put(const void *bytes, uint32_t count) { call(64, 1, (long)bytes, (long)count); }

static uint8_t *values(uint64_t map) {
    uint32_t number = *(const uint32_t *)(uintptr_t)map;
    return (uint8_t *)(number ? nicety_map_memory_percpu_array : nicety_map_memory_array);
}

uint64_t nicety_bpf_map_lookup_elem(uint64_t map, uint64_t key) {
    uint32_t at;
    __builtin_memcpy(&at, (const void *)(uintptr_t)key, 4);
    return at < ENTRIES ? (uintptr_t)(values(map) + at * VALUE) : 0;
}

uint64_t nicety_bpf_map_update_elem(uint64_t map, uint64_t key, uint64_t value, uint64_t flags) {
    uint64_t to = nicety_bpf_map_lookup_elem(map, key);
    if (flags > 2) {
        return (uint64_t)-22;
    }
    if (!to) {
        return (uint64_t)-7;
    }
    if (flags == 1) {
        return (uint64_t)-17;
    }
    for (int i = 0; i < VALUE; i++) {
        ((uint8_t *)(uintptr_t)to)[i] = ((const uint8_t *)(uintptr_t)value)[i];
    }
    return 0;
}

uint64_t nicety_bpf_xdp_get_buff_len(uint64_t at) {
    const struct context *of = (const void *)(uintptr_t)at;
    return of->data_end - of->data;
}

uint64_t nicety_bpf_redirect(uint64_t interface, uint64_t flags) {
    (void)interface;
    return flags ? 0 : 4;
}

static uint32_t sum(uint64_t from, uint64_t size, uint32_t seed) {
    const uint8_t *bytes = (const void *)(uintptr_t)from;
    for (uint32_t i = 0; i < (uint32_t)size; i += 4) {
        uint32_t word = bytes[i] | bytes[i + 1] << 8 | bytes[i + 2] << 16 | (uint32_t)bytes[i + 3] << 24;
        seed += word;
        seed += seed < word;
    }
    return seed;
}

uint64_t nicety_bpf_csum_diff(uint64_t from, uint64_t from_size, uint64_t to, uint64_t to_size, uint64_t seed64) {
    uint32_t result, seed = (uint32_t)seed64;
    if ((uint32_t)from_size && (uint32_t)to_size) {
        uint32_t plus = sum(to, to_size, seed), minus = ~sum(from, from_size, 0);
        result = plus + minus;
        result += result < plus;
    } else if ((uint32_t)to_size) {
        result = sum(to, to_size, seed);
    } else {
        result = (uint32_t)from_size ? ~sum(from, from_size, ~seed) : seed;
    }
    return (result + (result << 16 | result >> 16)) >> 16;
}

uint64_t nicety_bpf_csum_diff_0_20(uint64_t from, uint64_t a, uint64_t to, uint64_t b, uint64_t seed) {
    return nicety_bpf_csum_diff(from, a, to, b, seed);
}

uint64_t nicety_bpf_csum_diff_4_4(uint64_t from, uint64_t a, uint64_t to, uint64_t b, uint64_t seed) {
    return nicety_bpf_csum_diff(from, a, to, b, seed);
}

uint64_t nicety_bpf_loop(uint64_t count, uint64_t function, uint64_t with, uint64_t flags) {
    uint64_t (*each)(uint64_t, uint64_t) = (void *)(uintptr_t)function;
    if (flags) {
        return (uint64_t)-22;
    }
    for (uint32_t i = 0; i < (uint32_t)count; i++) {
        if (each(i, with)) {
            return i + 1;
        }
    }
    return (uint32_t)count;
}

uint64_t nicety_bpf_for_each_map_elem(uint64_t map, uint64_t function, uint64_t with, uint64_t flags) {
    uint64_t (*each)(uint64_t, uint64_t, uint64_t, uint64_t) = (void *)(uintptr_t)function;
    (void)flags;
    for (uint32_t i = 0; i < ENTRIES; i++) {
        uint32_t key = i;
        if (each(map, (uintptr_t)&key, (uintptr_t)(values(map) + i * VALUE), with)) {
            return i + 1;
        }
    }
    return ENTRIES;
}

static uint32_t word(const uint8_t **at) {
    uint32_t value = (*at)[0] | (*at)[1] << 8 | (*at)[2] << 16 | (uint32_t)(*at)[3] << 24;
    *at += 4;
    return value;
}

__attribute__((used)) void all(void) {
    uint32_t last = ~0u;
    for (const uint8_t *at = runs; at != runs_end;) {
        uint32_t program = word(&at), length = word(&at);
        if (program != last) {
            for (uint32_t i = 0; i < ENTRIES * VALUE / 8; i++) {
                nicety_map_memory_array[i] = nicety_map_memory_percpu_array[i] = 0;
            }
            nicety_map_memory_prog_array[1] = (uint32_t)(uintptr_t)targets[program];
            last = program;
        }
        for (uint32_t i = 0; i < length; i++) {
            packet[i] = *at++;
        }
        uint32_t data = (uint32_t)(uintptr_t)packet;
        context = (struct context){data, data + length, data, 1, 0, 0};
        uint32_t value = programs[program](&context);
        put(&value, 4);
        put(packet, length);
        put(nicety_map_memory_array, ENTRIES * VALUE);
        put(nicety_map_memory_percpu_array, ENTRIES * VALUE);
    }
    call(93, 0, 0, 0);
}
