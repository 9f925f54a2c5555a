/* Compares the C library that is linked into programs with the standard. Exits with 42, or with the number of the first
 * wrong answer. */
#include <assert.h>
#include <ctype.h>
#include <float.h>
#include <inttypes.h>
#include <iso646.h>
#include <limits.h>
#include <math.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <strings.h>

#define CHECK(number, holds) \
    if (!(holds)) return number

static_assert(INT_MAX == 2147483647 && CHAR_BIT == 8 && ULLONG_MAX == 18446744073709551615u, "limits of RISC-V");

static int check_text(void) {
    char to[32];
    memset(to, 'x', sizeof to);
    CHECK(1, strcpy(to, "abc") == to && memcmp(to, "abc\0x", 5) == 0);
    memset(to, 'x', sizeof to);
    CHECK(2, strncpy(to, "abc", 6) == to && memcmp(to, "abc\0\0\0x", 7) == 0);
    CHECK(3, strncpy(to, "uvwxyz", 3) == to && memcmp(to, "uvw\0", 4) == 0);
    CHECK(4, strcmp(strcat(to, "-abc"), "uvw-abc") == 0);
    CHECK(5, strcmp(strncat(to, "12345", 2), "uvw-abc12") == 0 && strcmp(strncat(to, "z", 9), "uvw-abc12z") == 0);
    const char *text = "one, two";
    CHECK(6, strchr(text, 'o') == text && strrchr(text, 'o') == text + 7 && strchr(text, 'q') == NULL);
    CHECK(7, strchr(text, 0) == text + 8 && strrchr(text, 0) == text + 8 && strrchr(text, 'q') == NULL);
    CHECK(8, strspn(text, "eno") == 3 && strcspn(text, " ,") == 3 && strspn(text, "") == 0 && strcspn(text, "") == 8);
    CHECK(9, strpbrk(text, "tw") == text + 5 && strpbrk(text, "xyz") == NULL);
    CHECK(10, strstr(text, "two") == text + 5 && strstr(text, "") == text && strstr(text, "twoo") == NULL);
    CHECK(11, strstr("aab", "ab")[0] == 'a' && strstr("", "a") == NULL);
    char list[] = "::a:bc::d:";
    CHECK(12, strcmp(strtok(list, ":"), "a") == 0 && strcmp(strtok(NULL, ":"), "bc") == 0);
    CHECK(13, strcmp(strtok(NULL, ":"), "d") == 0 && strtok(NULL, ":") == NULL && strtok(NULL, ":") == NULL);
    CHECK(14, strnlen("abc", 2) == 2 && strnlen("abc", 9) == 3 && strxfrm(to, "pq", 3) == 2 && strcmp(to, "pq") == 0);
    CHECK(15, strcasecmp("MiXed", "mIxED") == 0 && strcasecmp("a", "B") < 0 && strncasecmp("abX", "ABy", 2) == 0);
    CHECK(16, strcoll("a", "b") < 0 && memccpy(to, "k=v", '=', 3) == to + 2 && memccpy(to, "kv", '=', 2) == NULL);
    return 0;
}

static int check_numbers(void) {
    char *end;
    CHECK(20, atoi("  -42abc") == -42 && atol("+7") == 7 && atoll("-9223372036854775808") == LLONG_MIN);
    CHECK(21, strtol("0x1fg", &end, 0) == 31 && *end == 'g');
    CHECK(22, strtol("0x", &end, 16) == 0 && *end == 'x');
    CHECK(23, strtol("077", NULL, 0) == 63 && strtol("z", NULL, 36) == 35 && strtol("1012", &end, 2) == 5 && *end == '2');
    const char *nothing = "  +q";
    CHECK(24, strtol(nothing, &end, 10) == 0 && end == nothing);
#if __riscv_xlen == 64
    CHECK(25, strtol("9223372036854775807", NULL, 10) == LONG_MAX && strtol("9223372036854775808", &end, 10) == LONG_MAX && !*end);
    CHECK(26, strtol("-9223372036854775808", NULL, 10) == LONG_MIN && strtol("-9223372036854775809", NULL, 10) == LONG_MIN);
    CHECK(27, strtoul("18446744073709551615", NULL, 10) == ULONG_MAX && strtoul("18446744073709551616", NULL, 10) == ULONG_MAX);
#else
    CHECK(25, strtol("2147483647", NULL, 10) == LONG_MAX && strtol("2147483648", &end, 10) == LONG_MAX && !*end);
    CHECK(26, strtol("-2147483648", NULL, 10) == LONG_MIN && strtol("-2147483649", NULL, 10) == LONG_MIN);
    CHECK(27, strtoul("4294967295", NULL, 10) == ULONG_MAX && strtoul("4294967296", NULL, 10) == ULONG_MAX);
#endif
    CHECK(28, strtoul("-1", NULL, 10) == ULONG_MAX && strtoull("18446744073709551616", NULL, 10) == ULLONG_MAX);
    CHECK(29, strtoll("9223372036854775808", NULL, 10) == LLONG_MAX && strtoull("ffffffffffffffff", NULL, 16) == ULLONG_MAX);
    CHECK(30, abs(-3) == 3 && labs(4) == 4 && llabs(-5000000000) == 5000000000);
    div_t small = div(-7, 2);
    lldiv_t large = lldiv(-70000000000, 20000000000);
    CHECK(31, small.quot == -3 && small.rem == -1 && large.quot == -3 && large.rem == -10000000000);
    CHECK(32, ldiv(9, -4).quot == -2 && ldiv(9, -4).rem == 1);
    return 0;
}

