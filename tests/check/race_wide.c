/* A word of flags and a byte of it: packets write the byte, the first one the word. The twin's byte is beside the word. */
#include <nicety.h>

typedef struct {
    union {
        uint32_t word;
        uint8_t bytes[4];
    } flags;
    uint8_t beside[64];
} marks_t;

__handler int payload_handler(const ptl_payload_t p, void *state) {
    marks_t *marks = state;
    if (p.offset == 0)
        marks->flags.word = p.length; // bug
#ifdef BUG
    else if (p.offset == 64)
        marks->flags.bytes[2] = 1; // bug
#else
    else if (p.offset == 64)
        marks->beside[2] = 1;
#endif
    return SUCCESS;
}
