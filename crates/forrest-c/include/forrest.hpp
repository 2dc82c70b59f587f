/*
 * Forrest for C++17 and later: the functions of forrest.h, with handles that close themselves, errors as exceptions, and
 * ranges. Header only; link with libforrest.
 *
 *     #include <forrest.hpp>
 *     #include <iostream>
 *
 *     int main() {
 *         forrest::Db db("trees"); // a directory; "memory:" is a store in memory
 *         db.set("oak", "Quercus robur");
 *         for (auto [key, value] : db.range("a", "p"))
 *             std::cout << key << ": " << value << '\n';
 *     }
 *
 * Rules for all classes:
 *
 * - Keys and values are any bytes, passed as std::string_view. Functions copy or read their arguments before they return.
 * - An object owns a handle. It can be moved and not copied. Its destructor closes the handle, and drops errors of that;
 *   Db::close() throws them. An object that was moved from can only be destroyed or assigned to: each call of it throws an
 *   Error with FORREST_INVALID_ARGUMENT.
 * - A call that fails throws an Error, and has changed nothing unless forrest.h says otherwise. Absence, a failed comparison
 *   and a conflict are results, not errors. Memory of C++ itself may throw std::bad_alloc.
 * - Many threads may use a Db, a Snapshot and a Value at once; only one thread at a time any other object.
 * - forrest.h documents each function in full: its errors, its limits, and whether it blocks. Each class has handle(), with
 *   which a program calls functions of forrest.h that are not here, such as forrest_salvage.
 */

#ifndef FORREST_HPP
#define FORREST_HPP

#include "forrest.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace forrest {

/** A call failed. what() is the message of the library: the kind of the error, what failed, and where. */
class Error : public std::runtime_error {
public:
    /** The last failure of this thread, which returned this code. */
    explicit Error(int32_t code)
        : std::runtime_error(forrest_error_message()), code_(code), change_(forrest_error_op()) {}

    /** A code of forrest.h, FORREST_IO to FORREST_INTERNAL. */
    int32_t code() const noexcept { return code_; }

    /** The number, from 0, of the change of a batch that failed; FORREST_ABSENT if there is none. */
    std::size_t change() const noexcept { return change_; }

private:
    int32_t code_;
    std::size_t change_;
};

/** What a change survives once its call has returned. docs/durability.md says it in full. */
enum class Durability : uint64_t {
    /** That with which the store was opened. */
    Default = FORREST_DURABILITY_DEFAULT,
    /** Nothing: the end of the process may lose it. */
    Memory = FORREST_DURABILITY_MEMORY,
    /** The end of the process. */
    Buffered = FORREST_DURABILITY_BUFFERED,
    /** Loss of power. */
    Sync = FORREST_DURABILITY_SYNC,
};

class Db;

/** Not for programs. */
namespace detail {

/** Returns a code that is not an error. */
inline int32_t check(int32_t code) {
    if (code < 0)
        throw Error(code);
    return code;
}

/** True for success, false for the other results, such as FORREST_NOT_FOUND. */
inline bool is_ok(int32_t code) { return check(code) == FORREST_OK; }

template <auto close> struct Close {
    template <typename Handle> void operator()(Handle *handle) const noexcept { close(handle); }
};

template <typename Handle, auto close> using Owned = std::unique_ptr<Handle, Close<close>>;

/** Bytes that may be absent, as forrest.h takes them: a null pointer is absence. */
struct Maybe {
    const void *data = nullptr;
    std::size_t bytes = FORREST_ABSENT;

    Maybe(std::optional<std::string_view> given) {
        if (given) {
            data = given->data() == nullptr ? "" : given->data();
            bytes = given->size();
        }
    }
};

inline std::string_view view(const void *data, std::size_t bytes) { return {static_cast<const char *>(data), bytes}; }

/** The first key after all keys with a prefix; none if there is no such key. */
inline std::optional<std::string> after_prefix(std::string_view prefix) {
    std::string end(prefix);
    while (!end.empty() && end.back() == '\xff')
        end.pop_back();
    if (end.empty())
        return std::nullopt;
    end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
    return end;
}

} // namespace detail

/** A value that a read has found. It does not change, even if its key is changed or the store is closed. */
class Value {
public:
    /** Takes over a handle from a function of forrest.h. */
    explicit Value(forrest_value *handle) : handle_(handle) {
        const void *data = nullptr;
        std::size_t bytes = 0;
        detail::check(forrest_value_data(handle, &data, &bytes));
        view_ = detail::view(data, bytes);
    }
    Value(Value &&other) noexcept
        : handle_(std::move(other.handle_)), view_(std::exchange(other.view_, std::string_view())) {}
    Value &operator=(Value &&other) noexcept {
        handle_ = std::move(other.handle_);
        view_ = std::exchange(other.view_, std::string_view());
        return *this;
    }

    /** Its bytes, as long as this object lives. */
    std::string_view view() const noexcept { return view_; }
    operator std::string_view() const noexcept { return view_; }
    /** A copy of its bytes. */
    std::string string() const { return std::string(view_); }

    friend bool operator==(const Value &a, const Value &b) noexcept { return a.view_ == b.view_; }
    friend bool operator!=(const Value &a, const Value &b) noexcept { return a.view_ != b.view_; }
    friend bool operator==(const Value &a, std::string_view b) noexcept { return a.view_ == b; }
    friend bool operator!=(const Value &a, std::string_view b) noexcept { return a.view_ != b; }

private:
    detail::Owned<forrest_value, forrest_value_release> handle_;
    std::string_view view_;
};

namespace detail {

inline std::optional<Value> owned(forrest_value *value) {
    return value == nullptr ? std::nullopt : std::optional<Value>(std::in_place, value);
}

} // namespace detail

