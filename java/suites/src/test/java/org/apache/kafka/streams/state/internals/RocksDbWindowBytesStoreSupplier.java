package org.apache.kafka.streams.state.internals;

import forrest.kafka.ForrestStores;
import java.time.Duration;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** In place of Kafka's class of this name: a supplier of stores over Forrest. */
public class RocksDbWindowBytesStoreSupplier implements WindowBytesStoreSupplier {
    private final WindowBytesStoreSupplier forrest;

    /** The kinds of stores. */
    public enum WindowStoreTypes {
        DEFAULT_WINDOW_STORE,
        TIMESTAMPED_WINDOW_STORE,
        TIMESTAMPED_WINDOW_STORE_WITH_HEADERS
    }

    public RocksDbWindowBytesStoreSupplier(
            String name,
            long retentionPeriod,
            long segmentInterval,
            long windowSize,
            boolean retainDuplicates,
            WindowStoreTypes type) {
        Duration retention = Duration.ofMillis(retentionPeriod);
        Duration size = Duration.ofMillis(windowSize);
        forrest = switch (type) {
            case DEFAULT_WINDOW_STORE -> ForrestStores.windowStore(name, retention, size, retainDuplicates);
            case TIMESTAMPED_WINDOW_STORE ->
                ForrestStores.timestampedWindowStore(name, retention, size, retainDuplicates);
            case TIMESTAMPED_WINDOW_STORE_WITH_HEADERS ->
                ForrestStores.windowStoreWithHeaders(name, retention, size, retainDuplicates);
        };
    }

    @Override
    public String name() {
        return forrest.name();
    }

    @Override
    public WindowStore<Bytes, byte[]> get() {
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
    public long windowSize() {
        return forrest.windowSize();
    }

    @Override
    public boolean retainDuplicates() {
        return forrest.retainDuplicates();
    }

    @Override
    public long retentionPeriod() {
        return forrest.retentionPeriod();
    }
}
