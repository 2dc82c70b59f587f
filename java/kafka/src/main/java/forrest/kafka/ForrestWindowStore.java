package forrest.kafka;

import static org.apache.kafka.common.IsolationLevel.READ_UNCOMMITTED;

import forrest.kafka.SegmentIterator.Request;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.Objects;
import java.util.function.Function;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.ReadOnlyWindowStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/**
 * A window store. Ranges are in the order of segments, then of the bytes of key and start of a window together, as those
 * of RocksDB's store, both ways.
 */
public class ForrestWindowStore extends SegmentedStore implements WindowStore<Bytes, byte[]> {
    /** Bytes of a key after the record's key: start, sequence number. */
    private static final int SUFFIX = SegmentKeys.NUMBERS_OF_WINDOW;

    private final long windowSize;
    private final boolean retainDuplicates;
    private int sequence;

    ForrestWindowStore(String name, long retention, long interval, long windowSize, boolean retainDuplicates) {
        this(name, "window store 2", retention, interval, windowSize, retainDuplicates);
    }

    private ForrestWindowStore(
            String name, String kind, long retention, long interval, long windowSize, boolean retainDuplicates) {
        super(name, kind, retention, interval);
        this.windowSize = windowSize;
        this.retainDuplicates = retainDuplicates;
    }

    /** The same, with values that begin with a timestamp. */
    static final class Timestamped extends ForrestWindowStore implements TimestampedBytesStore {
        Timestamped(String name, long retention, long interval, long windowSize, boolean retainDuplicates) {
            super(name, "timestamped window store 2", retention, interval, windowSize, retainDuplicates);
        }
    }

