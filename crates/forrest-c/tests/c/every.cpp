// Every function from C++, with handles that close themselves, errors as exceptions, and bytes as views: every URL, where URL names
// a new store of any home.

#include <forrest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using std::string_view;

struct Error : std::runtime_error {
    int32_t code;
    explicit Error(int32_t code) : std::runtime_error(forrest_error_message()), code(code) {}
};

// The code, if it is not an error.
int32_t check(int32_t code) {
    if (code < 0)
        throw Error(code);
    return code;
}

void demand(bool condition, const char *what) {
    if (!condition) {
        std::cerr << what << " (last error: " << forrest_error_message() << ")\n";
        std::exit(1);
    }
}
#define DEMAND(condition) demand((condition), #condition)

struct Release {
    void operator()(forrest_db *db) const { DEMAND(forrest_close(db) == FORREST_OK); }
    void operator()(forrest_options *options) const { DEMAND(forrest_options_destroy(options) == FORREST_OK); }
    void operator()(forrest_value *value) const { DEMAND(forrest_value_release(value) == FORREST_OK); }
    void operator()(forrest_batch *batch) const { DEMAND(forrest_batch_destroy(batch) == FORREST_OK); }
    void operator()(forrest_transaction *it) const { DEMAND(forrest_transaction_destroy(it) == FORREST_OK); }
    void operator()(forrest_ingest *it) const { DEMAND(forrest_ingest_destroy(it) == FORREST_OK); }
    void operator()(forrest_changes *it) const { DEMAND(forrest_changes_destroy(it) == FORREST_OK); }
    void operator()(forrest_blob_writer *it) const { DEMAND(forrest_blob_writer_destroy(it) == FORREST_OK); }
    void operator()(forrest_blob *it) const { DEMAND(forrest_blob_close(it) == FORREST_OK); }
    void operator()(forrest_value_reader *it) const { DEMAND(forrest_value_reader_close(it) == FORREST_OK); }
    void operator()(forrest_iter *iter) const { DEMAND(forrest_iter_destroy(iter) == FORREST_OK); }
    void operator()(void *memory) const { forrest_free(memory); }
};
template <typename Handle> using Owned = std::unique_ptr<Handle, Release>;

// The result that a function writes to a place.
template <typename Handle, typename Call> Owned<Handle> made(Call call) {
    Handle *handle = nullptr;
    check(call(&handle));
    return Owned<Handle>(handle);
}

class Value {
    Owned<forrest_value> value;

  public:
    explicit Value(forrest_value *held) : value(held) {}
    explicit operator bool() const { return value != nullptr; }
    string_view operator*() const {
        const void *data;
        size_t bytes;
        check(forrest_value_data(value.get(), &data, &bytes));
        return {static_cast<const char *>(data), bytes};
    }
};

class Batch {
    Owned<forrest_batch> batch = made<forrest_batch>(forrest_batch_create);

  public:
    forrest_batch *get() const { return batch.get(); }
    Batch &set(string_view key, string_view value) {
        check(forrest_batch_set(get(), key.data(), key.size(), value.data(), value.size()));
        return *this;
    }
    void set_with_ttl(string_view key, string_view value, uint64_t ttl_ms) const {
        check(forrest_batch_set_with_ttl(get(), key.data(), key.size(), value.data(), value.size(), ttl_ms));
    }
    Batch &remove(string_view key) {
        check(forrest_batch_delete(get(), key.data(), key.size()));
        return *this;
    }
    Batch &remove_from(string_view start) {
        check(forrest_batch_delete_range(get(), start.data(), start.size(), nullptr, FORREST_ABSENT));
        return *this;
    }
    Batch &add(string_view key, int64_t delta) {
        check(forrest_batch_add(get(), key.data(), key.size(), delta));
        return *this;
    }
    Batch &merge(string_view key, string_view operand) {
        check(forrest_batch_merge(get(), key.data(), key.size(), operand.data(), operand.size()));
        return *this;
    }
    Batch &swap(string_view key, string_view expected, string_view desired) {
        check(forrest_batch_compare_and_swap(get(), key.data(), key.size(), expected.data(), expected.size(),
                                             desired.data(), desired.size()));
        return *this;
    }
    /* The condition that a range has no pairs. */
    Batch &none(string_view start, string_view end) {
        check(forrest_batch_compare_range(get(), start.data(), start.size(), end.data(), end.size(), nullptr, nullptr,
                                          nullptr, nullptr, 0));
        return *this;
    }
    Batch &on(const forrest_db *db) {
        check(forrest_batch_on(get(), db));
        return *this;
    }
    void clear() { check(forrest_batch_clear(get())); }
    std::pair<size_t, size_t> size() const {
        size_t changes, bytes;
        check(forrest_batch_size(get(), &changes, &bytes));
        return {changes, bytes};
    }
};