/** Options for opening a store. */
class Options {
public:
    Options() {
        forrest_options *made;
        detail::check(forrest_options_create(&made));
        handle_.reset(made);
    }

    /** Sets an option of forrest.h, FORREST_CAPACITY_BYTES to FORREST_HISTORY_AGE_MS. */
    Options &set(int32_t option, uint64_t value) {
        detail::check(forrest_options_set(handle(), option, value));
        return *this;
    }

    /** Sets the durability of changes. */
    Options &durability(Durability level) { return set(FORREST_DURABILITY, static_cast<uint64_t>(level)); }

    /** Sets a function that decides which values stay. See forrest_options_set_compaction_filter. */
    Options &compaction_filter(forrest_compaction_filter filter, void *context) {
        detail::check(forrest_options_set_compaction_filter(handle(), filter, context));
        return *this;
    }

    /** Registers a merge operator. See forrest_options_add_merge_operator. */
    Options &merge_operator(const std::string &name, forrest_merge_function function, void *context) {
        detail::check(forrest_options_add_merge_operator(handle(), name.c_str(), function, context));
        return *this;
    }

    /** Writes the figures of a store on disk to a file each second. */
    Options &metrics_file(const std::string &path) {
        detail::check(forrest_options_set_metrics_file(handle(), path.c_str()));
        return *this;
    }

    /** Sets the directory for the log of a store on disk. */
    Options &log_directory(const std::string &path) {
        detail::check(forrest_options_set_log_directory(handle(), path.c_str()));
        return *this;
    }

    /** Sets the key of an encrypted store on disk: 32 bytes. */
    Options &encryption_key(std::string_view key) {
        detail::check(forrest_options_set_encryption_key(handle(), key.data(), key.size()));
        return *this;
    }

    forrest_options *handle() const noexcept { return handle_.get(); }

private:
    detail::Owned<forrest_options, forrest_options_destroy> handle_;
};

/** A position in the order of keys: at a pair, or at none. It keeps the store open. Each move returns whether it came to a pair. */
class Cursor {
public:
    /** With `keys_only` it reads no values, and value() throws. */
    explicit Cursor(const forrest_db *db, bool keys_only = false) {
        forrest_iter *made;
        detail::check((keys_only ? forrest_iter_create_keys : forrest_iter_create)(db, &made));
        handle_.reset(made);
    }

    bool first() { return detail::is_ok(forrest_iter_first(handle())); }
    bool last() { return detail::is_ok(forrest_iter_last(handle())); }
    bool next() { return detail::is_ok(forrest_iter_next(handle())); }
    bool prev() { return detail::is_ok(forrest_iter_prev(handle())); }
    /** Moves to the first key at or after `key`. */
    bool seek(std::string_view key) { return detail::is_ok(forrest_iter_seek(handle(), key.data(), key.size())); }
    /** Moves to the last key at or before `key`. */
    bool seek_for_prev(std::string_view key) {
        return detail::is_ok(forrest_iter_seek_for_prev(handle(), key.data(), key.size()));
    }
    /** Moves forward by that many pairs, and reads no values on the way. */
    bool skip(uint64_t pairs) { return detail::is_ok(forrest_iter_skip(handle(), pairs)); }
    /** Releases what the cursor holds besides its pair, for a pause of any length. */
    void park() { detail::check(forrest_iter_park(handle())); }

    /** Whether the last move came to a pair. */
    bool valid() const noexcept { return forrest_iter_valid(handle()); }
    /** The key, as long as the cursor is not moved. Empty at no pair. */
    std::string_view key() const { return bytes(forrest_iter_key); }
    /** The value, which is read now, as long as the cursor is not moved. Empty at no pair. */
    std::string_view value() const { return bytes(forrest_iter_value); }

    forrest_iter *handle() const noexcept { return handle_.get(); }

private:
    template <typename Read> std::string_view bytes(Read read) const {
        const void *data = nullptr;
        std::size_t bytes = 0;
        detail::check(read(handle(), &data, &bytes));
        return detail::view(data, bytes);
    }

    detail::Owned<forrest_iter, forrest_iter_destroy> handle_;
};

/** A pair of a range, as long as the iteration does not go on. */
struct Pair {
    std::string_view key, value;
};

/**
 * The pairs of a range of keys, for a loop or an algorithm that goes once over input iterators. begin() starts at the first
 * pair. The loop sees concurrent changes as an iterator of forrest.h does; over a snapshot it sees none.
 */
class Range {
public:
    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Pair;
        using difference_type = std::ptrdiff_t;
        using pointer = const Pair *;
        using reference = Pair;

        Iterator() = default;
        Pair operator*() const { return {range_->cursor_.key(), range_->cursor_.value()}; }
        Iterator &operator++() {
            step(range_->is_back_ ? range_->cursor_.prev() : range_->cursor_.next());
            return *this;
        }
        void operator++(int) { ++*this; }
        /** Iterators are equal if both are at the end, or at the same range. */
        friend bool operator==(const Iterator &a, const Iterator &b) noexcept { return a.range_ == b.range_; }
        friend bool operator!=(const Iterator &a, const Iterator &b) noexcept { return !(a == b); }

    private:
        friend class Range;
        explicit Iterator(Range &range) : range_(&range) { step(range.start()); }
        void step(bool moved) {
            if (!moved || !range_->holds(range_->cursor_.key()))
                range_ = nullptr;
        }

        Range *range_ = nullptr;
    };

    /** Begins at the first pair. Iterators of an earlier begin() are invalid then. */
    Iterator begin() { return Iterator(*this); }
    Iterator end() noexcept { return {}; }

