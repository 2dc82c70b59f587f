package org.apache.kafka.streams.state.internals;

import static org.junit.jupiter.api.Assertions.assertEquals;

import forrest.kafka.ForrestStores;
import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The same random calls on RocksDB's versioned store and on Forrest's give the same results. A map of all versions is a
 * third one.
 *
 * <p>Of two rounds, whose seeds follow each other, one is of a transactional store, which is committed now and then.
 *
 * <p>RocksDB's store is never closed in between, because in Kafka 4.3.1 it does not find old versions afterwards. It is
 * asked only for versions up to the end of time, because of others it leaves out those that end in a later segment. It
 * restores records one by one, because in a batch it discards versions before a late record comes that they end. It gets
 * no tombstone at the time of the newest version, which it forgets. The map is the oracle of these. Versions older than
 * the retention are not compared.
 */
class VersionedDifferentialTest {
    private static final int OPERATIONS = 1_000;
    private static final Bytes[] KEYS = {
        bytes(1), bytes(0), bytes(1, 0), bytes(1, 0, 0), bytes(1, 255), bytes(), bytes(1, 0, 1), bytes(2)
    };

    @TempDir
    File directory;

    private static Bytes bytes(int... bytes) {
        byte[] key = new byte[bytes.length];
        for (int i = 0; i < key.length; i++) {
            key[i] = (byte) bytes[i];
        }
        return Bytes.wrap(key);
    }

    @Test
    void storesAgree() {
        long seed = Long.getLong("forrest.seed", System.nanoTime());
        for (int round = 0; round < 2; round++) {
            try {
                new Round(seed + round, new File(directory, "" + round)).run();
            } catch (RuntimeException | AssertionError e) {
                throw new AssertionError("-Dforrest.seed=" + (seed + round) + ": " + e.getMessage(), e);
            }
        }
    }

    /** A store with what it needs. */
    private static final class Side {
        private final VersionedBytesStoreSupplier supplier;
        private final InternalMockProcessorContext<?, ?> context;
        private final boolean isTransactional;
        private VersionedKeyValueStore<Bytes, byte[]> store;

        Side(VersionedBytesStoreSupplier supplier, File directory, boolean isTransactional) {
            this.supplier = supplier;
            this.isTransactional = isTransactional;
            directory.mkdirs();
            Properties settings = StreamsTestUtils.getStreamsConfig();
            settings.put("forrest.transactional", isTransactional);
            context = new InternalMockProcessorContext<>(directory, new StreamsConfig(settings));
            open();
        }

        /** Commits, if there may be changes that are not. */
        void settle() {
            if (isTransactional) {
                store.commit(Map.of());
            }
        }

        void open() {
            store = ((VersionedKeyValueToBytesStoreAdapter) supplier.get()).inner;
            store.init(context, store);
        }
    }

    /** Some thousand calls. */
    private static final class Round {
        private final Random random;
        private final long retention;
        private final Side rocks;
        private final Side forrest;
        private final Map<Bytes, TreeMap<Long, Optional<byte[]>>> model = new HashMap<>();
        private long now = 1_000;
        private long streamTime = -1;
        private int number;

        Round(long seed, File directory) {
            random = new Random(seed);
            retention = random.nextInt(4) == 0 ? 0 : 1 + random.nextInt(400);
            Duration kept = Duration.ofMillis(retention);
            Duration segment = Duration.ofMillis(1 + random.nextInt(150));
            rocks = new Side(
                    Stores.persistentVersionedKeyValueStore("store", kept, segment),
                    new File(directory, "rocks"),
                    false);
            forrest = new Side(
                    ForrestStores.persistentVersionedKeyValueStore("store", kept, segment),
                    new File(directory, "forrest"),
                    seed % 2 != 0);
        }

        void run() {
            put(KEYS[0], now);
            for (number = 0; number < OPERATIONS; number++) {
                Bytes key = KEYS[random.nextInt(KEYS.length)];
                long time = free(key, Math.max(0, now - random.nextInt((int) (retention + retention / 4 + 5))));
                switch (random.nextInt(40)) {
                    case 0, 1, 2, 3 -> delete(key, random.nextBoolean() ? free(key, now) : time);
                    case 4 -> restore();
                    case 5 -> reopen();
                    case 6, 7, 8 -> versions(key, time);
                    case 9, 10, 11, 12, 13, 14, 15, 16, 17 -> get(key, time);
                    case 18, 19, 20, 21 -> {
                        now += random.nextInt(20);
                        put(key, now);
                    }
                    case 22 -> {
                        // The same instant again.
                        put(key, now);
                    }
                    default -> put(key, time);
                }
            }
            forrest.store.close();
            rocks.store.close();
        }

        /** A time near this one at which the newest version is not. */
        private long free(Bytes key, long time) {
            TreeMap<Long, Optional<byte[]>> versions = model.get(key);
            boolean isFree = versions == null || versions.lastKey() != time || versions.get(time).isEmpty();
            return isFree ? time : time - 1;
        }

        private byte[] value() {
            return random.nextInt(4) == 0 ? null : bytesOf(random.nextInt(3) * 20 + (random.nextInt(40) == 0 ? 900 : 0));
        }

