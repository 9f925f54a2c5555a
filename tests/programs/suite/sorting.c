/* Words of a text, sorted in two ways without a heap, counted and looked up. */
#include "board.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

typedef struct {
    const char *text;
    unsigned count;
} word;

const char *const name = "sorting";
static char text[] = "the card that the host asks is the card that the wire asks and the wire does not ask the host a thing";
static char copy[sizeof text];
static word words[MOST];
static const char *again[MOST];
static size_t found;

static int by_text(const void *a, const void *b) { return strcmp(((const word *)a)->text, ((const word *)b)->text); }

static int by_count(const void *a, const void *b) {
    const word *one = a, *other = b;
    if (one->count != other->count) return one->count < other->count ? 1 : -1;
    return by_text(a, b);
}

void initialise(void) { assert(sizeof copy == sizeof text); }

int work(int rounds) {
    for (; rounds > 0; rounds--) {
        found = 0;
        strcpy(copy, text);
        for (char *at = strtok(copy, " "); at; at = strtok(NULL, " ")) {
            size_t place = 0;
            while (place < found && strcmp(words[place].text, at)) place++;
            if (place == found) words[found++] = (word){at, 0};
            words[place].count++;
        }
        /* By insertion as well, for comparison. */
        for (size_t end = 0; end < found; end++) {
            size_t place = end;
            for (; place > 0 && strcmp(again[place - 1], words[end].text) > 0; place--) again[place] = again[place - 1];
            again[place] = words[end].text;
        }
        qsort(words, found, sizeof *words, by_text);
    }
    return (int)found;
}

bool verify(int result) {
    for (size_t at = 0; at < found; at++)
        if (words[at].text != again[at]) return false;
    word *wire = bsearch(&(word){"wire", 0}, words, found, sizeof *words, by_text);
    if (!wire || wire->count != 2 || bsearch(&(word){"wires", 0}, words, found, sizeof *words, by_text)) return false;
    qsort(words, found, sizeof *words, by_count);
    char line[256];
    int length = 0;
    for (size_t at = 0; at < found; at++) {
        length += snprintf(line + length, sizeof line - (size_t)length, "%s%s %u", at ? ", " : "", words[at].text,
                           words[at].count);
    }
    puts(line);
    return result == 13 && (size_t)length == strlen(line);
}
