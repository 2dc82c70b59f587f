package forrest.kafka;

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
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.state.internals.PositionSerde;
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
        store.behind = new WriteBehind(held::add);
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
        Thread thread = new Thread(() -> {
            try {
                call.run();
                end.complete(null);
            } catch (Throwable e) {
                end.completeExceptionally(e);
            }
        });
        thread.start();
        while (thread.getState() != Thread.State.WAITING) {
            assertTrue(thread.isAlive(), name + " does not wait");
            Thread.onSpinWait();
        }
        return end;
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

    /** As when the disk is full: all that comes after fails, so that no offset is committed. */
    @Test
    void aWriteThatFailsFailsAllCallsUntilTheStoreIsOpenedAgain() {
        open();
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
