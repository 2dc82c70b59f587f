package forrest.cluster;

import java.util.List;
import java.util.NoSuchElementException;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;

/** A store that discards everything. What Kafka Streams takes with it, it takes by itself. */
final class Discarding implements KeyValueStore<Bytes, byte[]>, TimestampedBytesStore {
    private final String name;
    private final Position position = Position.emptyPosition();
    private boolean isOpen;

    private Discarding(String name) {
        this.name = name;
    }

    static KeyValueBytesStoreSupplier supplier(String name) {
        return new KeyValueBytesStoreSupplier() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public KeyValueStore<Bytes, byte[]> get() {
                return new Discarding(name);
            }

            @Override
            public String metricsScope() {
                return "discard";
            }
        };
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        isOpen = true;
        context.register(root, (StateRestoreCallback) (key, value) -> {});
    }

    @Override
    public Position getPosition() {
        return position;
    }

    @Override
    public void close() {
        isOpen = false;
    }

    @Override
    public boolean persistent() {
        return false;
    }

    @Override
    public boolean isOpen() {
        return isOpen;
    }

    @Override
    public void put(Bytes key, byte[] value) {}

    @Override
    public byte[] putIfAbsent(Bytes key, byte[] value) {
        return null;
    }

    @Override
    public void putAll(List<KeyValue<Bytes, byte[]>> entries) {}

    @Override
    public byte[] delete(Bytes key) {
        return null;
    }

    @Override
    public byte[] get(Bytes key) {
        return null;
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return new Nothing();
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return new Nothing();
    }

    @Override
    public long approximateNumEntries() {
        return 0;
    }

    private static final class Nothing implements KeyValueIterator<Bytes, byte[]> {
        @Override
        public void close() {}

        @Override
        public Bytes peekNextKey() {
            throw new NoSuchElementException();
        }

        @Override
        public boolean hasNext() {
            return false;
        }

        @Override
        public KeyValue<Bytes, byte[]> next() {
            throw new NoSuchElementException();
        }
    }
}