    /** The same, with values that begin with headers and a timestamp. */
    static final class WithHeaders extends ForrestWindowStore implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(String name, long retention, long interval, long windowSize, boolean retainDuplicates) {
            super(name, "window store with headers 2", retention, interval, windowSize, retainDuplicates);
        }
    }

    @Override
    public void put(Bytes key, byte[] value, long windowStart) {
        byte[] bytes = of(key);
        if (value == null && retainDuplicates) {
            // There is nothing that it would delete.
            return;
        }
        synchronized (lock) {
            if (isKept(windowStart)) {
                if (retainDuplicates) {
                    sequence = (sequence + 1) & Integer.MAX_VALUE;
                }
                byte[] at = SegmentKeys.window(segment(windowStart), bytes, windowStart, sequence);
                change(() -> {
                    data.put(at, value);
                    return null;
                });
                drop();
            } else {
                expire();
            }
            moved();
        }
    }

    @Override
    void restore(Batch batch, ConsumerRecord<byte[], byte[]> record) {
        checkChangelogKey(record, SUFFIX);
        byte[] bytes = record.key();
        ByteBuffer numbers = ByteBuffer.wrap(bytes, bytes.length - SUFFIX, SUFFIX);
        long start = numbers.getLong();
        int number = numbers.getInt();
        if (!isKept(start)) {
            return;
        }
        sequence = Math.max(sequence, number);
        batch.put(data, SegmentKeys.ofChangelog(segment(start), bytes), record.value());
    }

    @Override
    public byte[] fetch(Bytes key, long time) {
        return fetch(key, time, READ_UNCOMMITTED);
    }

    private byte[] fetch(Bytes key, long time, IsolationLevel level) {
        byte[] bytes = of(key);
        if (time < liveFrom(level) || time > streamTime(level)) {
            return null;
        }
        return call(() -> data(level).get(SegmentKeys.window(segment(time), bytes, time, sequence)));
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(Bytes key, long from, long to) {
        return windows(key, from, to, true, READ_UNCOMMITTED);
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(Bytes key, long from, long to) {
        return windows(key, from, to, false, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes from, Bytes to, long timeFrom, long timeTo) {
        return between(from, to, timeFrom, timeTo, true, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(
            Bytes from, Bytes to, long timeFrom, long timeTo) {
        return between(from, to, timeFrom, timeTo, false, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long timeFrom, long timeTo) {
        return between(null, null, timeFrom, timeTo, true, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(long timeFrom, long timeTo) {
        return between(null, null, timeFrom, timeTo, false, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return between(null, null, 0, Long.MAX_VALUE, true, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return between(null, null, 0, Long.MAX_VALUE, false, READ_UNCOMMITTED);
    }

    private WindowStoreIterator<byte[]> windows(
            Bytes key, long timeFrom, long timeTo, boolean isForward, IsolationLevel level) {
        Objects.requireNonNull(key, "key cannot be null");
        return new Windows(read(key, key, timeFrom, timeTo, isForward, level, SegmentKeys::start));
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> between(
            Bytes from, Bytes to, long timeFrom, long timeTo, boolean isForward, IsolationLevel level) {
        if (KeyRanges.isEmpty(from, to)) {
            return KeyRanges.none();
        }
        return read(from, to, timeFrom, timeTo, isForward, level, this::windowed);
    }

    private <K> KeyValueIterator<K, byte[]> read(
            Bytes from,
            Bytes to,
            long timeFrom,
            long timeTo,
            boolean isForward,
            IsolationLevel level,
            Function<byte[], K> key) {
        SegmentRange keys = new SegmentRange(from, to, SUFFIX);
        return new SegmentIterator<>(this, new Request<>(level, timeFrom, timeTo, isForward, keys, at -> true, key));
    }

    private Windowed<Bytes> windowed(byte[] at) {
        long start = SegmentKeys.start(at);
        long end = start + windowSize;
        return new Windowed<>(SegmentKeys.keyOfWindow(at), new TimeWindow(start, end < 0 ? Long.MAX_VALUE : end));
    }

    /**
     * What the store has, with what is not committed or without. Kafka Streams 4.4 calls it for queries (KIP-892). Both
     * are the same if the store is not transactional.
     */
    public ReadOnlyWindowStore<Bytes, byte[]> readOnly(IsolationLevel level) {
        return new ReadOnly(Objects.requireNonNull(level, "isolationLevel cannot be null"));
    }

    private final class ReadOnly implements ReadOnlyWindowStore<Bytes, byte[]> {
        private final IsolationLevel level;

        ReadOnly(IsolationLevel level) {
            this.level = level;
        }

        @Override
        public byte[] fetch(Bytes key, long time) {
            return ForrestWindowStore.this.fetch(key, time, level);
        }

        @Override
        public WindowStoreIterator<byte[]> fetch(Bytes key, Instant from, Instant to) {
            return windows(key, from.toEpochMilli(), to.toEpochMilli(), true, level);
        }

        @Override
        public WindowStoreIterator<byte[]> backwardFetch(Bytes key, Instant from, Instant to) {
            return windows(key, from.toEpochMilli(), to.toEpochMilli(), false, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(
                Bytes from, Bytes to, Instant timeFrom, Instant timeTo) {
            return between(from, to, timeFrom.toEpochMilli(), timeTo.toEpochMilli(), true, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(
                Bytes from, Bytes to, Instant timeFrom, Instant timeTo) {
            return between(from, to, timeFrom.toEpochMilli(), timeTo.toEpochMilli(), false, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
            return between(null, null, 0, Long.MAX_VALUE, true, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
            return between(null, null, 0, Long.MAX_VALUE, false, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(Instant timeFrom, Instant timeTo) {
            return between(null, null, timeFrom.toEpochMilli(), timeTo.toEpochMilli(), true, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(Instant timeFrom, Instant timeTo) {
            return between(null, null, timeFrom.toEpochMilli(), timeTo.toEpochMilli(), false, level);
        }
    }

    /** Windows of one key. */
    private record Windows(KeyValueIterator<Long, byte[]> windows) implements WindowStoreIterator<byte[]> {
        @Override
        public boolean hasNext() {
            return windows.hasNext();
        }

        @Override
        public KeyValue<Long, byte[]> next() {
            return windows.next();
        }

        @Override
        public Long peekNextKey() {
            return windows.peekNextKey();
        }

        @Override
        public void close() {
            windows.close();
        }
    }
}
