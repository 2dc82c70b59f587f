package forrest.kafka;

import java.time.Duration;
import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.VersionedKeyValueToBytesStoreAdapter;

/**
 * Suppliers of stores over Forrest, for {@code Materialized.as} and {@code Stores}' builders. An application whose stores
 * are all of this kind sets {@code dsl.store.suppliers.class} to {@link ForrestDslStoreSuppliers} instead.
 */
public final class ForrestStores {
    /** A segment of time is half of the retention, but not shorter than this. As other stores of Kafka Streams have it. */
    private static final long SEGMENT_MS_MIN = 60_000;

    private static final String SCOPE = "forrest";

    private ForrestStores() {}

    /** A key-value store. */
    public static KeyValueBytesStoreSupplier keyValueStore(String name) {
        return new KeyValue(name, DslStoreFormat.PLAIN);
    }

    /** A key-value store that keeps timestamps. */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStore(String name) {
        return new KeyValue(name, DslStoreFormat.TIMESTAMPED);
    }

    /**
     * A window store.
     *
     * @param retention how long a window is kept after its start, in stream time; at least {@code size}
     * @param size length of a window
     * @param retainDuplicates whether several records of a key and window are kept
     */
    public static WindowBytesStoreSupplier windowStore(
            String name, Duration retention, Duration size, boolean retainDuplicates) {
        return window(name, retention, size, retainDuplicates, DslStoreFormat.PLAIN);
    }

    /** A window store that keeps timestamps; see {@link #windowStore}. */
    public static WindowBytesStoreSupplier timestampedWindowStore(
            String name, Duration retention, Duration size, boolean retainDuplicates) {
        return window(name, retention, size, retainDuplicates, DslStoreFormat.TIMESTAMPED);
    }

    /**
     * A session store.
     *
     * @param retention how long a session is kept after its end, in stream time
     */
    public static SessionBytesStoreSupplier sessionStore(String name, Duration retention) {
        return session(name, retention, DslStoreFormat.PLAIN);
    }

    /** A key-value store that keeps timestamps and headers. */
    public static KeyValueBytesStoreSupplier keyValueStoreWithHeaders(String name) {
        return keyValue(name, DslStoreFormat.HEADERS);
    }

    /** A window store that keeps timestamps and headers; see {@link #windowStore}. */
    public static WindowBytesStoreSupplier windowStoreWithHeaders(
            String name, Duration retention, Duration size, boolean retainDuplicates) {
        return window(name, retention, size, retainDuplicates, DslStoreFormat.HEADERS);
    }

    /** A session store that keeps headers; see {@link #sessionStore}. */
    public static SessionBytesStoreSupplier sessionStoreWithHeaders(String name, Duration retention) {
        return session(name, retention, DslStoreFormat.HEADERS);
    }

    /**
     * A versioned key-value store.
     *
     * @param historyRetention how long an old version can be read, and how late a record may come, in stream time
     */
    public static VersionedBytesStoreSupplier persistentVersionedKeyValueStore(String name, Duration historyRetention) {
        long kept = notNegative(historyRetention, "historyRetention");
        return new Versioned(name, kept, versionedSegment(kept));
    }

    /**
     * The same, with another segment. Old versions are dropped segment by segment.
     *
     * @param segmentInterval length of a segment, at least a millisecond
     */
    public static VersionedBytesStoreSupplier persistentVersionedKeyValueStore(
            String name, Duration historyRetention, Duration segmentInterval) {
        long interval = notNegative(segmentInterval, "segmentInterval");
        if (interval < 1) {
            throw new IllegalArgumentException("segmentInterval cannot be zero");
        }
        return new Versioned(name, notNegative(historyRetention, "historyRetention"), interval);
    }

    /** As RocksDB's versioned stores have it. */
    private static long versionedSegment(long retention) {
        if (retention <= 60_000) {
            return Math.max(retention / 3, 2_000);
        }
        if (retention <= 300_000) {
            return Math.max(retention / 5, 20_000);
        }
        return retention <= 3_600_000 ? Math.max(retention / 12, 60_000) : Math.max(retention / 24, 300_000);
    }

    static KeyValueBytesStoreSupplier keyValue(String name, DslStoreFormat format) {
        KeyValue plain = new KeyValue(name, format);
        return format == DslStoreFormat.HEADERS ? new KeyValueWithHeaders(plain) : plain;
    }

    static SessionBytesStoreSupplier session(String name, Duration retention, DslStoreFormat format) {
        long milliseconds = notNegative(retention, "retention");
        Session plain = new Session(name, milliseconds, segment(milliseconds), format);
        return format == DslStoreFormat.HEADERS ? new SessionWithHeaders(plain) : plain;
    }

    static WindowBytesStoreSupplier window(
            String name, Duration retention, Duration size, boolean retainDuplicates, DslStoreFormat format) {
        return window(name, retention, size, retainDuplicates, format, false);
    }