private:
    friend class Reader;
    Range(const forrest_db *db, std::string_view start, std::optional<std::string_view> end, bool is_back)
        : cursor_(db), start_(start), end_(end), is_back_(is_back) {}

    /** Moves to the first pair to be seen, which may be outside of the range. */
    bool start() {
        if (!is_back_)
            return cursor_.seek(start_);
        if (!end_)
            return cursor_.last();
        return cursor_.seek_for_prev(*end_) && (cursor_.key() != *end_ || cursor_.prev());
    }

    bool holds(std::string_view key) const { return is_back_ ? key >= start_ : !end_ || key < *end_; }

    Cursor cursor_;
    std::string start_;
    std::optional<std::string> end_;
    bool is_back_;
};

/** A value that is read in pieces, from its beginning on, as it was when it was opened; see forrest_value_reader. */
class ValueReader {
public:
    /** Takes over a handle from a function of forrest.h, and the length. */
    ValueReader(forrest_value_reader *handle, uint64_t bytes) noexcept : handle_(handle), bytes_(bytes) {}

    /** The length of the value in bytes. */
    uint64_t size() const noexcept { return bytes_; }
    /** Reads on until the buffer is full or the value ends, and returns the number of bytes: 0 at the end. */
    std::size_t read(void *buffer, std::size_t bytes) {
        std::size_t read;
        detail::check(forrest_value_reader_read(handle(), buffer, bytes, &read));
        return read;
    }

    forrest_value_reader *handle() const noexcept { return handle_.get(); }

private:
    detail::Owned<forrest_value_reader, forrest_value_reader_close> handle_;
    uint64_t bytes_;
};

/** What can be read: a store, one of its keyspaces, or a snapshot. Ranges go from `start` up to, but without, `end`. */
class Reader {
public:
    /** The value of a key, or nothing. */
    std::optional<Value> get(std::string_view key) const {
        forrest_value *value;
        detail::check(forrest_get(handle(), key.data(), key.size(), &value));
        return detail::owned(value);
    }

    /**
     * Reads the value of a key, or nothing, if that takes no wait for a device. Returns false if it would have to wait;
     * then call get in another thread. For threads that must not block.
     */
    bool get_cached(std::string_view key, std::optional<Value> &value) const {
        forrest_value *found;
        const int32_t code = detail::check(forrest_get_cached(handle(), key.data(), key.size(), &found));
        value = detail::owned(found);
        return code != FORREST_NOT_CACHED;
    }

    /** The value of a key, to be read in pieces, or nothing. For values that are large for memory. */
    std::optional<ValueReader> reader(std::string_view key) const {
        forrest_value_reader *found;
        uint64_t bytes;
        if (!detail::is_ok(forrest_value_reader_open(handle(), key.data(), key.size(), &found, &bytes)))
            return std::nullopt;
        return ValueReader(found, bytes);
    }

    /** The values of many keys, in their order. It is faster than single reads, because their waits overlap. */
    std::vector<std::optional<Value>> multi_get(const std::vector<std::string_view> &keys) const {
        std::vector<const void *> starts;
        std::vector<std::size_t> bytes;
        for (std::string_view key : keys) {
            starts.push_back(key.data());
            bytes.push_back(key.size());
        }
        std::vector<std::optional<Value>> values;
        values.reserve(keys.size());
        std::vector<forrest_value *> found(keys.size());
        detail::check(forrest_multi_get(handle(), starts.data(), bytes.data(), keys.size(), found.data()));
        for (forrest_value *value : found)
            values.push_back(detail::owned(value));
        return values;
    }

    bool contains(std::string_view key) const {
        return detail::is_ok(forrest_contains(handle(), key.data(), key.size()));
    }

    /** When a value expires, in milliseconds since 1970; 0: it stays; nothing if the key is not there. */
    std::optional<uint64_t> expires(std::string_view key) const {
        uint64_t ms;
        if (!detail::is_ok(forrest_expires(handle(), key.data(), key.size(), &ms)))
            return std::nullopt;
        return ms;
    }

    /** The number of keys in a range. Takes time in proportion to it. */
    uint64_t count(std::string_view start = {}, std::optional<std::string_view> end = std::nullopt) const {
        const detail::Maybe until(end);
        uint64_t keys;
        detail::check(forrest_count(handle(), start.data(), start.size(), until.data, until.bytes, &keys));
        return keys;
    }

    /** The pairs of a range, in the order of keys. Without an end, up to the last. */
    Range range(std::string_view start = {}, std::optional<std::string_view> end = std::nullopt) const {
        return Range(handle(), start, end, false);
    }

    /** The pairs of a range, from the last to the first. */
    Range range_back(std::string_view start = {}, std::optional<std::string_view> end = std::nullopt) const {
        return Range(handle(), start, end, true);
    }

    /** The pairs whose keys have a prefix. */
    Range prefix(std::string_view prefix) const { return range(prefix, detail::after_prefix(prefix)); }

    /**
     * Calls `see(key, value)` with each pair of a range, as long as it returns true, or for all of them if it returns
     * nothing. The fastest iteration: it copies nothing, and the views end with the call. An exception of `see` ends the
     * scan, and goes on to the caller.
     */
    template <typename See>
    void scan(std::string_view start, std::optional<std::string_view> end, See &&see) const {
        scan_by(forrest_scan, start, end, see);
    }

    /** The same from the last pair to the first. */
    template <typename See>
    void scan_back(std::string_view start, std::optional<std::string_view> end, See &&see) const {
        scan_by(forrest_scan_back, start, end, see);
    }

    /** A cursor at no pair. With `keys_only` it reads no values. */
    Cursor cursor(bool keys_only = false) const { return Cursor(handle(), keys_only); }

