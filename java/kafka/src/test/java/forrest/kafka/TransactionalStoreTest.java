package forrest.kafka;

import static org.apache.kafka.common.IsolationLevel.READ_COMMITTED;
import static org.apache.kafka.common.IsolationLevel.READ_UNCOMMITTED;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import forrest.Store;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.internals.SessionKeySchema;
import org.apache.kafka.streams.state.internals.WindowKeySchema;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Stores that keep changes apart until a commit: what reads find, and what a kill and an abort leave. */
class TransactionalStoreTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 3);
    private static final Duration HOUR = Duration.ofHours(1);
    private static final long TODAY = 1_700_000_000_000L;

    @TempDir
    File directory;

    private static Bytes bytes(String text) {
        return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static Properties settings(String guarantee) {
        Properties settings = StreamsTestUtils.getStreamsConfig(Serdes.String(), Serdes.String());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        settings.put(StateStoreBase.TRANSACTIONAL, "true");
        return settings;
    }

    private static <S extends StateStore> S open(File directory, S store) {
        store.init(
                new InternalMockProcessorContext<>(
                        directory, new StreamsConfig(settings(StreamsConfig.EXACTLY_ONCE_V2))),
                store);
        return store;
    }

    private ForrestKeyValueStore keyValue() {
        return keyValue(directory);
    }

    private static ForrestKeyValueStore keyValue(File directory) {
        return open(directory, new ForrestKeyValueStore("store"));
    }

    /** What a process that was killed now would leave. */
    private File killed(String name) {
        File copy = new File(directory.getParentFile(), directory.getName() + name);
        StateStoreTest.copy(directory.toPath(), copy.toPath());
        return copy;
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    private static <K> List<String> list(KeyValueIterator<K, byte[]> pairs) {
        List<String> found = new ArrayList<>();
        try (pairs) {
            pairs.forEachRemaining(pair -> found.add(pair.key + "=" + text(pair.value)));
        }
        return found;
    }

    @Test
    void changesAreKeptApartUntilTheCommit() {
        ForrestKeyValueStore store = keyValue();
        store.put(bytes("ash"), bytes("1").get());
        store.put(bytes("oak"), bytes("1").get());
        store.commit(Map.of(CHANGELOG, 17L));
        assertEquals(0, store.approximateNumUncommittedBytes());
        var committed = store.readOnly(READ_COMMITTED);
        var present = store.readOnly(READ_UNCOMMITTED);
        store.put(bytes("oak"), bytes("2").get());
        assertEquals("1", text(store.delete(bytes("ash"))));
        assertNull(store.putIfAbsent(bytes("ash tree"), bytes("3").get()));
        assertEquals("2", text(store.putIfAbsent(bytes("oak"), bytes("4").get())));
        store.putAll(List.of(KeyValue.pair(bytes("yew"), bytes("5").get()), KeyValue.pair(bytes("elm"), null)));
        assertTrue(store.approximateNumUncommittedBytes() > 0);
        assertEquals(List.of("ash=1", "oak=1"), list(committed.all()));
        assertEquals(List.of("oak=1", "ash=1"), list(committed.reverseAll()));
        assertEquals("1", text(committed.get(bytes("oak"))));
        assertEquals(2, committed.approximateNumEntries());
        assertEquals(List.of("ash tree=3", "oak=2", "yew=5"), list(present.all()));
        assertEquals(List.of("yew=5", "oak=2", "ash tree=3"), list(store.reverseAll()));
        assertEquals(List.of("oak=2", "ash tree=3"), list(present.reverseRange(bytes("ash"), bytes("oak"))));
        assertEquals(
                List.of("ash tree=3"), list(present.prefixScan("ash", Serdes.String().serializer())));
        assertEquals(List.of("ash=1"), list(committed.prefixScan("ash", Serdes.String().serializer())));
        // Who reads goes on with what there was.
        try (var range = store.all()) {
            assertEquals(bytes("ash tree"), range.peekNextKey());
            store.commit(Map.of(CHANGELOG, 18L));
            assertEquals("3", text(range.next().value));
            assertEquals("2", text(range.next().value));
        }
        assertEquals(0, store.approximateNumUncommittedBytes());
        assertEquals(List.of("ash tree=3", "oak=2", "yew=5"), list(committed.all()));
        assertNull(committed.get(bytes("ash")));
        store.close();
        assertEquals(0, store.approximateNumUncommittedBytes());
    }

    /** Without the setting there is nothing to keep apart, and both levels are the same. */
    @Test
    void aStoreThatIsNotTransactionalHasNothingUncommitted() {
        ForrestKeyValueStore store = new ForrestKeyValueStore("store");
        store.init(
                new InternalMockProcessorContext<>(
                        directory, new StreamsConfig(StreamsTestUtils.getStreamsConfig())),
                store);
        store.put(bytes("oak"), bytes("1").get());
        assertEquals(0, store.approximateNumUncommittedBytes());
        assertEquals("1", text(store.readOnly(READ_COMMITTED).get(bytes("oak"))));
        store.close();
    }

    @Test
    void aKillLeavesTheLastCommitUnderExactlyOnce() {
        ForrestKeyValueStore store = keyValue();
        store.put(bytes("oak"), bytes("1").get());
        store.getPosition().withComponent("input", 0, 8);
        store.commit(Map.of(CHANGELOG, 17L));
        store.put(bytes("oak"), bytes("2").get());
        store.put(bytes("yew"), bytes("2").get());
        store.getPosition().withComponent("input", 0, 9);
        ForrestKeyValueStore left = keyValue(killed(" killed"));
        assertEquals(List.of("oak=1"), list(left.all()));
        assertEquals(17, left.committedOffset(CHANGELOG));
        assertEquals(8, left.getPosition().getPartitionPositions("input").get(0));
        left.close();
        // So Kafka Streams closes a task whose transaction was aborted.
        store.close();
        ForrestKeyValueStore aborted = keyValue();
        assertEquals(List.of("oak=1"), list(aborted.all()));
        assertEquals(17, aborted.committedOffset(CHANGELOG));
        assertEquals(8, aborted.getPosition().getPartitionPositions("input").get(0));
        aborted.close();
    }

    @Test
    void windowsOfTheLastCommit() {
        ForrestWindowStore store =
                open(directory, new ForrestWindowStore("store", HOUR.toMillis(), 600_000, 10, false));
        Bytes oak = bytes("oak");
        store.put(oak, bytes("1").get(), TODAY);
        store.commit(Map.of(CHANGELOG, 17L));
        var committed = store.readOnly(READ_COMMITTED);
        Instant start = Instant.ofEpochMilli(TODAY);
        Instant end = start.plus(Duration.ofDays(2));
        // The old segment expires, in what is not committed alone.
        store.put(oak, bytes("2").get(), TODAY + Duration.ofDays(1).toMillis());
        assertNull(store.fetch(oak, TODAY));
        assertEquals("1", text(committed.fetch(oak, TODAY)));
        assertEquals(List.of(TODAY + "=1"), list(committed.fetch(oak, start, end)));
        assertEquals(List.of(TODAY + "=1"), list(committed.backwardFetch(oak, start, end)));
        assertEquals(1, list(committed.all()).size());
        assertEquals(list(committed.all()), list(committed.fetchAll(start, end)));
        assertEquals(list(committed.all()), list(committed.fetch(oak, oak, start, end)));
        assertEquals(list(committed.backwardAll()), list(committed.backwardFetch(oak, oak, start, end)));
        assertEquals(list(committed.all()), list(committed.backwardFetchAll(start, end)));
        var present = store.readOnly(READ_UNCOMMITTED);
        assertEquals(List.of(TODAY + 86_400_000 + "=2"), list(present.fetch(oak, start, end)));
        store.close();
        var aborted = open(directory, new ForrestWindowStore("store", HOUR.toMillis(), 600_000, 10, false));
        assertEquals("1", text(aborted.fetch(oak, TODAY)));
        aborted.close();
    }

    @Test
    void sessionsOfTheLastCommit() {
        ForrestSessionStore store = open(directory, new ForrestSessionStore("store", HOUR.toMillis(), 600_000));
        Bytes oak = bytes("oak");
        var one = new Windowed<>(oak, new SessionWindow(TODAY, TODAY + 10));
        var two = new Windowed<>(oak, new SessionWindow(TODAY, TODAY + 20));
        store.put(one, bytes("1").get());
        store.commit(Map.of(CHANGELOG, 17L));
        var committed = store.readOnly(READ_COMMITTED);
        store.remove(one);
        store.put(two, bytes("2").get());
        assertEquals("1", text(committed.fetchSession(oak, TODAY, TODAY + 10)));
        assertNull(committed.fetchSession(oak, TODAY, TODAY + 20));
        List<String> expected = List.of(one + "=1");
        assertEquals(expected, list(committed.fetch(oak)));
        assertEquals(expected, list(committed.backwardFetch(oak)));
        assertEquals(expected, list(committed.fetch(oak, oak)));
        assertEquals(expected, list(committed.backwardFetch(oak, oak)));
        assertEquals(expected, list(committed.findSessions(oak, TODAY, TODAY)));
        assertEquals(expected, list(committed.backwardFindSessions(oak, TODAY, TODAY)));
        assertEquals(expected, list(committed.findSessions(oak, oak, TODAY, TODAY)));
        assertEquals(expected, list(committed.backwardFindSessions(oak, oak, TODAY, TODAY)));
        assertEquals(List.of(two + "=2"), list(store.fetch(oak)));
        store.commit(Map.of(CHANGELOG, 18L));
        assertEquals(List.of(two + "=2"), list(committed.fetch(oak)));
        store.close();
    }

    @Test
    void versionsOfTheLastCommit() {
        ForrestVersionedStore store = open(directory, new ForrestVersionedStore("store", 1_000, 100));
        Bytes oak = bytes("oak");
        store.put(oak, bytes("1").get(), 1_000);
        store.commit(Map.of(CHANGELOG, 17L));
        var committed = store.readOnly(READ_COMMITTED);
        store.put(oak, bytes("2").get(), 1_500);
        assertEquals("1", text(committed.get(oak).value()));
        assertEquals("1", text(committed.get(oak, 2_000).value()));
        assertEquals("2", text(store.get(oak).value()));
        assertEquals("1", text(store.get(oak, 1_200).value()));
        assertEquals(1_500, store.get(oak, 1_200).validTo().orElseThrow());
        assertTrue(committed.isOpen() && committed.persistent());
        assertEquals("store", committed.name());
        assertThrows(UnsupportedOperationException.class, () -> committed.put(oak, null, 1_600));
        assertThrows(UnsupportedOperationException.class, committed::close);
        File killed = killed(" killed");
        store.close();
        ForrestVersionedStore left = open(killed, new ForrestVersionedStore("store", 1_000, 100));
        assertEquals("1", text(left.get(oak).value()));
        left.close();
    }

    /** What does not fit in memory is applied; then a kill is as without the setting. */
    @Test
    void manyChangesAreAppliedAndRefusedAfterAKill() {
        ForrestKeyValueStore store = keyValue();
        store.put(bytes("oak"), bytes("1").get());
        store.commit(Map.of(CHANGELOG, 17L));
        byte[] value = new byte[1 << 20];
        int count = (int) (StateStoreBase.APART_BYTES / value.length);
        for (int i = 0; i < count; i++) {
            store.put(bytes("key" + i), value);
        }
        assertEquals(0, store.approximateNumUncommittedBytes());
        assertArrayEquals(value, store.get(bytes("key0")));
        File killed = killed(" killed");
        assertThrows(TaskCorruptedException.class, () -> keyValue(killed));
        store.commit(Map.of(CHANGELOG, 18L));
        store.close();
        ForrestKeyValueStore again = keyValue();
        assertArrayEquals(value, again.get(bytes("key" + (count - 1))));
        again.close();
    }

    /** Under exactly-once Kafka Streams 4.3.1 ends a transaction when it is asked, and does not commit the store. */
    @Test
    void aStoreAsksOnceAndKeepsNothingApartAfterwardsUntilACommit() {
        int[] asked = {0};
        ForrestKeyValueStore store = new ForrestKeyValueStore("store");
        store.init(
                new InternalMockProcessorContext<>(
                        directory, new StreamsConfig(settings(StreamsConfig.EXACTLY_ONCE_V2))) {
                    @Override
                    public void commit() {
                        asked[0]++;
                    }
                },
                store);
        var committed = store.readOnly(READ_COMMITTED);
        byte[] value = new byte[1 << 18];
        int count = (int) (StateStoreBase.APART_BYTES / value.length);
        for (int round = 1; round <= 2; round++) {
            for (int i = 0; i < count; i++) {
                assertNull(committed.get(bytes(round + " key" + i)));
                store.put(bytes(round + " key" + i), value);
                assertEquals(i < count / 2 - 1 ? round - 1 : round, asked[0], round + " key" + i);
            }
            assertArrayEquals(value, committed.get(bytes(round + " key0")));
            for (int i = 0; i < 3; i++) {
                Bytes key = bytes(round + " later" + i);
                store.put(key, value);
                assertArrayEquals(value, committed.get(key));
                store.delete(key);
                assertNull(committed.get(key));
            }
            assertEquals(0, store.approximateNumUncommittedBytes());
            assertEquals(round, asked[0]);
            store.commit(Map.of(CHANGELOG, 17L));
            store.put(bytes("oak"), bytes("" + round).get());
            assertEquals(round == 1 ? null : "1", text(committed.get(bytes("oak"))));
        }
        File killed = killed(" killed");
        assertThrows(TaskCorruptedException.class, () -> keyValue(killed));
        store.close();
    }

    /** Opens stores until each has the least memory. */
    private static List<Store> leastMemory(File directory) {
        List<Store> others = new ArrayList<>();
        while (MemoryBudget.share() > 4 << 20) {
            others.add(MemoryBudget.open(Map.of(), new File(directory, "other" + others.size()).getPath()));
        }
        return others;
    }

    /** What was kept apart in the memory of a lone store is committed when many others are open. */
    @Test
    void aCommitWritesMoreThanTheStoreHasMemoryFor(@TempDir File elsewhere) {
        ForrestKeyValueStore store = keyValue();
        store.put(bytes("oak"), bytes("1").get());
        store.commit(Map.of(CHANGELOG, 17L));
        byte[] value = new byte[1 << 20];
        int count = 10;
        for (int i = 0; i < count; i++) {
            store.put(bytes("key" + i), value);
        }
        List<Store> others = leastMemory(elsewhere);
        try {
            assertTrue(store.approximateNumUncommittedBytes() > MemoryBudget.share());
            store.commit(Map.of(CHANGELOG, 18L));
            assertEquals(0, store.approximateNumUncommittedBytes());
            // All of it is committed, so it is not refused.
            ForrestKeyValueStore left = keyValue(killed(" killed"));
            assertEquals(18, left.committedOffset(CHANGELOG));
            for (int i = 0; i < count; i++) {
                assertArrayEquals(value, left.get(bytes("key" + i)));
            }
            left.close();
        } finally {
            store.close();
            others.forEach(MemoryBudget::close);
        }
    }

    /**
     * A process that is killed between the pieces of a commit: what the store kept apart was more than it has memory for,
     * since it has to share.
     */
    static final class DyingInACommit {
        private static final int KEYS = 8;

        private DyingInACommit() {}

        public static void main(String[] arguments) {
            Properties settings = settings(StreamsConfig.EXACTLY_ONCE_V2);
            settings.put(MemoryBudget.SETTING, Integer.toString(20 << 20));
            var context = new InternalMockProcessorContext<>(new File(arguments[0]), new StreamsConfig(settings));
            ForrestKeyValueStore store = new ForrestKeyValueStore("store");
            store.init(context, store);
            store.put(bytes("oak"), bytes("1").get());
            store.commit(Map.of(CHANGELOG, 17L));
            store.put(bytes("oak"), bytes("2").get());
            for (int i = 0; i < KEYS; i++) {
                store.put(bytes("key" + i), new byte[1 << 20]);
            }
            leastMemory(new File(arguments[1]));
            store.commit(offsets(() -> Runtime.getRuntime().halt(7)));
        }

        /** Offsets of a commit that something happens to, after all of its pieces but the last. */
        private static Map<TopicPartition, Long> offsets(Runnable happens) {
            return new HashMap<>(Map.of(CHANGELOG, 18L)) {
                @Override
                public boolean isEmpty() {
                    happens.run();
                    return super.isEmpty();
                }
            };
        }
    }

    @Test
    void aKillBetweenThePiecesOfACommitLeavesNoneOfItUnderExactlyOnce(@TempDir File elsewhere) throws Exception {
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        DyingInACommit.class.getName(),
                        directory.getPath(),
                        elsewhere.getPath())
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        assertEquals(7, process.waitFor());
        assertThrows(TaskCorruptedException.class, this::keyValue);
        // Without a guarantee Kafka Streams goes on from the offset, which is the one before.
        ForrestKeyValueStore left = new ForrestKeyValueStore("store");
        left.init(
                new InternalMockProcessorContext<>(
                        directory, new StreamsConfig(settings(StreamsConfig.AT_LEAST_ONCE))),
                left);
        assertEquals(17, left.committedOffset(CHANGELOG));
        assertEquals("1", text(left.get(bytes("oak"))));
        int found = 0;
        for (int i = 0; i < DyingInACommit.KEYS; i++) {
            found += left.get(bytes("key" + i)) == null ? 0 : 1;
        }
        assertEquals(DyingInACommit.KEYS, found);
        left.close();
    }

    /** What it wrote is not what was committed, and closing the store does not make it so. */
    @Test
    void aCommitThatFailsBetweenItsPiecesHasTheStoreRefused(@TempDir File elsewhere) {
        ForrestKeyValueStore store = keyValue();
        store.put(bytes("oak"), bytes("1").get());
        store.commit(Map.of(CHANGELOG, 17L));
        for (int i = 0; i < DyingInACommit.KEYS; i++) {
            store.put(bytes("key" + i), new byte[1 << 20]);
        }
        store.put(bytes("oak"), bytes("2").get());
        List<Store> others = leastMemory(elsewhere);
        try {
            assertThrows(UnsupportedOperationException.class, () -> store.commit(DyingInACommit.offsets(() -> {
                throw new UnsupportedOperationException();
            })));
            store.close();
            assertThrows(TaskCorruptedException.class, this::keyValue);
        } finally {
            store.close();
            others.forEach(MemoryBudget::close);
        }
    }

    /** A store with little memory keeps little apart, and restores little together. */
    @Test
    void aStoreWithLittleMemoryWritesWhatItHasRoomFor(@TempDir File elsewhere) {
        List<Store> others = leastMemory(elsewhere);
        try {
            var context = new InternalMockProcessorContext<>(
                    directory, new StreamsConfig(settings(StreamsConfig.EXACTLY_ONCE_V2)));
            ForrestKeyValueStore store = new ForrestKeyValueStore("store");
            store.init(context, store);
            int count = 100_000;
            List<KeyValue<byte[], byte[]>> records = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                records.add(KeyValue.pair(bytes("restored" + i).get(), new byte[i % 64]));
            }
            records.add(KeyValue.pair(bytes("large").get(), new byte[7 << 19]));
            context.restore("store", records);
            assertEquals(7 << 19, store.get(bytes("large")).length);
            assertEquals(63, store.get(bytes("restored63")).length);
            store.commit(Map.of(CHANGELOG, 17L));
            long most = 0;
            for (int i = 0; i < count; i++) {
                store.put(bytes("key" + i), new byte[0]);
                most = Math.max(most, store.approximateNumUncommittedBytes());
            }
            assertTrue(most > 1 << 20 && most <= MemoryBudget.share() / 2, "" + most);
            store.commit(Map.of(CHANGELOG, 18L));
            assertEquals(0, store.get(bytes("key" + (count - 1))).length);
            store.close();
        } finally {
            others.forEach(MemoryBudget::close);
        }
    }

    /** What is applied without a commit, and what is restored, is found by those who read what was committed. */
    @Test
    void committedReadsOfWindowsAndSessionsFindWhatIsApplied() {
        var context = new InternalMockProcessorContext<>(
                directory, new StreamsConfig(settings(StreamsConfig.EXACTLY_ONCE_V2)));
        ForrestWindowStore windows = new ForrestWindowStore("windows", HOUR.toMillis(), 600_000, 10, false);
        ForrestSessionStore sessions = new ForrestSessionStore("sessions", HOUR.toMillis(), 600_000);
        windows.init(context, windows);
        sessions.init(context, sessions);
        var committedWindows = windows.readOnly(READ_COMMITTED);
        var committedSessions = sessions.readOnly(READ_COMMITTED);
        Bytes oak = bytes("oak");
        byte[] value = bytes("1").get();
        long early = TODAY - Duration.ofDays(1).toMillis();
        for (long start : new long[] {early, TODAY}) {
            context.restore(
                    "windows", List.of(KeyValue.pair(WindowKeySchema.toStoreKeyBinary(oak, start, 0).get(), value)));
            // The restored records drop a segment, and that is not the application's change.
            assertEquals(0, windows.approximateNumUncommittedBytes());
        }
        assertEquals("1", text(committedWindows.fetch(oak, TODAY)));
        assertEquals(1, list(committedWindows.all()).size());
        context.restore(
                "sessions", List.of(KeyValue.pair(SessionKeySchema.toBinary(oak, TODAY, TODAY).get(), value)));
        assertEquals(1, list(committedSessions.fetch(oak)).size());
        // A day later: too late for what was restored, and more than is kept apart.
        long later = TODAY + Duration.ofDays(1).toMillis();
        var session = new Windowed<>(oak, new SessionWindow(later, later));
        windows.put(oak, value, later);
        sessions.put(session, value);
        assertNull(committedWindows.fetch(oak, later));
        assertNull(committedSessions.fetchSession(oak, later, later));
        byte[] large = new byte[(int) StateStoreBase.APART_BYTES];
        windows.put(bytes("large"), large, later + 10);
        sessions.put(new Windowed<>(bytes("large"), new SessionWindow(later, later)), large);
        assertEquals("1", text(committedWindows.fetch(oak, later)));
        assertEquals(2, list(committedWindows.all()).size());
        assertNull(committedWindows.fetch(oak, TODAY));
        assertEquals("1", text(committedSessions.fetchSession(oak, later, later)));
        assertEquals(List.of(session + "=1"), list(committedSessions.fetch(oak)));
        // From now on all is applied at once.
        windows.put(oak, value, later + 20);
        assertEquals("1", text(committedWindows.fetch(oak, later + 20)));
        windows.close();
        sessions.close();
    }

    /** Random changes and ranges of a table, and a map of all and one of what was committed. */
    @Test
    void aTableIsAMap() {
        long seed = Long.getLong("forrest.seed", System.nanoTime());
        Random random = new Random(seed);
        ForrestKeyValueStore store = keyValue();
        NavigableMap<Bytes, String> model = new TreeMap<>();
        NavigableMap<Bytes, String> committed = new TreeMap<>();
        for (int i = 0; i < 3_000; i++) {
            Bytes one = key(random);
            Bytes two = key(random);
            Bytes from = one.compareTo(two) <= 0 ? one : two;
            Bytes to = from == one ? two : one;
            String where = "-Dforrest.seed=" + seed + ", operation " + i;
            switch (random.nextInt(10)) {
                case 0, 1, 2 -> {
                    store.put(one, bytes("" + i).get());
                    model.put(one, "" + i);
                }
                case 3 -> assertEquals(model.remove(one), text(store.delete(one)), where);
                case 4 -> {
                    store.change(() -> {
                        store.data.deleteRange(from.get(), to.get());
                        return null;
                    });
                    model.subMap(from, to).clear();
                }
                case 5 -> {
                    if (random.nextInt(4) == 0) {
                        store.commit(Map.of(CHANGELOG, (long) i));
                        committed = new TreeMap<>(model);
                    }
                }
                case 6 -> assertEquals(model.get(one), text(store.get(one)), where);
                default -> {
                    IsolationLevel level = random.nextBoolean() ? READ_COMMITTED : READ_UNCOMMITTED;
                    var expected = level == READ_COMMITTED ? committed : model;
                    var read = store.readOnly(level);
                    assertEquals(list(expected.subMap(from, true, to, true)), list(read.range(from, to)), where);
                    assertEquals(
                            list(expected.subMap(from, true, to, true).descendingMap()),
                            list(read.reverseRange(from, to)),
                            where);
                    assertEquals(list(expected.descendingMap()), list(read.reverseAll()), where);
                }
            }
        }
        store.close();
        ForrestKeyValueStore again = keyValue();
        assertEquals(list(committed), list(again.all()), "-Dforrest.seed=" + seed);
        again.close();
    }

    private static Bytes key(Random random) {
        byte[] key = new byte[random.nextInt(3)];
        for (int i = 0; i < key.length; i++) {
            key[i] = (byte) ("\u0000ab\u00ff".charAt(random.nextInt(4)));
        }
        return Bytes.wrap(key);
    }

    private static List<String> list(NavigableMap<Bytes, String> pairs) {
        return pairs.entrySet().stream().map(pair -> pair.getKey() + "=" + pair.getValue()).toList();
    }

    @Test
    void topologiesRunOnTransactionalStores() {
        Properties settings = settings(StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory.getPath());
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("trees")
                .groupByKey()
                .count(Materialized.as(ForrestStores.timestampedKeyValueStore("counts")));
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings)) {
            var text = Serdes.String();
            var input = driver.createInputTopic("trees", text.serializer(), text.serializer());
            for (long expected = 1; expected <= 3; expected++) {
                input.pipeInput("oak", "Quercus");
                assertEquals(expected, driver.getTimestampedKeyValueStore("counts").get("oak").value());
            }
        }
    }

    @Test
    void aSettingThatIsNeitherTrueNorFalseIsRefused() {
        Properties settings = settings(StreamsConfig.AT_LEAST_ONCE);
        settings.put(StateStoreBase.TRANSACTIONAL, "sometimes");
        var context = new InternalMockProcessorContext<>(directory, new StreamsConfig(settings));
        ForrestKeyValueStore store = new ForrestKeyValueStore("store");
        ConfigException refused = assertThrows(ConfigException.class, () -> store.init(context, store));
        assertTrue(refused.getMessage().contains(StateStoreBase.TRANSACTIONAL), refused.getMessage());
        assertTrue(Arrays.stream(directory.list()).noneMatch(StateStoreBase.DIRECTORY::equals));
    }
}
