package forrest.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import forrest.Durability;
import forrest.Store;
import forrest.WriteBatch;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.ValueTimestampHeaders;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.SessionKeySchema;
import org.apache.kafka.streams.state.internals.WindowKeySchema;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What Kafka's tests of stores leave out: offsets, what a crash leaves, other directories, the budget, one line. */
class StateStoreTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 3);

    @TempDir
    File directory;

    private static Bytes bytes(String text) {
        return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private <S extends StateStore> S open(S store, String guarantee) {
        return open(directory, store, guarantee);
    }

    private static <S extends StateStore> S open(File directory, S store, String guarantee) {
        Properties settings = StreamsTestUtils.getStreamsConfig(Serdes.ByteArray(), Serdes.ByteArray());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        store.init(new InternalMockProcessorContext<>(directory, new StreamsConfig(settings)), store);
        return store;
    }

    private KeyValueStore<Bytes, byte[]> open() {
        return open(ForrestStores.keyValueStore("store").get(), StreamsConfig.AT_LEAST_ONCE);
    }

    @Test
    @SuppressWarnings("deprecation")
    void offsetsAndRecordsStay() {
        KeyValueStore<Bytes, byte[]> store = open();
        assertTrue(store.managesOffsets());
        assertTrue(store.persistent());
        assertNull(store.committedOffset(CHANGELOG));
        store.put(bytes("oak"), bytes("1").get());
        store.commit(Map.of(CHANGELOG, 17L));
        store.close();
        assertFalse(store.isOpen());
        KeyValueStore<Bytes, byte[]> again = open();
        assertEquals(17, again.committedOffset(CHANGELOG));
        assertArrayEquals(bytes("1").get(), again.get(bytes("oak")));
        again.close();
        again.close();
    }

    /** Kafka Streams says so that the changelog is to be restored from its beginning. */
    @Test
    void aCommitOfNoOffsetsRemovesAll() {
        TopicPartition other = new TopicPartition("changelog", 4);
        KeyValueStore<Bytes, byte[]> store = open();
        store.put(bytes("oak"), bytes("1").get());
        store.commit(Map.of(CHANGELOG, 17L, other, 18L));
        store.commit(Map.of());
        assertNull(store.committedOffset(CHANGELOG));
        assertNull(store.committedOffset(other));
        store.commit(Map.of(CHANGELOG, 3L));
        store.close();
        KeyValueStore<Bytes, byte[]> again = open();
        assertEquals(3, again.committedOffset(CHANGELOG));
        again.close();
    }

    /** The same object is initialized again when a task is revived. The directory may have been deleted since. */
    @Test
    void aStoreThatIsInitializedAgainKnowsNothingOfBefore() throws IOException {
        Duration hour = Duration.ofHours(1);
        WindowStore<Bytes, byte[]> store = open(
                ForrestStores.windowStore("store", hour, Duration.ofMinutes(1), false).get(), StreamsConfig.AT_LEAST_ONCE);
        store.put(bytes("oak"), bytes("1").get(), 1_000_000_000);
        store.getPosition().withComponent("input", 0, 9);
        store.close();
        StateStoreTest.delete(directory);
        open(store, StreamsConfig.AT_LEAST_ONCE);
        assertTrue(store.getPosition().isEmpty(), store.getPosition().toString());
        store.put(bytes("oak"), bytes("1").get(), 1_000);
        assertArrayEquals(bytes("1").get(), store.fetch(bytes("oak"), 1_000));
        store.close();
    }

    static void delete(File directory) throws IOException {
        try (var files = Files.walk(directory.toPath())) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
        Files.createDirectories(directory.toPath());
    }

    @Test
    void aClosedStoreThrows() {
        KeyValueStore<Bytes, byte[]> store = open();
        store.put(bytes("oak"), bytes("1").get());
        KeyValueIterator<Bytes, byte[]> range = store.all();
        store.close();
        assertThrows(InvalidStateStoreException.class, () -> store.get(bytes("oak")));
        assertThrows(InvalidStateStoreException.class, () -> store.put(bytes("oak"), null));
        assertThrows(InvalidStateStoreException.class, store::all);
        assertThrows(InvalidStateStoreException.class, range::hasNext);
        range.close();
    }

    @Test
    void aBatchIsAppliedAsAWhole() {
        KeyValueStore<Bytes, byte[]> store = open();
        List<KeyValue<Bytes, byte[]>> batch = new ArrayList<>();
        batch.add(KeyValue.pair(bytes("oak"), bytes("1").get()));
        batch.add(KeyValue.pair(Bytes.wrap(new byte[1 << 16]), bytes("1").get()));
        assertThrows(ProcessorStateException.class, () -> store.putAll(batch));
        assertNull(store.get(bytes("oak")));
        store.close();
    }

    /** Marks the store as a process that died while it had it open. */
    private void died() {
        died(directory);
    }

    private static void died(File directory) {
        String path = new File(new File(directory, StateStoreBase.DIRECTORY), "store").getPath();
        try (Store store = Store.open(path)) {
            WriteBatch batch = new WriteBatch();
            batch.put(store.keyspace("kafka"), bytes("status").get(), bytes("open").get());
            store.write(batch, Durability.BUFFERED);
        }
    }

    private static StateStore openExactlyOnce(File directory) {
        return open(directory, ForrestStores.keyValueStore("store").get(), StreamsConfig.EXACTLY_ONCE_V2);
    }

    /** So Kafka Streams closes a task of which it commits nothing. Then it deletes the directory, if it lives. */
    @Test
    void changesWithoutACommitAreRefusedUnderExactlyOnce() {
        Duration hour = Duration.ofHours(1);
        Bytes oak = bytes("oak");
        byte[] one = {1};
        Map<Supplier<StateStore>, List<Consumer<StateStore>>> changes = Map.of(
                () -> ForrestStores.keyValueStore("store").get(),
                List.of(
                        store -> plain(store).put(oak, one),
                        store -> plain(store).putIfAbsent(oak, one),
                        store -> plain(store).putAll(List.of(KeyValue.pair(oak, one))),
                        store -> plain(store).delete(oak)),
                () -> ForrestStores.windowStore("store", hour, hour, false).get(),
                List.of(store -> ((ForrestWindowStore) store).put(oak, one, 1_000)),
                () -> ForrestStores.sessionStore("store", hour).get(),
                List.of(store -> ((ForrestSessionStore) store)
                        .put(new Windowed<>(oak, new SessionWindow(1_000, 2_000)), one)),
                () -> new ForrestVersionedStore("store", 1_000, 100),
                List.of(
                        store -> ((ForrestVersionedStore) store).put(oak, one, 1_000),
                        store -> ((ForrestVersionedStore) store).delete(oak, 1_000)));
        changes.forEach((kind, ways) -> {
            for (int way = 0; way < ways.size(); way++) {
                File task = new File(directory, kind.get().getClass().getSimpleName() + way);
                assertTrue(task.mkdirs());
                StateStore store = open(task, kind.get(), StreamsConfig.EXACTLY_ONCE_V2);
                ways.get(way).accept(store);
                store.commit(Map.of(CHANGELOG, 17L));
                // Kafka Streams commits tasks whose transaction failed, too, before it closes and deletes them.
                File killed = new File(directory, task.getName() + " killed");
                copy(task.toPath(), killed.toPath());
                assertThrows(
                        TaskCorruptedException.class,
                        () -> open(killed, kind.get(), StreamsConfig.EXACTLY_ONCE_V2));
                store.close();
                StateStore again = open(task, kind.get(), StreamsConfig.EXACTLY_ONCE_V2);
                assertEquals(17, again.committedOffset(CHANGELOG));
                ways.get(way).accept(again);
                again.close();
                String what = task.getName();
                assertThrows(
                        TaskCorruptedException.class,
                        () -> open(task, kind.get(), StreamsConfig.EXACTLY_ONCE_V2),
                        what);
            }
        });
    }

    static void copy(Path from, Path to) {
        try (Stream<Path> paths = Files.walk(from)) {
            for (Path path : (Iterable<Path>) paths::iterator) {
                Files.copy(path, to.resolve(from.relativize(path)));
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @SuppressWarnings("unchecked")
    private static KeyValueStore<Bytes, byte[]> plain(StateStore store) {
        return (KeyValueStore<Bytes, byte[]>) store;
    }

    @Test
    void afterACrashExactlyOnceRestoresAndAtLeastOnceGoesOn() {
        open().close();
        died();
        open().close();
        assertThrows(
                TaskCorruptedException.class,
                () -> openExactlyOnce(directory));
        // It did not stay open.
        KeyValueStore<Bytes, byte[]> store = open();
        store.commit(Map.of(CHANGELOG, 17L));
        store.close();
        openExactlyOnce(directory).close();
    }

    /** It has no task to restore. Kafka Streams deletes the directory of global stores at the exception that it expects. */
    @Test
    void aGlobalStoreOfExactlyOnceStartsAgainAfterACrash() {
        Properties settings = StreamsTestUtils.getStreamsConfig(Serdes.String(), Serdes.String());
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory.getPath());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        File global = Path.of(directory.getPath(), settings.getProperty(StreamsConfig.APPLICATION_ID_CONFIG), "global")
                .toFile();
        assertTrue(global.mkdirs());
        open(global, ForrestStores.timestampedKeyValueStore("store").get(), StreamsConfig.AT_LEAST_ONCE)
                .close();
        died(global);
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>globalTable("trees", Materialized.as(ForrestStores.timestampedKeyValueStore("store")));
        ProcessorStateException refused = assertThrows(
                ProcessorStateException.class, () -> new TopologyTestDriver(builder.build(), settings));
        assertTrue(refused.getMessage().contains("global store store"), refused.getMessage());
        assertFalse(new File(global, StateStoreBase.DIRECTORY).exists());
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings)) {
            var text = Serdes.String().serializer();
            driver.createInputTopic("trees", text, text).pipeInput("oak", "Quercus");
            assertEquals("Quercus", driver.getTimestampedKeyValueStore("store").get("oak").value());
        }
        // Closing it commits it first.
        new TopologyTestDriver(builder.build(), settings).close();
    }

    /**
     * A process that dies with a store open, after a commit and more that none has committed: records that it processed,
     * or records that it restored, as an active task does at first and a standby task always.
     */
    static final class Dying {
        private Dying() {}

        public static void main(String[] arguments) {
            int together = Integer.parseInt(arguments[1]);
            Properties settings = StreamsTestUtils.getStreamsConfig(Serdes.ByteArray(), Serdes.ByteArray());
            var context = new InternalMockProcessorContext<>(new File(arguments[0]), new StreamsConfig(settings));
            var store = ForrestStores.keyValueStore("store").get();
            store.init(context, store);
            // So much that the system has got a part of it.
            byte[] value = new byte[1 << 10];
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            for (int i = 0; i < 2000; i++) {
                if (i == 1000) {
                    store.commit(Map.of(CHANGELOG, 999L));
                }
                byte[] key = bytes("key" + i).get();
                if (together == 0) {
                    store.put(Bytes.wrap(key), value);
                    continue;
                }
                records.add(new ConsumerRecord<>("changelog", 3, i, key, value));
                if (records.size() == together) {
                    context.restoreWithHeaders("store", records);
                    records.clear();
                }
            }
            Runtime.getRuntime().halt(7);
        }
    }

    /** What a process left behind when it died: it processed records, or restored this many together. */
    private void dies(int together) throws Exception {
        String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
        Process process = new ProcessBuilder(
                        java,
                        "-cp",
                        System.getProperty("java.class.path"),
                        Dying.class.getName(),
                        directory.getPath(),
                        Integer.toString(together))
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        assertEquals(7, process.waitFor());
    }

    @Test
    void aProcessThatDiesLeavesAllRecordsUpToItsOffset() throws Exception {
        dies(0);
        assertThrows(TaskCorruptedException.class, () -> openExactlyOnce(directory));
        areThereUpToTheOffset(open());
    }

    /** The consumer of changelogs returns committed records alone, so what is ahead of the offset is restored again. */
    @Test
    void aProcessThatDiesWhileItRestoresKeepsTheStoreUnderExactlyOnce() throws Exception {
        // One is written at once, and what is more by another thread.
        for (int together : new int[] {1, 50}) {
            delete(directory);
            dies(together);
            areThereUpToTheOffset(plain(openExactlyOnce(directory)));
        }
    }

    private static void areThereUpToTheOffset(KeyValueStore<Bytes, byte[]> store) {
        assertEquals(999, store.committedOffset(CHANGELOG));
        boolean isThere = true;
        for (int i = 0; i < 2000; i++) {
            byte[] value = store.get(bytes("key" + i));
            // Of what came after the commit, a beginning may be there.
            isThere &= value != null;
            assertTrue(isThere || i >= 1000, "key" + i);
            assertEquals(isThere, value != null, "key" + i);
        }
        store.close();
    }

    @Test
    void aDirectoryOfAnotherKindIsRefusedAndUnchanged() {
        KeyValueStore<Bytes, byte[]> store = open();
        store.put(bytes("oak"), bytes("1").get());
        store.close();
        ProcessorStateException refused = assertThrows(
                ProcessorStateException.class,
                () -> open(
                        ForrestStores.sessionStore("store", Duration.ofHours(1)).get(),
                        StreamsConfig.AT_LEAST_ONCE));
        assertTrue(refused.getMessage().contains("is a key-value store 1"), refused.getMessage());
        KeyValueStore<Bytes, byte[]> again = open();
        assertArrayEquals(bytes("1").get(), again.get(bytes("oak")));
        // A directory that is open elsewhere.
        assertThrows(ProcessorStateException.class, this::open);
        again.close();
    }

    /** So that caches, which have those bytes, are in the same order. */
    @Test
    void keysAreThoseOfTheChangelogAfterTheSegment() {
        byte[] key = {'a', 0};
        byte[] window = WindowKeySchema.toStoreKeyBinary(Bytes.wrap(key), 7, 3).get();
        assertArrayEquals(SegmentKeys.ofChangelog(2, window), SegmentKeys.window(2, key, 7, 3));
        assertEquals(7, SegmentKeys.start(SegmentKeys.ofChangelog(2, window)));
        byte[] session = SessionKeySchema.toBinary(Bytes.wrap(key), 5, 9).get();
        byte[] at = SegmentKeys.session(2, key, 9, 5);
        assertArrayEquals(SegmentKeys.ofChangelog(2, session), at);
        assertEquals(Bytes.wrap(key), SegmentKeys.keyOfSession(at));
        assertEquals(9, SegmentKeys.sessionEnd(at));
        assertEquals(5, SegmentKeys.sessionStart(at));
    }

    @Test
    void rangesOfASegmentHaveTheKeysThatAreAskedFor() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        for (int i = 0; i < 100_000; i++) {
            Bytes one = key(random);
            Bytes two = random.nextInt(4) == 0 ? one : key(random);
            boolean isOrdered = one.compareTo(two) <= 0;
            Bytes from = isOrdered ? one : two;
            Bytes to = isOrdered ? two : one;
            Bytes key = random.nextInt(3) == 0 ? from : key(random);
            long low = time(random);
            long high = low + random.nextInt(70_000);
            long time = random.nextBoolean() ? low + random.nextInt((int) (high - low + 1)) : time(random);
            var range = new SegmentRange(from, to, SegmentKeys.NUMBERS_OF_WINDOW);
            byte[] at = SegmentKeys.window(7, key.get(), time, random.nextInt(3));
            boolean isInRange = Arrays.compareUnsigned(at, range.first(7, low)) >= 0
                    && Arrays.compareUnsigned(at, range.last(7, high)) <= 0;
            boolean isTime = low <= time && time <= high;
            assertEquals(key, SegmentKeys.keyOfWindow(at), "seed " + seed);
            assertEquals(
                    isTime && from.compareTo(key) <= 0 && key.compareTo(to) <= 0,
                    isTime && isInRange && range.has(at),
                    "seed " + seed);
            var all = new SegmentRange(null, null, SegmentKeys.NUMBERS_OF_WINDOW);
            assertTrue(Arrays.compareUnsigned(at, all.first(7, low)) >= 0 && all.has(at), "seed " + seed);
            assertTrue(Arrays.compareUnsigned(at, all.last(7, high)) < 0, "seed " + seed);
            assertTrue(Arrays.compareUnsigned(at, all.last(6, high)) > 0, "seed " + seed);
        }
    }

    /** Times whose bytes are like those of keys. */
    private static long time(Random random) {
        return random.nextLong() >>> 1 + 8 * random.nextInt(8);
    }

    private static Bytes key(Random random) {
        byte[] key = new byte[random.nextInt(5)];
        for (int i = 0; i < key.length; i++) {
            key[i] = (byte) new int[] {0, 1, 254, 255}[random.nextInt(4)];
        }
        return Bytes.wrap(key);
    }

    @Test
    void theBudgetIsForAllStores() {
        long one = MemoryBudget.share(1);
        assertEquals(one / 4, MemoryBudget.share(4));
        assertTrue(MemoryBudget.share(1_000_000) >= 4 << 20);
    }

    /** After a crash each thread opens its stores, and each store reads its log. */
    @Test
    void aStoreThatTakesLongToOpenKeepsNoOtherWaiting() throws Exception {
        CountDownLatch opens = new CountDownLatch(1);
        CountDownLatch mayGoOn = new CountDownLatch(1);
        Object slow = new Object() {
            @Override
            public String toString() {
                opens.countDown();
                try {
                    mayGoOn.await();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
                return "none";
            }
        };
        var first = CompletableFuture.supplyAsync(() -> MemoryBudget.open(
                Map.of(MemoryBudget.COMPRESSION, slow), new File(directory, "first").getPath()));
        try {
            opens.await();
            assertTimeoutPreemptively(
                    Duration.ofMinutes(1),
                    () -> MemoryBudget.close(
                            MemoryBudget.open(Map.of(), new File(directory, "second").getPath())));
        } finally {
            mayGoOn.countDown();
            MemoryBudget.close(first.get());
        }
    }

    @Test
    void headersStayOverARestart() {
        var supplier = ForrestStores.keyValueStoreWithHeaders("headers");
        var builder = Stores.timestampedKeyValueStoreWithHeadersBuilder(supplier, Serdes.String(), Serdes.String())
                .withLoggingDisabled();
        var headers = new RecordHeaders().add("origin", new byte[] {1, 2});
        var record = ValueTimestampHeaders.make("Quercus", 17, headers);
        var store = open(builder.build(), StreamsConfig.AT_LEAST_ONCE);
        store.put("oak", record);
        store.close();
        var again = open(builder.build(), StreamsConfig.AT_LEAST_ONCE);
        assertEquals(record, again.get("oak"));
        again.close();
    }

    /** The topology of the guide and more, with every format of values that Kafka Streams has. */
    @Test
    void oneLineMakesForrestTheStoreInEveryFormat() {
        for (String format : List.of("default", "headers")) {
            StreamsBuilder builder = new StreamsBuilder();
            var words = builder.<String, String>stream("words").groupByKey();
            words.count(Materialized.as("counts"));
            words.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1))).count(Materialized.as("windows"));
            words.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofMinutes(1)))
                    .count(Materialized.as("sessions"));
            Properties settings = StreamsTestUtils.getStreamsConfig(Serdes.String(), Serdes.String());
            settings.put(StreamsConfig.STATE_DIR_CONFIG, new File(directory, format).getPath());
            settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, ForrestDslStoreSuppliers.class.getName());
            if (!format.equals("default")) {
                settings.put(StreamsConfig.DSL_STORE_FORMAT_CONFIG, format);
            }
            try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(settings), settings)) {
                var text = Serdes.String().serializer();
                driver.createInputTopic("words", text, text).pipeInput("oak", "", 600_000);
                assertEquals(1L, driver.<String, Long>getKeyValueStore("counts").get("oak"));
                assertEquals(1L, driver.<String, Long>getWindowStore("windows").fetch("oak", 600_000));
                assertEquals(1L, driver.<String, Long>getSessionStore("sessions").fetchSession("oak", 600_000, 600_000));
            }
        }
    }

    /** A topology with every kind of store of the DSL, by the one line of the documentation. */
    @Test
    void oneLineMakesForrestTheStoreOfATopology() {
        StreamsBuilder builder = new StreamsBuilder();
        var words = builder.<String, String>stream("words").groupByKey();
        words.count().toStream().to("counts");
        words.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMinutes(1)))
                .count()
                .toStream((window, count) -> window.key() + "@" + window.window().start())
                .to("windows");
        words.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(Duration.ofMinutes(1)))
                .count()
                .toStream((window, count) -> window.key() + "@" + window.window().start())
                .to("sessions");
        Properties settings = StreamsTestUtils.getStreamsConfig(Serdes.String(), Serdes.String());
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory.getPath());
        settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, ForrestDslStoreSuppliers.class.getName());
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(settings), settings)) {
            var input = driver.createInputTopic(
                    "words", Serdes.String().serializer(), Serdes.String().serializer());
            for (long time : new long[] {600_000, 610_000, 670_000}) {
                input.pipeInput("oak", "", time);
            }
            for (String topic : List.of("counts", "windows", "sessions")) {
                var output = driver.createOutputTopic(
                        topic, Serdes.String().deserializer(), Serdes.Long().deserializer());
                Map<String, Long> last = output.readKeyValuesToMap();
                assertEquals(
                        switch (topic) {
                            case "counts" -> Map.of("oak", 3L);
                            case "windows" -> Map.of("oak@600000", 2L, "oak@660000", 1L);
                            default -> 3L;
                        },
                        topic.equals("sessions") ? last.get("oak@600000") : last);
            }
            assertTrue(
                    driver.metrics().keySet().stream().anyMatch(name -> name.name().equals("table-bytes")
                            && name.tags().toString().contains("forrest-state-id")),
                    "metrics");
            try (var files = java.nio.file.Files.walk(Path.of(directory.getPath()))) {
                assertEquals(
                        3, files.filter(path -> path.endsWith("forrest")).flatMap(path -> java.util.stream.Stream.of(
                                path.toFile().list())).count());
            } catch (java.io.IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        }
    }

    /** A sliding window closes when it is as old as the retention. The store no longer returned it, and it was lost. */
    @Test
    void slidingWindowsAreEmittedWhenTheyClose() {
        List<String> expected = slidingWindows(settings -> {});
        assertFalse(expected.isEmpty());
        assertEquals(
                expected,
                slidingWindows(settings ->
                        settings.put("dsl.store.suppliers.class", ForrestDslStoreSuppliers.class.getName())));
    }

    private List<String> slidingWindows(Consumer<Properties> stores) {
        Properties settings = StreamsTestUtils.getStreamsConfig(Serdes.String(), Serdes.String());
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory.getPath());
        // At each record, and not once a second.
        settings.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 0L);
        stores.accept(settings);
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("trees")
                .groupByKey()
                .windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(50)))
                .emitStrategy(EmitStrategy.onWindowClose())
                .count()
                .toStream()
                .map((window, count) -> KeyValue.pair(window.toString(), count.toString()))
                .to("counts");
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings)) {
            var text = Serdes.String();
            var input = driver.createInputTopic("trees", text.serializer(), text.serializer());
            for (long time : new long[] {100, 150, 200, 260}) {
                input.pipeInput("oak", "Quercus", time);
            }
            return driver.createOutputTopic("counts", text.deserializer(), text.deserializer())
                    .readKeyValuesToList()
                    .stream()
                    .map(KeyValue::toString)
                    .toList();
        }
    }
}
