package forrest.kafka;

import java.io.File;
import java.util.Objects;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A store that drops what is older than its retention, in stream time. Time is cut into segments, which are dropped as a
 * whole.
 */
abstract class ExpiringStore extends StateStoreBase {
    private static final Logger LOG = LoggerFactory.getLogger(ExpiringStore.class);

    final long retention;
    final long interval;
    private Sensor expired;

    ExpiringStore(String name, String kind, long retention, long interval) {
        // Keys depend on the interval.
        super(name, kind + ", segments of " + interval + " ms");
        this.retention = retention;
        this.interval = interval;
    }

    /** Drops the segments that are too old, or a part of them, under the lock. */
    abstract void drop();

    @Override
    public void init(StateStoreContext context, StateStore root) {
        if (context.metrics() instanceof StreamsMetricsImpl metrics) {
            expired = TaskMetrics.droppedRecordsSensor(
                    Thread.currentThread().getName(), context.taskId().toString(), metrics);
        }
        super.init(context, root);
    }

    @Override
    boolean opensAt(File directory) {
        // As in other stores of Kafka Streams, the first record makes the directory.
        return directory.exists();
    }

    /** The segment of a timestamp. */
    final long segment(long time) {
        return time / interval;
    }

    /** Below this a segment is dropped. */
    final long liveSegment() {
        return segment(Math.max(0, streamTime - retention));
    }

    /** Counts and logs a record that is too old. */
    final void expire() {
        if (expired != null) {
            expired.record();
        }
        LOG.warn("Skipping record for expired segment.");
    }

    @Override
    void restores() {
        // As other stores that drop old records do.
        if (!isOpen()) {
            reopen();
        }
    }

    @Override
    void restored() {
        drop();
    }

    static byte[] of(Bytes key) {
        return Objects.requireNonNull(key, "key cannot be null").get();
    }
}
