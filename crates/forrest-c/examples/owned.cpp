// In C++: handles that close themselves, errors as exceptions, values as views: owned URL.

#include <forrest.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

struct Release {
    void operator()(forrest_db *db) const { forrest_close(db); }
    void operator()(forrest_value *value) const { forrest_value_release(value); }
    void operator()(forrest_iter *iter) const { forrest_iter_destroy(iter); }
};

template <typename Handle> using Owned = std::unique_ptr<Handle, Release>;

// The code, if it is not an error.
int32_t check(int32_t code) {
    if (code < 0)
        throw std::runtime_error(forrest_error_message());
    return code;
}

Owned<forrest_db> open(const char *url) {
    forrest_db *db;
    check(forrest_open(url, &db));
    return Owned<forrest_db>(db);
}

// The value, or nothing.
Owned<forrest_value> get(const Owned<forrest_db> &db, std::string_view key) {
    forrest_value *value;
    check(forrest_get(db.get(), key.data(), key.size(), &value));
    return Owned<forrest_value>(value);
}

std::string_view bytes(const Owned<forrest_value> &value) {
    const void *data;
    size_t length;
    check(forrest_value_data(value.get(), &data, &length));
    return {static_cast<const char *>(data), length};
}

void set(const Owned<forrest_db> &db, std::string_view key, std::string_view value) {
    check(forrest_set(db.get(), key.data(), key.size(), value.data(), value.size()));
}

} // namespace

int main(int argc, char **argv) {
    try {
        auto db = open(argc > 1 ? argv[1] : "memory:");
        set(db, "oak", "Quercus robur");
        set(db, "elm", "Ulmus glabra");
        auto oak = get(db, "oak");
        set(db, "oak", "Quercus petraea");
        std::cout << "it was " << bytes(oak) << ", and is " << bytes(get(db, "oak")) << '\n';
        std::cout << "there is " << (get(db, "fir") ? "a" : "no") << " fir\n";

        forrest_iter *made;
        check(forrest_iter_create(db.get(), &made));
        Owned<forrest_iter> iter(made);
        for (forrest_iter_last(made); forrest_iter_valid(made); forrest_iter_prev(made)) {
            const void *key;
            size_t length;
            check(forrest_iter_key(made, &key, &length));
            std::cout << std::string_view(static_cast<const char *>(key), length) << '\n';
        }
        check(forrest_iter_status(made));

        open("mermory:");
    } catch (const std::exception &error) {
        std::cout << error.what() << '\n';
        return 0;
    }
    return 1;
}
