/* other.c: helpers of programs for time, random numbers and output. */
#include "helper.h"

static uint64_t cycles(void) {
#if __riscv_xlen == 64
    uint64_t now;
    __asm__ volatile("csrr %0, time" : "=r"(now));
    return now;
#else
    uint32_t high, low, again;
    do {
        __asm__ volatile("csrr %0, timeh\n\tcsrr %1, time\n\tcsrr %2, timeh" : "=r"(high), "=r"(low), "=r"(again));
    } while (high != again);
    return (uint64_t)high << 32 | low;
#endif
}

/* Nanoseconds by the counter that all cores share. */
uint64_t nicety_bpf_ktime_get_ns(void) {
    const uint64_t now = cycles();
    const uint32_t mult = nicety_xdp_card.ns_mult;
    if (mult == 1u << 22) {
        return now;
    }
    return ((now >> 32) * mult << 10) + ((now & 0xffffffff) * mult >> 22);
}

uint64_t nicety_bpf_ktime_get_boot_ns(void) { return nicety_bpf_ktime_get_ns(); }
uint64_t nicety_bpf_ktime_get_tai_ns(void) { return nicety_bpf_ktime_get_ns(); }

/* The clock of the timer's tick, at Linux's usual 250 a second. */
uint64_t nicety_bpf_ktime_get_coarse_ns(void) { return nicety_bpf_ktime_get_ns() / 4000000 * 4000000; }

/* Ticks. Linux begins five minutes before 32 bits of them are full. */
uint64_t nicety_bpf_jiffies64(void) { return nicety_bpf_ktime_get_ns() / 4000000 + (uint32_t)(-300 * 250); }

uint64_t nicety_bpf_get_smp_processor_id(void) { return this_cpu(); }

#ifndef NICETY_XDP_NFP
/* Marsaglia's xorshift, with a state for each core. */
uint64_t nicety_bpf_get_prandom_u32(void) {
    uint32_t *state = &nicety_xdp_random[this_cpu()], next = *state;
    next ^= next << 13;
    next ^= next >> 17;
    next ^= next << 5;
    *state = next;
    return next;
}
#endif

/* The most arguments of trace_vprintk, and bytes of a format. */
#define ARGUMENTS 12u
#define FORMAT 512u

/* A format in nicety's own form, and its arguments as a C function finds them. */
struct text {
    char format[FORMAT];
    uint32_t length;
    uint64_t arguments[ARGUMENTS];
    uint32_t bytes;
};

static void put_char(struct text *text, char c) {
    if (text->length < FORMAT - 1) {
        text->format[text->length++] = c;
    }
}

/* Adds an argument of 8 bytes, or one of a register. */
static void put_argument(struct text *text, uint64_t value, bool is_long) {
    const uint32_t size = is_long ? 8 : sizeof(uintptr_t);
    text->bytes = (text->bytes + size - 1) & ~(size - 1);
    memcpy((uint8_t *)text->arguments + text->bytes, &value, size);
    text->bytes += size;
}

static bool is_in(const char *set, char c) {
    while (*set && *set != c) {
        set++;
    }
    return *set != 0;
}

/* Takes one conversion from the format; false where it is none. Numbers get the length ll, and their significant bits alone. */
static bool convert(struct text *text, const char **at, uint64_t value) {
    const char *from = *at;
    put_char(text, '%');
    while (*from && is_in("-+ #0123456789", *from)) {
        put_char(text, *from++);
    }
    uint32_t longs = 0, halves = 0;
    for (; *from && is_in("hlz", *from); from++) {
        longs += *from != 'h';
        halves += *from == 'h';
    }
    const char letter = *from;
    *at = from + (letter != 0);
    if (longs > 2 || halves > 2 || (longs && halves)) {
        return false;
    }
    const uint32_t unused = longs ? 0 : halves == 2 ? 56 : halves ? 48 : 32;
    switch (letter) {
    case 'd':
    case 'i':
        value = (uint64_t)((int64_t)(value << unused) >> unused);
        break;
    case 'u':
    case 'x':
    case 'X':
        value = value << unused >> unused;
        break;
    case 'p':
        put_char(text, '0'), put_char(text, '1'), put_char(text, '6');
        break;
    case 'c':
    case 's':
        put_char(text, letter);
        put_argument(text, value, false);
        return true;
    default:
        return false;
    }
    put_char(text, 'l'), put_char(text, 'l');
    put_char(text, letter == 'p' ? 'x' : letter);
    put_argument(text, value, true);
    return true;
}

static uint64_t print(const char *format, uint32_t size, const uint64_t *arguments, uint32_t count) {
    struct text text;
    text.length = text.bytes = 0;
    const char *end = format;
    while (end < format + size && *end) {
        end++;
    }
    if (end == format + size) {
        return refused(EINVAL);
    }
    for (uint32_t used = 0; *format;) {
        if (*format != '%') {
            put_char(&text, *format++);
        } else if (format[1] == '%') {
            put_char(&text, '%'), put_char(&text, '%');
            format += 2;
        } else {
            format++;
            if (used == count || !convert(&text, &format, arguments[used++])) {
                return refused(EINVAL);
            }
        }
    }
    text.format[text.length] = 0;
    return (uint32_t)nicety_command(NICETY_PRINTF, ADDRESS(text.format), ADDRESS(text.arguments), 0, 0, 0);
}

uint64_t nicety_bpf_trace_printk(uint64_t format, uint64_t size, uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t arguments[3] = {a, b, c};
    return print(AT(const char, format), (uint32_t)size, arguments, 3);
}

uint64_t nicety_bpf_trace_vprintk(uint64_t format, uint64_t size, uint64_t data, uint64_t length) {
    if ((uint32_t)length % 8 || (uint32_t)length > 8 * ARGUMENTS) {
        return refused(EINVAL);
    }
    return print(AT(const char, format), (uint32_t)size, AT(const uint64_t, data), (uint32_t)length / 8);
}