    /**
     * Calls `see(range, key, value)` with the first `limit` pairs of each range, from a start up to but not including an
     * end, as long as it returns true. The waits of the ranges for the device overlap. With `keys_only` the values are
     * not read, and empty.
     */
    template <typename See>
    void multi_scan(const std::vector<std::pair<std::string_view, std::optional<std::string_view>>> &ranges,
                    std::size_t limit, See &&see, bool keys_only = false) const {
        std::vector<const void *> starts, ends;
        std::vector<std::size_t> starts_bytes, ends_bytes;
        for (const auto &[start, end] : ranges) {
            const detail::Maybe until(end);
            starts.push_back(start.data());
            starts_bytes.push_back(start.size());
            ends.push_back(until.data);
            ends_bytes.push_back(until.bytes);
        }
        Seeing<See> seeing{see, nullptr};
        const int32_t code =
            forrest_multi_scan(handle(), starts.data(), starts_bytes.data(), ends.data(), ends_bytes.data(), ranges.size(),
                               limit, keys_only, seen_in<See>, &seeing);
        if (seeing.thrown)
            std::rethrow_exception(seeing.thrown);
        detail::check(code);
    }

    /** Whether there is a key with each of the prefixes. */
    std::vector<bool> prefixes_exist(const std::vector<std::string_view> &prefixes) const {
        std::vector<const void *> starts;
        std::vector<std::size_t> bytes;
        for (std::string_view prefix : prefixes) {
            starts.push_back(prefix.data());
            bytes.push_back(prefix.size());
        }
        const std::unique_ptr<bool[]> exist(new bool[prefixes.size()]());
        detail::check(forrest_prefixes_exist(handle(), starts.data(), bytes.data(), prefixes.size(), exist.get()));
        return std::vector<bool>(exist.get(), exist.get() + prefixes.size());
    }

    /** The number of keys in a range and their bytes, about, without reading them; see forrest_approximate. */
    std::pair<uint64_t, uint64_t> approximate(std::string_view start = {},
                                              std::optional<std::string_view> end = std::nullopt) const {
        const detail::Maybe until(end);
        uint64_t keys, bytes;
        detail::check(
            forrest_approximate(handle(), start.data(), start.size(), until.data, until.bytes, &keys, &bytes));
        return {keys, bytes};
    }

    /** The names of all keyspaces, sorted. */
    std::vector<std::string> keyspaces() const {
        char **names;
        std::size_t count;
        detail::check(forrest_keyspaces(handle(), &names, &count));
        const std::unique_ptr<char *, detail::Close<forrest_free>> freed(names);
        return std::vector<std::string>(names, names + count);
    }

    /** Statistics of the store. */
    forrest_stats stats() const {
        forrest_stats stats;
        detail::check(forrest_get_stats(handle(), &stats, sizeof stats));
        return stats;
    }

    /** What a store on disk holds and has done, in the text format of Prometheus. */
    std::string metrics() const {
        void *text;
        std::size_t bytes;
        detail::check(forrest_metrics(handle(), &text, &bytes));
        const std::unique_ptr<void, detail::Close<forrest_free>> freed(text);
        return std::string(static_cast<const char *>(text), bytes);
    }

    /** What the home can do: a sum of FORREST_CAN_ITERATE to FORREST_CAN_CHANGES. */
    uint64_t capabilities() const {
        uint64_t capabilities;
        detail::check(forrest_capabilities(handle(), &capabilities));
        return capabilities;
    }

    forrest_db *handle() const noexcept { return handle_.get(); }

protected:
    explicit Reader(forrest_db *handle) noexcept : handle_(handle) {}

    forrest_db *keyspace_handle(const std::string &name) const {
        forrest_db *made;
        detail::check(forrest_keyspace(handle(), name.c_str(), &made));
        return made;
    }

    detail::Owned<forrest_db, forrest_close> handle_;

private:
    template <typename See> struct Seeing {
        See &see;
        std::exception_ptr thrown;
    };

    template <typename Scan, typename See>
    void scan_by(Scan scan, std::string_view start, std::optional<std::string_view> end, See &see) const {
        Seeing<See> seeing{see, nullptr};
        const detail::Maybe until(end);
        const int32_t code =
            scan(handle(), start.data(), start.size(), until.data, until.bytes, seen<See>, &seeing);
        if (seeing.thrown)
            std::rethrow_exception(seeing.thrown);
        detail::check(code);
    }

    /** What forrest_multi_scan calls. No exception may leave it. */
    template <typename See>
    static bool seen_in(void *context, std::size_t range, const void *key, std::size_t key_bytes, const void *value,
                        std::size_t value_bytes) {
        auto &seeing = *static_cast<Seeing<See> *>(context);
        try {
            return seeing.see(range, detail::view(key, key_bytes), detail::view(value, value_bytes));
        } catch (...) {
            seeing.thrown = std::current_exception();
            return false;
        }
    }

    /** What forrest_scan calls. No exception may leave it. */
    template <typename See>
    static bool seen(void *context, const void *key, std::size_t key_bytes, const void *value, std::size_t value_bytes) {
        auto &seeing = *static_cast<Seeing<See> *>(context);
        try {
            const std::string_view key_view = detail::view(key, key_bytes), value_view = detail::view(value, value_bytes);
            if constexpr (std::is_void_v<decltype(seeing.see(key_view, value_view))>) {
                seeing.see(key_view, value_view);
                return true;
            } else {
                return seeing.see(key_view, value_view);
            }
        } catch (...) {
            seeing.thrown = std::current_exception();
            return false;
        }
    }
};

/** One state of a whole store, as it was when the snapshot was taken. */
class Snapshot : public Reader {
public:
    /** Takes over a handle from a function of forrest.h. */
    explicit Snapshot(forrest_db *handle) noexcept : Reader(handle) {}

