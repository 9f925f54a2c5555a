/* text.c: the strings of the C standard. Linked into programs that call one of these functions. */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* A program may define its own functions instead. */
#pragma weak strcpy
#pragma weak strncpy
#pragma weak strcat
#pragma weak strncat
#pragma weak strcoll
#pragma weak strxfrm
#pragma weak strchr
#pragma weak strrchr
#pragma weak strspn
#pragma weak strcspn
#pragma weak strpbrk
#pragma weak strstr
#pragma weak strtok
#pragma weak strtok_r
#pragma weak strerror
#pragma weak strnlen
#pragma weak memccpy
#pragma weak strcasecmp
#pragma weak strncasecmp

char *strcpy(char *restrict to, const char *restrict from) { return memcpy(to, from, strlen(from) + 1); }

char *strncpy(char *restrict to, const char *restrict from, size_t length) {
    size_t copied = strnlen(from, length);
    memcpy(to, from, copied);
    memset(to + copied, 0, length - copied);
    return to;
}

char *strcat(char *restrict to, const char *restrict from) {
    strcpy(to + strlen(to), from);
    return to;
}

char *strncat(char *restrict to, const char *restrict from, size_t length) {
    char *end = to + strlen(to);
    size_t copied = strnlen(from, length);
    memcpy(end, from, copied);
    end[copied] = 0;
    return to;
}

/* In the C locale, characters are ordered by their bytes. */
int strcoll(const char *left, const char *right) { return strcmp(left, right); }

size_t strxfrm(char *restrict to, const char *restrict from, size_t length) {
    size_t needed = strlen(from);
    if (length > needed) strcpy(to, from);
    return needed;
}

char *strchr(const char *text, int character) {
    for (;; text++) {
        if (*text == (char)character) return (char *)text;
        if (!*text) return 0;
    }
}

char *strrchr(const char *text, int character) {
    const char *found = 0;
    for (;; text++) {
        if (*text == (char)character) found = text;
        if (!*text) return (char *)found;
    }
}

size_t strspn(const char *text, const char *accept) {
    size_t length = 0;
    while (text[length] && strchr(accept, text[length])) length++;
    return length;
}

size_t strcspn(const char *text, const char *reject) {
    size_t length = 0;
    while (text[length] && !strchr(reject, text[length])) length++;
    return length;
}

char *strpbrk(const char *text, const char *accept) {
    text += strcspn(text, accept);
    return *text ? (char *)text : 0;
}

char *strstr(const char *text, const char *part) {
    size_t length = strlen(part);
    for (;; text++) {
        if (strncmp(text, part, length) == 0) return (char *)text;
        if (!*text) return 0;
    }
}

char *strtok_r(char *restrict text, const char *restrict separators, char **restrict left) {
    char *token = text ? text : *left;
    token += strspn(token, separators);
    char *end = token + strcspn(token, separators);
    *left = end;
    if (end == token) return 0;
    if (*end) {
        *end = 0;
        *left = end + 1;
    }
    return token;
}

char *strtok(char *restrict text, const char *restrict separators) {
    static char *left = "";
    return strtok_r(text, separators, &left);
}

char *strerror(int number) {
    switch (number) {
    case 0: return "no error";
    case EINVAL: return "invalid argument";
    case EDOM: return "argument without a result";
    case ERANGE: return "result out of range";
    default: return "error";
    }
}

size_t strnlen(const char *text, size_t most) {
    const char *end = memchr(text, 0, most);
    return end ? (size_t)(end - text) : most;
}

void *memccpy(void *restrict to, const void *restrict from, int byte, size_t length) {
    const char *end = memchr(from, byte, length);
    if (!end) {
        memcpy(to, from, length);
        return 0;
    }
    size_t copied = (size_t)(end - (const char *)from) + 1;
    memcpy(to, from, copied);
    return (char *)to + copied;
}

int strcasecmp(const char *left, const char *right) { return strncasecmp(left, right, SIZE_MAX); }

int strncasecmp(const char *left, const char *right, size_t length) {
    for (; length > 0; length--, left++, right++) {
        int difference = tolower((unsigned char)*left) - tolower((unsigned char)*right);
        if (difference || !*left) return difference;
    }
    return 0;
}
