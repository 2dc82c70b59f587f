/*
 * The functions of llds's library for programs in C, over any home of libforrest: what is in the kernel, as there, in memory, or on
 * disk, as the environment variable FORREST_URL says.
 *
 * This file is made of the Rust code by a test (crates/forrest-c/tests/c/header.rs). Change the code, not this.
 *
 * It is for programs that were written for llds: they include "forrest.h", and find this one where pkg-config says ("llds"). New
 * ones include libforrest's own forrest.h, which has more, and in which a `result` that is not SUCCESS is a code with a name.
 * A program may include both: <forrest.h> and <llds/forrest.h>; then forrest_error_message() tells what went wrong.
 *
 * - The functions may be called by many threads at once, each with a handle of its own or all with one.
 * - A handle that is null, was given back, or comes from before a fork is answered by the `result` -3. Nothing crashes on bad
 *   input, and nothing longer than FORREST_MAX_VAL_LEN is taken or given.
 * - A key is in the store as 8 bytes, big endian, so that keys sort as numbers.
 */

#ifndef LLDS_FORREST_H
#define LLDS_FORREST_H

#include <stdint.h>
#include <stdlib.h>

/**
 * Most bytes of a value.
 */
#define FORREST_MAX_VAL_LEN 4096L

/**
 * It was done: a `result`.
 */
#define SUCCESS 0

/**
 * A way into the store. Any thread may use it, several at once as well.
 */
typedef struct FORREST FORREST;

/**
 * What a function answers with. It came from `malloc`, and so did `val`: both are given to `free`.
 */
typedef struct llds_result_ent {
  /**
   * The key that was asked for.
   */
  uint64_t key;
  /**
   * Its value, and behind it a zero byte, so that text is text; null of all functions but `forrest_get_key`, and
   * where there is none.
   */
  void *val;
  /**
   * Bytes of the value, without that zero byte.
   */
  int vlen;
  /**
   * `SUCCESS`, or why not.
   */
  int result;
} llds_result_ent;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a way into the store that the environment variable `FORREST_URL` names ("llds:forrest" if it is not set), and
 * opens the store, if nobody in this process has it open by this function. Null, and why on standard error, if it
 * cannot be opened. To be given to `forrest_cleanup`.
 */
struct FORREST *forrest_alloc(void);

/**
 * Maps a key to a value, whether it was there or not. `result` is `SUCCESS`; -4 if the value has more bytes than
 * `FORREST_MAX_VAL_LEN`; -3 if it is null and `vlen` is not 0, or `vlen` is negative; -5 if the home has no room for
 * it; -1 or -8 if it cannot be written. Null if there is no memory for the answer; then nothing is changed.
 *
 * # Safety
 * - `val` has `vlen` bytes, or is null.
 */
struct llds_result_ent *forrest_insert_key(struct FORREST *tree,
                                           uint64_t key,
                                           void *val,
                                           int vlen);

/**
 * Finds a key: `val` and `vlen` are a copy of its value, and `result` is `SUCCESS`. 1 if it is not there; -4 if its
 * value, which another program has written, has more bytes than `FORREST_MAX_VAL_LEN`; -5 if there is no memory for
 * it; -1 or -2 if it cannot be read. Null if there is no memory for the answer.
 */
struct llds_result_ent *forrest_get_key(struct FORREST *tree,
                                        uint64_t key);

/**
 * Removes all keys of the store, of whichever program. `key` of the answer is 0; `result` is `SUCCESS`, or -1, -5
 * or -8 if it cannot be written. Null if there is no memory for the answer; then nothing is changed.
 */
struct llds_result_ent *forrest_rm_tree(struct FORREST *tree);

/**
 * Gives a handle back. The store is closed with the last one; what it held is there the next time, unless it is in the
 * memory of the process. What is null, or was given back, is nothing to give back.
 */
void forrest_cleanup(struct FORREST *tree);

/**
 * The hash that programs make keys of texts with: MurmurHash64A, which Austin Appleby put into the public domain, of
 * `len` bytes. The same on every machine: words are little endian. 0 if `len` is negative, or `key` is null and `len`
 * is not 0.
 *
 * # Safety
 * - `key` has `len` bytes, or is null.
 */
uint64_t ft_MurmurHash64A(const void *key,
                          int len,
                          unsigned int seed);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LLDS_FORREST_H */