        private byte[] bytesOf(int length) {
            byte[] value = new byte[length];
            random.nextBytes(value);
            return value;
        }

        private void put(Bytes key, long time) {
            byte[] value = value();
            if (value == null) {
                time = free(key, time);
            }
            assertEquals(rocks.store.put(key, value, time), forrest.store.put(key, value, time), this::where);
            note(key, value, time);
        }

        private void note(Bytes key, byte[] value, long time) {
            if (time >= streamTime - retention) {
                streamTime = Math.max(streamTime, time);
                model.computeIfAbsent(key, none -> new TreeMap<>()).put(time, Optional.ofNullable(value));
            }
        }

        private void delete(Bytes key, long time) {
            assertEquals(text(rocks.store.delete(key, time)), text(forrest.store.delete(key, time)), this::where);
            note(key, null, time);
        }

        private void get(Bytes key, long time) {
            assertEquals(text(rocks.store.get(key)), text(forrest.store.get(key)), this::where);
            String found = text(forrest.store.get(key, time));
            assertEquals(text(rocks.store.get(key, time)), found, this::where);
            assertEquals(asOf(key, time), found, this::where);
        }

        private String asOf(Bytes key, long time) {
            TreeMap<Long, Optional<byte[]>> versions = model.getOrDefault(key, new TreeMap<>());
            Long start = versions.floorKey(time);
            Long end = versions.higherKey(time);
            if (start == null || versions.get(start).isEmpty() || (end != null && time < streamTime - retention)) {
                return "none";
            }
            byte[] value = versions.get(start).get();
            return text(end == null ? new VersionedRecord<>(value, start) : new VersionedRecord<>(value, start, end));
        }

        private void restore() {
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            for (int i = random.nextInt(60); i > 0; i--) {
                now += random.nextInt(40) == 0 ? random.nextInt(100) : random.nextInt(3);
                Bytes key = KEYS[random.nextInt(KEYS.length)];
                byte[] value = value();
                long at = i % 2 == 0 ? now : Math.max(0, now - random.nextInt((int) (retention + 5)));
                long time = value == null ? free(key, at) : at;
                records.add(new ConsumerRecord<>(
                        "changelog",
                        0,
                        number,
                        time,
                        TimestampType.CREATE_TIME,
                        0,
                        0,
                        key.get(),
                        value,
                        new RecordHeaders(),
                        Optional.empty()));
                note(key, value, time);
            }
            // The stream time is that of a record.
            records.add(new ConsumerRecord<>(
                    "changelog", 0, number, now, TimestampType.CREATE_TIME, 0, 0, KEYS[0].get(), new byte[1],
                    new RecordHeaders(), Optional.empty()));
            note(KEYS[0], new byte[1], now);
            // Kafka Streams restores only what has no changes.
            forrest.settle();
            records.forEach(record -> rocks.context.restoreWithHeaders("store", List.of(record)));
            forrest.context.restoreWithHeaders("store", records);
        }

        private void reopen() {
            forrest.settle();
            forrest.store.close();
            forrest.open();
        }

        private void versions(Bytes key, long time) {
            long from = time - random.nextInt(100);
            ResultOrder order = random.nextBoolean() ? ResultOrder.ASCENDING : ResultOrder.DESCENDING;
            assertEquals(
                    list(rocks.store, key, from, Long.MAX_VALUE, order),
                    list(forrest.store, key, from, Long.MAX_VALUE, order),
                    this::where);
            List<String> expected = new ArrayList<>();
            TreeMap<Long, Optional<byte[]>> all = model.getOrDefault(key, new TreeMap<>());
            all.forEach((start, value) -> {
                Long end = all.higherKey(start);
                boolean isLive = end == null || (end > from && end > streamTime - retention && time >= streamTime - retention);
                if (start <= time && isLive && value.isPresent()) {
                    expected.add(text(end == null
                            ? new VersionedRecord<>(value.get(), start)
                            : new VersionedRecord<>(value.get(), start, end)));
                }
            });
            if (order == ResultOrder.DESCENDING) {
                Collections.reverse(expected);
            }
            assertEquals(expected, list(forrest.store, key, from, time, order), this::where);
        }

        /** The versions that are returned and are not older than the retention. */
        private List<String> list(
                VersionedKeyValueStore<Bytes, byte[]> store, Bytes key, long from, long to, ResultOrder order) {
            List<String> found = new ArrayList<>();
            try (VersionedRecordIterator<byte[]> versions =
                    ForrestVersionedStoreTest.versions(store, key, from, to, order)) {
                versions.forEachRemaining(version -> {
                    if (version.validTo().isEmpty() || version.validTo().get() > streamTime - retention) {
                        found.add(text(version));
                    }
                });
            }
            return found;
        }

        private String where() {
            return "operation " + number;
        }

        private static String text(VersionedRecord<byte[]> record) {
            return record == null
                    ? "none"
                    : Arrays.hashCode(record.value()) + " of " + record.timestamp() + " to " + record.validTo();
        }
    }
}
