/* Redirects the output of a rank's processes into pipes of the simulator. A launcher that ends the processes does not
 * read all of their output. */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Redirects a standard stream to this path if the launcher reads the stream. Another stream, such as a terminal, stays
 * unchanged. */
static void divert(int stream, const char *path) {
    struct stat status;
    if (fstat(stream, &status) || !(S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
        return;
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return;
    dup2(file, stream);
    close(file);
}

/* NICETY_WORDS has two paths, separated by a colon. The first process of a rank redirects its streams to these paths,
 * and its children inherit the streams. The first process may be a shell that redirects a program. */
__attribute__((constructor)) static void begin(void) {
    const char *paths = getenv("NICETY_WORDS"), *second = paths ? strchr(paths, ':') : NULL;
    char first[64];
    if (!second || (size_t)(second - paths) >= sizeof first)
        return;
    memcpy(first, paths, (size_t)(second - paths));
    first[second - paths] = 0;
    divert(STDOUT_FILENO, first);
    divert(STDERR_FILENO, second + 1);
    unsetenv("NICETY_WORDS");
}
