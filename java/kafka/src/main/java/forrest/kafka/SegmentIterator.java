package forrest.kafka;

import forrest.Entry;
import java.util.NoSuchElementException;
import java.util.function.Function;
import java.util.function.Predicate;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * The records of several segments, one after the other. It begins when the first one is asked for. Of a
 * closed store it has none.
 *
 * @param <K> what the keys are turned into
 */
final class SegmentIterator<K> implements KeyValueIterator<K, byte[]> {
    private final SegmentedStore store;
    private final Request<K> request;
    /** Records from this time to that one. */
    private long low;

    private long high;
    private long segment;
    private Source source;
    private Scan range;
    private Entry next;
    private boolean isClosed;

    /**
     * What is asked for.
     *
     * @param level whether also what is not committed
     * @param from the lowest time
     * @param to the highest time
     * @param isForward whether segments are read from the oldest on
     * @param keys the records' keys
     * @param has whether a key is asked for, beside its record's key and time
     * @param key turns keys
     * @param <K> into this
     */
    record Request<K>(
            IsolationLevel level,
            long from,
            long to,
            boolean isForward,
            SegmentRange keys,
            Predicate<byte[]> has,
            Function<byte[], K> key) {}

    SegmentIterator(SegmentedStore store, Request<K> request) {
        this.store = store;
        this.request = request;
    }

    private void begin() {
        low = Math.max(request.from, store.liveFrom(request.level));
        high = Math.min(request.to, store.streamTime(request.level));
        if (low > high) {
            isClosed = true;
            return;
        }
        segment = store.segment(request.isForward ? low : high);
        source = store.call(() -> store.data(request.level));
        range = store.scan(source, request.keys, segment, low, high, request.isForward);
    }

    @Override
    public boolean hasNext() {
        if (isClosed || !store.isOpen()) {
            return false;
        }
        if (range == null) {
            begin();
        }
        while (!isClosed && next == null) {
            if (!store.step(range::hasNext)) {
                turn();
                continue;
            }
            Entry entry = range.next();
            long time = request.keys.time(entry.key());
            if (time >= low
                    && time <= high
                    && request.keys.has(entry.key())
                    && request.has.test(entry.key())) {
                next = entry;
            }
        }
        return !isClosed;
    }

    /** Goes to the next segment. */
    private void turn() {
        range.close();
        if (segment == store.segment(request.isForward ? high : low)) {
            isClosed = true;
            return;
        }
        segment += request.isForward ? 1 : -1;
        range = store.scan(source, request.keys, segment, low, high, request.isForward);
    }

    @Override
    public KeyValue<K, byte[]> next() {
        K current = peekNextKey();
        byte[] value = next.value();
        next = null;
        return KeyValue.pair(current, value);
    }

    @Override
    public K peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return request.key.apply(next.key());
    }

    @Override
    public void close() {
        if (!isClosed) {
            isClosed = true;
            if (range != null) {
                range.close();
            }
        }
    }
}
