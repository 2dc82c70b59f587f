package org.apache.kafka.streams.state.internals;

import forrest.kafka.ForrestStores;
import java.time.Duration;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;

/** In place of Kafka's class of this name: a supplier of stores over Forrest. */
public class RocksDbSessionHeadersBytesStoreSupplier implements SessionBytesStoreSupplier, HeadersBytesStoreSupplier {
    private final SessionBytesStoreSupplier forrest;

    public RocksDbSessionHeadersBytesStoreSupplier(String name, long retentionPeriod) {
        forrest = ForrestStores.sessionStoreWithHeaders(name, Duration.ofMillis(retentionPeriod));
    }

    @Override
    public String name() {
        return forrest.name();
    }

    @Override
    public SessionStore<Bytes, byte[]> get() {
        return forrest.get();
    }

    @Override
    public String metricsScope() {
        return forrest.metricsScope();
    }

    @Override
    public long segmentIntervalMs() {
        return forrest.segmentIntervalMs();
    }

    @Override
    public long retentionPeriod() {
        return forrest.retentionPeriod();
    }
}
