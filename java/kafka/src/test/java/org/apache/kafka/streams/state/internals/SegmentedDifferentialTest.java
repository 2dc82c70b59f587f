package org.apache.kafka.streams.state.internals;

import static org.junit.jupiter.api.Assertions.assertEquals;

import forrest.kafka.ForrestStores;
import java.io.File;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.internals.MockStreamsMetrics;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.MockRecordCollector;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The same random calls on RocksDB's window and session stores and on Forrest's give the same results, plain and with
 * Kafka's cache before them. Some keys are prefixes of others, and go on with bytes like those of a timestamp.
 *
 * <p>Of two rounds, whose seeds follow each other, one is of transactional stores, which are committed now and then.
 *
 * <p>Without a cache, a range of keys must be what all keys are, filtered. RocksDB's store misses some windows there: its
 * upper bound (OrderedBytes.upperRange in Kafka 4.3.1) is too low if a key is the bound's prefix and the bound goes on
 * with 00. Kafka's cache has the same bound, so such ranges are not asked of a store with a cache.
 */
class SegmentedDifferentialTest {
    private static final int OPERATIONS = 1_000;
    private static final long TODAY = 1_700_000_000_000L;
    private static final long SIZE = 10;

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
    void windowStoresAgree() {
        rounds((seed, at) -> new WindowRound(seed, at, false));
    }

    @Test
    void windowStoresWithCachesAgree() {
        rounds((seed, at) -> new WindowRound(seed, at, true));
    }

    @Test
    void sessionStoresAgree() {
        rounds((seed, at) -> new SessionRound(seed, at, false));
    }

    @Test
    void sessionStoresWithCachesAgree() {
        rounds((seed, at) -> new SessionRound(seed, at, true));
    }

    /** By another order the old value of a window was returned beside the new one, and a deleted window came back. */
    @Test
    void aCacheReplacesAndDeletesWhatTheStoreHas() {
        Bytes one = bytes('a');
        Bytes two = bytes('a', 0);
        var round = new WindowRound(2, directory, true);
        round.set(one, TODAY, new byte[] {1});
        round.set(two, TODAY, new byte[] {1});
        round.flush();
        round.set(one, TODAY, new byte[] {2});
        round.set(two, TODAY, new byte[] {2});
        var store = round.forrest.store;
        String window = " Window{startMs=" + TODAY + ", endMs=" + (TODAY + SIZE) + "}=[2]";
        assertEquals(List.of("6100" + window, "61" + window), Round.list(store.all()));
        assertEquals(List.of("61" + window, "6100" + window), Round.list(store.backwardFetchAll(TODAY, TODAY)));
        round.set(two, TODAY, null);
        assertEquals(List.of("61" + window), Round.list(store.fetchAll(TODAY, TODAY)));
        assertEquals(List.of("61" + window), Round.list(store.backwardAll()));
        round.rocks.store.close();
        store.close();
    }

    /** Why such ranges are not compared. If this fails, a new version of Kafka has a better bound. */
    @Test
    void theBoundOfKafkasRangesIsTooLowBeforeBytesOfZero() {
        Bytes one = bytes('a');
        Bytes two = bytes('a', 0);
        String window = " Window{startMs=" + TODAY + ", endMs=" + (TODAY + SIZE) + "}=";
        for (boolean isCached : new boolean[] {false, true}) {
            var round = new WindowRound(2, new File(directory, "" + isCached), isCached);
            round.set(one, TODAY, new byte[] {1});
            round.flush();
            round.set(one, TODAY, new byte[] {2});
            assertEquals(List.of(), Round.list(round.rocks.store.fetch(one, two, TODAY, TODAY)));
            String found = "61" + window + (isCached ? "[1]" : "[2]");
            assertEquals(List.of(found), Round.list(round.forrest.store.fetch(one, two, TODAY, TODAY)));
            round.rocks.store.close();
            round.forrest.store.close();
        }
    }

    private interface Maker {
        Round<?> make(long seed, File directory);
    }

    private void rounds(Maker maker) {
        long seed = Long.getLong("forrest.seed", System.nanoTime());
        for (int round = 0; round < 2; round++) {
            try {
                maker.make(seed + round, new File(directory, "" + round)).run();
            } catch (RuntimeException | AssertionError e) {
                throw new AssertionError("-Dforrest.seed=" + (seed + round) + ": " + e.getMessage(), e);
            }
        }
    }

    /** A store with what it needs. */
    private static final class Side<S extends StateStore> {
        private final Supplier<S> maker;
        private final InternalMockProcessorContext<?, ?> context;
        private final boolean isTransactional;
        private S store;