class Transaction {
    Owned<forrest_transaction> transaction;

  public:
    explicit Transaction(forrest_db *db)
        : transaction(made<forrest_transaction>([db](forrest_transaction **to) { return forrest_transaction_begin(db, to); })) {}
    forrest_transaction *get() const { return transaction.get(); }
    Value held(string_view key) {
        forrest_value *value;
        check(forrest_transaction_get(get(), key.data(), key.size(), &value));
        return Value(value);
    }
    bool contains(string_view key) { return check(forrest_transaction_contains(get(), key.data(), key.size())) == FORREST_OK; }
    Transaction &set(string_view key, string_view value) {
        check(forrest_transaction_set(get(), key.data(), key.size(), value.data(), value.size()));
        return *this;
    }
    void set_with_ttl(string_view key, string_view value, uint64_t ttl_ms) {
        check(forrest_transaction_set_with_ttl(get(), key.data(), key.size(), value.data(), value.size(), ttl_ms));
    }
    Transaction &remove(string_view key) {
        check(forrest_transaction_delete(get(), key.data(), key.size()));
        return *this;
    }
    Transaction &add(string_view key, int64_t delta) {
        check(forrest_transaction_add(get(), key.data(), key.size(), delta));
        return *this;
    }
    Transaction &merge(string_view key, string_view operand) {
        check(forrest_transaction_merge(get(), key.data(), key.size(), operand.data(), operand.size()));
        return *this;
    }
    Transaction &on(const forrest_db *db) {
        check(forrest_transaction_on(get(), db));
        return *this;
    }
    Value held_for_update(string_view key) {
        forrest_value *value;
        check(forrest_transaction_get_for_update(get(), key.data(), key.size(), &value));
        return Value(value);
    }
    Transaction &lock(string_view key) {
        check(forrest_transaction_set_lock_wait(get(), 10));
        check(forrest_transaction_lock(get(), key.data(), key.size()));
        return *this;
    }
    Transaction &remove_range(string_view start, string_view end) {
        check(forrest_transaction_delete_range(get(), start.data(), start.size(), end.data(), end.size()));
        return *this;
    }
    Transaction &range(string_view start, string_view end) {
        check(forrest_transaction_range(get(), start.data(), start.size(), end.data(), end.size()));
        return *this;
    }
    // The next key, or nothing.
    std::optional<std::string> step(bool forward) {
        forrest_value *key;
        auto move = forward ? forrest_transaction_next : forrest_transaction_prev;
        if (check(move(get(), &key, nullptr)) == FORREST_NOT_FOUND)
            return std::nullopt;
        return std::string(*Value(key));
    }
    uint64_t save() {
        uint64_t savepoint;
        check(forrest_transaction_savepoint(get(), &savepoint));
        return savepoint;
    }
    void roll_back_to(uint64_t savepoint) { check(forrest_transaction_rollback_to(get(), savepoint)); }
    bool commit() { return check(forrest_transaction_commit(get())) == FORREST_OK; }
    // The key in conflict, if there is one.
    std::optional<std::string> commit(uint64_t durability) {
        forrest_value *key;
        if (check(forrest_transaction_commit_with(get(), durability, nullptr, &key)) == FORREST_OK)
            return std::nullopt;
        return std::string(*Value(key));
    }
    bool holds() { return check(forrest_transaction_check(get())) == FORREST_OK; }
    void roll_back() { check(forrest_transaction_rollback(get())); }
};

class Iter {
    Owned<forrest_iter> iter;

  public:
    explicit Iter(const forrest_db *db)
        : iter(made<forrest_iter>([db](forrest_iter **to) { return forrest_iter_create(db, to); })) {}
    bool first() { return check(forrest_iter_first(iter.get())) == FORREST_OK; }
    bool last() { return check(forrest_iter_last(iter.get())) == FORREST_OK; }
    bool next() { return check(forrest_iter_next(iter.get())) == FORREST_OK; }
    bool prev() { return check(forrest_iter_prev(iter.get())) == FORREST_OK; }
    bool skip(uint64_t pairs) { return check(forrest_iter_skip(iter.get(), pairs)) == FORREST_OK; }
    void park() { check(forrest_iter_park(iter.get())); }
    bool seek(string_view key) { return check(forrest_iter_seek(iter.get(), key.data(), key.size())) == FORREST_OK; }
    bool seek_for_prev(string_view key) {
        return check(forrest_iter_seek_for_prev(iter.get(), key.data(), key.size())) == FORREST_OK;
    }
    bool valid() const {
        const bool valid = forrest_iter_valid(iter.get());
        check(forrest_iter_status(iter.get()));
        return valid;
    }
    string_view key() const {
        const void *data;
        size_t bytes;
        check(forrest_iter_key(iter.get(), &data, &bytes));
        return {static_cast<const char *>(data), bytes};
    }
    string_view value() const {
        const void *data;
        size_t bytes;
        check(forrest_iter_value(iter.get(), &data, &bytes));
        return {static_cast<const char *>(data), bytes};
    }
};

