/* A checksum by a table of bytes. */
#include "board.h"
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

const char *const name = "crc32";
static uint32_t table[256];
static uint8_t text[1024];

void initialise(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t value = byte;
        for (int bit = 0; bit < 8; bit++) value = value & 1 ? value >> 1 ^ UINT32_C(0xedb88320) : value >> 1;
        table[byte] = value;
    }
    seed(3);
    for (size_t at = 0; at < sizeof text; at++) text[at] = (uint8_t)next_number();
}

static uint32_t sum(const uint8_t *from, size_t length) {
    uint32_t value = UINT32_MAX;
    while (length--) value = value >> 8 ^ table[(value ^ *from++) & 0xff];
    return ~value;
}

int work(int rounds) {
    uint32_t value = 0;
    for (; rounds > 0; rounds--) value = sum(text, sizeof text);
    return (int)value;
}

bool verify(int result) {
    printf("%08" PRIX32 "\n", (uint32_t)result);
    return sum((const uint8_t *)"123456789", 9) == UINT32_C(0xcbf43926) && result == (int)sum(text, sizeof text);
}
