/* Calls the functions of transactions, correctly and incorrectly: transaction URL, where URL names a new store of any home. */

#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>

/* Compares a value with a text, and releases it. */
static bool held_is(forrest_value *value, const char *expected, size_t expected_bytes) {
    const void *data;
    size_t bytes;
    return forrest_value_data(value, &data, &bytes) == FORREST_OK && bytes == expected_bytes &&
           memcmp(data, expected, bytes) == 0 && forrest_value_release(value) == FORREST_OK;
}

/* Whether the next key of the range is this one, or there is none. */
static bool next_is(forrest_transaction *it, bool forward, const char *expected) {
    forrest_value *key, *value;
    const int32_t code = forward ? forrest_transaction_next(it, &key, &value) : forrest_transaction_prev(it, &key, &value);
    if (expected == NULL)
        return code == FORREST_NOT_FOUND && key == NULL && value == NULL;
    return code == FORREST_OK && held_is(key, expected, strlen(expected)) && forrest_value_release(value) == FORREST_OK;
}

static void ranges_locks_and_savepoints(forrest_db *db) {
    forrest_transaction *it, *other;
    forrest_value *value;
    uint64_t savepoint, later;
    ANSWERS(FORREST_OK, forrest_transaction_begin(db, &it));
    ANSWERS(FORREST_OK, forrest_transaction_begin(db, &other));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_next(it, NULL, NULL));
    CHECK(strstr(forrest_error_message(), "forrest_transaction_range"));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_range(it, NULL, 3, NULL, 0));
    for (int i = 1; i <= 4; i++) {
        const char key[] = {'j', 'o', 'b', (char)('0' + i)};
        ANSWERS(FORREST_OK, forrest_set(db, key, 4, T("work")));
    }

    /* A range, from both ends, with own changes. */
    ANSWERS(FORREST_OK, forrest_transaction_set(it, T("job25"), T("mine")));
    ANSWERS(FORREST_OK, forrest_transaction_delete(it, T("job3")));
    ANSWERS(FORREST_OK, forrest_transaction_range(it, T("job"), T("joc")));
    CHECK(next_is(it, true, "job1") && next_is(it, false, "job4") && next_is(it, false, "job25"));
    CHECK(next_is(it, true, "job2") && next_is(it, true, NULL) && next_is(it, false, NULL));
    ANSWERS(FORREST_OK, forrest_transaction_commit(it));
    CHECK(has(db, T("job25"), T("mine")) && has_not(db, T("job3")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_next(it, NULL, NULL)); /* the range ended, too */

    /* Taking the first is no conflict with another one at the end, but with one before. */
    for (int before = 0; before < 2; before++) {
        ANSWERS(FORREST_OK, forrest_transaction_range(it, T("job"), NULL, 0));
        CHECK(next_is(it, true, before ? "job2" : "job1"));
        ANSWERS(FORREST_OK, forrest_transaction_delete(it, before ? "job2" : "job1", 4));
        ANSWERS(FORREST_OK, forrest_set(db, before ? "job0" : "job9", 4, T("")));
        ANSWERS(before ? FORREST_CONFLICT : FORREST_OK, forrest_transaction_commit(it));
    }

    /* A range delete is not a read. */
    ANSWERS(FORREST_OK, forrest_transaction_delete_range(it, T("job"), T("joc")));
    ANSWERS(FORREST_OK, forrest_set(db, T("job5"), T("new")));
    ANSWERS(FORREST_OK, forrest_transaction_commit(it));
    CHECK(has_not(db, T("job0")) && has_not(db, T("job5")));

    /* Savepoints. */
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_savepoint(it, NULL));
    ANSWERS(FORREST_OK, forrest_transaction_set(it, T("job1"), T("kept")));
    ANSWERS(FORREST_OK, forrest_transaction_savepoint(it, &savepoint));
    ANSWERS(FORREST_OK, forrest_transaction_delete_range(it, NULL, 0, NULL, 0));
    ANSWERS(FORREST_OK, forrest_transaction_savepoint(it, &later));
    ANSWERS(FORREST_OK, forrest_transaction_set(it, T("job2"), T("undone")));
    ANSWERS(FORREST_OK, forrest_transaction_rollback_to(it, savepoint));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_rollback_to(it, later));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_rollback_to(other, savepoint));
    ANSWERS(FORREST_OK, forrest_transaction_rollback_to(it, savepoint));
    ANSWERS(FORREST_OK, forrest_transaction_commit(it));
    CHECK(has(db, T("job1"), T("kept")) && has_not(db, T("job2")));

    /* Locks. */
    ANSWERS(FORREST_OK, forrest_transaction_get_for_update(it, T("job1"), &value));
    CHECK(held_is(value, T("kept")));
    value = JUNK;
    ANSWERS(FORREST_NOT_FOUND, forrest_transaction_get_for_update(it, T("job2"), &value));
    CHECK(value == NULL);
    ANSWERS(FORREST_OK, forrest_transaction_set_lock_wait(other, 1));
    ANSWERS(FORREST_BUSY, forrest_transaction_lock(other, T("job1")));
    CHECK(strstr(forrest_error_message(), "has held a lock"));
    ANSWERS(FORREST_OK, forrest_transaction_rollback(it));
    ANSWERS(FORREST_OK, forrest_transaction_lock(other, T("job1")));
    ANSWERS(FORREST_OK, forrest_transaction_delete(other, T("job1")));
    ANSWERS(FORREST_OK, forrest_transaction_commit(other));
    CHECK(has_not(db, T("job1")));
    ANSWERS(FORREST_OK, forrest_transaction_destroy(it));
    ANSWERS(FORREST_OK, forrest_transaction_destroy(other));
}

