package org.apache.kafka.streams.state.internals;

import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;

/** In place of Kafka's class of this name: a supplier of stores over Forrest. */
public class RocksDbWindowHeadersBytesStoreSupplier extends RocksDbWindowBytesStoreSupplier
        implements HeadersBytesStoreSupplier {
    public RocksDbWindowHeadersBytesStoreSupplier(
            String name, long retentionPeriod, long segmentInterval, long windowSize, boolean retainDuplicates) {
        super(
                name,
                retentionPeriod,
                segmentInterval,
                windowSize,
                retainDuplicates,
                WindowStoreTypes.TIMESTAMPED_WINDOW_STORE_WITH_HEADERS);
    }
}
