/* A variable-length code: made from counts with a heap in an array, used, and reversed. */
#include "board.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYMBOLS 32
#define LENGTH 600

typedef struct {
    unsigned count;
    int left, right; /* below zero: a symbol, from -1 on */
} node;

const char *const name = "huffman";
static uint8_t message[LENGTH], restored[LENGTH], coded[LENGTH];
static node nodes[SYMBOLS - 1];
static struct {
    unsigned count;
    int node;
} heap[SYMBOLS];
static int held;
static uint32_t codes[SYMBOLS];
static unsigned lengths[SYMBOLS], bits;

static void push(unsigned count, int which) {
    int at = held++;
    assert(held <= SYMBOLS);
    for (; at > 0 && heap[(at - 1) / 2].count > count; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at].count = count;
    heap[at].node = which;
}

static int pop(unsigned *count) {
    int top = heap[0].node, at = 0;
    *count += heap[0].count;
    held--;
    for (int child = 1; child < held; child = 2 * at + 1) {
        if (child + 1 < held && heap[child + 1].count < heap[child].count) child++;
        if (heap[child].count >= heap[held].count) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = heap[held];
    return top;
}

static void assign(int which, uint32_t code, unsigned length) {
    if (which < 0) {
        codes[-1 - which] = code;
        lengths[-1 - which] = length;
    } else {
        assign(nodes[which].left, code << 1, length + 1);
        assign(nodes[which].right, code << 1 | 1, length + 1);
    }
}

void initialise(void) {
    seed(11);
    for (int at = 0; at < LENGTH; at++) {
        /* Small numbers are more frequent. */
        int most = next_number() % SYMBOLS;
        message[at] = (uint8_t)(next_number() % (most + 1));
    }
}

int work(int rounds) {
    int root = 0;
    for (; rounds > 0; rounds--) {
        unsigned counts[SYMBOLS] = {0};
        for (int at = 0; at < LENGTH; at++) counts[message[at]]++;
        held = 0;
        for (int symbol = 0; symbol < SYMBOLS; symbol++) push(counts[symbol], -1 - symbol);
        for (root = 0; root < SYMBOLS - 1; root++) {
            node *made = &nodes[root];
            made->count = 0;
            made->left = pop(&made->count);
            made->right = pop(&made->count);
            push(made->count, root);
        }
        assign(--root, 0, 0);

        memset(coded, 0, sizeof coded);
        bits = 0;
        for (int at = 0; at < LENGTH; at++) {
            for (unsigned bit = lengths[message[at]]; bit-- > 0; bits++) {
                if (codes[message[at]] >> bit & 1) coded[bits / 8] |= (uint8_t)(0x80 >> bits % 8);
            }
        }
        unsigned from = 0;
        for (int at = 0; at < LENGTH; at++) {
            int which = root;
            for (; which >= 0; from++) {
                which = coded[from / 8] & 0x80 >> from % 8 ? nodes[which].right : nodes[which].left;
            }
            restored[at] = (uint8_t)(-1 - which);
        }
        if (from != bits) return -1;
    }
    return root;
}

bool verify(int result) {
    printf("%u bits of %d\n", bits, LENGTH * 5);
    return result == SYMBOLS - 2 && nodes[result].count == LENGTH && memcmp(message, restored, LENGTH) == 0;
}