static void reading_and_changing(forrest_db *db) {
    forrest_transaction *it;
    forrest_value *value;
    ANSWERS(FORREST_OK, forrest_transaction_begin(db, &it));
    ANSWERS(FORREST_OK, forrest_transaction_commit(it)); /* an empty transaction */
    ANSWERS(FORREST_OK, forrest_set(db, T("oak"), T("Quercus")));
    ANSWERS(FORREST_OK, forrest_transaction_get(it, T("oak"), &value));
    CHECK(held_is(value, T("Quercus")));
    value = JUNK;
    ANSWERS(FORREST_NOT_FOUND, forrest_transaction_get(it, T("ash"), &value));
    CHECK(value == NULL);
    ANSWERS(FORREST_NOT_FOUND, forrest_transaction_contains(it, T("ash")));
    char key[] = "ash";
    ANSWERS(FORREST_OK, forrest_transaction_set(it, key, 3, T("Fraxinus")));
    key[0] = 'x'; /* it was copied */
    ANSWERS(FORREST_OK, forrest_transaction_delete(it, T("oak")));
    ANSWERS(FORREST_OK, forrest_transaction_set(it, NULL, 0, NULL, 0));
    ANSWERS(FORREST_OK, forrest_transaction_add(it, T("n"), 7));
    ANSWERS(FORREST_OK, forrest_transaction_add(it, T("n"), -6));
    /* The transaction sees its changes; other readers do not. */
    ANSWERS(FORREST_OK, forrest_transaction_contains(it, T("ash")));
    ANSWERS(FORREST_NOT_FOUND, forrest_transaction_contains(it, T("oak")));
    ANSWERS(FORREST_OK, forrest_transaction_get(it, T("n"), &value));
    CHECK(held_is(value, T("\0\0\0\0\0\0\0\1")));
    CHECK(has(db, T("oak"), T("Quercus")) && has_not(db, T("ash")) && has_not(db, T("n")) && has_not(db, NULL, 0));
    ANSWERS(FORREST_OK, forrest_transaction_commit(it));
    CHECK(has_not(db, T("oak")) && has(db, T("ash"), T("Fraxinus")) && has(db, NULL, 0, T("")) && has_not(db, T("xsh")));
    CHECK(has(db, T("n"), T("\0\0\0\0\0\0\0\1")));

    /* A new transaction has begun: earlier reads no longer count. */
    ANSWERS(FORREST_OK, forrest_set(db, T("oak"), T("again")));
    ANSWERS(FORREST_OK, forrest_transaction_set(it, T("elm"), T("Ulmus")));
    ANSWERS(FORREST_OK, forrest_transaction_commit(it));
    CHECK(has(db, T("elm"), T("Ulmus")));

    /* A rollback discards the changes. */
    ANSWERS(FORREST_OK, forrest_transaction_delete(it, T("elm")));
    ANSWERS(FORREST_OK, forrest_transaction_rollback(it));
    ANSWERS(FORREST_OK, forrest_transaction_contains(it, T("elm")));
    ANSWERS(FORREST_OK, forrest_transaction_commit(it));
    ANSWERS(FORREST_OK, forrest_transaction_delete(it, T("elm")));
    ANSWERS(FORREST_OK, forrest_transaction_destroy(it));
    CHECK(has(db, T("elm"), T("Ulmus")));
    ANSWERS(FORREST_OK, forrest_transaction_destroy(NULL));
}

