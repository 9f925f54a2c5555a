/* Products of matrices of integers. */
#include "board.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SIZE 16

typedef long matrix[SIZE][SIZE];

const char *const name = "matmult";
static matrix left, right, product;

static void fill(matrix to) {
    for (int row = 0; row < SIZE; row++)
        for (int column = 0; column < SIZE; column++) to[row][column] = next_number() % 8095;
}

static void multiply(matrix a, matrix b, matrix to) {
    for (int row = 0; row < SIZE; row++) {
        for (int column = 0; column < SIZE; column++) {
            long sum = 0;
            for (int at = 0; at < SIZE; at++) sum += a[row][at] * b[at][column];
            to[row][column] = sum;
        }
    }
}

void initialise(void) {
    seed(7);
    fill(left);
    fill(right);
}

int work(int rounds) {
    for (; rounds > 0; rounds--) multiply(left, right, product);
    return product[SIZE - 1][SIZE - 1] < LONG_MAX;
}

bool verify(int result) {
    /* Rows of a product times ones are the left matrix's rows times the right one's. */
    for (int row = 0; row < SIZE; row++) {
        long long sum = 0, wanted = 0;
        for (int at = 0; at < SIZE; at++) {
            long long ones = 0;
            for (int column = 0; column < SIZE; column++) ones += right[at][column];
            wanted += left[row][at] * ones;
            sum += product[row][at];
        }
        if (sum != wanted) return false;
    }
    matrix copy;
    memcpy(copy, product, sizeof copy);
    printf("%ld %ld %lld\n", copy[0][0], copy[SIZE - 1][3], (long long)copy[5][5] * copy[6][6]);
    return result == 1;
}
