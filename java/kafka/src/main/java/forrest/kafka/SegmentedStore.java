package forrest.kafka;

import forrest.RangeIterator;
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
 * A store that drops old records, by segments of time ({@link SegmentKeys}). A record older than the retention is not
 * returned; its segment is dropped when all of it is older.
 */
abstract class SegmentedStore extends StateStoreBase {
    private static final Logger LOG = LoggerFactory.getLogger(SegmentedStore.class);

    private final long retention;
    private final long interval;
    /** Segments below this are dropped. */
    private long dropped;
    private Sensor expired;

    SegmentedStore(String name, String kind, long retention, long interval) {
        // Keys depend on the interval.
        super(name, kind + ", segments of " + interval + " ms");
        this.retention = retention;
        this.interval = interval;
    }

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

    /** Below this a timestamp is too old to be returned. */
    final long liveFrom() {
        return Math.max(0, streamTime - retention + 1);
    }

    /** Below this a segment is dropped. */
    private long liveSegment() {
        return segment(Math.max(0, streamTime - retention));
    }

    /** Notes the time of a record, under the lock. Returns whether its segment is still kept. */
    final boolean isKept(long time) {
        streamTime = Math.max(streamTime, time);
        return segment(time) >= liveSegment();
    }

    /** Counts and logs a record that is too old. */
    final void expire() {
        if (expired != null) {
            expired.record();
        }
        LOG.warn("Skipping record for expired segment.");
    }

    /** Drops the segments that are too old, under the lock. */
    final void drop() {
        long live = liveSegment();
        if (live > dropped) {
            call(() -> {
                data.deleteRange(null, number(live));
                return null;
            });
            dropped = live;
        }
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

    /** The pairs of a range of keys in a segment; null is no bound. */
    final RangeIterator scan(long segment, Bytes from, Bytes to, boolean isForward) {
        byte[] first = SegmentKeys.from(segment, from);
        byte[] last = SegmentKeys.to(segment, to);
        return call(() -> isForward ? data.range(first, last) : data.reverse(first, last));
    }

    static byte[] of(Bytes key) {
        return Objects.requireNonNull(key, "key cannot be null").get();
    }
}
