package org.apache.kafka.streams.state.internals;

import forrest.kafka.ForrestStores;
import java.time.Duration;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;

/** In place of Kafka's class of this name: a supplier of stores over Forrest. */
public class RocksDbVersionedKeyValueBytesStoreSupplier implements VersionedBytesStoreSupplier {
    private final VersionedBytesStoreSupplier forrest;

    public RocksDbVersionedKeyValueBytesStoreSupplier(String name, long historyRetentionMs) {
        forrest = ForrestStores.persistentVersionedKeyValueStore(name, Duration.ofMillis(historyRetentionMs));
    }

    public RocksDbVersionedKeyValueBytesStoreSupplier(String name, long historyRetentionMs, long segmentIntervalMs) {
        forrest = ForrestStores.persistentVersionedKeyValueStore(
                name, Duration.ofMillis(historyRetentionMs), Duration.ofMillis(segmentIntervalMs));
    }

    @Override
    public String name() {
        return forrest.name();
    }

    @Override
    public long historyRetentionMs() {
        return forrest.historyRetentionMs();
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
