package forrest.kafka;

import static org.apache.kafka.common.IsolationLevel.READ_COMMITTED;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import forrest.ForrestException;
import forrest.Store;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.state.internals.PositionSerde;
import org.apache.kafka.streams.state.internals.SessionKeySchema;
import org.apache.kafka.streams.state.internals.WindowKeySchema;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A restore that another thread writes: who waits for it, in which order, and how it fails. */
class WriteBehindTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 3);
    private static final int RECORDS = 1_000;

    @TempDir
    File directory;

    private InternalMockProcessorContext<?, ?> context;
    private ForrestKeyValueStore store;

    /** The writes that the test has not made yet. */
    private final Queue<Runnable> held = new ConcurrentLinkedQueue<>();

    private void open() {
        Properties settings = StreamsTestUtils.getStreamsConfig();
        settings.put("__iq.consistency.offset.vector.enabled__", true);
        context = new InternalMockProcessorContext<>(directory, new StreamsConfig(settings));
        store = new ForrestKeyValueStore("store");
        store.init(context, store);
    }

    private void hold() {
        hold(store);
    }

    private void hold(StateStoreBase store) {
        store.behind.await();
        store.behind = new WriteBehind(held::add);
    }

    /** A transactional store that has restored a record, so that it has a directory. */
    private <S extends StateStoreBase> S open(S opened, byte[] key) {
        Properties settings = StreamsTestUtils.getStreamsConfig();
        settings.put(StateStoreBase.TRANSACTIONAL, "true");
        context = new InternalMockProcessorContext<>(directory, new StreamsConfig(settings));
        opened.init(context, opened);
        context.restoreWithHeaders(opened.name(), List.of(record(1, key, bytes("0"))));
        return opened;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static Bytes key(int number) {
        return Bytes.wrap(bytes("key" + number));
    }

    private static ConsumerRecord<byte[], byte[]> record(long offset, byte[] key, byte[] value) {
        RecordHeaders headers = new RecordHeaders();
        headers.add(ChangelogRecordDeserializationHelper.CHANGELOG_VERSION_HEADER_RECORD_CONSISTENCY);
        headers.add(
                ChangelogRecordDeserializationHelper.CHANGELOG_POSITION_HEADER_KEY,
                PositionSerde.serialize(position(offset)).array());
        return new ConsumerRecord<>(
                "changelog", 3, offset, offset, TimestampType.CREATE_TIME, -1, -1, key, value, headers, Optional.empty());
    }

    private static Position position(long offset) {
        return Position.emptyPosition().withComponent("input", 0, offset);
    }

    /** Enough records for another thread. Their value is the round. */
    private static List<ConsumerRecord<byte[], byte[]>> records(int round) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < RECORDS; i++) {
            records.add(record((long) round * RECORDS + i, key(i).get(), bytes("" + round)));
        }
        return records;
    }

    private void restore(int round) {
        context.restoreWithHeaders("store", records(round));
    }

    /** What the engine has, whatever waits to be written. */
    private String written(int number) {
        byte[] value = store.data.keyspace.get(key(number).get());
        return value == null ? null : new String(value, StandardCharsets.UTF_8);
    }

    private interface Call {
        void run() throws Exception;
    }

    /** Makes a call in another thread, and returns when it waits. */
    private static CompletableFuture<Void> waiting(String name, Call call) {
        CompletableFuture<Void> end = new CompletableFuture<>();
        Thread thread = start(end, call);
        while (thread.getState() != Thread.State.WAITING) {
            assertTrue(thread.isAlive(), name + " does not wait");
            Thread.onSpinWait();
        }
        return end;
    }

    /** Makes a call in another thread, which must not wait. */
    private static void going(String name, Call call) throws Exception {
        CompletableFuture<Void> end = new CompletableFuture<>();
        Thread thread = start(end, call);
        while (thread.isAlive()) {
            assertFalse(thread.getState() == Thread.State.WAITING, name + " waits");
            Thread.onSpinWait();
        }
        end.get();
    }

    private static Thread start(CompletableFuture<Void> end, Call call) {
        Thread thread = new Thread(() -> {
            try {
                call.run();
                end.complete(null);
            } catch (Throwable e) {
                end.completeExceptionally(e);
            }
        });
        thread.start();
        return thread;
    }

    private void write() {
        held.remove().run();
    }

    @Test
    void allCallsWaitForTheWriteAndFindIt() throws Exception {
        var all = Map.<String, Call>ofEntries(
                Map.entry("get", () -> assertArrayEquals(bytes("1"), store.get(key(7)))),
                Map.entry("all", () -> {
                    int found = 0;
                    try (var pairs = store.all()) {
                        for (; pairs.hasNext(); pairs.next()) {
                            found++;
                        }
                    }
                    assertEquals(RECORDS, found);
                }),
                Map.entry("put", () -> {
                    store.put(key(7), bytes("2"));
                    assertEquals("2", written(7));
                }),
                Map.entry("putAll", () -> store.putAll(List.of(KeyValue.pair(key(7), null)))),
                Map.entry("putIfAbsent", () -> assertArrayEquals(bytes("1"), store.putIfAbsent(key(7), bytes("2")))),
                Map.entry("delete", () -> assertArrayEquals(bytes("1"), store.delete(key(7)))),
                Map.entry("entries", () -> assertEquals(RECORDS, store.approximateNumEntries(), RECORDS / 2.0)),
                Map.entry("position", () -> assertEquals(position(2 * RECORDS - 1), store.getPosition())),
                Map.entry("query", () -> {
                    var result = store.query(
                            KeyQuery.<Bytes, byte[]>withKey(key(7)),
                            PositionBound.at(position(2 * RECORDS - 1)),
                            new QueryConfig(false));
                    assertArrayEquals(bytes("1"), result.getResult());
                }),
                Map.entry("offset", () -> assertNull(store.committedOffset(CHANGELOG))),
                Map.entry("commit", () -> {
                    store.commit(Map.of(CHANGELOG, 2L * RECORDS - 1));
                    assertEquals("1", written(7));
                }),
                Map.entry("flush", () -> {
                    flush();
                    assertEquals("1", written(7));
                }),
                Map.entry("close", () -> store.close()));
        for (var call : all.entrySet()) {
            StateStoreTest.delete(directory);
            open();
            hold();
            restore(1);
            assertNull(written(7));
            var end = waiting(call.getKey(), call.getValue());
            assertNull(written(7));
            write();
            end.get();
            store.close();
            assertFalse(store.isOpen());
            open();
            assertArrayEquals(bytes("1"), store.get(key(8)), call.getKey());
            // A put adds the position of a record that the context has.
            assertEquals(Map.of(0, 2L * RECORDS - 1), store.getPosition().getPartitionPositions("input"));
            store.close();
        }
    }

    @SuppressWarnings("deprecation")
    private void flush() {
        store.flush();
    }

    @Test
    void batchesAreWrittenOneByOneAndACommitWaitsForAll() throws Exception {
        open();
        hold();
        restore(1);
        restore(2);
        assertEquals(1, held.size());
        write();
        assertEquals(1, held.size());
        assertEquals("1", written(7));
        var third = waiting("a small batch", () -> context.restoreWithHeaders(
                "store", List.of(record(5_000, key(7).get(), bytes("3")))));
        write();
        third.get();
        assertEquals("3", written(7));
        assertEquals("2", written(8));
        assertEquals(0, held.size());
        restore(4);
        var commit = waiting("commit", () -> store.commit(Map.of(CHANGELOG, 5_000L)));
        assertEquals("3", written(7));
        assertFalse(commit.isDone());
        write();
        commit.get();
        assertEquals("4", written(7));
        assertEquals(5_000, store.committedOffset(CHANGELOG));
        store.close();
    }

    @Test
    void aRestoreWaitsWhenManyBytesAre() throws Exception {
        open();
        hold();
        AtomicInteger rounds = new AtomicInteger();
        int most = 100;
        var restoring = waiting("a restore", () -> {
            while (rounds.get() < most) {
                restore(rounds.incrementAndGet());
            }
        });
        int waiting = rounds.get();
        assertTrue(waiting > 10 && waiting < most, waiting + " batches wait");
        while (!restoring.isDone()) {
            Runnable next = held.poll();
            if (next == null) {
                Thread.onSpinWait();
            } else {
                next.run();
            }
        }
        restoring.get();
        while (!held.isEmpty()) {
            write();
        }
        assertArrayEquals(bytes("" + most), store.get(key(7)));
        store.close();
    }

    @Test
    void anIteratorThatIsOpenDoesNotWait() throws Exception {
        open();
        restore(1);
        hold();
        try (var pairs = store.all()) {
            restore(2);
            going("a range", () -> {
                int found = 0;
                for (; pairs.hasNext(); found++) {
                    assertEquals(pairs.peekNextKey(), pairs.next().key);
                }
                assertEquals(RECORDS, found);
            });
        }
        write();
        store.close();
    }

    @Test
    void anIteratorOfSegmentsDoesNotWaitOnceItBegan() throws Exception {
        var windows = open(new ForrestWindowStore("windows", 1_000, 100, 10, false), window(1, 1));
        restoreWindows(windows, 150);
        hold(windows);
        try (var all = windows.all()) {
            assertTrue(all.hasNext());
            restoreWindows(windows, 250);
            going("a range of windows", () -> {
                int found = 0;
                for (; all.hasNext() && all.peekNextKey().window().start() <= 150; found++) {
                    all.next();
                }
                assertEquals(1 + RECORDS, found);
            });
        }
        write();
        windows.close();
    }

    @Test
    void anIteratorOfVersionsDoesNotWait() throws Exception {
        var versions = open(new ForrestVersionedStore("versions", 1_000, 100), key(1).get());
        hold(versions);
        var result = versions.query(
                MultiVersionedKeyQuery.<Bytes, byte[]>withKey(key(1)), PositionBound.unbounded(), new QueryConfig(false));
        try (var found = result.getResult()) {
            context.restoreWithHeaders("versions", records(0));
            going("a range of versions", () -> {
                assertArrayEquals(bytes("0"), found.next().value());
                assertFalse(found.hasNext());
            });
        }
        write();
        versions.close();
    }

    private static byte[] window(int number, long start) {
        return WindowKeySchema.toStoreKeyBinary(key(number), start, 0).get();
    }

    private void restoreWindows(ForrestWindowStore windows, long start) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < RECORDS; i++) {
            records.add(record(start + i, window(i, start), bytes("" + start)));
        }
        context.restoreWithHeaders(windows.name(), records);
    }

    /** What was committed ends at a time, which the write sets. */
    @Test
    void readsOfWindowsThatAreCommittedWaitForTheirTime() throws Exception {
        var windows = open(new ForrestWindowStore("windows", 1_000, 100, 10, false), window(1, 1));
        var committed = windows.readOnly(READ_COMMITTED);
        hold(windows);
        restoreWindows(windows, 150);
        var fetch = waiting("fetch", () -> assertArrayEquals(bytes("150"), committed.fetch(key(7), 150)));
        write();
        fetch.get();
        restoreWindows(windows, 250);
        var range = waiting("a range", () -> {
            try (var found = committed.fetch(key(7), Instant.ofEpochMilli(200), Instant.ofEpochMilli(300))) {
                assertArrayEquals(bytes("250"), found.next().value);
            }
        });
        write();
        range.get();
        windows.close();
    }

    @Test
    void readsOfSessionsThatAreCommittedWaitForTheirTime() throws Exception {
        var sessions = open(new ForrestSessionStore("sessions", 1_000, 100), session(1, 1));
        var committed = sessions.readOnly(READ_COMMITTED);
        hold(sessions);
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < RECORDS; i++) {
            records.add(record(2 + i, session(i, 150), bytes("150")));
        }
        context.restoreWithHeaders("sessions", records);
        var range = waiting("a range", () -> {
            try (var found = committed.fetch(key(7))) {
                assertArrayEquals(bytes("150"), found.next().value);
            }
        });
        write();
        range.get();
        sessions.close();
    }

    private static byte[] session(int number, long end) {
        return SessionKeySchema.toBinary(key(number), 0, end).get();
    }

    /** A batch of a mebibyte. */
    private Batch batch() {
        Batch batch = new Batch(false);
        batch.put(store.data, key(7).get(), new byte[1 << 20]);
        return batch;
    }

    @Test
    void theStoresOfAProcessHaveABoundTogether() {
        open();
        Batch batch = batch();
        int room = (int) (MemoryBudget.total() / 8 / batch.bytes());
        List<WriteBehind> stores = new ArrayList<>();
        for (int i = 0; i < room; i++) {
            stores.add(new WriteBehind(held::add));
            stores.get(i).write(batch, Long.MAX_VALUE, () -> {});
        }
        assertEquals(room, held.size());
        WriteBehind full = new WriteBehind(held::add);
        AtomicInteger written = new AtomicInteger();
        full.write(batch, Long.MAX_VALUE, written::incrementAndGet);
        assertEquals(1, written.get());
        assertEquals(room, held.size());
        write();
        full.write(batch, Long.MAX_VALUE, written::incrementAndGet);
        assertEquals(1, written.get());
        assertEquals(room, held.size());
        while (!held.isEmpty()) {
            write();
        }
        assertEquals(2, written.get());
        assertEquals(0, WriteBehind.ALL_WAITING.get());
        store.close();
    }

    @Test
    void withoutAThreadTheCallingOneWrites() {
        open();
        store.behind = new WriteBehind(work -> {
            throw new OutOfMemoryError("unable to create native thread");
        });
        restore(1);
        assertEquals("1", written(7));
        assertArrayEquals(bytes("1"), store.get(key(7)));
        store.close();
    }

    /** Kafka's thread that restores catches no error. */
    @Test
    void anErrorOfAWriteIsAProcessorStateException() {
        open();
        hold();
        Error error = new InternalError("a panic");
        store.behind.write(batch(), Long.MAX_VALUE, () -> {
            throw error;
        });
        write();
        assertEquals(error, assertThrows(ProcessorStateException.class, () -> store.get(key(7))).getCause());
        assertThrows(ProcessorStateException.class, store::close);
    }

    /** As when the disk is full: all that comes after fails, so that no offset is committed. */
    @Test
    void aWriteThatFailsFailsAllCallsUntilTheStoreIsOpenedAgain() {
        open();
        hold();
        context.restoreWithHeaders("store", List.of(record(17, key(7).get(), bytes("0"))));
        store.commit(Map.of(CHANGELOG, 17L));
        ForrestException failure = assertThrows(
                ForrestException.class,
                () -> new Store.Options().create(false).open(new File(directory, "none").getPath()));
        Batch batch = new Batch(false);
        batch.put(store.data, key(7).get(), new byte[1 << 16]);
        store.behind.write(batch, Long.MAX_VALUE, () -> {
            throw failure;
        });
        restore(1);
        write();
        assertTrue(held.isEmpty());
        assertEquals(0, WriteBehind.ALL_WAITING.get());
        List<Call> all = List.of(
                () -> restore(2),
                () -> context.restoreWithHeaders("store", List.of(record(18, key(7).get(), bytes("3")))),
                () -> store.get(key(7)),
                () -> store.put(key(7), bytes("4")),
                () -> store.getPosition(),
                () -> store.committedOffset(CHANGELOG),
                this::flush,
                () -> store.commit(Map.of(CHANGELOG, 2_000L)),
                () -> store.close());
        for (Call call : all) {
            ProcessorStateException refused = assertThrows(ProcessorStateException.class, call::run);
            assertEquals(failure, refused.getCause());
        }
        assertFalse(store.isOpen());
        store.close();
        open();
        assertEquals(17, store.committedOffset(CHANGELOG));
        assertEquals(position(17), store.getPosition());
        assertEquals("0", written(7));
        restore(1);
        assertArrayEquals(bytes("1"), store.get(key(7)));
        store.close();
    }

    /** Its own restore fails, as that of few records does. */
    @Test
    void aRecordThatTheEngineRefusesIsRefusedAtOnce() {
        open();
        List<ConsumerRecord<byte[], byte[]>> records = records(1);
        records.add(record(5_000, new byte[65_536], bytes("1")));
        assertThrows(ProcessorStateException.class, () -> context.restoreWithHeaders("store", records));
        assertNull(store.get(key(7)));
        assertEquals(Position.emptyPosition(), store.getPosition());
        restore(2);
        assertArrayEquals(bytes("2"), store.get(key(7)));
        store.close();
    }

    @Test
    void aThreadThatIsInterruptedRestoresAllAndStaysInterrupted() {
        open();
        Thread.currentThread().interrupt();
        try {
            for (int round = 1; round <= 10; round++) {
                restore(round);
            }
            assertArrayEquals(bytes("10"), store.get(key(7)));
            store.commit(Map.of(CHANGELOG, 17L));
        } finally {
            assertTrue(Thread.interrupted());
        }
        store.close();
        open();
        assertArrayEquals(bytes("10"), store.get(key(7)));
        store.close();
    }
}
