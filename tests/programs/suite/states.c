/* A state machine that distinguishes words, integers and fractions, a character at a time. */
#include "board.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { BETWEEN, SIGN, WHOLE, POINT, BROKEN, EXPONENT, POWER, WORD, WRONG, STATES } state;

const char *const name = "states";
static const char input[] = "12 -7 +3.5 6.02e23 word w0rd 1e 0x10 .5 1. -- 99999999999 -2147483648 e5 4e-2 1.2.3";
static int ends[STATES];
static long total;
static int unfit;

static state next(state from, char c) {
    if (isspace((unsigned char)c)) return BETWEEN;
    switch (from) {
    case BETWEEN:
        if (c == '+' || c == '-') return SIGN;
        if (isalpha((unsigned char)c)) return WORD;
        /* fall through */
    case SIGN:
        return isdigit((unsigned char)c) ? WHOLE : c == '.' ? POINT : WRONG;
    case WHOLE:
        if (c == '.') return BROKEN;
        /* fall through */
    case BROKEN:
        return isdigit((unsigned char)c) ? from : tolower((unsigned char)c) == 'e' ? EXPONENT : WRONG;
    case POINT:
        return isdigit((unsigned char)c) ? BROKEN : WRONG;
    case EXPONENT:
        if (c == '+' || c == '-') return POWER;
        /* fall through */
    case POWER:
        return isdigit((unsigned char)c) ? POWER : WRONG;
    case WORD:
        return isalpha((unsigned char)c) ? WORD : WRONG;
    default:
        return WRONG;
    }
}

void initialise(void) { memset(ends, 0, sizeof ends); }

int work(int rounds) {
    int words = 0;
    for (; rounds > 0; rounds--) {
        state at = BETWEEN;
        const char *first = input;
        for (const char *c = input;; c++) {
            state then = *c ? next(at, *c) : BETWEEN;
            if (then == BETWEEN && at != BETWEEN) {
                ends[at]++;
                words++;
                if (at == WHOLE) {
                    errno = 0;
                    long value = strtol(first, NULL, 10);
                    if (errno == ERANGE) unfit++;
                    else total += value;
                }
            } else if (then != BETWEEN && at == BETWEEN) {
                first = c;
            }
            at = then;
            if (!*c) break;
        }
    }
    return words;
}

bool verify(int result) {
    printf("%d words: %d whole, %d broken, %d scaled, %d words, %d wrong; %ld, %d too large\n", result, ends[WHOLE],
           ends[BROKEN], ends[POWER], ends[WORD], result - ends[WHOLE] - ends[BROKEN] - ends[POWER] - ends[WORD], total,
           unfit);
    return result == 16 && unfit == 1 && total == 12 - 7 - 2147483647 - 1;
}
