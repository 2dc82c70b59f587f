/* A value of hundreds of MiB is read with the memory of a piece: large PATH, where PATH names a new store on disk. */

#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 << 10, PIECES = 4096, VALUE_BYTES = PIECE_BYTES * PIECES };

/* Each piece of the value is different. */
static void make_piece(char *piece, uint64_t number) {
    memset(piece, (int)(number % 251), PIECE_BYTES);
    memcpy(piece, &number, sizeof number);
}

static void write_value(const char *path) {
    forrest_db *db;
    char *const value = malloc(VALUE_BYTES);
    CHECK(value != NULL);
    for (uint64_t number = 0; number < PIECES; number++)
        make_piece(value + number * PIECE_BYTES, number);
    ANSWERS(FORREST_OK, forrest_open(path, &db));
    ANSWERS(FORREST_OK, forrest_set(db, T("photo"), value, VALUE_BYTES));
    ANSWERS(FORREST_OK, forrest_flush(db));
    ANSWERS(FORREST_OK, forrest_close(db));
    free(value);
}

/* The most memory that this process has had at once, in bytes; 0 if the system does not say. */
static uint64_t peak_bytes(void) {
    FILE *const status = fopen("/proc/self/status", "r");
    char line[200];
    unsigned long long kib = 0;
    while (status != NULL && kib == 0 && fgets(line, sizeof line, status) != NULL)
        sscanf(line, "VmHWM: %llu", &kib);
    if (status != NULL)
        fclose(status);
    return (uint64_t)kib << 10;
}

static void read_value(const char *path) {
    static char expected[PIECE_BYTES], piece[PIECE_BYTES];
    forrest_db *db;
    forrest_value_reader *reader;
    uint64_t bytes, number = 0;
    size_t read;
    ANSWERS(FORREST_OK, forrest_open(path, &db));
    const uint64_t before = peak_bytes();
    ANSWERS(FORREST_OK, forrest_value_reader_open(db, T("photo"), &reader, &bytes));
    CHECK(bytes == VALUE_BYTES);
    ANSWERS(FORREST_OK, forrest_close(db));
    /* The reader keeps the store open. */
    ANSWERS(FORREST_BUSY, forrest_open(path, &db));
    for (;; number++) {
        ANSWERS(FORREST_OK, forrest_value_reader_read(reader, piece, sizeof piece, &read));
        if (read == 0)
            break;
        make_piece(expected, number);
        CHECK(read == PIECE_BYTES && memcmp(piece, expected, PIECE_BYTES) == 0);
    }
    CHECK(number == PIECES);
    CHECK(peak_bytes() - before < VALUE_BYTES / 8);
    ANSWERS(FORREST_OK, forrest_value_reader_close(reader));
    ANSWERS(FORREST_OK, forrest_open(path, &db));
    ANSWERS(FORREST_OK, forrest_close(db));
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("large PATH\n", stderr);
        return 2;
    }
    /* The writer needs memory for the value, so it is another process. */
    const pid_t writer = fork();
    CHECK(writer >= 0);
    if (writer == 0) {
        write_value(argv[1]);
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(writer, &status, 0) == writer && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    read_value(argv[1]);
    puts("all is as it should be");
    return checks > 0 ? 0 : 1;
}