class Db {
    Owned<forrest_db> db;

  public:
    explicit Db(Owned<forrest_db> opened) : db(std::move(opened)) {}
    explicit Db(const char *url)
        : db(made<forrest_db>([url](forrest_db **to) { return forrest_open(url, to); })) {}
    Db(const char *url, const Owned<forrest_options> &options)
        : db(made<forrest_db>([&](forrest_db **to) { return forrest_open_with(url, options.get(), to); })) {}
    forrest_db *get() const { return db.get(); }

    Db keyspace(const char *name) const {
        return Db(made<forrest_db>([&](forrest_db **to) { return forrest_keyspace(get(), name, to); }));
    }
    Db snapshot() const {
        return Db(made<forrest_db>([&](forrest_db **to) { return forrest_snapshot(get(), to); }));
    }
    std::vector<std::string> keyspaces() const {
        size_t count = 0;
        auto names = made<char *>([&](char ***to) { return forrest_keyspaces(get(), to, &count); });
        return std::vector<std::string>(names.get(), names.get() + count);
    }
    bool drop(const char *name) const { return check(forrest_drop_keyspace(get(), name)) == FORREST_OK; }

    void set(string_view key, string_view value) const {
        check(forrest_set(get(), key.data(), key.size(), value.data(), value.size()));
    }
    bool remove(string_view key) const { return check(forrest_delete(get(), key.data(), key.size())) == FORREST_OK; }
    void remove_range(string_view start, string_view end) const {
        check(forrest_delete_range(get(), start.data(), start.size(), end.data(), end.size()));
    }
    void remove_prefix(string_view prefix) const {
        check(forrest_delete_prefix(get(), prefix.data(), prefix.size()));
    }
    void clear() const { check(forrest_clear(get())); }
    int64_t add(string_view key, int64_t delta) const {
        int64_t sum;
        check(forrest_add(get(), key.data(), key.size(), delta, &sum));
        return sum;
    }
    void merge(string_view key, string_view operand) const {
        check(forrest_merge(get(), key.data(), key.size(), operand.data(), operand.size()));
    }
    void set_with_ttl(string_view key, string_view value, uint64_t ttl_ms) const {
        check(forrest_set_with_ttl(get(), key.data(), key.size(), value.data(), value.size(), ttl_ms));
    }
    void set_ttl(uint64_t ttl_ms) const { check(forrest_set_ttl(get(), ttl_ms)); }
    uint64_t ttl() const {
        uint64_t ttl_ms;
        check(forrest_ttl(get(), &ttl_ms));
        return ttl_ms;
    }
    uint64_t expires(string_view key) const {
        uint64_t expires_ms;
        check(forrest_expires(get(), key.data(), key.size(), &expires_ms));
        return expires_ms;
    }
    void set_merge_operator(const char *name) const { check(forrest_set_merge_operator(get(), name)); }
    // Nothing if the value was replaced, otherwise the value that was found.
    std::optional<Value> swap(string_view key, std::optional<string_view> expected, string_view desired) const {
        forrest_value *found;
        const int32_t code = check(forrest_compare_and_swap(
            get(), key.data(), key.size(), expected ? expected->data() : nullptr,
            expected ? expected->size() : FORREST_ABSENT, desired.data(), desired.size(), &found));
        return code == FORREST_MISMATCH ? std::optional<Value>(Value(found)) : std::nullopt;
    }
    void write(const Batch &batch) const { check(forrest_write(get(), batch.get())); }
    void write(const Batch &batch, uint64_t durability) const {
        check(forrest_write_with(get(), batch.get(), durability));
    }
    std::optional<size_t> try_write(const Batch &batch, uint64_t durability) const {
        size_t change;
        forrest_value *found;
        if (check(forrest_try_write(get(), batch.get(), durability, &change, &found)) == FORREST_OK)
            return std::nullopt;
        Value{found};
        return change;
    }

