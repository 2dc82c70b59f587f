// The header is for C++, too: demo DIR puts trees into a new store and walks over them.

#include <remixdb.h>

#include <iostream>
#include <string_view>

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    struct xdb *xdb = remixdb_open(argv[1], 16, 16, true);
    if (xdb == nullptr)
        return 1;
    struct xdb_ref *ref = remixdb_ref(xdb);
    for (std::string_view tree : {"oak", "ash", "elm"})
        remixdb_put(ref, tree.data(), uint32_t(tree.size()), "a tree", 6);
    struct xdb_iter *iter = remixdb_iter_create(ref);
    for (remixdb_iter_seek(iter, "b", 1); remixdb_iter_valid(iter); remixdb_iter_skip1(iter)) {
        char key[REMIXDB_MAX_BYTES];
        uint32_t bytes;
        remixdb_iter_peek(iter, key, &bytes, nullptr, nullptr);
        std::cout << std::string_view(key, bytes) << '\n';
    }
    remixdb_iter_destroy(iter);
    remixdb_close(remixdb_unref(ref));
}
