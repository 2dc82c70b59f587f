package forrest.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import forrest.Durability;
import forrest.Store;
import forrest.WriteBatch;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.internals.PositionSerde;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a store gets that it cannot use: each time the exception that Kafka Streams expects, with the reason. */
class BadInputTest {
    private static final Bytes OAK = Bytes.wrap("oak".getBytes(StandardCharsets.UTF_8));
    private static final byte[] VALUE = {1};
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 3);

    @TempDir
    File directory;

    private static InternalMockProcessorContext<?, ?> context(File directory) {
        return new InternalMockProcessorContext<>(directory, new StreamsConfig(StreamsTestUtils.getStreamsConfig()));
    }

    private static <S extends StateStore> S open(InternalMockProcessorContext<?, ?> context, S store) {
        store.init(context, store);
        return store;
    }

    private KeyValueStore<Bytes, byte[]> open() {
        return open(context(directory), ForrestStores.keyValueStore("store").get());
    }

    private static ConsumerRecord<byte[], byte[]> record(byte[] key) {
        return record(17, key, new RecordHeaders());
    }

    private static ConsumerRecord<byte[], byte[]> record(long offset, byte[] key, RecordHeaders headers) {
        return new ConsumerRecord<>(
                "changelog", 3, offset, offset, TimestampType.CREATE_TIME, -1, -1, key, VALUE, headers, Optional.empty());
    }

    private static List<StateStoreBase> stores() {
        return List.of(
                (StateStoreBase) ForrestStores.keyValueStore("plain").get(),
                (StateStoreBase) ForrestStores.windowStore("windows", Duration.ofHours(1), Duration.ofMinutes(1), false)
                        .get(),
                (StateStoreBase) ForrestStores.sessionStore("sessions", Duration.ofHours(1)).get(),
                new ForrestVersionedStore("versions", 1_000, 100));
    }

    private static long records(StateStoreBase store) {
        try (var range = store.data.keyspace.range(null, null)) {
            long records = 0;
            for (; range.hasNext(); range.next()) {
                records++;
            }
            return records;
        }
    }

    @Test
    void aChangelogRecordBeyondTheLimitsFailsTheRestoreAndThoseBeforeStay() {
        for (StateStoreBase store : stores()) {
            var context = context(directory);
            open(context, store);
            context.restoreWithHeaders(store.name(), List.of(record(new byte[20])));
            store.commit(Map.of(CHANGELOG, 16L));
            List<ConsumerRecord<byte[], byte[]>> batch = List.of(record(new byte[21]), record(new byte[65_536]));
            ProcessorStateException refused = assertThrows(
                    ProcessorStateException.class, () -> context.restoreWithHeaders(store.name(), batch));
            assertTrue(refused.getMessage().contains("limit exceeded"), refused.getMessage());
            assertTrue(store.isOpen());
            assertEquals(1, records(store), store.name());
            store.close();
            open(context(directory), store);
            assertEquals(16, store.committedOffset(CHANGELOG));
            assertEquals(1, records(store), store.name());
            store.close();
        }
    }

    /** Nothing else has a position, and queries may ask for one. */
    @Test
    void aRefusedRecordMovesNeitherPositionNorTime() {
        Properties settings = StreamsTestUtils.getStreamsConfig();
        settings.put("__iq.consistency.offset.vector.enabled__", true);
        for (StateStoreBase store : stores()) {
            var context = new InternalMockProcessorContext<>(directory, new StreamsConfig(settings));
            open(context, store);
            context.restoreWithHeaders(store.name(), List.of(at(7, new byte[20])));
            Position before = Position.emptyPosition().withComponent("input", 0, 7);
            assertEquals(before, store.getPosition());
            long time = store.streamTime;
            byte[] late = new byte[65_536];
            // Of windows and sessions it is a time.
            late[late.length - SegmentKeys.NUMBERS_OF_SESSION + 6] = 1;
            assertThrows(
                    ProcessorStateException.class,
                    () -> context.restoreWithHeaders(store.name(), List.of(at(9, late))));
            assertEquals(before, store.getPosition(), store.name());
            assertEquals(time, store.streamTime, store.name());
            store.close();
        }
    }

    /** A record with the position that the application had when it wrote it. */
    private static ConsumerRecord<byte[], byte[]> at(long offset, byte[] key) {
        Position position = Position.emptyPosition().withComponent("input", 0, offset);
        RecordHeaders headers = new RecordHeaders();
        headers.add(ChangelogRecordDeserializationHelper.CHANGELOG_VERSION_HEADER_RECORD_CONSISTENCY);
        headers.add(
                ChangelogRecordDeserializationHelper.CHANGELOG_POSITION_HEADER_KEY,
                PositionSerde.serialize(position).array());
        return record(offset, key, headers);
    }

    @Test
    void aChangelogRecordWithoutAKeyFailsTheRestore() {
        for (StateStoreBase store : stores()) {
            var context = context(directory);
            open(context, store);
            ProcessorStateException refused = assertThrows(
                    ProcessorStateException.class,
                    () -> context.restoreWithHeaders(store.name(), List.of(record(null))),
                    store.name());
            assertTrue(refused.getMessage().contains("changelog-3 at offset 17 has no key"), refused.getMessage());
            store.close();
        }
    }

    @Test
    void aChangelogOfAnotherKindOfStoreFailsTheRestore() {
        List<StateStore> stores = List.of(
                ForrestStores.windowStore("windows", Duration.ofHours(1), Duration.ofMinutes(1), false)
                        .get(),
                ForrestStores.sessionStore("sessions", Duration.ofHours(1)).get());
        for (StateStore store : stores) {
            var context = context(directory);
            open(context, store);
            ProcessorStateException refused = assertThrows(
                    ProcessorStateException.class,
                    () -> context.restoreWithHeaders(store.name(), List.of(record(OAK.get()))));
            assertTrue(refused.getMessage().contains("changelog-3 at offset 17"), refused.getMessage());
            store.close();
        }
    }

    @Test
    void settingsThatAreNoneAreNamed() {
        Map<String, List<String>> settings = Map.of(
                MemoryBudget.SETTING, List.of("512 MiB", "0", "-1", "1e9"),
                MemoryBudget.WORKERS, List.of("two", "0", "3000000000"),
                MemoryBudget.LARGE_VALUES, List.of("4K", "-1", "63"),
                MemoryBudget.COMPRESSION, List.of("zip", ""));
        settings.forEach((name, values) -> values.forEach(value -> {
            var given = StreamsTestUtils.getStreamsConfig();
            given.put(name, value);
            var context = new InternalMockProcessorContext<>(directory, new StreamsConfig(given));
            ConfigException refused = assertThrows(
                    ConfigException.class,
                    () -> open(context, ForrestStores.keyValueStore("store").get()));
            assertTrue(refused.getMessage().contains(name), refused.getMessage());
            assertTrue(refused.getMessage().contains(value), refused.getMessage());
        }));
        open().close();
    }

    private Path storeDirectory() {
        return Path.of(directory.getPath(), StateStoreBase.DIRECTORY, "store");
    }

    @Test
    void aDirectoryOfAnotherVersionIsRefused() {
        open().close();
        try (Store store = Store.open(storeDirectory().toString())) {
            byte[] kind = "key-value store 2".getBytes(StandardCharsets.UTF_8);
            store.write(
                    new WriteBatch().put(store.keyspace("kafka"), "kind".getBytes(StandardCharsets.UTF_8), kind),
                    Durability.BUFFERED);
        }
        ProcessorStateException refused = assertThrows(ProcessorStateException.class, this::open);
        assertTrue(refused.getMessage().contains("is a key-value store 2"), refused.getMessage());
        assertTrue(refused.getMessage().contains("delete the directory"), refused.getMessage());
    }

    /** A later release may write files that this one cannot read. The head of a manifest says so. */
    @Test
    void filesOfAnotherFormatVersionAreRefusedAndLeftAlone() throws IOException {
        Files.createDirectories(storeDirectory());
        Path manifest = storeDirectory().resolve("00000001.manifest");
        String name = HexFormat.of().formatHex("frst.man".getBytes(StandardCharsets.US_ASCII));
        // Version 99, number 1, no fields, checksum.
        String head = name + "6300000000000000" + "0100000000000000" + "00".repeat(32) + "72c3443506b35308";
        Files.write(manifest, HexFormat.of().parseHex(head));
        ProcessorStateException refused = assertThrows(ProcessorStateException.class, this::open);
        assertTrue(refused.getMessage().contains("00000001.manifest has format version 99"), refused.getMessage());
        assertTrue(refused.getMessage().contains("open the store with the release that wrote it"), refused.getMessage());
        assertArrayEquals(HexFormat.of().parseHex(head), Files.readAllBytes(manifest));
    }

    /** The keys of windows and sessions had another order once. */
    @Test
    void windowsAndSessionsOfTheFirstVersionAreRefused() throws IOException {
        Files.createDirectories(storeDirectory().getParent());
        Duration hour = Duration.ofHours(1);
        Map<String, Supplier<StateStore>> stores = Map.of(
                "window store", () -> ForrestStores.windowStore("store", hour, hour, false).get(),
                "timestamped window store", () -> ForrestStores.timestampedWindowStore("store", hour, hour, false).get(),
                "window store with headers", () -> ForrestStores.windowStoreWithHeaders("store", hour, hour, false).get(),
                "session store", () -> ForrestStores.sessionStore("store", hour).get(),
                "session store with headers", () -> ForrestStores.sessionStoreWithHeaders("store", hour).get());
        stores.forEach((kind, store) -> {
            String first = kind + " 1, segments of 1800000 ms";
            try (Store written = Store.open(storeDirectory().toString())) {
                written.write(
                        new WriteBatch()
                                .put(
                                        written.keyspace("kafka"),
                                        "kind".getBytes(StandardCharsets.UTF_8),
                                        first.getBytes(StandardCharsets.UTF_8)),
                        Durability.BUFFERED);
            }
            ProcessorStateException refused =
                    assertThrows(ProcessorStateException.class, () -> open(context(directory), store.get()));
            assertTrue(refused.getMessage().contains("is a " + first), refused.getMessage());
            assertTrue(refused.getMessage().contains("wants a " + kind + " 2, "), refused.getMessage());
            assertTrue(refused.getMessage().contains("delete the directory to restore"), refused.getMessage());
        });
    }

    /** RocksDB's stores are in another directory, which stays; Kafka Streams restores the store from its changelog. */
    @Test
    void aStateDirectoryOfRocksdbIsLeftAlone() throws IOException {
        KeyValueStore<Bytes, byte[]> rocks = open(context(directory), Stores.persistentKeyValueStore("store").get());
        rocks.put(OAK, VALUE);
        rocks.close();
        KeyValueStore<Bytes, byte[]> store = open();
        assertNull(store.get(OAK));
        assertNull(store.committedOffset(CHANGELOG));
        store.put(OAK, new byte[] {2});
        store.close();
        KeyValueStore<Bytes, byte[]> again = open(context(directory), Stores.persistentKeyValueStore("store").get());
        assertArrayEquals(VALUE, again.get(OAK));
        again.close();
    }

    @Test
    void filesOfRocksdbInItsOwnDirectoryAreRefused() throws IOException {
        KeyValueStore<Bytes, byte[]> rocks = open(context(directory), Stores.persistentKeyValueStore("store").get());
        rocks.close();
        Files.createDirectories(storeDirectory().getParent());
        Files.move(Path.of(directory.getPath(), "rocksdb", "store"), storeDirectory());
        long before = files();
        assertThrows(ProcessorStateException.class, this::open);
        assertEquals(before, files());
    }

    private long files() throws IOException {
        try (var files = Files.walk(storeDirectory())) {
            return files.count();
        }
    }

    /** Runs a class below in another process, after the words of a command. Returns what it prints. */
    private String run(Class<?> main, List<String> before, List<String> options) throws Exception {
        List<String> command = new ArrayList<>(before);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(options);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName(), directory.getPath()));
        Process process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        process.waitFor();
        return printed;
    }

    /** Opens two stores, and prints how that fails. */
    static final class Opening {
        private Opening() {}

        public static void main(String[] arguments) {
            for (String name : List.of("one", "two")) {
                try {
                    open(context(new File(arguments[0])), ForrestStores.keyValueStore(name).get());
                } catch (ProcessorStateException e) {
                    System.out.println(e);
                }
            }
        }
    }

    @Test
    void aLibraryOfAnotherProcessorIsRefused() throws Exception {
        Path library = Path.of(directory.getPath(), "library.so");
        try (InputStream built = Store.class.getResourceAsStream("native/linux-x86_64/libforrest_jni.so")) {
            assumeTrue(built != null, "the library in the jar is not for x86-64");
            byte[] bytes = built.readAllBytes();
            // The processor in the head of an ELF file: RISC-V.
            bytes[18] = (byte) 0xf3;
            Files.write(library, bytes);
        }
        String printed = run(Opening.class, List.of(), List.of("-Dforrest.library=" + library));
        assertEquals(2, printed.lines().filter(line -> line.contains("ProcessorStateException")).count(), printed);
        assertEquals(2, printed.lines().filter(line -> line.contains("library.so")).count(), printed);
    }

    /**
     * Restores more than the disk has room for, and prints how that fails. Then it makes room, opens the store again, and
     * prints what it has.
     */
    static final class Filling {
        private static final int RECORDS = 200;

        private Filling() {}

        public static void main(String[] arguments) throws IOException {
            Path room = Path.of(arguments[0], "room");
            Files.write(room, new byte[8 << 20]);
            var context = context(new File(arguments[0]));
            KeyValueStore<Bytes, byte[]> store = open(context, ForrestStores.keyValueStore("store").get());
            long offset = -1;
            try {
                for (int batch = 0; batch < 100; batch++) {
                    List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
                    for (int i = 0; i < RECORDS; i++) {
                        int number = batch * RECORDS + i;
                        records.add(new ConsumerRecord<>(
                                "changelog", 3, number, StateStoreBase.number(number), value(number)));
                    }
                    context.restoreWithHeaders("store", records);
                    store.commit(Map.of(CHANGELOG, (batch + 1L) * RECORDS - 1));
                    offset = (batch + 1L) * RECORDS - 1;
                }
                System.out.println("there was room");
            } catch (ProcessorStateException e) {
                System.out.println(e);
            }
            try {
                store.close();
            } catch (ProcessorStateException e) {
                System.out.println("closing: " + e);
            }
            Files.delete(room);
            open(context(new File(arguments[0])), store);
            long found = store.committedOffset(CHANGELOG);
            boolean isWhole = offset > 0 && found >= offset;
            for (long number = 0; number <= found; number++) {
                byte[] value = store.get(Bytes.wrap(StateStoreBase.number(number)));
                isWhole &= Arrays.equals(value, value(number));
            }
            System.out.println(isWhole ? "all is there up to the offset" : "something is lost before " + found);
            store.close();
        }

        private static byte[] value(long number) {
            byte[] value = new byte[8 << 10];
            new Random(number).nextBytes(value);
            return value;
        }
    }

    @Test
    void aFullDiskFailsTheRestore() throws Exception {
        String mount = "mount -t tmpfs -o size=32m none '" + directory + "' && echo mounted && exec \"$@\"";
        List<String> before = List.of("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh");
        assumeTrue(new File("/usr/bin/unshare").exists(), "there is no unshare");
        String printed = run(Filling.class, before, List.of());
        assumeTrue(printed.startsWith("mounted"), "a small file system cannot be mounted here");
        assertTrue(printed.contains("ProcessorStateException"), printed);
        assertTrue(printed.contains("out of space"), printed);
        assertTrue(printed.contains("all is there up to the offset"), printed);
    }
}