    /** A keyspace in the snapshot. */
    Snapshot keyspace(const std::string &name) const { return Snapshot(keyspace_handle(name)); }
    /** The sequence number of its last change: Db::changes after it returns those that it lacks. */
    uint64_t sequence() const {
        uint64_t sequence;
        detail::check(forrest_snapshot_sequence(handle(), &sequence));
        return sequence;
    }
};

/** Changes that are applied at one instant, or not at all. */
class Batch {
public:
    Batch() {
        forrest_batch *made;
        detail::check(forrest_batch_create(&made));
        handle_.reset(made);
    }

    /** Further changes are for this keyspace. */
    inline Batch &on(const Db &keyspace);

    Batch &set(std::string_view key, std::string_view value) {
        detail::check(forrest_batch_set(handle(), key.data(), key.size(), value.data(), value.size()));
        return *this;
    }
    /** Sets a value for a time to live from the time on at which the batch is applied. */
    Batch &set_with_ttl(std::string_view key, std::string_view value, uint64_t ttl_ms) {
        detail::check(
            forrest_batch_set_with_ttl(handle(), key.data(), key.size(), value.data(), value.size(), ttl_ms));
        return *this;
    }
    Batch &erase(std::string_view key) {
        detail::check(forrest_batch_delete(handle(), key.data(), key.size()));
        return *this;
    }
    Batch &erase_range(std::string_view start, std::optional<std::string_view> end = std::nullopt) {
        const detail::Maybe until(end);
        detail::check(forrest_batch_delete_range(handle(), start.data(), start.size(), until.data, until.bytes));
        return *this;
    }
    /** Adds to a counter, as Db::add. */
    Batch &add(std::string_view key, int64_t delta) {
        detail::check(forrest_batch_add(handle(), key.data(), key.size(), delta));
        return *this;
    }
    /** Gives an operand to the merge operator of the keyspace, as Db::merge. */
    Batch &merge(std::string_view key, std::string_view operand) {
        detail::check(forrest_batch_merge(handle(), key.data(), key.size(), operand.data(), operand.size()));
        return *this;
    }
    /** Replaces a value if it is the expected one; if not, nothing of the batch is applied. Nothing means absence. */
    Batch &compare_and_swap(std::string_view key, std::optional<std::string_view> expected,
                            std::optional<std::string_view> desired) {
        const detail::Maybe from(expected), to(desired);
        detail::check(forrest_batch_compare_and_swap(handle(), key.data(), key.size(), from.data, from.bytes, to.data,
                                                     to.bytes));
        return *this;
    }
    /**
     * The condition that the range from start up to, but without, end has exactly these pairs, in ascending order. Such
     * conditions stand before all changes; if one fails, nothing of the batch is applied.
     */
    Batch &compare_range(std::string_view start, std::optional<std::string_view> end,
                         const std::vector<std::pair<std::string_view, std::string_view>> &pairs) {
        const detail::Maybe until(end);
        std::vector<const void *> keys, values;
        std::vector<std::size_t> keys_bytes, values_bytes;
        for (const auto &[key, value] : pairs) {
            keys.push_back(key.data());
            keys_bytes.push_back(key.size());
            values.push_back(value.data());
            values_bytes.push_back(value.size());
        }
        detail::check(forrest_batch_compare_range(handle(), start.data(), start.size(), until.data, until.bytes,
                                                  keys.data(), keys_bytes.data(), values.data(), values_bytes.data(),
                                                  pairs.size()));
        return *this;
    }

    /** The number of changes. */
    std::size_t size() const {
        std::size_t changes, bytes;
        detail::check(forrest_batch_size(handle(), &changes, &bytes));
        return changes;
    }
    /** Removes all changes, and keeps the memory. */
    void clear() { detail::check(forrest_batch_clear(handle())); }

    forrest_batch *handle() const noexcept { return handle_.get(); }

private:
    detail::Owned<forrest_batch, forrest_batch_destroy> handle_;
};

/**
 * Reads and changes that happen at one instant, the commit, or not at all. A destroyed transaction has changed nothing. If
 * commit() returns false, run all of it again:
 *
 *     forrest::Transaction transaction = db.begin();
 *     do {
 *         auto old = transaction.get("oak");
 *         transaction.set("oak", old ? old->string() + "!" : "!");
 *     } while (!transaction.commit());
 */
class Transaction {
public:
    /** Takes over a handle from a function of forrest.h. */
    explicit Transaction(forrest_transaction *handle) noexcept : handle_(handle) {}

    /** Further reads and changes are in this keyspace, also those of the next transactions, when it is run again. */
    inline Transaction &on(const Db &keyspace);

    std::optional<Value> get(std::string_view key) {
        forrest_value *value;
        detail::check(forrest_transaction_get(handle(), key.data(), key.size(), &value));
        return detail::owned(value);
    }
    bool contains(std::string_view key) {
        return detail::is_ok(forrest_transaction_contains(handle(), key.data(), key.size()));
    }
    void set(std::string_view key, std::string_view value) {
        detail::check(forrest_transaction_set(handle(), key.data(), key.size(), value.data(), value.size()));
    }
    /** Sets a value for a time to live from the commit on. */
    void set_with_ttl(std::string_view key, std::string_view value, uint64_t ttl_ms) {
        detail::check(forrest_transaction_set_with_ttl(handle(), key.data(), key.size(), value.data(), value.size(),
                                                       ttl_ms));
    }
    void erase(std::string_view key) { detail::check(forrest_transaction_delete(handle(), key.data(), key.size())); }
    /** Removes all keys of a range, those that exist at the commit: it is not a read. Without `end` there is no end. */
    void erase_range(std::string_view start, std::optional<std::string_view> end = std::nullopt) {
        const detail::Maybe until(end);
        detail::check(forrest_transaction_delete_range(handle(), start.data(), start.size(), until.data, until.bytes));
    }

