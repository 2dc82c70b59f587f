package org.apache.kafka.streams.state.internals;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import forrest.kafka.ForrestStores;
import java.lang.reflect.Field;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.Test;

/**
 * Kafka's tests of RocksDB's versioned store, on a store over Forrest. They name the class of RocksDB's store, so a
 * subclass of it passes all calls on.
 *
 * <p>Two of them make stores of their own, which would be RocksDB's. One is replaced here. The other is about an old file
 * of RocksDB's store.
 */
class ForrestVersionedStoreTest extends RocksDBVersionedStoreTest {
    private static final String NAME = "myversionedrocks";
    private static final long RETENTION = 300_000;
    private static final long SEGMENT = RETENTION / 3;

    private InternalMockProcessorContext<?, ?> context;

    @BeforeEach
    void redirect() throws ReflectiveOperationException {
        Field contextField = RocksDBVersionedStoreTest.class.getDeclaredField("context");
        contextField.setAccessible(true);
        context = (InternalMockProcessorContext<?, ?>) contextField.get(this);
        Field field = RocksDBVersionedStoreTest.class.getDeclaredField("store");
        field.setAccessible(true);
        ((RocksDBVersionedStore) field.get(this)).close();
        field.set(this, new Redirected(RETENTION));
    }

    private VersionedKeyValueStore<Bytes, byte[]> open(long retention) {
        var adapter = (VersionedKeyValueToBytesStoreAdapter) ForrestStores.persistentVersionedKeyValueStore(
                        NAME, Duration.ofMillis(retention), Duration.ofMillis(SEGMENT))
                .get();
        adapter.inner.init(context, adapter.inner);
        return adapter.inner;
    }

    @Test
    @Override
    public void shouldAllowZeroHistoryRetention() {
        var store = open(0);
        Bytes key = Bytes.wrap(new byte[] {7});
        byte[] one = {1};
        byte[] two = {2};
        assertEquals(-1, store.put(key, one, 10));
        assertArrayEquals(one, store.get(key).value());
        assertArrayEquals(one, store.get(key, 11).value());
        assertEquals(-1, store.put(key, two, 12));
        assertArrayEquals(two, store.get(key, 12).value());
        assertNull(store.get(key, 11));
        assertArrayEquals(two, store.delete(key, 13).value());
        assertNull(store.get(key));
        assertEquals(VersionedKeyValueStore.PUT_RETURN_CODE_NOT_PUT, store.put(key, one, 12));
        assertNull(store.get(key));
        store.close();
    }

    @Test
    @Override
    @Disabled("about a file that only RocksDB's store of earlier versions has")
    public void shouldMigrateExistingPositionFromFile() {}

    /** Passes what the tests call on to a store over Forrest. */
    private final class Redirected extends RocksDBVersionedStore {
        private final VersionedKeyValueStore<Bytes, byte[]> inner;

        Redirected(long retention) {
            super(NAME, "forrest", retention, SEGMENT);
            inner = open(retention);
        }

        @Override
        public long put(Bytes key, byte[] value, long timestamp) {
            return inner.put(key, value, timestamp);
        }

        @Override
        public VersionedRecord<byte[]> delete(Bytes key, long timestamp) {
            return inner.delete(key, timestamp);
        }

        @Override
        public VersionedRecord<byte[]> get(Bytes key) {
            return inner.get(key);
        }

        @Override
        public VersionedRecord<byte[]> get(Bytes key, long asOf) {
            return inner.get(key, asOf);
        }

        @Override
        VersionedRecordIterator<byte[]> get(Bytes key, long from, long to, ResultOrder order) {
            return versions(inner, key, from, to, order);
        }

        @Override
        void restoreBatch(Collection<ConsumerRecord<byte[], byte[]>> records) {
            context.restoreWithHeaders(NAME, List.copyOf(records));
        }

        @Override
        public void close() {
            inner.close();
        }
    }

    static VersionedRecordIterator<byte[]> versions(
            StateStore store, Bytes key, long from, long to, ResultOrder order) {
        MultiVersionedKeyQuery<Bytes, byte[]> query = MultiVersionedKeyQuery.<Bytes, byte[]>withKey(key)
                .fromTime(Instant.ofEpochMilli(from))
                .toTime(Instant.ofEpochMilli(to));
        if (order == ResultOrder.ASCENDING) {
            query = query.withAscendingTimestamps();
        } else if (order == ResultOrder.DESCENDING) {
            query = query.withDescendingTimestamps();
        }
        return store.query(query, PositionBound.unbounded(), new QueryConfig(false)).getResult();
    }
}