static void conflicts(forrest_db *db) {
    forrest_transaction *it;
    forrest_value *value, *keyspace, *key;
    ANSWERS(FORREST_OK, forrest_transaction_begin(db, &it));
    for (int way = 0; way < 3; way++) {
        ANSWERS(FORREST_OK, forrest_set(db, T("seats"), T("2")));
        ANSWERS(FORREST_OK, forrest_transaction_get(it, T("seats"), &value));
        CHECK(held_is(value, T("2")));
        ANSWERS(FORREST_OK, forrest_transaction_set(it, T("mine"), T("1")));
        ANSWERS(FORREST_OK, forrest_set(db, T("seats"), T("1")));
        if (way == 0)
            ANSWERS(FORREST_CONFLICT, forrest_transaction_commit(it));
        if (way == 1)
            ANSWERS(FORREST_CONFLICT, forrest_transaction_commit_with(it, FORREST_DURABILITY_MEMORY, NULL, NULL));
        if (way == 2) {
            ANSWERS(FORREST_CONFLICT, forrest_transaction_commit_with(it, FORREST_DURABILITY_DEFAULT, &keyspace, &key));
            CHECK(held_is(keyspace, T("default")) && held_is(key, T("seats")));
        }
        CHECK(has_not(db, T("mine")));
    }
    /* Run again, it has no conflict. */
    ANSWERS(FORREST_OK, forrest_transaction_contains(it, T("seats")));
    ANSWERS(FORREST_OK, forrest_transaction_set(it, T("mine"), T("1")));
    keyspace = key = JUNK;
    ANSWERS(FORREST_OK, forrest_transaction_commit_with(it, FORREST_DURABILITY_DEFAULT, &keyspace, &key));
    CHECK(keyspace == NULL && key == NULL && has(db, T("mine"), T("1")));
    /* A check changes nothing. */
    ANSWERS(FORREST_OK, forrest_transaction_contains(it, T("seats")));
    ANSWERS(FORREST_OK, forrest_transaction_delete(it, T("mine")));
    ANSWERS(FORREST_OK, forrest_transaction_check(it));
    ANSWERS(FORREST_OK, forrest_transaction_contains(it, T("seats")));
    ANSWERS(FORREST_OK, forrest_delete(db, T("seats")));
    ANSWERS(FORREST_CONFLICT, forrest_transaction_check(it));
    CHECK(has(db, T("mine"), T("1")));
    /* Additions are not in conflict with each other. */
    ANSWERS(FORREST_OK, forrest_transaction_add(it, T("sum"), 2));
    ANSWERS(FORREST_OK, forrest_add(db, T("sum"), 3, NULL));
    ANSWERS(FORREST_OK, forrest_transaction_commit(it));
    CHECK(has(db, T("sum"), T("\0\0\0\0\0\0\0\5")));
    ANSWERS(FORREST_OK, forrest_transaction_destroy(it));
}

