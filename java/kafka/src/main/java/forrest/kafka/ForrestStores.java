package forrest.kafka;

import java.time.Duration;
import java.util.Objects;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

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
        return new KeyValue(name, false);
    }

    /** A key-value store that keeps timestamps. */
    public static KeyValueBytesStoreSupplier timestampedKeyValueStore(String name) {
        return new KeyValue(name, true);
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
        return window(name, retention, size, retainDuplicates, false);
    }

    /** A window store that keeps timestamps; see {@link #windowStore}. */
    public static WindowBytesStoreSupplier timestampedWindowStore(
            String name, Duration retention, Duration size, boolean retainDuplicates) {
        return window(name, retention, size, retainDuplicates, true);
    }

    /**
     * A session store.
     *
     * @param retention how long a session is kept after its end, in stream time
     */
    public static SessionBytesStoreSupplier sessionStore(String name, Duration retention) {
        long milliseconds = notNegative(retention, "retention");
        return new Session(name, milliseconds, segment(milliseconds));
    }

    private static WindowBytesStoreSupplier window(
            String name, Duration retention, Duration size, boolean retainDuplicates, boolean isTimestamped) {
        long kept = notNegative(retention, "retention");
        long windowSize = notNegative(size, "size");
        if (windowSize > kept) {
            throw new IllegalArgumentException("the retention of window store " + name + " (" + kept
                    + " ms) must be no smaller than its window size (" + windowSize + " ms)");
        }
        return new Window(name, kept, segment(kept), windowSize, retainDuplicates, isTimestamped);
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

    private record KeyValue(String name, boolean isTimestamped) implements KeyValueBytesStoreSupplier {
        KeyValue {
            Objects.requireNonNull(name, "name");
        }

        @Override
        public KeyValueStore<Bytes, byte[]> get() {
            return isTimestamped ? new ForrestKeyValueStore.Timestamped(name) : new ForrestKeyValueStore(name);
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }
    }

    private record Window(
            String name,
            long retentionPeriod,
            long segmentIntervalMs,
            long windowSize,
            boolean retainDuplicates,
            boolean isTimestamped)
            implements WindowBytesStoreSupplier {
        Window {
            Objects.requireNonNull(name, "name");
        }

        @Override
        public WindowStore<Bytes, byte[]> get() {
            return isTimestamped
                    ? new ForrestWindowStore.Timestamped(
                            name, retentionPeriod, segmentIntervalMs, windowSize, retainDuplicates)
                    : new ForrestWindowStore(
                            name, retentionPeriod, segmentIntervalMs, windowSize, retainDuplicates);
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }
    }

    private record Session(String name, long retentionPeriod, long segmentIntervalMs)
            implements SessionBytesStoreSupplier {
        Session {
            Objects.requireNonNull(name, "name");
        }

        @Override
        public SessionStore<Bytes, byte[]> get() {
            return new ForrestSessionStore(name, retentionPeriod, segmentIntervalMs);
        }

        @Override
        public String metricsScope() {
            return SCOPE;
        }
    }
}
