package forrest.kafka;

import static org.apache.kafka.common.IsolationLevel.READ_UNCOMMITTED;

import forrest.Reads;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;

/**
 * A key-value store. Ranges are in the order of the keys' bytes, both ways. A batch ({@link #putAll}) is applied as a
 * whole. Queries may come from other threads while the stream thread writes.
 */
public class ForrestKeyValueStore extends StateStoreBase implements KeyValueStore<Bytes, byte[]> {
    ForrestKeyValueStore(String name) {
        this(name, "key-value store 1");
    }

    private ForrestKeyValueStore(String name, String kind) {
        super(name, kind);
    }

    /** The same, with values that begin with a timestamp. */
    static final class Timestamped extends ForrestKeyValueStore implements TimestampedBytesStore {
        Timestamped(String name) {
            super(name, "timestamped key-value store 1");
        }
    }

    /** The same, with values that begin with headers and a timestamp. */
    static final class WithHeaders extends ForrestKeyValueStore implements HeadersBytesStore {
        WithHeaders(String name) {
            super(name, "key-value store with headers 1");
        }
    }

    @Override
    public void put(Bytes key, byte[] value) {
        byte[] bytes = of(key);
        synchronized (lock) {
            change(() -> {
                data.put(bytes, value);
                return null;
            });
            moved();
        }
    }

    @Override
    public byte[] putIfAbsent(Bytes key, byte[] value) {
        byte[] bytes = of(key);
        synchronized (lock) {
            byte[] found = value == null ? get(key) : change(() -> data.putIfAbsent(bytes, value));
            if (found == null) {
                moved();
            }
            return found;
        }
    }

    @Override
    public void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        entries.forEach(entry -> of(entry.key));
        synchronized (lock) {
            change(() -> {
                Batch batch = batch();
                entries.forEach(entry -> batch.put(data, of(entry.key), entry.value));
                write(batch);
                return null;
            });
            moved();
        }
    }

    @Override
    public byte[] delete(Bytes key) {
        byte[] bytes = of(key);
        synchronized (lock) {
            byte[] old = change(() -> data.remove(bytes));
            moved();
            return old;
        }
    }

    @Override
    public byte[] get(Bytes key) {
        return get(key, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return reverseRange(from, to, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return range(null, null);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        return reverseRange(null, null);
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix, PS serializer) {
        return prefixScan(prefix, serializer, READ_UNCOMMITTED);
    }

    @Override
    public long approximateNumEntries() {
        return call(() -> data(READ_UNCOMMITTED).approximateCount());
    }

    private byte[] get(Bytes key, IsolationLevel level) {
        byte[] bytes = of(key);
        return call(() -> data(level).get(bytes));
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, IsolationLevel level) {
        if (KeyRanges.isEmpty(from, to)) {
            return KeyRanges.none();
        }
        return call(() -> new Pairs(this, data(level).rangeClosed(KeyRanges.bytes(from), KeyRanges.bytes(to))));
    }

    private KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to, IsolationLevel level) {
        if (KeyRanges.isEmpty(from, to)) {
            return KeyRanges.none();
        }
        return call(() -> new Pairs(this, data(level).reverseClosed(KeyRanges.bytes(from), KeyRanges.bytes(to))));
    }

    private <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(
            P prefix, PS serializer, IsolationLevel level) {
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(serializer, "prefixKeySerializer cannot be null");
        byte[] from = serializer.serialize(null, prefix);
        return call(() -> new Pairs(this, data(level).range(from, Reads.prefixEnd(from))));
    }

    /**
     * What the store has, with what is not committed or without. Kafka Streams 4.4 calls it for queries (KIP-892). Both
     * are the same if the store is not transactional.
     */
    public ReadOnlyKeyValueStore<Bytes, byte[]> readOnly(IsolationLevel level) {
        return new ReadOnly(Objects.requireNonNull(level, "isolationLevel cannot be null"));
    }

    private final class ReadOnly implements ReadOnlyKeyValueStore<Bytes, byte[]> {
        private final IsolationLevel level;

        ReadOnly(IsolationLevel level) {
            this.level = level;
        }

        @Override
        public byte[] get(Bytes key) {
            return ForrestKeyValueStore.this.get(key, level);
        }

        @Override
        public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
            return ForrestKeyValueStore.this.range(from, to, level);
        }

        @Override
        public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
            return ForrestKeyValueStore.this.reverseRange(from, to, level);
        }

        @Override
        public KeyValueIterator<Bytes, byte[]> all() {
            return range(null, null);
        }

        @Override
        public KeyValueIterator<Bytes, byte[]> reverseAll() {
            return reverseRange(null, null);
        }

        @Override
        public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix, PS serializer) {
            return ForrestKeyValueStore.this.prefixScan(prefix, serializer, level);
        }

        @Override
        public long approximateNumEntries() {
            return call(() -> data(level).approximateCount());
        }
    }

    @Override
    void restore(Batch batch, ConsumerRecord<byte[], byte[]> record) {
        checkChangelogKey(record, 0);
        batch.put(data, record.key(), record.value());
    }

    private static byte[] of(Bytes key) {
        return Objects.requireNonNull(key, "key cannot be null").get();
    }
}