        Side(Supplier<S> maker, long cacheBytes, File directory, boolean isTransactional) {
            this.maker = maker;
            this.isTransactional = isTransactional;
            directory.mkdirs();
            ThreadCache cache =
                    new ThreadCache(new LogContext(), cacheBytes, new MockStreamsMetrics(new Metrics()));
            context = new InternalMockProcessorContext<>(
                    directory, Serdes.Bytes(), Serdes.ByteArray(), new MockRecordCollector(), cache) {
                @Override
                public Map<String, Object> appConfigs() {
                    Map<String, Object> settings = new HashMap<>(super.appConfigs());
                    settings.put("forrest.transactional", isTransactional);
                    return settings;
                }
            };
            open();
        }

        /** Commits, if there may be changes that are not. */
        void settle() {
            if (isTransactional) {
                store.commit(Map.of());
            }
        }

        void open() {
            store = maker.get();
            store.init(context, store);
        }
    }

    /** Some thousand calls. */
    private abstract static class Round<S extends StateStore> {
        final Random random;
        final boolean isTransactional;
        final boolean isCached;
        final long retention;
        final List<Bytes> keys = new ArrayList<>();
        Side<S> rocks;
        Side<S> forrest;
        long now;
        private int number;

        Round(long seed, boolean isCached) {
            random = new Random(seed);
            isTransactional = seed % 2 != 0;
            this.isCached = isCached;
            boolean isToday = random.nextInt(4) != 0;
            // Kafka's cache looks into each segment since 1970.
            retention = isToday ? Duration.ofDays(20).toMillis() : 240_000;
            now = isToday ? TODAY : 0;
            keys.addAll(List.of(
                    bytes('a'),
                    bytes('a', 0),
                    bytes('a', 0, 0),
                    bytes('a', 0, 0, 1),
                    bytes('a', 1),
                    bytes('a', 255),
                    bytes('b'),
                    bytes(0),
                    bytes(0, 0),
                    bytes()));
            // The key "a" and the first bytes of a window's key of it.
            keys.add(Bytes.wrap(ByteBuffer.allocate(9).put((byte) 'a').putLong(now + step()).array()));
            keys.add(Bytes.wrap(ByteBuffer.allocate(13).put((byte) 'a').putLong(now).putInt(0).array()));
        }

        final void sides(Supplier<S> rocksMaker, Supplier<S> forrestMaker, File directory) {
            // A small one evicts in between.
            long cacheBytes = random.nextBoolean() ? 4_000 : 1 << 20;
            rocks = new Side<>(rocksMaker, cacheBytes, new File(directory, "rocks"), false);
            forrest = new Side<>(forrestMaker, cacheBytes, new File(directory, "forrest"), isTransactional);
        }

        abstract void put(Bytes key, long time, byte[] value);

        abstract byte[] changelogKey(Bytes key, long time);

        abstract void read(Bytes key, long time);

        abstract void range(Bytes from, Bytes to, long timeFrom, long timeTo);

        final long step() {
            return retention / 100;
        }

        /** One of few times, so that many windows have the same. */
        final long time() {
            return Math.max(0, now - random.nextInt(random.nextInt(8) == 0 ? 160 : 30) * step());
        }

        final Bytes key() {
            return keys.get(random.nextInt(keys.size()));
        }

        void run() {
            // Kafka's cache wants no time that is above all it saw.
            set(key(), now, new byte[4]);
            for (number = 0; number < OPERATIONS; number++) {
                switch (random.nextInt(20)) {
                    case 0, 1 -> {
                        now += (random.nextInt(8) == 0 ? random.nextInt(100) : 1) * step();
                        set(key(), now, new byte[4]);
                    }
                    case 2, 3, 4 -> set(key(), time(), null);
                    case 5 -> {
                        flush();
                        if (random.nextBoolean()) {
                            forrest.settle();
                        }
                    }
                    case 6 -> restore();
                    case 7 -> {
                        if (random.nextInt(8) == 0) {
                            reopen();
                        }
                    }
                    case 8, 9 -> read(key(), time());
                    case 10, 11, 12 -> {
                        Bytes one = random.nextInt(6) == 0 ? null : key();
                        Bytes two = random.nextInt(6) == 0 ? null : key();
                        boolean isOrdered = one == null || two == null || one.compareTo(two) <= 0;
                        long time = time();
                        range(isOrdered ? one : two, isOrdered ? two : one, time, time + random.nextInt(60) * step());
                    }
                    default -> set(key(), time(), ByteBuffer.allocate(4).putInt(number).array());
                }
            }
            forrest.store.close();
            rocks.store.close();
        }

