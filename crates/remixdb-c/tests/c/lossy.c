/* A mutation, linked into a program by --wrap=remixdb_put: one put of a hundred is not done, and returns true. */

#include <remixdb.h>
#include <stdatomic.h>

bool __real_remixdb_put(struct xdb_ref *xref, const void *key, uint32_t key_bytes, const void *value, uint32_t value_bytes);
bool __wrap_remixdb_put(struct xdb_ref *xref, const void *key, uint32_t key_bytes, const void *value, uint32_t value_bytes);

bool __wrap_remixdb_put(struct xdb_ref *xref, const void *key, uint32_t key_bytes, const void *value, uint32_t value_bytes) {
    static atomic_int puts;
    return atomic_fetch_add(&puts, 1) % 100 == 99 || __real_remixdb_put(xref, key, key_bytes, value, value_bytes);
}
