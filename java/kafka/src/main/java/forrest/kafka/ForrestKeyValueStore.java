package forrest.kafka;

import forrest.Reads;
import forrest.WriteBatch;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
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
                if (value == null) {
                    data.delete(bytes);
                } else {
                    data.put(bytes, value);
                }
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
        WriteBatch batch = new WriteBatch();
        for (KeyValue<Bytes, byte[]> entry : entries) {
            push(batch, of(entry.key), entry.value);
        }
        synchronized (lock) {
            change(() -> {
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
        byte[] bytes = of(key);
        return call(() -> data.get(bytes));
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        if (KeyRanges.isEmpty(from, to)) {
            return KeyRanges.none();
        }
        return call(() -> new Pairs(this, data.rangeClosed(KeyRanges.bytes(from), KeyRanges.bytes(to))));
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        if (KeyRanges.isEmpty(from, to)) {
            return KeyRanges.none();
        }
        return call(() -> new Pairs(this, data.reverseClosed(KeyRanges.bytes(from), KeyRanges.bytes(to))));
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
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(serializer, "prefixKeySerializer cannot be null");
        byte[] from = serializer.serialize(null, prefix);
        return call(() -> new Pairs(this, data.range(from, Reads.prefixEnd(from))));
    }

    @Override
    public long approximateNumEntries() {
        return call(() -> data.approximateCount(null, null));
    }

    @Override
    void restore(WriteBatch batch, ConsumerRecord<byte[], byte[]> record) {
        checkChangelogKey(record, 0);
        push(batch, record.key(), record.value());
    }

    private void push(WriteBatch batch, byte[] key, byte[] value) {
        if (value == null) {
            batch.delete(data, key);
        } else {
            batch.put(data, key, value);
        }
    }

    private static byte[] of(Bytes key) {
        return Objects.requireNonNull(key, "key cannot be null").get();
    }
}