    /** Locks a key until the transaction ends, and reads it; see forrest_transaction_get_for_update. */
    std::optional<Value> get_for_update(std::string_view key) {
        forrest_value *value;
        detail::check(forrest_transaction_get_for_update(handle(), key.data(), key.size(), &value));
        return detail::owned(value);
    }
    /** Locks a key, which need not exist, until the transaction ends. */
    void lock(std::string_view key) { detail::check(forrest_transaction_lock(handle(), key.data(), key.size())); }
    /** How long this transaction waits for each lock; by default 1 second. */
    void lock_wait(std::chrono::milliseconds wait) {
        const auto count = wait.count() < 0 ? 0 : static_cast<uint64_t>(wait.count());
        detail::check(forrest_transaction_set_lock_wait(handle(), count));
    }

    /** Begins to read a range, with the transaction's own changes. It replaces the range before. */
    void range(std::string_view start, std::optional<std::string_view> end = std::nullopt) {
        const detail::Maybe until(end);
        detail::check(forrest_transaction_range(handle(), start.data(), start.size(), until.data, until.bytes));
    }
    /** The next key and value from the front of the range; nothing at its end. */
    std::optional<std::pair<Value, Value>> next() { return step(forrest_transaction_next); }
    /** The next key and value from the back of the range. */
    std::optional<std::pair<Value, Value>> prev() { return step(forrest_transaction_prev); }

    /** A place to which changes can be taken back. */
    uint64_t savepoint() {
        uint64_t savepoint;
        detail::check(forrest_transaction_savepoint(handle(), &savepoint));
        return savepoint;
    }
    /** Takes back all changes since a savepoint, and no reads. */
    void rollback_to(uint64_t savepoint) { detail::check(forrest_transaction_rollback_to(handle(), savepoint)); }

    /** Adds to a counter, as Db::add. It is not a read, and so in no conflict with other additions. */
    void add(std::string_view key, int64_t delta) {
        detail::check(forrest_transaction_add(handle(), key.data(), key.size(), delta));
    }

    /** Gives an operand to the merge operator of the keyspace, as Db::merge. It is not a read either. */
    void merge(std::string_view key, std::string_view operand) {
        detail::check(forrest_transaction_merge(handle(), key.data(), key.size(), operand.data(), operand.size()));
    }

    /** Applies the changes; false if a value that was read has changed. Either way the next transaction begins. */
    [[nodiscard]] bool commit(Durability durability = Durability::Default) {
        return detail::is_ok(
            forrest_transaction_commit_with(handle(), static_cast<uint64_t>(durability), nullptr, nullptr));
    }
    /** Discards the changes; false if a value that was read has changed. The next transaction begins. */
    [[nodiscard]] bool check() { return detail::is_ok(forrest_transaction_check(handle())); }
    /** Discards all reads and changes. The next transaction begins. */
    void rollback() { detail::check(forrest_transaction_rollback(handle())); }

    forrest_transaction *handle() const noexcept { return handle_.get(); }

private:
    std::optional<std::pair<Value, Value>> step(int32_t (*move)(forrest_transaction *, forrest_value **, forrest_value **)) {
        forrest_value *key, *value;
        if (!detail::is_ok(move(handle(), &key, &value)))
            return std::nullopt;
        return std::pair(Value(key), Value(value));
    }

    detail::Owned<forrest_transaction, forrest_transaction_destroy> handle_;
};

/**
 * Sorted pairs that a keyspace gets at one instant, by finish(); see forrest_ingest. A destroyed ingest has changed nothing.
 *
 *     forrest::Ingest ingest = db.ingest();
 *     for (const auto &[key, value] : sorted)
 *         ingest.put(key, value);
 *     ingest.finish();
 */
class Ingest {
public:
    /** Takes over a handle from a function of forrest.h. */
    explicit Ingest(forrest_ingest *handle) noexcept : handle_(handle) {}

    /** Adds a pair, whose key is greater than the one before. */
    Ingest &put(std::string_view key, std::string_view value) {
        detail::check(forrest_ingest_put(handle(), key.data(), key.size(), value.data(), value.size()));
        return *this;
    }
    /** Makes all pairs visible, and returns their number. The object is of no use afterwards. */
    uint64_t finish() {
        uint64_t pairs;
        detail::check(forrest_ingest_finish(handle(), &pairs));
        return pairs;
    }

    forrest_ingest *handle() const noexcept { return handle_.get(); }

private:
    detail::Owned<forrest_ingest, forrest_ingest_destroy> handle_;
};

/**
 * A blob that is being written: a value of any length, which is visible after finish(); see forrest_blob_writer. A writer
 * that is destroyed before discards it.
 */
class BlobWriter {
public:
    /** Takes over a handle from a function of forrest.h. */
    explicit BlobWriter(forrest_blob_writer *handle) noexcept : handle_(handle) {}

    /** Writes the next bytes. After an error the blob is discarded. */
    BlobWriter &write(std::string_view bytes) {
        detail::check(forrest_blob_write(handle(), bytes.data(), bytes.size()));
        return *this;
    }
    /** Makes the blob visible, in place of the one that its key had. The object is of no use afterwards. */
    void finish() { detail::check(forrest_blob_finish(handle())); }

    forrest_blob_writer *handle() const noexcept { return handle_.get(); }

private:
    detail::Owned<forrest_blob_writer, forrest_blob_writer_destroy> handle_;
};