static void failures(forrest_db *db) {
    forrest_transaction *it = JUNK;
    forrest_value *value = JUNK;
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_begin(NULL, &it));
    CHECK(it == NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_begin(db, NULL));
    ANSWERS(FORREST_OK, forrest_transaction_begin(db, &it));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_on(it, NULL));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_get(it, NULL, 1, &value));
    CHECK(value == NULL);
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_get(it, T("k"), NULL));
    ANSWERS(FORREST_LIMIT, forrest_transaction_get(it, "k", 65536, &value));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_contains(it, NULL, 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_set(it, NULL, 1, T("v")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_set(it, T("k"), NULL, 1));
    ANSWERS(FORREST_LIMIT, forrest_transaction_set(it, T("k"), "v", SIZE_MAX));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_delete(it, NULL, 1));
    ANSWERS(FORREST_LIMIT, forrest_transaction_delete(it, "k", SIZE_MAX));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_add(it, NULL, 1, 1));
    ANSWERS(FORREST_OK, forrest_transaction_commit(it)); /* an empty transaction: changes that were refused are not in it */
    /* A value that is not a counter, if the transaction has read it, and if not. */
    ANSWERS(FORREST_OK, forrest_set(db, T("name"), T("Ada")));
    ANSWERS(FORREST_OK, forrest_transaction_add(it, T("name"), 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_get(it, T("name"), &value));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_commit(it));
    CHECK(strstr(forrest_error_message(), "key \"name\" of keyspace \"default\"") != NULL);
    ANSWERS(FORREST_OK, forrest_transaction_contains(it, T("name")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_add(it, T("name"), 1));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_commit_with(it, 4, NULL, NULL));
    uint64_t can;
    ANSWERS(FORREST_OK, forrest_capabilities(db, &can));
    ANSWERS(FORREST_OK, forrest_transaction_set(it, T("s"), T("survives")));
    ANSWERS(can & FORREST_CAN_SYNC ? FORREST_OK : FORREST_UNSUPPORTED,
            forrest_transaction_commit_with(it, FORREST_DURABILITY_SYNC, NULL, NULL));
    ANSWERS(FORREST_OK, forrest_transaction_destroy(it));
}