    /**
     * A window store. If {@code emitsOnClose}, it is of an operator that emits windows when they close, and a window is
     * read a millisecond longer: sliding windows close when they are as old as the retention.
     */
    static WindowBytesStoreSupplier window(
            String name,
            Duration retention,
            Duration size,
            boolean retainDuplicates,
            DslStoreFormat format,
            boolean emitsOnClose) {
        long kept = notNegative(retention, "retention");
        long windowSize = notNegative(size, "size");
        if (windowSize > kept) {
            throw new IllegalArgumentException("the retention of window store " + name + " (" + kept
                    + " ms) must be no smaller than its window size (" + windowSize + " ms)");
        }
        long readable = emitsOnClose ? kept + 1 : kept;
        Window plain = new Window(name, kept, readable, segment(kept), windowSize, retainDuplicates, format);
        return format == DslStoreFormat.HEADERS ? new WindowWithHeaders(plain) : plain;
    }

    private static long segment(long retention) {
        return Math.max(retention / 2, SEGMENT_MS_MIN);
    }

    private static long notNegative(Duration duration, String what) {
        long milliseconds = Objects.requireNonNull(duration, what).toMillis();
        if (milliseconds < 0) {
            throw new IllegalArgumentException(what + " cannot be negative: " + milliseconds + " ms");
        }
        return milliseconds;
    }

    private record KeyValue(String name, DslStoreFormat format) implements KeyValueBytesStoreSupplier {
        KeyValue {
            Objects.requireNonNull(name, "name");
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return switch (format) {
                case PLAIN -> new ForrestKeyValueStore(name);
                case TIMESTAMPED -> new ForrestKeyValueStore.Timestamped(name);
                case HEADERS -> new ForrestKeyValueStore.WithHeaders(name);
            };
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }
    }

    private record Versioned(String name, long historyRetentionMs, long segmentIntervalMs)
            implements VersionedBytesStoreSupplier {
        Versioned {
            Objects.requireNonNull(name, "name");
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return new VersionedKeyValueToBytesStoreAdapter(store());
        }

        ForrestVersionedStore store() {
            return new ForrestVersionedStore(name, historyRetentionMs, segmentIntervalMs);
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }
    }

    private record Window(
            String name,
            long retentionPeriod,
            long readableMs,
            long segmentIntervalMs,
            long windowSize,
            boolean retainDuplicates,
            DslStoreFormat format)
            implements WindowBytesStoreSupplier {
        Window {
            Objects.requireNonNull(name, "name");
        }

        @Override
        public WindowStore<Bytes, byte[]> get() {
            return switch (format) {
                case PLAIN -> new ForrestWindowStore(
                        name, readableMs, segmentIntervalMs, windowSize, retainDuplicates);
                case TIMESTAMPED -> new ForrestWindowStore.Timestamped(
                        name, readableMs, segmentIntervalMs, windowSize, retainDuplicates);
                case HEADERS -> new ForrestWindowStore.WithHeaders(
                        name, readableMs, segmentIntervalMs, windowSize, retainDuplicates);
            };
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }
    }

    private record Session(String name, long retentionPeriod, long segmentIntervalMs, DslStoreFormat format)
            implements SessionBytesStoreSupplier {
        Session {
            Objects.requireNonNull(name, "name");
        }

        @Override
        public SessionStore<Bytes, byte[]> get() {
            return format == DslStoreFormat.HEADERS
                    ? new ForrestSessionStore.WithHeaders(name, retentionPeriod, segmentIntervalMs)
                    : new ForrestSessionStore(name, retentionPeriod, segmentIntervalMs);
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }
    }

    /** Kafka Streams sees by the type that a supplier's stores keep headers. */
    private record KeyValueWithHeaders(KeyValue plain)
            implements KeyValueBytesStoreSupplier, HeadersBytesStoreSupplier {
        @Override
        public String name() {
            return plain.name;
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return plain.get();
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }
    }

    private record WindowWithHeaders(Window plain) implements WindowBytesStoreSupplier, HeadersBytesStoreSupplier {
        @Override
        public String name() {
            return plain.name;
        }

        @Override
        public WindowStore<Bytes, byte[]> get() {
            return plain.get();
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }

        @Override
        public long segmentIntervalMs() {
            return plain.segmentIntervalMs;
        }

        @Override
        public long windowSize() {
            return plain.windowSize;
        }

        @Override
        public boolean retainDuplicates() {
            return plain.retainDuplicates;
        }

        @Override
        public long retentionPeriod() {
            return plain.retentionPeriod;
        }
    }

    private record SessionWithHeaders(Session plain) implements SessionBytesStoreSupplier, HeadersBytesStoreSupplier {
        @Override
        public String name() {
            return plain.name;
        }

        @Override
        public SessionStore<Bytes, byte[]> get() {
            return plain.get();
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }

        @Override
        public long segmentIntervalMs() {
            return plain.segmentIntervalMs;
        }

        @Override
        public long retentionPeriod() {
            return plain.retentionPeriod;
        }
    }
}