/** A blob that is read, as it was when it was opened; see forrest_blob. */
class Blob {
public:
    /** Takes over a handle from a function of forrest.h, and the length. */
    Blob(forrest_blob *handle, uint64_t bytes) noexcept : handle_(handle), bytes_(bytes) {}

    /** The length in bytes. */
    uint64_t size() const noexcept { return bytes_; }
    /** Reads from an offset on until the buffer is full or the blob ends, and returns the number of bytes. */
    std::size_t read(uint64_t offset, void *buffer, std::size_t bytes) {
        std::size_t read;
        detail::check(forrest_blob_read(handle(), offset, buffer, bytes, &read));
        return read;
    }

    forrest_blob *handle() const noexcept { return handle_.get(); }

private:
    detail::Owned<forrest_blob, forrest_blob_close> handle_;
    uint64_t bytes_;
};

/** The changes of a store after a sequence number, in their order; see forrest_changes. */
class Changes {
public:
    /** Takes over a handle from a function of forrest.h. */
    explicit Changes(forrest_changes *handle) noexcept : handle_(handle) {}

    /** The next change, whose pointers are valid until the next call; nothing if none comes for this time. */
    std::optional<forrest_change> next(uint64_t wait_ms = 0) {
        forrest_change change;
        if (!detail::is_ok(forrest_changes_next(handle(), wait_ms, &change)))
            return std::nullopt;
        return change;
    }

    forrest_changes *handle() const noexcept { return handle_.get(); }

private:
    detail::Owned<forrest_changes, forrest_changes_destroy> handle_;
};

/** The result of Db::compare_and_swap. */
struct Swap {
    /** Whether the value was replaced. */
    bool swapped;
    /** If not, the value that was found, or nothing. */
    std::optional<Value> found;
    explicit operator bool() const noexcept { return swapped; }
};

/** The result of Db::try_write. */
struct Written {
    /** Whether the batch was applied. */
    bool applied;
    /** If not, the number, from 0, of the change whose comparison failed, and the value that was found, or nothing. */
    std::size_t change;
    std::optional<Value> found;
    explicit operator bool() const noexcept { return applied; }
};

/** An open store, or one of its keyspaces. The store is closed with the last of its objects. */
class Db : public Reader {
public:
    /** Opens a store: a path, "memory:", or another home of forrest_open. */
    explicit Db(const std::string &url) : Reader(nullptr) {
        forrest_db *opened;
        detail::check(forrest_open(url.c_str(), &opened));
        handle_.reset(opened);
    }
    Db(const std::string &url, const Options &options) : Reader(nullptr) {
        forrest_db *opened;
        detail::check(forrest_open_with(url.c_str(), options.handle(), &opened));
        handle_.reset(opened);
    }
    /** Takes over a handle from a function of forrest.h. */
    explicit Db(forrest_db *handle) noexcept : Reader(handle) {}

    /** Another keyspace of the store, which is created if it is missing. */
    Db keyspace(const std::string &name) const { return Db(keyspace_handle(name)); }
    /** Removes a keyspace with all its pairs; false if there is none of that name. */
    bool drop_keyspace(const std::string &name) {
        return detail::is_ok(forrest_drop_keyspace(handle(), name.c_str()));
    }
    /** The current state of the whole store; the object reads this keyspace in it. */
    Snapshot snapshot() const {
        forrest_db *made;
        detail::check(forrest_snapshot(handle(), &made));
        return Snapshot(made);
    }

    void set(std::string_view key, std::string_view value) {
        detail::check(forrest_set(handle(), key.data(), key.size(), value.data(), value.size()));
    }
    /** Sets a value for a time to live. See forrest_set_with_ttl. */
    void set_with_ttl(std::string_view key, std::string_view value, uint64_t ttl_ms) {
        detail::check(forrest_set_with_ttl(handle(), key.data(), key.size(), value.data(), value.size(), ttl_ms));
    }
    /** The time to live of all values that are set from now on without one of their own; 0: they stay. */
    void set_ttl(uint64_t ttl_ms) { detail::check(forrest_set_ttl(handle(), ttl_ms)); }
    /** The time to live that set_ttl chose; 0: values stay. */
    uint64_t ttl() {
        uint64_t ms;
        detail::check(forrest_ttl(handle(), &ms));
        return ms;
    }
    /** Removes a key; whether it was there. */
    bool erase(std::string_view key) { return detail::is_ok(forrest_delete(handle(), key.data(), key.size())); }
    /** Removes all keys of a range. */
    void erase_range(std::string_view start, std::optional<std::string_view> end = std::nullopt) {
        const detail::Maybe until(end);
        detail::check(forrest_delete_range(handle(), start.data(), start.size(), until.data, until.bytes));
    }
    /** Removes all keys that begin with a prefix. */
    void erase_prefix(std::string_view prefix) {
        detail::check(forrest_delete_prefix(handle(), prefix.data(), prefix.size()));
    }
    /** Removes all keys. The keyspace stays. */
    void clear() { detail::check(forrest_clear(handle())); }
    /** Adds to a counter, which is 8 bytes, big endian, and 0 if it is missing; returns its new value. */
    int64_t add(std::string_view key, int64_t delta) {
        int64_t sum;
        detail::check(forrest_add(handle(), key.data(), key.size(), delta, &sum));
        return sum;
    }

    /** Gives an operand to the merge operator of the keyspace. See forrest_merge. */
    void merge(std::string_view key, std::string_view operand) {
        detail::check(forrest_merge(handle(), key.data(), key.size(), operand.data(), operand.size()));
    }