static void keyspaces(forrest_db *db) {
    uint64_t can;
    forrest_transaction *it;
    ANSWERS(FORREST_OK, forrest_capabilities(db, &can));
    if (can & FORREST_CAN_SNAPSHOT) {
        forrest_db *snapshot;
        ANSWERS(FORREST_OK, forrest_snapshot(db, &snapshot));
        ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_begin(snapshot, &it));
        ANSWERS(FORREST_OK, forrest_transaction_begin(db, &it));
        ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_on(it, snapshot));
        ANSWERS(FORREST_OK, forrest_transaction_destroy(it));
        ANSWERS(FORREST_OK, forrest_close(snapshot));
    }
    if (!(can & FORREST_CAN_KEYSPACES))
        return;
    forrest_db *people, *other;
    forrest_value *keyspace, *key;
    ANSWERS(FORREST_OK, forrest_keyspace(db, "people", &people));
    ANSWERS(FORREST_OK, forrest_transaction_begin(people, &it));
    ANSWERS(FORREST_OK, forrest_transaction_set(it, T("ada"), T("1815")));
    ANSWERS(FORREST_OK, forrest_transaction_on(it, db));
    ANSWERS(FORREST_NOT_FOUND, forrest_transaction_contains(it, T("ada")));
    ANSWERS(FORREST_OK, forrest_transaction_add(it, T("people"), 1));
    ANSWERS(FORREST_OK, forrest_transaction_commit(it));
    CHECK(has(people, T("ada"), T("1815")) && has(db, T("people"), T("\0\0\0\0\0\0\0\1")));
    ANSWERS(FORREST_OK, forrest_transaction_on(it, people));
    ANSWERS(FORREST_OK, forrest_transaction_contains(it, T("ada")));
    ANSWERS(FORREST_OK, forrest_delete(people, T("ada")));
    ANSWERS(FORREST_CONFLICT, forrest_transaction_commit_with(it, FORREST_DURABILITY_DEFAULT, &keyspace, &key));
    CHECK(held_is(keyspace, T("people")) && held_is(key, T("ada")));
    ANSWERS(FORREST_OK, forrest_open("memory:", &other));
    ANSWERS(FORREST_OK, forrest_transaction_on(it, other));
    ANSWERS(FORREST_OK, forrest_transaction_set(it, T("a"), T("b")));
    ANSWERS(FORREST_INVALID_ARGUMENT, forrest_transaction_commit(it)); /* the keyspace belongs to another store */
    CHECK(has_not(other, T("a")));
    ANSWERS(FORREST_OK, forrest_transaction_destroy(it));
    ANSWERS(FORREST_OK, forrest_close(other));
    ANSWERS(FORREST_OK, forrest_close(people));
}

#define THREADS 4
#define MOVES 100

/* Moves one from the left to the right, or back, by reads and sets, so that the test detects a lost update. */
static void *move_money(void *argument) {
    forrest_db *db = argument;
    forrest_transaction *it;
    ANSWERS(FORREST_OK, forrest_transaction_begin(db, &it));
    for (int moves = 0; moves < MOVES;) {
        static const char *const SIDES[] = {"left", "right"};
        for (int side = 0; side < 2; side++) {
            forrest_value *value;
            const void *data;
            size_t bytes;
            char money[20];
            ANSWERS(FORREST_OK, forrest_transaction_get(it, SIDES[side], strlen(SIDES[side]), &value));
            ANSWERS(FORREST_OK, forrest_value_data(value, &data, &bytes));
            memcpy(money, data, bytes);
            money[bytes] = 0;
            ANSWERS(FORREST_OK, forrest_value_release(value));
            bytes = (size_t)snprintf(money, sizeof money, "%ld", strtol(money, NULL, 10) + (side == 0 ? -1 : 1));
            ANSWERS(FORREST_OK, forrest_transaction_set(it, SIDES[side], strlen(SIDES[side]), money, bytes));
        }
        const int32_t code = forrest_transaction_commit(it);
        CHECK(code == FORREST_OK || code == FORREST_CONFLICT);
        moves += code == FORREST_OK;
    }
    ANSWERS(FORREST_OK, forrest_transaction_destroy(it));
    return NULL;
}

static void threads(forrest_db *db) {
    pthread_t threads[THREADS];
    ANSWERS(FORREST_OK, forrest_set(db, T("left"), T("400")));
    ANSWERS(FORREST_OK, forrest_set(db, T("right"), T("0")));
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_create(&threads[at], NULL, move_money, db) == 0);
    for (int at = 0; at < THREADS; at++)
        CHECK(pthread_join(threads[at], NULL) == 0);
    CHECK(has(db, T("left"), T("0")) && has(db, T("right"), T("400")));
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("transaction URL\n", stderr);
        return 2;
    }
    forrest_db *db;
    ANSWERS(FORREST_OK, forrest_open(argv[1], &db));
    reading_and_changing(db);
    ranges_locks_and_savepoints(db);
    conflicts(db);
    failures(db);
    keyspaces(db);
    threads(db);
    ANSWERS(FORREST_OK, forrest_close(db));
    puts("all is as it should be");
    return checks > 0 ? 0 : 1;
}
