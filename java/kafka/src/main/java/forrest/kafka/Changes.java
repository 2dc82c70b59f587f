package forrest.kafka;

import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.LongConsumer;

/**
 * Changes of a keyspace that no commit has applied yet. One thread changes them, under the lock of the state store; any
 * thread reads them meanwhile.
 */
final class Changes {
    /** The value of a deleted key. It is compared as an object: an empty value is another one. */
    static final byte[] DELETED = {};

    /** About what a change takes here beside its key and its value. In the engine it takes less. */
    private static final int CHANGE_BYTES = 96;

    /** What a deleted range takes in the engine beside its bounds, which count twice: it may cut another one in two. */
    private static final int RANGE_BYTES = 256;

    private final ConcurrentNavigableMap<byte[], byte[]> pairs = new ConcurrentSkipListMap<>(Arrays::compareUnsigned);

    /** Deleted ranges that do not meet, from the first key to the end. What {@link #pairs} has was changed later. */
    private volatile NavigableMap<byte[], byte[]> ranges = Collections.emptyNavigableMap();

    private volatile long bytes;
    private volatile int count;

    void put(byte[] key, byte[] value) {
        byte[] old = pairs.put(key, value);
        if (old == null) {
            bytes += bytes(key, value);
            count++;
        } else {
            bytes += value.length - old.length;
        }
    }

    /** Deletes the keys from one on to before another one. */
    void deleteRange(byte[] from, byte[] to) {
        if (Arrays.compareUnsigned(from, to) >= 0) {
            return;
        }
        NavigableMap<byte[], byte[]> deleted = new TreeMap<>(Arrays::compareUnsigned);
        deleted.putAll(ranges);
        byte[] start = from;
        byte[] end = to;
        // The last one that begins before the end may meet it, then the one before that.
        for (var last = deleted.floorEntry(end);
                last != null && Arrays.compareUnsigned(last.getValue(), start) >= 0;
                last = deleted.floorEntry(end)) {
            deleted.remove(last.getKey());
            start = Arrays.compareUnsigned(last.getKey(), start) < 0 ? last.getKey() : start;
            end = Arrays.compareUnsigned(last.getValue(), end) > 0 ? last.getValue() : end;
        }
        deleted.put(start, end);
        bytes += rangeBytes(from, to);
        // First: a reader that does not find a pair any more does not find what it replaced either.
        ranges = deleted;
        Iterator<Map.Entry<byte[], byte[]>> within = between(from, to, false).entrySet().iterator();
        while (within.hasNext()) {
            Map.Entry<byte[], byte[]> pair = within.next();
            within.remove();
            bytes -= bytes(pair.getKey(), pair.getValue());
            count--;
        }
    }

    /** The value of a key, {@link #DELETED}, or null if it was not changed. */
    byte[] get(byte[] key) {
        byte[] value = pairs.get(key);
        return value == null && isDeleted(key) ? DELETED : value;
    }

    /** Whether a key is in a deleted range. */
    boolean isDeleted(byte[] key) {
        Map.Entry<byte[], byte[]> range = ranges.floorEntry(key);
        return range != null && Arrays.compareUnsigned(key, range.getValue()) < 0;
    }

    /** The changed keys of a range. Null is no bound. */
    NavigableMap<byte[], byte[]> between(byte[] from, byte[] to, boolean isClosed) {
        if (from != null && to != null && Arrays.compareUnsigned(from, to) > 0) {
            return Collections.emptyNavigableMap();
        }
        NavigableMap<byte[], byte[]> above = from == null ? pairs : pairs.tailMap(from, true);
        return to == null ? above : above.headMap(to, isClosed);
    }

    /** A copy of the changes of a range, which stays as it is. */
    Changes copy(byte[] from, byte[] to) {
        Changes copy = new Changes();
        copy.pairs.putAll(between(from, to, false));
        copy.ranges = ranges;
        return copy;
    }

    /** Number of changed keys. */
    int count() {
        return count;
    }

    /** Bytes of memory, about: no less than the engine needs to apply the changes. */
    long bytes() {
        return bytes;
    }

    /** Adds all changes to a batch. Before each, {@code before} gets the bytes that it takes. */
    void addTo(Batch batch, Table table, LongConsumer before) {
        ranges.forEach((from, to) -> {
            before.accept(rangeBytes(from, to));
            batch.deleteRange(table, from, to);
        });
        pairs.forEach((key, value) -> {
            before.accept(bytes(key, value));
            batch.put(table, key, value == DELETED ? null : value);
        });
    }

    /** Bytes of memory that a deleted range takes. */
    static long rangeBytes(byte[] from, byte[] to) {
        return RANGE_BYTES + 2L * (from.length + to.length);
    }

    /** Bytes of memory that a change takes. Null is as long as nothing. */
    static long bytes(byte[] key, byte[] value) {
        return CHANGE_BYTES + (key == null ? 0L : key.length) + (value == null ? 0L : value.length);
    }
}
