/* Moves money between accounts, and never more than there is: transaction URL. The reads and writes of a transfer happen at one
 * instant; after a conflict the transfer runs again. */

#include <forrest.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The balance of an account; -1 if it does not exist, or a call failed. */
static int64_t balance(forrest_transaction *accounts, const char *name) {
    forrest_value *value;
    if (forrest_transaction_get(accounts, name, strlen(name), &value) != FORREST_OK)
        return -1;
    const void *data;
    size_t bytes;
    int64_t found = -1;
    if (forrest_value_data(value, &data, &bytes) == FORREST_OK && bytes == 8) {
        found = 0;
        for (size_t at = 0; at < bytes; at++) /* a counter is big endian */
            found = found * 256 + ((const unsigned char *)data)[at];
    }
    forrest_value_release(value);
    return found;
}

/* Returns FORREST_NOT_FOUND if the balance is too low. */
static int32_t pay(forrest_db *db, const char *from, const char *to, int64_t amount) {
    forrest_transaction *accounts;
    int32_t code = forrest_transaction_begin(db, &accounts);
    if (code != FORREST_OK)
        return code;
    do {
        if (balance(accounts, from) < amount) {
            /* The balance is certain only if this check succeeds. */
            code = forrest_transaction_check(accounts);
            if (code == FORREST_OK)
                code = FORREST_NOT_FOUND;
        } else if ((code = forrest_transaction_add(accounts, from, strlen(from), -amount)) == FORREST_OK &&
                   (code = forrest_transaction_add(accounts, to, strlen(to), amount)) == FORREST_OK) {
            code = forrest_transaction_commit(accounts);
        }
    } while (code == FORREST_CONFLICT); /* a new transaction has begun */
    forrest_transaction_destroy(accounts);
    return code;
}

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, forrest_error_message());
    return 1;
}

int main(int argc, char **argv) {
    forrest_db *db;
    int64_t ada, emmy;
    if (forrest_open(argc > 1 ? argv[1] : "memory:", &db) != FORREST_OK)
        return failed("cannot open");
    if (forrest_add(db, "ada", 3, 15, NULL) < 0 || pay(db, "ada", "emmy", 10) < 0)
        return failed("cannot pay");
    if (forrest_add(db, "ada", 3, 0, &ada) < 0 || forrest_add(db, "emmy", 4, 0, &emmy) < 0)
        return failed("cannot read");
    printf("ada has %" PRId64 ", and emmy has %" PRId64 "\n", ada, emmy);
    if (pay(db, "ada", "emmy", 10) == FORREST_NOT_FOUND)
        puts("ada has too little");
    return forrest_close(db) == FORREST_OK ? 0 : failed("cannot close");
}
