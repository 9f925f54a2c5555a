/* Encodes lines of bytes as letters and decodes them, through functions of variable arguments. */
#include "board.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LENGTH 100

const char *const name = "base64";
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static uint8_t bytes[LENGTH], restored[LENGTH + 2];
static char coded[(LENGTH + 2) / 3 * 4 + 1];

void initialise(void) {
    seed(5);
    for (int at = 0; at < LENGTH; at++) bytes[at] = (uint8_t)(next_number() >> 3);
}

static size_t encode(const uint8_t *from, size_t length, char *to) {
    char *start = to;
    for (; length > 0; from += 3, length -= length < 3 ? length : 3) {
        uint32_t group = (uint32_t)from[0] << 16 | (length > 1 ? from[1] << 8 : 0) | (length > 2 ? from[2] : 0);
        for (unsigned at = 0; at < 4; at++) *to++ = at <= length ? letters[group >> (18 - 6 * at) & 63] : '=';
    }
    *to = 0;
    return (size_t)(to - start);
}

static size_t decode(const char *from, uint8_t *to) {
    size_t length = 0;
    for (; *from; from += 4) {
        uint32_t group = 0;
        for (int at = 0; at < 4; at++) {
            const char *letter = from[at] == '=' ? letters : strchr(letters, from[at]);
            group = group << 6 | (uint32_t)(letter - letters);
        }
        for (int at = 0; at < 3; at++) to[length++] = (uint8_t)(group >> (16 - 8 * at));
        if (from[2] == '=') length--;
        if (from[3] == '=') length--;
    }
    return length;
}

int work(int rounds) {
    size_t length = 0;
    for (; rounds > 0; rounds--) {
        encode(bytes, LENGTH, coded);
        length = decode(coded, restored);
    }
    return (int)length;
}

static void say(const char *format, ...) {
    char line[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    puts(line);
}

bool verify(int result) {
    for (const char *at = coded; *at; at += strnlen(at, 60)) say("%.60s", at);
#ifdef BROKEN
    restored[7] ^= 1;
#endif
    return result == LENGTH && memcmp(bytes, restored, LENGTH) == 0;
}
