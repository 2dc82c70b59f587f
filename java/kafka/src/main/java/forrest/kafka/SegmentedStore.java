package forrest.kafka;

import org.apache.kafka.common.IsolationLevel;

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

    @Override
    void forget() {
        super.forget();
        dropped = 0;
    }

    /** Below this a timestamp is too old to be returned. */
    final long liveFrom(IsolationLevel level) {
        return Math.max(0, streamTime(level) - retention + 1);
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
                data.deleteRange(new byte[0], number(live));
                return null;
            });
            dropped = live;
        }
    }

    /** The pairs of a segment from the first to the last that a range asks for, of times from {@code low} to {@code high}. */
    final Scan scan(
            Source source, SegmentRange range, long segment, long low, long high, boolean isForward) {
        long start = segment * interval;
        byte[] first = range.first(segment, Math.max(low, start));
        byte[] last = range.last(segment, high - start < interval ? high : start + interval - 1);
        return step(() -> isForward ? source.rangeClosed(first, last) : source.reverseClosed(first, last));
    }
}
