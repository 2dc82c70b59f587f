package forrest.kafka;

import forrest.Entry;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;

/** The pairs of a range of a store. */
final class Pairs implements KeyValueIterator<Bytes, byte[]> {
    private final StateStoreBase store;
    private final Scan range;

    Pairs(StateStoreBase store, Scan range) {
        this.store = store;
        this.range = range;
    }

    @Override
    public boolean hasNext() {
        return store.step(range::hasNext);
    }

    @Override
    public KeyValue<Bytes, byte[]> next() {
        Entry entry = store.step(range::next);
        return KeyValue.pair(Bytes.wrap(entry.key()), entry.value());
    }

    @Override
    public Bytes peekNextKey() {
        return Bytes.wrap(store.step(range::peekKey));
    }

    @Override
    public void close() {
        range.close();
    }
}
