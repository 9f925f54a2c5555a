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

static void put_decimal(struct text *text, uint32_t byte, bool zeros) {
    for (uint32_t unit = 100; unit; unit /= 10) {
        if (zeros || byte >= unit || unit == 1) {
            put_char(text, (char)('0' + byte / unit % 10));
        }
    }
}

/* Writes the IP address at `from` into the format itself: `I4`, `i4`, `I6` or `i6`. */
static void put_internet_address(struct text *text, const uint8_t *from, const char *kind) {
    const bool plain = kind[0] == 'I', old = kind[1] == '4';
    for (uint32_t at = 0; at < (old ? 4u : 16u); at++) {
        if (at && (old || (plain && at % 2 == 0))) {
            put_char(text, old ? '.' : ':');
        }
        if (old) {
            put_decimal(text, from[at], !plain);
        } else {
            put_char(text, "0123456789abcdef"[from[at] >> 4]);
            put_char(text, "0123456789abcdef"[from[at] & 15]);
        }
    }
}

static bool is_alphanumeric(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_in(const char *set, char c) {
    while (*set && *set != c) {
        set++;
    }
    return *set != 0;
}

/* The letters behind %p, as Linux's helpers know them. All letters and digits behind them have no effect. */
enum pointer { POINTER_WRONG, POINTER_ADDRESS, POINTER_TEXT, POINTER_INTERNET };

static enum pointer pointer_of(const char **at) {
    const char *from = *at;
    while (is_alphanumeric(**at)) {
        (*at)++;
    }
    if (is_in("ku", from[0]) && from[1] == 's') {
        return POINTER_TEXT;
    }
    if (is_in("iI", from[0]) && is_in("46", from[1])) {
        return POINTER_INTERNET;
    }
    return !is_alphanumeric(from[0]) || is_in("KxsSB", from[0]) ? POINTER_ADDRESS : POINTER_WRONG;
}

/* Takes the letters behind %p. The conversion begins at `begin` of the text. */
static bool convert_pointer(struct text *text, const char **at, uint64_t value, uint32_t begin) {
    const char *kind = *at;
    switch (pointer_of(at)) {
    case POINTER_TEXT:
        put_char(text, 's');
        put_argument(text, value, false);
        return true;
    case POINTER_INTERNET:
        text->length = begin;
        put_internet_address(text, AT(const uint8_t, value), kind);
        return true;
    case POINTER_ADDRESS:
        put_char(text, '0'), put_char(text, '1'), put_char(text, '6');
        put_char(text, 'l'), put_char(text, 'l'), put_char(text, 'x');
        put_argument(text, value, true);
        return true;
    default:
        return false;
    }
}

/* Takes one conversion from the format; false where it is none. Numbers get the length ll, and their significant bits alone. */
static bool convert(struct text *text, const char **at, uint64_t value) {
    const char *from = *at;
    const uint32_t begin = text->length;
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
        return convert_pointer(text, at, value, begin);
    case 'c':
    case 's':
        put_char(text, letter);
        put_argument(text, value, false);
        return true;
    default:
        return false;
    }
    put_char(text, 'l'), put_char(text, 'l'), put_char(text, letter);
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
