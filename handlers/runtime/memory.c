/* memory.c: memcpy and similar functions.
 *
 * The functions copy whole words if both addresses allow this, and bytes otherwise. They make no misaligned access,
 * because a card may trap on it. The file is compiled with -fno-builtin, so that the compiler does not replace the loop
 * in memcpy by a call of memcpy.
 */
#include <stdint.h>
#include <string.h>

/* A program may define its own functions instead. */
#pragma weak memcpy
#pragma weak memmove
#pragma weak memset
#pragma weak memcmp
#pragma weak memchr
#pragma weak strlen
#pragma weak strcmp
#pragma weak strncmp

/* Words that may alias objects of any type. */
typedef uintptr_t __attribute__((may_alias)) word;

#define WORD sizeof(word)

static int aligned(const void *p) { return ((uintptr_t)p & (WORD - 1)) == 0; }
static int same_alignment(const void *a, const void *b) {
    return (((uintptr_t)a ^ (uintptr_t)b) & (WORD - 1)) == 0;
}

/* Copies the lowest address first. This order is correct for memcpy, and for a move to lower addresses. */
static void copy_up(unsigned char *to, const unsigned char *from, size_t length) {
    if (same_alignment(to, from)) {
        for (; length > 0 && !aligned(to); length--) *to++ = *from++;
        for (; length >= 4 * WORD; length -= 4 * WORD) {
            const word *source = (const word *)from;
            word *target = (word *)to;
            /* Four loads precede four stores, so no instruction uses the load directly before it. */
            word a = source[0], b = source[1], c = source[2], d = source[3];
            target[0] = a;
            target[1] = b;
            target[2] = c;
            target[3] = d;
            from += 4 * WORD;
            to += 4 * WORD;
        }
        for (; length >= WORD; length -= WORD) {
            *(word *)to = *(const word *)from;
            from += WORD;
            to += WORD;
        }
    }
    for (; length > 0; length--) *to++ = *from++;
}

/* Copies the highest address first. This order is correct for a move to higher addresses. */
static void copy_down(unsigned char *to, const unsigned char *from, size_t length) {
    to += length;
    from += length;
    if (same_alignment(to, from)) {
        for (; length > 0 && !aligned(to); length--) *--to = *--from;
        for (; length >= WORD; length -= WORD) {
            to -= WORD;
            from -= WORD;
            *(word *)to = *(const word *)from;
        }
    }
    for (; length > 0; length--) *--to = *--from;
}

void *memcpy(void *restrict to, const void *restrict from, size_t length) {
    copy_up(to, from, length);
    return to;
}

void *memmove(void *to, const void *from, size_t length) {
    if ((uintptr_t)to - (uintptr_t)from >= length) {
        copy_up(to, from, length);
    } else {
        copy_down(to, from, length);
    }
    return to;
}

void *memset(void *to, int byte, size_t length) {
    unsigned char *p = to;
    word pattern = (unsigned char)byte * (UINTPTR_MAX / 255);
    for (; length > 0 && !aligned(p); length--) *p++ = (unsigned char)byte;
    for (; length >= 4 * WORD; length -= 4 * WORD) {
        word *target = (word *)p;
        target[0] = pattern;
        target[1] = pattern;
        target[2] = pattern;
        target[3] = pattern;
        p += 4 * WORD;
    }
    for (; length >= WORD; length -= WORD) {
        *(word *)p = pattern;
        p += WORD;
    }
    for (; length > 0; length--) *p++ = (unsigned char)byte;
    return to;
}

int memcmp(const void *left, const void *right, size_t length) {
    const unsigned char *a = left, *b = right;
    if (same_alignment(a, b)) {
        for (; length > 0 && !aligned(a) && *a == *b; length--) {
            a++;
            b++;
        }
        if (aligned(a)) {
            for (; length >= WORD && *(const word *)a == *(const word *)b; length -= WORD) {
                a += WORD;
                b += WORD;
            }
        }
    }
    for (; length > 0; length--, a++, b++) {
        if (*a != *b) return *a - *b;
    }
    return 0;
}

void *memchr(const void *in, int byte, size_t length) {
    const unsigned char *p = in;
    for (; length > 0; length--, p++) {
        if (*p == (unsigned char)byte) return (void *)p;
    }
    return 0;
}

size_t strlen(const char *text) {
    const char *end = text;
    while (*end) end++;
    return (size_t)(end - text);
}

int strcmp(const char *left, const char *right) { return strncmp(left, right, SIZE_MAX); }

int strncmp(const char *left, const char *right, size_t length) {
    for (; length > 0; length--, left++, right++) {
        if (*left != *right) return (unsigned char)*left - (unsigned char)*right;
        if (!*left) break;
    }
    return 0;
}