    /** Chooses the merge operator of an empty keyspace. See forrest_set_merge_operator. */
    void set_merge_operator(const std::string &name) {
        detail::check(forrest_set_merge_operator(handle(), name.c_str()));
    }
    /** Replaces a value, at one instant, if it is the expected one. Nothing means absence. */
    [[nodiscard]] Swap compare_and_swap(std::string_view key, std::optional<std::string_view> expected,
                                        std::optional<std::string_view> desired) {
        const detail::Maybe from(expected), to(desired);
        forrest_value *found;
        const bool swapped = detail::is_ok(forrest_compare_and_swap(
            handle(), key.data(), key.size(), from.data, from.bytes, to.data, to.bytes, &found));
        return {swapped, detail::owned(found)};
    }

    /** Applies a batch. Throws FORREST_CONDITION_FAILED if a comparison in it fails. */
    void write(const Batch &batch, Durability durability = Durability::Default) {
        detail::check(forrest_write_with(handle(), batch.handle(), static_cast<uint64_t>(durability)));
    }
    /** Begins an ingest into this keyspace. */
    Ingest ingest() {
        forrest_ingest *begun;
        detail::check(forrest_ingest_begin(handle(), &begun));
        return Ingest(begun);
    }
    /** Begins to write a blob of this keyspace, in pieces of this many bytes; 0 is the default. */
    BlobWriter write_blob(std::string_view key, uint32_t piece_bytes = 0) {
        forrest_blob_writer *begun;
        detail::check(forrest_blob_begin(handle(), key.data(), key.size(), piece_bytes, &begun));
        return BlobWriter(begun);
    }
    /** A blob of this keyspace, or nothing. */
    [[nodiscard]] std::optional<Blob> blob(std::string_view key) const {
        forrest_blob *found;
        uint64_t bytes;
        if (!detail::is_ok(forrest_blob_open(handle(), key.data(), key.size(), &found, &bytes)))
            return std::nullopt;
        return Blob(found, bytes);
    }
    /** Removes a blob; false if there was none. */
    bool erase_blob(std::string_view key) {
        return detail::is_ok(forrest_blob_delete(handle(), key.data(), key.size()));
    }
    /** The changes after a sequence number, of a store on disk with FORREST_HISTORY. */
    Changes changes(uint64_t since, Durability durability = Durability::Default) {
        forrest_changes *begun;
        detail::check(forrest_changes_begin(handle(), since, static_cast<uint64_t>(durability), &begun));
        return Changes(begun);
    }
    /** Applies a batch, or returns which comparison failed. */
    [[nodiscard]] Written try_write(const Batch &batch, Durability durability = Durability::Default) {
        std::size_t change;
        forrest_value *found;
        const bool applied = detail::is_ok(
            forrest_try_write(handle(), batch.handle(), static_cast<uint64_t>(durability), &change, &found));
        return {applied, change, detail::owned(found)};
    }
    Transaction begin() {
        forrest_transaction *begun;
        detail::check(forrest_transaction_begin(handle(), &begun));
        return Transaction(begun);
    }

    /** Makes everything before durable. Blocks for the device. */
    void sync() { detail::check(forrest_sync(handle())); }
    /** Moves all changes to tables. */
    void flush() { detail::check(forrest_flush(handle())); }
    /** Finishes the background work, for example after a large load. */
    void settle() { detail::check(forrest_settle(handle())); }
    /** Chooses the compression of the keyspace's tables from now on: FORREST_COMPRESSION_NONE to FORREST_COMPRESSION_ZSTD. */
    void set_compression(uint64_t compression) { detail::check(forrest_set_compression(handle(), compression)); }
    /** Merges all tables; or those of a range. */
    void compact() { detail::check(forrest_compact(handle())); }
    void compact(std::string_view start, std::optional<std::string_view> end) {
        const detail::Maybe until(end);
        detail::check(forrest_compact_range(handle(), start.data(), start.size(), until.data, until.bytes));
    }
    /** Reads all files and verifies their checksums. */
    void verify() { detail::check(forrest_verify(handle())); }
    /** Copies the store to a new directory. */
    void checkpoint(const std::string &path) { detail::check(forrest_checkpoint(handle(), path.c_str())); }
    /** Adds a backup to a directory of backups. forrest_backup_restore() and the calls next to it work on these. */
    forrest_backup back_up(const std::string &directory, bool other_store = false) {
        forrest_backup backup{};
        detail::check(forrest_backup_create(handle(), directory.c_str(), other_store, nullptr, nullptr, &backup,
                                            sizeof backup));
        return backup;
    }
    /** Gives unused memory back to the system. */
    void trim() { detail::check(forrest_trim(handle())); }
    /** Takes over what another process has written, if this store is opened to be read. */
    void refresh() { detail::check(forrest_refresh(handle())); }
    /** Accepts changes again after a failure of the disk. */
    void resume() { detail::check(forrest_resume(handle())); }

    /** Replaces the key that opens an encrypted store on disk: 32 bytes. */
    void rotate_key(std::string_view key) { detail::check(forrest_rotate_key(handle(), key.data(), key.size())); }

    /** Encrypts the files that are made from now on with a new data key. */
    void rotate_data_key() { detail::check(forrest_rotate_data_key(handle())); }
    /** Changes an option of the open store. */
    void set_option(int32_t option, uint64_t value) { detail::check(forrest_set_option(handle(), option, value)); }

    /** Closes this handle now, and throws what the destructor would drop. */
    void close() { detail::check(forrest_close(handle_.release())); }
};

inline Batch &Batch::on(const Db &keyspace) {
    detail::check(forrest_batch_on(handle(), keyspace.handle()));
    return *this;
}

inline Transaction &Transaction::on(const Db &keyspace) {
    detail::check(forrest_transaction_on(handle(), keyspace.handle()));
    return *this;
}

} // namespace forrest

#endif /* FORREST_HPP */
