/* Processes at the card's end of channels, for benchmarks and as a starting point. They read messages, write them, or
 * send them back. Each process first registers `target`. It ends with the first error, and returns the error. */
#include <nfp.h>

/* Reads `count` direct messages of `size` bytes. */
__process int32_t channels_read(uint32_t target, uint32_t size, uint32_t count) {
    uint8_t message[CHANNEL_DIRECT];
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) result = channel_read(target, message, size);
    return result;
}

/* Writes `count` direct messages of `size` bytes. The bytes of a message count up from the message's number. */
__process int32_t channels_write(uint32_t target, uint32_t size, uint32_t count) {
    uint8_t message[CHANNEL_DIRECT];
    int32_t result = channel_register(target);
    for (uint32_t number = 0; result == CHANNEL_OK && number < count; number++) {
        for (uint32_t i = 0; i < CHANNEL_DIRECT; i++) message[i] = (uint8_t)(number + i);
        result = channel_write(target, message, size);
    }
    return result;
}

/* Sends `count` direct messages of `size` bytes back. */
__process int32_t channels_echo(uint32_t target, uint32_t size, uint32_t count) {
    uint8_t message[CHANNEL_DIRECT];
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) {
        result = channel_read(target, message, size);
        if (result == CHANNEL_OK) result = channel_write(target, message, size);
    }
    return result;
}

/* Reads `count` indirect messages of `size` bytes into a memory. */
__process int32_t channels_read_ind(uint32_t target, uint32_t size, uint32_t count, volatile void *memory) {
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) result = channel_read_ind(target, memory, size);
    return result;
}

/* Writes `count` indirect messages of `size` bytes out of a memory. */
__process int32_t channels_write_ind(uint32_t target, uint32_t size, uint32_t count, const volatile void *memory) {
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) result = channel_write_ind(target, memory, size);
    return result;
}

/* Sends `count` indirect messages of `size` bytes back, through a memory. */
__process int32_t channels_echo_ind(uint32_t target, uint32_t size, uint32_t count, volatile void *memory) {
    int32_t result = channel_register(target);
    while (result == CHANNEL_OK && count-- > 0) {
        result = channel_read_ind(target, memory, size);
        if (result == CHANNEL_OK) result = channel_write_ind(target, memory, size);
    }
    return result;
}

/* Sends back the next `rounds` direct messages of `size` bytes from any of up to 8 targets, numbered from `target` on.
 * If several targets have messages, they are served in turn. */
__process int32_t channels_alternate(uint32_t target, uint32_t size, uint32_t count, uint32_t rounds) {
    uint8_t message[CHANNEL_DIRECT];
    struct channel_guard guards[8];
    if (count > 8) return CHANNEL_BAD_GUARDS;
    for (uint32_t i = 0; i < count; i++) {
        int32_t result = channel_register(target + i);
        if (result != CHANNEL_OK) return result;
    }
    for (uint32_t first = 0; rounds > 0; rounds--) {
        for (uint32_t i = 0, next = first; i < count; i++, next = next + 1 < count ? next + 1 : 0)
            guards[i] = (struct channel_guard){target + next, message, size, 0, 0};
        int32_t taken = channel_select(guards, count);
        if (taken < 0) return taken;
        if (guards[taken].result != CHANNEL_OK) return guards[taken].result;
        uint32_t from = guards[taken].target;
        int32_t result = channel_write(from, message, size);
        if (result != CHANNEL_OK) return result;
        first = from - target + 1 < count ? from - target + 1 : 0;
    }
    return CHANNEL_OK;
}

/* Performs the steps of a list in a memory, up to its end. */
struct step {
    uint32_t call;       /* 0 end, 1 register, 2 write, 3 read, 4 write_ind, 5 read_ind, 6 compute */
    uint32_t target, size, timeout_ns;
    uint32_t memory;     /* memory of an indirect message */
    uint32_t first;      /* first byte of a direct message; the other bytes count up from it */
    int32_t result;      /* result of the call; 1 if the bytes of a direct message differ */
    uint32_t cycle;      /* cycle at the end of the call */
};

__process void channels_script(volatile struct step *steps) {
    uint8_t message[CHANNEL_DIRECT];
    for (;; steps++) {
        struct step step;
        nfp_read(&step, steps, sizeof step);
        for (uint32_t i = 0; i < CHANNEL_DIRECT; i++) message[i] = (uint8_t)(step.call == 2 ? step.first + i : 0);
        uint64_t memory = step.memory;
        switch (step.call) {
        case 1: step.result = channel_register(step.target); break;
        case 2: step.result = channel_write_for(step.target, message, step.size, step.timeout_ns); break;
        case 3:
            step.result = channel_read_for(step.target, message, step.size, step.timeout_ns);
            for (uint32_t i = 0; step.result == CHANNEL_OK && i < step.size; i++)
                if (message[i] != (uint8_t)(step.first + i)) step.result = 1;
            break;
        case 4: step.result = channel_write_ind_for(step.target, memory, step.size, step.timeout_ns); break;
        case 5: step.result = channel_read_ind_for(step.target, memory, step.size, step.timeout_ns); break;
        case 6:
            for (uint32_t until = nfp_cycle() + step.size; (int32_t)(nfp_cycle() - until) < 0;) {
            }
            break;
        default: return;
        }
        step.cycle = nfp_cycle();
        nfp_write(steps, &step, sizeof step);
    }
}