    bool contains(string_view key) const {
        return check(forrest_contains(get(), key.data(), key.size())) == FORREST_OK;
    }
    uint64_t count(string_view start) const {
        uint64_t keys;
        check(forrest_count(get(), start.data(), start.size(), nullptr, FORREST_ABSENT, &keys));
        return keys;
    }
    // In both directions; no exception leaves the function that the scan calls.
    std::string keys(bool back) const {
        std::string keys;
        const auto see = [](void *to, const void *key, size_t key_bytes, const void *, size_t) noexcept {
            static_cast<std::string *>(to)->append(static_cast<const char *>(key), key_bytes).append(",");
            return true;
        };
        check((back ? forrest_scan_back : forrest_scan)(get(), nullptr, 0, nullptr, FORREST_ABSENT, see, &keys));
        return keys;
    }
    Value held(string_view key) const {
        forrest_value *value;
        check(forrest_get(get(), key.data(), key.size(), &value));
        return Value(value);
    }
    // The value of a key that is in memory.
    Value cached(string_view key) const {
        forrest_value *value;
        DEMAND(check(forrest_get_cached(get(), key.data(), key.size(), &value)) != FORREST_NOT_CACHED);
        return Value(value);
    }
    std::string text(string_view key) const {
        size_t bytes = 0;
        auto memory =
            made<void>([&](void **to) { return forrest_get_alloc(get(), key.data(), key.size(), to, &bytes); });
        return {static_cast<const char *>(memory.get()), bytes};
    }
    std::string buffered(string_view key) const {
        std::string buffer;
        size_t bytes;
        while (check(forrest_get_into(get(), key.data(), key.size(), buffer.data(), buffer.size(), &bytes)) ==
               FORREST_TOO_SMALL)
            buffer.resize(bytes);
        buffer.resize(bytes);
        return buffer;
    }
    std::vector<Value> many(const std::vector<string_view> &keys) const {
        std::vector<const void *> starts;
        std::vector<size_t> lengths;
        for (string_view key : keys) {
            starts.push_back(key.data());
            lengths.push_back(key.size());
        }
        std::vector<forrest_value *> values(keys.size());
        check(forrest_multi_get(get(), starts.data(), lengths.data(), keys.size(), values.data()));
        std::vector<Value> held;
        for (forrest_value *value : values)
            held.emplace_back(value);
        return held;
    }

    /** Reads the first key of all, in each of the ways to read many ranges, and what there is about. */
    void about(string_view first) const {
        const void *starts[] = {"", first.data()}, *ends[] = {nullptr, nullptr};
        const size_t lengths[] = {0, first.size()}, absent[] = {FORREST_ABSENT, FORREST_ABSENT};
        size_t seen = 0;
        const auto see = [](void *seen, size_t, const void *, size_t, const void *, size_t) {
            return ++*static_cast<size_t *>(seen) > 0;
        };
        check(forrest_multi_scan(get(), starts, lengths, ends, absent, 2, 1, true, see, &seen));
        bool exist[2];
        check(forrest_prefixes_exist(get(), starts, lengths, 2, exist));
        uint64_t keys, bytes;
        check(forrest_approximate(get(), nullptr, 0, nullptr, FORREST_ABSENT, &keys, &bytes));
        forrest_iter *iter;
        check(forrest_iter_create_keys(get(), &iter));
        const bool is_first = forrest_iter_first(iter) == FORREST_OK;
        check(forrest_iter_destroy(iter));
        if (seen != 2 || !exist[0] || !exist[1] || keys == 0 || bytes < keys || !is_first)
            throw std::runtime_error("the reads of many ranges");
    }

