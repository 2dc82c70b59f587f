package org.apache.kafka.streams.state.internals;

import forrest.kafka.ForrestStores;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** Kafka's tests of window stores, on a store over Forrest. */
class ForrestWindowStoreTest extends AbstractWindowBytesStoreTest {
    @Override
    <K, V> WindowStore<K, V> buildWindowStore(
            long retention, long size, boolean retainDuplicates, Serde<K> keys, Serde<V> values) {
        WindowBytesStoreSupplier supplier = ForrestStores.windowStore(
                "window-store",
                Duration.ofMillis(retention),
                Duration.ofMillis(size),
                retainDuplicates);
        return Stores.windowStoreBuilder(supplier, keys, values).build();
    }
}
