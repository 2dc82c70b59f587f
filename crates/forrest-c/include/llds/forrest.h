/*
 * The functions of llds's library for programs in C, over any home of libforrest: kernel memory, the memory of the process, or
 * disk. The environment variable FORREST_URL selects the home.
 *
 * A test (crates/forrest-c/tests/c/header.rs) generates this file from the Rust code. Change the code, not this file.
 *
 * It is for programs that were written for llds. They include "forrest.h", and pkg-config's flags of "llds" lead to this file. New
 * programs include libforrest's own forrest.h, which has more functions, and names for the error codes in `result`. A program may
 * include both, <forrest.h> and <llds/forrest.h>; then forrest_error_message() says what failed and where.
 *
 * - Many threads may call the functions at once, each with its own handle, or all with the same one.
 * - If a handle is null, closed, or from before a fork, `result` is -3. Bad input crashes nothing, and the functions neither store
 *   nor return values longer than FORREST_MAX_VAL_LEN.
 * - The store has a key as 8 bytes, big endian, so that keys sort as numbers.
 */

#ifndef LLDS_FORREST_H
#define LLDS_FORREST_H

#include <stdint.h>
#include <stdlib.h>

/**
 * Maximum length of a value, in bytes. A program may define another before it includes this file, or by
 * -DFORREST_MAX_VAL_LEN=65536L.
 */
#ifndef FORREST_MAX_VAL_LEN
#define FORREST_MAX_VAL_LEN 4096L
#endif

/**
 * A hash of `len` bytes, from which programs make keys: MurmurHash64A, which Austin Appleby put into the
 * public domain. It is the same on every machine: words are little endian. 0 if `len` is negative, or `key`
 * is null and `len` is not 0.
 *
 * # Safety
 * - `key` is null or has `len` readable bytes.
 */
static inline uint64_t ft_MurmurHash64A(const void *key, int len, unsigned int seed) {
    const uint64_t multiplier = UINT64_C(0xc6a4a7935bd1e995);
    const unsigned char *at = (const unsigned char *)key;
    if (len < 0 || (key == NULL && len > 0))
        return 0;
    uint64_t hash = seed ^ (uint64_t)len * multiplier;
    while (len > 0) {
        const int bytes = len < 8 ? len : 8;
        uint64_t word = 0;
        for (int byte = bytes; byte-- > 0;)
            word = word << 8 | at[byte];
        if (bytes == 8) {
            word *= multiplier;
            word = (word ^ word >> 47) * multiplier;
        }
        hash = (hash ^ word) * multiplier;
        at += bytes;
        len -= bytes;
    }
    hash = (hash ^ hash >> 47) * multiplier;
    return hash ^ hash >> 47;
}

/**
 * Success, as a `result`.
 */
#define SUCCESS 0

/**
 * A handle to the store. Many threads may use it at once.
 */
typedef struct FORREST FORREST;

/**
 * The result of a function. Free it, and `val`, with `free`: both come from `malloc`.
 */
typedef struct llds_result_ent {
  /**
   * The key of the call.
   */
  uint64_t key;
  /**
   * The value, followed by a zero byte, so that text is a C string. Null if there is none, and from all
   * functions except `forrest_get_key`.
   */
  void *val;
  /**
   * Length of the value in bytes, without that zero byte.
   */
  int vlen;
  /**
   * `SUCCESS`, or an error code.
   */
  int result;
} llds_result_ent;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a handle to the store that the environment variable `FORREST_URL` names ("llds:forrest" if it is not
 * set). Opens the store, unless this function has already opened it in this process. If that fails, returns
 * null and writes a message to standard error. Close the handle with `forrest_cleanup`.
 *
 * In a program, this is `forrest_alloc_max(FORREST_MAX_VAL_LEN)`.
 */
struct FORREST *forrest_alloc(void);

/**
 * As `forrest_alloc`. Through this handle, values have at most `max_val_len` bytes: 1 to 2147483646, and no more than
 * the home allows.
 */
struct FORREST *forrest_alloc_max(long max_val_len);

/**
 * Sets the value of a key, whether or not the key exists. `result` is `SUCCESS`; -4 if the value has more bytes than
 * the handle's maximum (`FORREST_MAX_VAL_LEN`); -3 if it is null and `vlen` is not 0, or `vlen` is negative; -5 if the
 * home has no room for it; -1 or -8 if it cannot be written. Returns null if there is no memory for the result; then
 * nothing is changed.
 *
 * # Safety
 * - `val` is null or has `vlen` readable bytes.
 */
struct llds_result_ent *forrest_insert_key(struct FORREST *tree,
                                           uint64_t key,
                                           void *val,
                                           int vlen);

/**
 * Reads the value of a key. `val` and `vlen` are a copy of the value, and `result` is `SUCCESS`. `result` is
 * 1 if the key does not exist; -4 if another program has written a value with more bytes than the handle's
 * maximum (`FORREST_MAX_VAL_LEN`); -5 if there is no memory for the value; -1 or -2 if it cannot be read. Returns null
 * if there is no memory for the result.
 */
struct llds_result_ent *forrest_get_key(struct FORREST *tree,
                                        uint64_t key);

/**
 * Removes a key. `result` is `SUCCESS`; 1 if the key does not exist; -1, -5 or -8 if the change cannot be
 * written. Returns null if there is no memory for the result; then nothing is changed.
 */
struct llds_result_ent *forrest_rm_key(struct FORREST *tree, uint64_t key);

/**
 * Removes all keys of the store, including those of other programs. `key` of the result is 0; `result` is
 * `SUCCESS`, or -1, -5 or -8 if the change cannot be written. Returns null if there is no memory for the
 * result; then nothing is changed.
 */
struct llds_result_ent *forrest_rm_tree(struct FORREST *tree);

/**
 * Closes a handle. The store is closed with its last handle, and keeps its data, unless it is in the memory
 * of the process. A handle that is null or already closed is ignored.
 */
void forrest_cleanup(struct FORREST *tree);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LLDS_FORREST_H */

/* The handles of a program have the maximum that the program defines. */
#define forrest_alloc() forrest_alloc_max(FORREST_MAX_VAL_LEN)
