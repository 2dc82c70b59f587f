package forrest.kafka;

import forrest.RangeIterator;
import org.apache.kafka.common.utils.Bytes;

/**
 * A store of records whose keys begin with a segment of time ({@link SegmentKeys}). A record older than the retention is
 * not returned; its segment is dropped when all of it is older.
 */
abstract class SegmentedStore extends ExpiringStore {
    /** Segments below this are dropped. */
    private long dropped;

    SegmentedStore(String name, String kind, long retention, long interval) {
        super(name, kind, retention, interval);
    }

    /** Below this a timestamp is too old to be returned. */
    final long liveFrom() {
        return Math.max(0, streamTime - retention + 1);
    }

    /** Notes the time of a record, under the lock. Returns whether its segment is still kept. */
    final boolean isKept(long time) {
        streamTime = Math.max(streamTime, time);
        return segment(time) >= liveSegment();
    }

    @Override
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

    /** The pairs of a range of keys in a segment; null is no bound. */
    final RangeIterator scan(long segment, Bytes from, Bytes to, boolean isForward) {
        byte[] first = SegmentKeys.from(segment, from);
        byte[] last = SegmentKeys.to(segment, to);
        return call(() -> isForward ? data.range(first, last) : data.reverse(first, last));
    }
}