static int by_value(const void *left, const void *right) {
    int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

static int check_order(void) {
    static int values[200];
    for (int count = 0; count <= 200; count += 1 + count / 8) {
        srand((unsigned)count);
        long long sum = 0;
        for (int i = 0; i < count; i++) sum += values[i] = rand() % 50;
        qsort(values, (size_t)count, sizeof *values, by_value);
        for (int i = 0; i < count; i++) sum -= values[i];
        CHECK(40, sum == 0);
        for (int i = 1; i < count; i++) CHECK(41, values[i - 1] <= values[i]);
        for (int key = -1; key <= 50; key++) {
            bool there = false;
            for (int i = 0; i < count; i++) there |= values[i] == key;
            int *found = bsearch(&key, values, (size_t)count, sizeof *values, by_value);
            CHECK(42, there ? found != NULL && *found == key : found == NULL);
        }
    }
    char three[][3] = {"cc", "aa", "bb"};
    qsort(three, 3, 3, (int (*)(const void *, const void *))strcmp);
    CHECK(43, memcmp(three, "aa\0bb\0cc", 9) == 0);
    srand(1);
    int first = rand(), second = rand();
    srand(1);
    CHECK(44, first >= 0 && first != second && rand() == first && rand() == second);
    return 0;
}

static int check_characters(void) {
    int digits = 0, letters = 0, spaces = 0, controls = 0, marks = 0, printed = 0;
    for (int c = -1; c < 256; c++) {
        digits += isdigit(c), letters += isalpha(c), spaces += isspace(c);
        controls += iscntrl(c), marks += ispunct(c), printed += isprint(c);
        CHECK(50, isalnum(c) == (isalpha(c) or isdigit(c)) && isgraph(c) == (isprint(c) && c != ' '));
        CHECK(51, toupper(tolower(c)) == toupper(c) && (isalpha(c) || tolower(c) == c) && (!isupper(c) || islower(tolower(c))));
    }
    CHECK(52, digits == 10 && letters == 52 && spaces == 6 && controls == 33 && marks == 32 && printed == 95);
    CHECK(53, isxdigit('f') && isxdigit('A') && !isxdigit('g') && isblank('\t') && !isblank('\n'));
    return 0;
}

static int check_exact(void) {
    volatile double half = 0.5, large = 2251799813685249.5, negative = -2.5;
    CHECK(60, fabs(negative) == 2.5 && fabsf(-1.5f) == 1.5f && copysign(3, negative) == -3 && copysignf(-2, 1) == 2);
    CHECK(61, floor(negative) == -3 && ceil(negative) == -2 && trunc(negative) == -2 && floor(half) == 0 && ceil(half) == 1);
    CHECK(62, floor(large) == 2251799813685249 && ceil(large) == 2251799813685250 && signbit(ceil(-half)) && floor(-half) == -1);
    CHECK(63, sqrt(2.25) == 1.5 && sqrtf(2.25f) == 1.5f && isnan(sqrt(negative)) && isinf(sqrt(INFINITY)) && sqrt(-0.0) == 0);
    CHECK(64, trunc(1e300) == 1e300 && isnan(floor(NAN)) && isinf(HUGE_VAL) && isfinite(half) && DBL_MANT_DIG == 53);
    return 0;
}

int main(void) {
    int (*const checks[])(void) = {check_text, check_numbers, check_order, check_characters, check_exact};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        int wrong = checks[i]();
        if (wrong) return wrong;
    }
    assert(checks[0] == check_text);
    puts("checked");
    putchar('!');
    exit(42);
}