    void sync() const { check(forrest_sync(get())); }
    void verify() const { check(forrest_verify(get())); }
    void compact() const { check(forrest_compact(get())); }
    void compact_range(string_view start, string_view end) const {
        check(forrest_compact_range(get(), start.data(), start.size(), end.data(), end.size()));
    }
    void set_compression(uint64_t compression) const { check(forrest_set_compression(get(), compression)); }
    void flush() const { check(forrest_flush(get())); }
    void trim() const { check(forrest_trim(get())); }
    void set_option(int32_t option, uint64_t value) const { check(forrest_set_option(get(), option, value)); }
    void resume() const { check(forrest_resume(get())); }
    void rotate_key(string_view key) const { check(forrest_rotate_key(get(), key.data(), key.size())); }
    void rotate_data_key() const { check(forrest_rotate_data_key(get())); }
    void settle() const { check(forrest_settle(get())); }
    void refresh() const { check(forrest_refresh(get())); }
    void checkpoint(const char *path) const { check(forrest_checkpoint(get(), path)); }
    forrest_backup back_up(const std::string &directory) const {
        forrest_backup backup{};
        check(forrest_backup_create(get(), directory.c_str(), false, nullptr, nullptr, &backup, sizeof backup));
        return backup;
    }
    std::string metrics() const {
        std::size_t bytes;
        const auto text = made<void>([&](void **to) { return forrest_metrics(get(), to, &bytes); });
        return std::string(static_cast<const char *>(text.get()), bytes);
    }
    forrest_stats stats() const {
        forrest_stats stats;
        check(forrest_get_stats(get(), &stats, sizeof stats));
        return stats;
    }
    uint64_t capabilities() const {
        uint64_t capabilities;
        check(forrest_capabilities(get(), &capabilities));
        return capabilities;
    }
};

// An empty directory, removed with its content at the end.
struct Directory {
    std::string path = (std::filesystem::temp_directory_path() / "forrest-every-XXXXXX").string();
    Directory() { DEMAND(mkdtemp(path.data()) != nullptr); }
    Directory(const Directory &) = delete;
    Directory &operator=(const Directory &) = delete;
    ~Directory() { std::filesystem::remove_all(path); }
};

// A salvage, with the names of the files of its losses.
std::pair<forrest_salvaged, std::vector<std::string>> salvage(const std::string &from, const std::string &to) {
    std::pair<forrest_salvaged, std::vector<std::string>> result;
    const auto see = [](void *to, const forrest_loss *loss) noexcept {
        static_cast<std::vector<std::string> *>(to)->emplace_back(loss->file);
        return true;
    };
    const auto on = [](void *, uint64_t, uint64_t) noexcept { return true; };
    check(forrest_salvage(from.c_str(), nullptr, 0, to.c_str(), on, see, &result.second, &result.first, sizeof result.first));
    return result;
}

// Two backups, which are listed, verified and restored; then one is removed.
void backing_up(const Db &db) {
    const Directory directory;
    const std::string to = directory.path + "/restored", backups = directory.path + "/backups";
    const forrest_backup first = db.back_up(backups);
    const forrest_backup second = db.back_up(backups);
    forrest_backup backup{};
    check(forrest_backup_verify(backups.c_str(), nullptr, 0, first.id, nullptr, nullptr, &backup, sizeof backup));
    DEMAND(backup.id == first.id && backup.bytes == first.bytes && backup.time_ms <= second.time_ms);
    check(forrest_backup_restore(backups.c_str(), nullptr, 0, 0, to.c_str(), nullptr, nullptr, &backup, sizeof backup));
    DEMAND(backup.id == second.id && Db(to.c_str()).contains("oak"));
    forrest_pruned pruned{};
    check(forrest_backup_prune(backups.c_str(), nullptr, 0, FORREST_KEEP_NEWEST, 1, &pruned, sizeof pruned));
    DEMAND(pruned.backups == 1 && pruned.bytes > 0);
    std::vector<uint64_t> left;
    const auto see = [](void *to, const forrest_backup *backup) noexcept {
        static_cast<std::vector<uint64_t> *>(to)->push_back(backup->damage == nullptr ? backup->id : 0);
        return true;
    };
    check(forrest_backup_list(backups.c_str(), nullptr, 0, see, &left));
    DEMAND(left == std::vector<uint64_t>{second.id});
}

// A call succeeds if the home has the capability, and is refused if not.
template <typename Call> void where(bool can, Call call) {
    try {
        call();
        DEMAND(can);
    } catch (const Error &error) {
        DEMAND(!can && error.code == FORREST_UNSUPPORTED);
        DEMAND(string_view(error.what()).substr(0, 11) == forrest_strerror(FORREST_UNSUPPORTED));
    }
}

// Drops values that are called so, and replaces others.
int32_t filter(void *context, forrest_filtered *given) {
    DEMAND(*static_cast<int *>(context) == 7 && given->keyspace_bytes > 0 && given->key != nullptr);
    const string_view value(static_cast<const char *>(given->value), given->value_bytes);
    if (value == "filtered: drop")
        return FORREST_FILTER_DROP;
    if (value != "filtered: replace")
        return FORREST_FILTER_KEEP;
    given->replacement = "replaced";
    given->replacement_bytes = 8;
    return FORREST_FILTER_REPLACE;
}