        final void set(Bytes key, long time, byte[] value) {
            for (Side<S> side : List.of(rocks, forrest)) {
                side.context.setRecordContext(
                        new ProcessorRecordContext(time, number, 0, "topic", new RecordHeaders()));
            }
            put(key, time, value);
        }

        final void flush() {
            for (Side<S> side : List.of(rocks, forrest)) {
                ((CachedStateStore<?, ?>) side.store).flushCache();
            }
        }

        private void restore() {
            if (isCached) {
                return;
            }
            // Kafka Streams restores only what has no changes.
            forrest.settle();
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            for (int i = random.nextInt(10); i >= 0; i--) {
                long time = time();
                byte[] value = random.nextInt(3) == 0 ? null : new byte[] {(byte) i};
                records.add(new ConsumerRecord<>(
                        "changelog",
                        0,
                        number,
                        time,
                        TimestampType.CREATE_TIME,
                        0,
                        0,
                        changelogKey(key(), time),
                        value,
                        new RecordHeaders(),
                        Optional.empty()));
            }
            rocks.context.restoreWithHeaders("store", records);
            forrest.context.restoreWithHeaders("store", records);
        }

        private void reopen() {
            if (!isCached) {
                forrest.settle();
                forrest.store.close();
                forrest.open();
            }
        }

        final void same(Function<S, KeyValueIterator<?, byte[]>> read) {
            agree(list(read.apply(rocks.store)), list(read.apply(forrest.store)));
        }

        /** A range of keys without a cache, which is a part of all. */
        final void part(
                Bytes from,
                Bytes to,
                Function<S, KeyValueIterator<Windowed<Bytes>, byte[]>> all,
                Function<S, KeyValueIterator<Windowed<Bytes>, byte[]>> range) {
            List<String> expected = new ArrayList<>();
            try (KeyValueIterator<Windowed<Bytes>, byte[]> pairs = all.apply(rocks.store)) {
                pairs.forEachRemaining(pair -> {
                    Bytes key = pair.key.key();
                    if ((from == null || key.compareTo(from) >= 0) && (to == null || key.compareTo(to) <= 0)) {
                        expected.add(text(pair.key, pair.value));
                    }
                });
            }
            agree(expected, list(range.apply(forrest.store)));
        }

        private void agree(List<String> expected, List<String> found) {
            for (int i = 0; i < Math.min(expected.size(), found.size()); i++) {
                int at = i;
                assertEquals(expected.get(i), found.get(i), () -> where() + ", pair " + at);
            }
            assertEquals(expected.size(), found.size(), () -> where() + ", number of pairs");
        }

        static List<String> list(KeyValueIterator<?, byte[]> pairs) {
            List<String> found = new ArrayList<>();
            try (pairs) {
                pairs.forEachRemaining(pair -> found.add(text(pair.key, pair.value)));
            }
            return found;
        }

        private static String text(Object key, byte[] value) {
            String where = key instanceof Windowed<?> windowed
                    ? HexFormat.of().formatHex(((Bytes) windowed.key()).get()) + " " + windowed.window()
                    : key.toString();
            return where + "=" + Arrays.toString(value);
        }

        final String where() {
            return "operation " + number;
        }
    }

    private static final class WindowRound extends Round<WindowStore<Bytes, byte[]>> {
        WindowRound(long seed, File directory, boolean isCached) {
            super(seed, isCached);
            Duration kept = Duration.ofMillis(retention);
            Duration size = Duration.ofMillis(SIZE);
            sides(
                    () -> make(Stores.persistentWindowStore("store", kept, size, false)),
                    () -> make(ForrestStores.windowStore("store", kept, size, false)),
                    directory);
        }

        private WindowStore<Bytes, byte[]> make(WindowBytesStoreSupplier supplier) {
            var builder = Stores.windowStoreBuilder(supplier, Serdes.Bytes(), Serdes.ByteArray())
                    .withLoggingDisabled();
            return (isCached ? builder.withCachingEnabled() : builder).build();
        }

        @Override
        void put(Bytes key, long time, byte[] value) {
            rocks.store.put(key, value, time);
            forrest.store.put(key, value, time);
        }

        @Override
        byte[] changelogKey(Bytes key, long time) {
            return WindowKeySchema.toStoreKeyBinary(key, time, 0).get();
        }

        @Override
        void read(Bytes key, long time) {
            assertEquals(
                    Arrays.toString(rocks.store.fetch(key, time)),
                    Arrays.toString(forrest.store.fetch(key, time)),
                    this::where);
            long to = time + random.nextInt(60) * step();
            same(store -> store.fetch(key, time, to));
            same(store -> store.backwardFetch(key, time, to));
        }

