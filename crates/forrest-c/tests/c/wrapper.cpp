// Every class of forrest.hpp: wrapper URL, where URL names a new store of any home.

#include <forrest.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <thread>

namespace {

using namespace std::string_literals;
using std::string;
using std::string_view;

void demand(bool condition, const char *what) {
    if (!condition) {
        std::cerr << what << " (last error: " << forrest_error_message() << ")\n";
        std::exit(1);
    }
}
#define CHECK(condition) demand((condition), #condition)

// The code that a call throws; 0 if it throws none.
template <typename Call> int32_t thrown(Call call) {
    try {
        call();
    } catch (const forrest::Error &error) {
        CHECK(string_view(error.what()).size() > 0);
        return error.code();
    }
    return 0;
}

// The pairs of a range as one text.
string text(forrest::Range range) {
    string all;
    for (auto [key, value] : range)
        all += string(key) + "=" + string(value) + " ";
    return all;
}

template <typename Class> constexpr bool is_moved_only() {
    return std::is_nothrow_move_constructible_v<Class> && std::is_nothrow_move_assignable_v<Class> &&
           !std::is_copy_constructible_v<Class> && !std::is_copy_assignable_v<Class>;
}
static_assert(is_moved_only<forrest::Db>() && is_moved_only<forrest::Snapshot>() && is_moved_only<forrest::Value>());
static_assert(is_moved_only<forrest::Batch>() && is_moved_only<forrest::Transaction>());
static_assert(is_moved_only<forrest::Options>() && is_moved_only<forrest::Cursor>());

void changing(forrest::Db &db) {
    CHECK(!db.get("oak") && !db.contains("oak") && !db.erase("oak"));
    db.set("oak", "Quercus");
    auto first = db.get("oak");
    std::optional<forrest::Value> cached;
    CHECK(db.get_cached("oak", cached) && *cached == "Quercus" && db.get_cached("none", cached) && !cached);
    db.set("oak", "");
    CHECK(*first == "Quercus" && first->string() == "Quercus" && db.get("oak")->view().empty());
    forrest::Value moved = std::move(*first);
    CHECK(moved == "Quercus" && first->view().empty());
    moved = std::move(*db.get("oak"));
    CHECK(moved.view().empty() && db.erase("oak"));
    const string zeros("a\0b", 3);
    db.set(zeros, zeros);
    db.set({}, "empty key");
    CHECK(*db.get(zeros) == zeros && *db.get("") == "empty key" && db.erase({}) && db.erase(zeros));

    CHECK(db.add("n", 5) == 5 && db.add("n", -7) == -2);
    db.set("text", "x");
    CHECK(thrown([&] { db.add("text", 1); }) == FORREST_INVALID_ARGUMENT);
    CHECK(thrown([&] { db.set(string(100000, 'k'), "v"); }) == FORREST_LIMIT);
    CHECK(db.compare_and_swap("k", std::nullopt, "1") && db.compare_and_swap("k", "1", ""));
    auto swap = db.compare_and_swap("k", "1", "2");
    CHECK(!swap && swap.found && swap.found->view().empty());
    CHECK(!db.compare_and_swap("k", std::nullopt, "2") && db.compare_and_swap("k", string_view(), std::nullopt));
    swap = db.compare_and_swap("k", "", std::nullopt);
    CHECK(!swap && !swap.found);
    db.set("prefix", "1");
    db.erase_prefix("pre");
    CHECK(!db.get("prefix"));
    db.erase_range("");
    db.clear();
    CHECK(db.count() == 0);
}

void ranges(forrest::Db &db) {
    CHECK(text(db.range()) == "" && text(db.range_back()) == "");
    for (string_view key : {"a", "b", "c", "p\xff", "p\xffq", "q"})
        db.set(key, key.substr(0, 1));
    CHECK(text(db.range("b", "p")) == "b=b c=c " && text(db.range_back("b", "p")) == "c=c b=b ");
    CHECK(text(db.range("b", "c")) == "b=b " && text(db.range_back("b", "c")) == "b=b ");
    CHECK(text(db.range("bb", "c")) == "" && text(db.range_back("bb", "c")) == "");
    CHECK(text(db.range("c", "b")) == "" && text(db.range_back("c", "b")) == "");
    CHECK(text(db.range("", "")) == "" && text(db.range_back("", "")) == "" && text(db.range({}, string_view())) == "");
    CHECK(text(db.range("q")) == "q=q " && text(db.range_back("q")) == "q=q " && text(db.range("r")) == "");
    CHECK(text(db.prefix("p\xff")) == "p\xff=p p\xffq=p " && text(db.prefix("\xff")) == "");
    CHECK(db.count() == 6 && db.count("b", "p") == 2 && db.count("b", "") == 0);
    {
        auto range = db.range("a", "c");
        CHECK(std::count_if(range.begin(), range.end(), [](forrest::Pair pair) { return pair.key < "b"; }) == 1);
        CHECK(std::distance(range.begin(), range.end()) == 2); // from the beginning again
        auto at = range.begin();
        at++;
        CHECK((*at).key == "b" && ++at == range.end());
    }
    string seen;
    db.scan("b", "q", [&](string_view key, string_view) { return (seen += key.substr(0, 1)).size() < 3; });
    db.scan_back({}, std::nullopt, [&](string_view key, string_view value) { seen += key.substr(0, 1) == value ? "." : "?"; });
    CHECK(seen == "bcp......");
    try {
        db.scan({}, std::nullopt, [](string_view, string_view) { throw std::runtime_error("mine"); });
        CHECK(false);
    } catch (const std::runtime_error &error) {
        CHECK(error.what() == "mine"s);
    }

    auto cursor = db.cursor();
    CHECK(!cursor.valid() && cursor.key().empty() && cursor.value().empty());
    CHECK(cursor.first() && cursor.next() && cursor.key() == "b" && cursor.value() == "b" && cursor.prev());
    CHECK(cursor.last() && cursor.key() == "q" && !cursor.next() && !cursor.valid());
    CHECK(cursor.seek("bb") && cursor.key() == "c" && cursor.seek_for_prev("bb") && cursor.key() == "b");
    cursor.park();
    CHECK(cursor.skip(1) && cursor.key() == "c");

    std::vector<string> shown;
    db.multi_scan({{"b", "p"}, {"q", std::nullopt}, {"x", "b"}}, 1, [&](size_t range, string_view key, string_view value) {
        shown.push_back(std::to_string(range) + string(key) + string(value));
        return true;
    });
    std::vector<string> keys;
    db.multi_scan({{"", std::nullopt}}, 100, [&](size_t, string_view key, string_view value) {
        keys.push_back(string(key) + string(value));
        return keys.size() < 2;
    }, true);
    CHECK(shown.size() == 2 && shown[0][0] == '0' && shown[1][0] == '1' && keys.size() == 2);
    CHECK(db.prefixes_exist({"q", "none", ""}) == (std::vector<bool>{true, false, true}));
    if (db.capabilities() & FORREST_CAN_APPROXIMATE)
        CHECK(db.approximate().first >= db.count() && db.approximate("b", "").first == 0);
    auto only_keys = db.cursor(true);
    CHECK(only_keys.first() && thrown([&] { only_keys.value(); }) == FORREST_INVALID_ARGUMENT);
    const auto values = db.multi_get({"a", "none", "q"});
    CHECK(values.size() == 3 && *values[0] == "a" && !values[1] && *values[2] == "q" && db.multi_get({}).empty());
}

void pieces(forrest::Db &db) {
    const string value = string(5000, 'x') + "end";
    db.set("large", value);
    auto reader = db.reader("large");
    CHECK(reader && reader->size() == 5003 && db.erase("large") && !db.reader("large"));
    forrest::ValueReader moved(std::move(*reader));
    string back(6000, '\0');
    CHECK(moved.read(back.data(), 5001) == 5001 && moved.read(&back[5001], 100) == 2 && moved.read(back.data(), 1) == 0);
    CHECK(back.substr(0, 5003) == value && thrown([&] { reader->read(back.data(), 1); }) == FORREST_INVALID_ARGUMENT);
}

void merging() {
    const auto last = [](void *, forrest_merging *given) noexcept {
        given->result = given->operand;
        given->result_bytes = given->operand_bytes;
        return true;
    };
    forrest::Options options;
    options.merge_operator("last", last, nullptr);
    forrest::Db db("memory:", options);
    db.set_merge_operator("last");
    db.merge("k", "a");
    forrest::Batch batch;
    db.write(batch.merge("k", "b"));
    CHECK(*db.get("k") == "b");
    auto transaction = db.begin();
    transaction.merge("k", "c");
    CHECK(transaction.commit() && *db.get("k") == "c");
}

void together(forrest::Db &db) {
    auto other = db.keyspace("other");
    const auto before = db.snapshot();
    forrest::Batch batch;
    batch.set("x", "1").erase("a").erase_range("b", "d").add("n", 3).on(other).set("y", "2");
    CHECK(batch.size() == 5);
    db.write(batch, forrest::Durability::Memory);
    CHECK(!db.contains("a") && db.count("b", "d") == 0 && *other.get("y") == "2" && *db.get("x") == "1");
    CHECK(before.contains("a") && before.count("b", "d") == 2 && !before.keyspace("other").contains("y"));
    batch.clear();
    batch.set("never", "").compare_and_swap("x", "2", "3");
    CHECK(thrown([&] { db.write(batch); }) == FORREST_CONDITION_FAILED);
    try {
        db.write(batch);
    } catch (const forrest::Error &error) {
        CHECK(error.change() == 1);
    }
    auto written = db.try_write(batch);
    CHECK(!written && written.change == 1 && *written.found == "1" && !db.contains("never"));
    CHECK(db.try_write(forrest::Batch().compare_and_swap("x", "1", std::nullopt)) && !db.contains("x"));

    db.write(forrest::Batch().set("w1", "1").set("w2", "2"));
    batch.clear();
    batch.compare_range("w", "x", {{"w1", "1"}, {"w2", "2"}}).compare_range("w3", std::nullopt, {}).erase("w1");
    CHECK(db.try_write(batch) && !db.contains("w1"));
    written = db.try_write(batch);
    CHECK(!written && written.change == 0 && *written.found == "w1" && db.erase("w2"));

    auto ingest = db.ingest();
    CHECK(ingest.put("u1", "1").put("u2", "2").finish() == 2 && *db.get("u2") == "2");
    CHECK(db.erase("u1") && db.erase("u2"));

    auto photos = db.keyspace("photos");
    {
        auto writer = photos.write_blob("oak", 1024);
        CHECK(!photos.blob("oak"));
        writer.write(std::string(3000, 'x')).write("end").finish();
        auto blob = photos.blob("oak");
        std::string end(10, '\0');
        CHECK(blob && blob->size() == 3003 && blob->read(2999, end.data(), end.size()) == 4 && end.substr(0, 4) == "xend");
        photos.write_blob("elm").write("discarded");
        CHECK(photos.erase_blob("oak") && !photos.erase_blob("oak") && !photos.blob("elm"));
        CHECK(blob->read(0, end.data(), 1) == 1 && end[0] == 'x');
    }
    db.drop_keyspace("photos");

    auto transaction = db.begin();
    CHECK(!transaction.get("t") && !transaction.contains("t"));
    transaction.set("t", "mine");
    db.set("t", "yours");
    CHECK(!transaction.commit() && *db.get("t") == "yours");
    CHECK(*transaction.get("t") == "yours" && transaction.check());
    transaction.set("t", "gone");
    transaction.rollback();
    transaction.erase("t");
    transaction.add("n", 1);
    transaction.on(other).set("t", "there");
    transaction.set("q 1", "a");
    const uint64_t savepoint = transaction.savepoint();
    transaction.set("q 2", "b");
    transaction.rollback_to(savepoint);
    transaction.range("q ", "r");
    const auto first = transaction.next();
    CHECK(first && first->first == "q 1" && first->second == "a" && !transaction.next() && !transaction.prev());
    transaction.lock_wait(std::chrono::milliseconds(5));
    transaction.lock("q");
    CHECK(*transaction.get_for_update("q 1") == "a");
    transaction.erase_range("q ", "r");
    CHECK(transaction.commit() && !db.contains("t") && *other.get("t") == "there" && db.add("n", 0) == 4);

    CHECK((db.keyspaces() == std::vector<string>{"default", "other"}) && db.drop_keyspace("other"));
    CHECK(!db.drop_keyspace("other") && thrown([&] { other.set("k", "v"); }) == FORREST_INVALID_ARGUMENT);
}

// What together() does, in a home that cannot: an exception, and the handle can still be used.
void apart(forrest::Db &db) {
    CHECK(thrown([&] { db.snapshot(); }) == FORREST_UNSUPPORTED);
    CHECK(thrown([&] { db.keyspace("other"); }) == FORREST_UNSUPPORTED);
    CHECK(db.count() > 0 && db.keyspaces() == std::vector<string>{"default"});
}

void whole(forrest::Db &db) {
    if ((db.capabilities() & FORREST_CAN_METRICS) != 0) {
        CHECK(db.metrics().find("# TYPE forrest_changes_total counter") != std::string::npos);
    }
    CHECK(db.stats().keys > 0 && (db.capabilities() & FORREST_CAN_ITERATE) != 0);
    const bool on_disk = (db.capabilities() & FORREST_CAN_COMPACT) != 0;
    const int32_t expected = on_disk ? 0 : FORREST_UNSUPPORTED;
    db.sync();
    db.flush();
    db.settle();
    db.trim();
    db.refresh();
    db.resume();
    CHECK(thrown([&] { db.compact(); }) == expected && thrown([&] { db.compact("a", std::nullopt); }) == expected);
    CHECK(thrown([&] { db.verify(); }) == expected);
    db.set_option(FORREST_BATCH_OPS_MAX, 1);
    CHECK(thrown([&] { db.write(forrest::Batch().erase("1").erase("2")); }) == FORREST_LIMIT);
}

void misuse(forrest::Db &db) {
    CHECK(thrown([] { forrest::Db("mermory:"); }) == FORREST_INVALID_ARGUMENT);
    CHECK(thrown([] { forrest::Options().set(-1, 0); }) == FORREST_INVALID_ARGUMENT);
    CHECK(thrown([] { forrest::Value(nullptr); }) == FORREST_INVALID_ARGUMENT);
    forrest::Db moved(std::move(db));
    CHECK(moved.count() > 0 && thrown([&] { db.set("k", "v"); }) == FORREST_INVALID_ARGUMENT);
    CHECK(thrown([&] { db.range(); }) == FORREST_INVALID_ARGUMENT);
    db = std::move(moved);
    forrest::Batch batch, taken(std::move(batch));
    CHECK(thrown([&] { batch.set("k", "v"); }) == FORREST_INVALID_ARGUMENT);
    CHECK(thrown([&] { db.write(batch); }) == FORREST_INVALID_ARGUMENT);
}

void expiry(forrest::Db &db) {
    const uint64_t hour = 3600 * 1000;
    auto seats = db.keyspace("seats");
    seats.set_with_ttl("gone", "v", 0);
    seats.set_with_ttl("held", "v", hour);
    seats.set("stays", "v");
    seats.set_ttl(hour);
    CHECK(seats.ttl() == hour && !seats.expires("gone") && *seats.expires("held") > 0 && *seats.expires("stays") == 0);
    forrest::Batch batch;
    batch.on(seats).set_with_ttl("stays", "v", hour).set("session", "v");
    db.write(batch);
    CHECK(*seats.expires("stays") > 0 && *seats.expires("session") > 0);
    auto transaction = db.begin();
    transaction.set_with_ttl("held for long", "v", hour);
    CHECK(transaction.commit() && *db.expires("held for long") > 0 && db.erase("held for long"));
    CHECK(db.drop_keyspace("seats"));
}

void changes(forrest::Db &db) {
    const uint64_t since = db.snapshot().sequence();
    db.set("c", "1");
    auto changes = db.changes(since);
    const auto change = changes.next();
    CHECK(change && change->sequence == since + 1 && change->kind == FORREST_CHANGE_SET && change->ends_batch == 1);
    CHECK(change->keyspace == "default"s && string_view(static_cast<const char *>(change->key), change->key_bytes) == "c");
    CHECK(string_view(static_cast<const char *>(change->value), change->value_bytes) == "1");
    CHECK(!changes.next(1) && db.erase("c"));
    CHECK(changes.next()->kind == FORREST_CHANGE_DELETE);
    CHECK(thrown([&] { db.changes(since + 1000); }) == FORREST_GONE);
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 2) {
        std::cerr << "wrapper URL\n";
        return 2;
    }
    forrest::Options options;
    options.set(FORREST_BATCH_BYTES_MAX, 1 << 20).set(FORREST_HISTORY, 1).durability(forrest::Durability::Memory);
    forrest::Db db(argv[1], options);
    changing(db);
    ranges(db);
    pieces(db);
    const uint64_t needed = FORREST_CAN_SNAPSHOT | FORREST_CAN_KEYSPACES;
    if ((db.capabilities() & needed) == needed)
        together(db);
    else
        apart(db);
    merging();
    if (db.capabilities() & FORREST_CAN_CHANGES)
        changes(db);
    if (db.capabilities() & FORREST_CAN_TTL)
        expiry(db);
    std::thread([&] { db.add("threads", 1); }).join();
    whole(db);
    misuse(db);
    db.close();
    std::cout << "all is as it should be\n";
}