void all(const char *url) {
    DEMAND(forrest_abi() == FORREST_ABI && forrest_version() != nullptr);
    auto options = made<forrest_options>(forrest_options_create);
    check(forrest_options_set(options.get(), FORREST_CACHE_BYTES, 8 << 20));
    check(forrest_options_set(options.get(), FORREST_LARGE_VALUES, 0));
    if (std::strchr(url, ':') == nullptr)
        check(forrest_options_set_log_directory(options.get(), (std::string(url) + "-log").c_str()));
    int context = 7;
    check(forrest_options_set_compaction_filter(options.get(), filter, &context));
    const auto hear = [](void *heard, const forrest_event *event) noexcept {
        static_cast<std::vector<std::string> *>(heard)->emplace_back(event->text);
    };
    const auto first = [](void *, forrest_merging *given) noexcept {
        given->result = given->old != nullptr ? given->old : given->operand;
        given->result_bytes = given->old != nullptr ? given->old_bytes : given->operand_bytes;
        return given->call <= FORREST_MERGE_CHECK_VALUE;
    };
    check(forrest_options_add_merge_operator(options.get(), "first", first, nullptr));
    std::vector<std::string> heard; // lives longer than the store
    check(forrest_options_set_listener(options.get(), hear, &heard));
    if (std::strchr(url, ':') == nullptr)
        check(forrest_options_set_metrics_file(options.get(), (std::string(url) + ".prom").c_str()));
    const Db db(url, options);
    db.set("dropped", "filtered: drop");
    db.set("replaced", "filtered: replace");
    db.flush();
    if (std::strchr(url, ':') == nullptr)
        DEMAND(!db.held("dropped") && *db.held("replaced") == "replaced");
    db.remove_range("dropped", "s");
    if (std::strchr(url, ':') == nullptr) {
        const std::string key(32, 'k');
        auto sealed = made<forrest_options>(forrest_options_create);
        check(forrest_options_set_encryption_key(sealed.get(), key.data(), key.size()));
        const Db other((std::string(url) + "-sealed").c_str(), sealed);
        other.rotate_data_key();
        other.rotate_key(key);
    }

    db.set("oak", "Quercus robur");
    db.set("elm", "Ulmus glabra");
    DEMAND(*db.held("oak") == "Quercus robur" && !db.held("fir"));
    DEMAND(*db.cached("oak") == "Quercus robur" && !db.cached("fir"));
    DEMAND(db.text("elm") == "Ulmus glabra" && db.buffered("oak") == "Quercus robur");
    DEMAND(db.contains("elm") && !db.contains("fir") && db.count("f") == 1);
    const auto many = db.many({"oak", "fir", "elm"});
    DEMAND(*many[0] == "Quercus robur" && !many[1] && *many[2] == "Ulmus glabra");
    DEMAND(db.keys(false) == "elm,oak," && db.keys(true) == "oak,elm,");
    DEMAND(db.remove("elm") && !db.remove("elm"));
    DEMAND(db.add("visits", 3) == 3 && db.add("visits", -1) == 2);
    DEMAND(!db.swap("door", std::nullopt, "open"));
    DEMAND(**db.swap("door", std::nullopt, "shut") == "open");
    DEMAND(!db.swap("door", "open", "shut") && *db.held("door") == "shut");

    Batch batch;
    batch.none("y", "z").set("a", "1").set("b", "2").remove("b").add("visits", 1).swap("door", "shut", "open");
    batch.remove_from("x");
    DEMAND(batch.size().first == 7 && batch.size().second > 20);
    db.write(batch);
    DEMAND(db.contains("a") && !db.contains("b") && *db.held("door") == "open");
    DEMAND(forrest_write(db.get(), batch.get()) == FORREST_CONDITION_FAILED && forrest_error_op() == 5);
    DEMAND(db.try_write(batch, FORREST_DURABILITY_MEMORY) == size_t(5) && db.add("visits", 0) == 3);
    batch.clear();

    Transaction transaction(db.get());
    DEMAND(*transaction.held("door") == "open" && !transaction.contains("fir"));
    transaction.set("door", "ajar").remove("fir").add("visits", 2).on(db.get());
    DEMAND(transaction.commit() && *db.held("door") == "ajar" && db.add("visits", -2) == 3);
    DEMAND(transaction.set("fir", "Abies").contains("door"));
    db.set("door", "open");
    DEMAND(transaction.commit(FORREST_DURABILITY_MEMORY) == "door" && !db.contains("fir"));
    DEMAND(transaction.set("fir", "Abies").contains("door") && transaction.holds() && !db.contains("fir"));
    transaction.set_with_ttl("fir", "Abies", 1);
    transaction.set("fir", "Abies").roll_back();
    DEMAND(transaction.commit(FORREST_DURABILITY_MEMORY) == std::nullopt && !db.contains("fir"));
    transaction.lock("queue").set("job 1", "sweep").set("job 2", "cook").set("job 3", "paint");
    const uint64_t savepoint = transaction.save();
    transaction.remove_range("job ", "joc").roll_back_to(savepoint);
    transaction.range("job ", "joc");
    DEMAND(transaction.step(true) == "job 1" && transaction.step(false) == "job 3" && transaction.step(true) == "job 2");
    DEMAND(transaction.step(true) == std::nullopt && *transaction.held_for_update("job 2") == "cook");
    transaction.remove_range("job ", "joc");
    DEMAND(transaction.commit());

    Iter iter(db.get());
    std::string walked;
    for (bool there = iter.first(); there; there = iter.next())
        walked.append(iter.key()).append(iter.key() == "oak" ? iter.value() : ",");
    DEMAND(walked == "a,door,oakQuercus roburvisits,");
    DEMAND(iter.last() && iter.key() == "visits" && iter.prev() && iter.key() == "oak");
    DEMAND(iter.seek("b") && iter.key() == "door" && iter.skip(2) && iter.key() == "visits");
    iter.park();
    DEMAND(iter.valid() && iter.seek_for_prev("b") && iter.key() == "a" && !iter.prev() && !iter.valid());

    {
        const auto reader = made<forrest_value_reader>(
            [&](forrest_value_reader **to) { return forrest_value_reader_open(db.get(), "oak", 3, to, nullptr); });
        char first[7];
        size_t read;
        DEMAND(forrest_value_reader_read(reader.get(), first, sizeof first, &read) == FORREST_OK && read == 7);
        DEMAND(string_view(first, 7) == "Quercus");
    }
    const uint64_t can = db.capabilities();
    where(can & FORREST_CAN_SNAPSHOT, [&] {
        const Db past = db.snapshot();
        db.set("oak", "Quercus petraea");
        DEMAND(*past.held("oak") == "Quercus robur" && *db.held("oak") == "Quercus petraea");
    });
    where(can & FORREST_CAN_INGEST, [&] {
        const auto ingest = made<forrest_ingest>([&](forrest_ingest **to) { return forrest_ingest_begin(db.get(), to); });
        DEMAND(forrest_ingest_put(ingest.get(), "pear", 4, "Pyrus", 5) == FORREST_OK);
        DEMAND(forrest_ingest_put(ingest.get(), "fig", 3, "Ficus", 5) == FORREST_INVALID_ARGUMENT && !db.contains("pear"));
        uint64_t ingested;
        DEMAND(forrest_ingest_finish(ingest.get(), &ingested) == FORREST_OK && ingested == 1);
        DEMAND(*db.held("pear") == "Pyrus" && db.remove("pear"));
    });
    where(can & FORREST_CAN_SNAPSHOT, [&] {
        const Db blobs = db.keyspace("blobs");
        {
            const auto writer = made<forrest_blob_writer>(
                [&](forrest_blob_writer **to) { return forrest_blob_begin(blobs.get(), "oak", 3, 0, to); });
            DEMAND(forrest_blob_write(writer.get(), "bark", 4) == FORREST_OK);
            DEMAND(forrest_blob_finish(writer.get()) == FORREST_OK);
            const auto blob = made<forrest_blob>(
                [&](forrest_blob **to) { return forrest_blob_open(blobs.get(), "oak", 3, to, nullptr); });
            char last[4];
            size_t read;
            DEMAND(forrest_blob_read(blob.get(), 2, last, sizeof last, &read) == FORREST_OK && read == 2);
            DEMAND(string_view(last, 2) == "rk");
        }
        uint64_t length = 0;
        const auto see = [](void *context, const void *, size_t, uint64_t bytes) {
            *static_cast<uint64_t *>(context) = bytes;
            return true;
        };
        DEMAND(forrest_blob_list(blobs.get(), nullptr, 0, nullptr, 0, see, &length) == FORREST_OK && length == 4);
        DEMAND(forrest_blob_delete(blobs.get(), "oak", 3) == FORREST_OK);
        DEMAND(forrest_drop_keyspace(db.get(), "blobs") == FORREST_OK);
    });
    // The store was opened without the option.
    uint64_t sequence;
    forrest_change change;
    forrest_changes *none;
    const int32_t without = can & FORREST_CAN_CHANGES ? FORREST_INVALID_ARGUMENT : FORREST_UNSUPPORTED;
    DEMAND(forrest_changes_begin(db.get(), 0, FORREST_DURABILITY_SYNC, &none) == without && none == nullptr);
    DEMAND(forrest_changes_next(none, 0, &change) == FORREST_INVALID_ARGUMENT && change.kind == 0);
    DEMAND(forrest_changes_destroy(none) == FORREST_OK);
    DEMAND(forrest_snapshot_sequence(db.get(), &sequence) == FORREST_INVALID_ARGUMENT && sequence == 0);
    DEMAND(db.keyspaces() == std::vector<std::string>{"default"});
    where(can & FORREST_CAN_KEYSPACES, [&] {
        const Db people = db.keyspace("people");
        batch.on(people.get()).set("ada", "1815");
        db.write(batch, FORREST_DURABILITY_MEMORY);
        DEMAND(*people.held("ada") == "1815" && !db.contains("ada"));
        DEMAND(db.keyspaces().size() == 2 && db.drop("people") && !db.drop("people"));
    });
    char **names;
    size_t count;
    if (forrest_llds_list(&names, &count) == FORREST_OK)
        forrest_free(names);
    DEMAND(forrest_llds_destroy("no store is called so") != FORREST_OK);
    where(can & FORREST_CAN_VERIFY, [&] { db.verify(); });
    where(can & FORREST_CAN_COMPACT, [&] { db.compact(); });
    where(can & FORREST_CAN_COMPACT, [&] { db.compact_range("a", "z"); });
    where(can & FORREST_CAN_METRICS, [&] { DEMAND(db.metrics().find("\nforrest_changes_total ") != std::string::npos); });
    where(can & FORREST_CAN_APPROXIMATE, [&] { db.about("a"); });
    where(can & FORREST_CAN_COMPRESS, [&] { db.set_compression(FORREST_COMPRESSION_LZ4); });
    where(can & FORREST_CAN_TTL, [&] {
        db.set_ttl(3600 * 1000);
        db.set_ttl(0);
        const Db held = db.keyspace("held");
        held.set_with_ttl("k", "a", 3600 * 1000);
        held.set("stays", "a");
        held.set_ttl(7);
        DEMAND(held.expires("k") > 0 && held.expires("stays") == 0 && held.ttl() == 7);
        held.set_with_ttl("k", "a", 0);
        DEMAND(!held.held("k") && db.drop("held"));
    });
    where(can & FORREST_CAN_MERGE, [&] {
        const Db merged = db.keyspace("merged");
        merged.set_merge_operator("append");
        merged.merge("k", "a");
        merged.merge("k", "b");
        Batch more;
        check(forrest_write(merged.get(), more.merge("k", "c").get()));
        Transaction last(merged.get());
        last.merge("k", "d");
        check(forrest_transaction_commit(last.get()));
        DEMAND(*merged.held("k") == "abcd" && db.drop("merged"));
        const Db chosen = db.keyspace("chosen");
        chosen.set_merge_operator("first");
        chosen.merge("k", "a");
        chosen.merge("k", "b");
        DEMAND(*chosen.held("k") == "a" && db.drop("chosen"));
    });
    db.flush();
    db.trim();
    db.settle();
    db.refresh();
    where(can & FORREST_CAN_CHECKPOINT, [&] {
        const Directory directory;
        db.checkpoint(directory.path.c_str()); // an empty directory is allowed
        {
            const Db copy(directory.path.c_str());
            DEMAND(copy.contains("oak") && copy.stats().keys == db.stats().keys);
        }
        const Directory salvaged;
        const auto [found, lost] = salvage(directory.path, salvaged.path);
        DEMAND(found.pairs == db.count("") && found.keyspaces == 1 && found.lost == 0 && lost.empty());
        DEMAND(Db(salvaged.path.c_str()).contains("oak"));
        check(forrest_move_log(salvaged.path.c_str(), nullptr));
    });
    where(can & FORREST_CAN_BACKUP, [&] { backing_up(db); });
    db.sync();
    DEMAND(db.stats().keys == 4 && db.count("") == 4);
    db.remove_range("a", "z");
    db.set("p1", "");
    db.remove_prefix("p");
    db.clear();
    DEMAND(db.count("") == 0);

    try {
        Db("mermory:");
        DEMAND(false);
    } catch (const Error &error) {
        DEMAND(error.code == FORREST_INVALID_ARGUMENT);
    }
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    try {
        all(argv[1]);
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
    std::cout << "all is as it should be\n";
}