        @Override
        void range(Bytes from, Bytes to, long timeFrom, long timeTo) {
            same(WindowStore::all);
            same(WindowStore::backwardAll);
            same(store -> store.fetchAll(timeFrom, timeTo));
            same(store -> store.backwardFetchAll(timeFrom, timeTo));
            if (!isCached) {
                part(
                        from,
                        to,
                        store -> store.fetchAll(timeFrom, timeTo),
                        store -> store.fetch(from, to, timeFrom, timeTo));
                part(
                        from,
                        to,
                        store -> store.backwardFetchAll(timeFrom, timeTo),
                        store -> store.backwardFetch(from, to, timeFrom, timeTo));
            } else if (!isMissed(to, timeTo)) {
                same(store -> store.fetch(from, to, timeFrom, timeTo));
                same(store -> store.backwardFetch(from, to, timeFrom, timeTo));
            }
        }

        private boolean isMissed(Bytes to, long timeTo) {
            return to != null
                    && keys.stream()
                            .filter(key -> key.compareTo(to) <= 0)
                            .anyMatch(key -> WindowKeySchema.toStoreKeyBinary(key, timeTo, 0)
                                            .compareTo(new WindowKeySchema().upperRange(to, timeTo))
                                    > 0);
        }
    }

    private static final class SessionRound extends Round<SessionStore<Bytes, byte[]>> {
        SessionRound(long seed, File directory, boolean isCached) {
            super(seed, isCached);
            Duration kept = Duration.ofMillis(retention);
            sides(
                    () -> make(Stores.persistentSessionStore("store", kept)),
                    () -> make(ForrestStores.sessionStore("store", kept)),
                    directory);
        }

        private SessionStore<Bytes, byte[]> make(SessionBytesStoreSupplier supplier) {
            var builder = Stores.sessionStoreBuilder(supplier, Serdes.Bytes(), Serdes.ByteArray())
                    .withLoggingDisabled();
            return (isCached ? builder.withCachingEnabled() : builder).build();
        }

        private SessionWindow session(long end) {
            return new SessionWindow(Math.max(0, end - random.nextInt(3) * step()), end);
        }

        @Override
        void put(Bytes key, long time, byte[] value) {
            Windowed<Bytes> session = new Windowed<>(key, session(time));
            rocks.store.put(session, value);
            forrest.store.put(session, value);
        }

        @Override
        byte[] changelogKey(Bytes key, long time) {
            return SessionKeySchema.toBinary(new Windowed<>(key, session(time))).get();
        }

        @Override
        void read(Bytes key, long time) {
            SessionWindow session = session(time);
            assertEquals(
                    Arrays.toString(rocks.store.fetchSession(key, session.start(), session.end())),
                    Arrays.toString(forrest.store.fetchSession(key, session.start(), session.end())),
                    this::where);
            long latestStart = time + random.nextInt(60) * step();
            same(store -> store.findSessions(key, time, latestStart));
            // With less, Kafka's cache throws if a later segment has a session.
            long latest = isCached ? Math.max(latestStart, now) : latestStart;
            same(store -> store.backwardFindSessions(key, time, latest));
            same(store -> store.fetch(key));
            same(store -> store.backwardFetch(key));
        }

        @Override
        void range(Bytes from, Bytes to, long timeFrom, long timeTo) {
            same(store -> store.fetch(null, null));
            same(store -> store.backwardFetch(null, null));
            same(store -> store.findSessions(null, null, timeFrom, timeTo));
            if (!isCached) {
                part(
                        from,
                        to,
                        store -> store.findSessions(null, null, timeFrom, timeTo),
                        store -> store.findSessions(from, to, timeFrom, timeTo));
                part(
                        from,
                        to,
                        store -> store.backwardFindSessions(null, null, timeFrom, timeTo),
                        store -> store.backwardFindSessions(from, to, timeFrom, timeTo));
            } else if (!isMissed(to, timeTo)) {
                same(store -> store.findSessions(from, to, timeFrom, timeTo));
                same(store -> store.backwardFindSessions(from, to, timeFrom, timeTo));
            }
        }

        private boolean isMissed(Bytes to, long timeTo) {
            return to != null
                    && keys.stream()
                            .filter(key -> key.compareTo(to) <= 0)
                            .anyMatch(key -> SessionKeySchema.toBinary(key, 0, now)
                                            .compareTo(new SessionKeySchema().upperRange(to, timeTo))
                                    > 0);
        }
    }
}
