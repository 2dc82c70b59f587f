package org.apache.kafka.streams.state.internals;

import forrest.kafka.ForrestStores;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;

/** In place of Kafka's class of this name: a supplier of stores over Forrest. */
public class RocksDBKeyValueHeadersBytesStoreSupplier implements KeyValueBytesStoreSupplier, HeadersBytesStoreSupplier {
    private final KeyValueBytesStoreSupplier forrest;

    public RocksDBKeyValueHeadersBytesStoreSupplier(String name) {
        forrest = ForrestStores.keyValueStoreWithHeaders(name);
    }

    @Override
    public String name() {
        return forrest.name();
    }

    @Override
    public KeyValueStore<Bytes, byte[]> get() {
        return forrest.get();
    }

    @Override
    public String metricsScope() {
        return forrest.metricsScope();
    }
}
