package org.apache.kafka.streams.state;

import forrest.kafka.ForrestDslStoreSuppliers;

/** In place of Kafka's class of this name: the stores of RocksDB, which are the default, are Forrest's. */
public class BuiltInDslStoreSuppliers {
    public static final DslStoreSuppliers ROCKS_DB = new RocksDBDslStoreSuppliers();
    public static final DslStoreSuppliers IN_MEMORY = new InMemoryDslStoreSuppliers();

    /** Stores over Forrest. */
    public static class RocksDBDslStoreSuppliers implements DslStoreSuppliers {
        private final DslStoreSuppliers forrest = new ForrestDslStoreSuppliers();

        @Override
        public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
            return forrest.keyValueStore(params);
        }

        @Override
        public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
            return forrest.windowStore(params);
        }

        @Override
        public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
            return forrest.sessionStore(params);
        }
    }

    /** Kafka's own stores in memory. */
    public static class InMemoryDslStoreSuppliers implements DslStoreSuppliers {
        @Override
        public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
            return Stores.inMemoryKeyValueStore(params.name());
        }

        @Override
        public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
            return Stores.inMemoryWindowStore(
                    params.name(), params.retentionPeriod(), params.windowSize(), params.retainDuplicates());
        }

        @Override
        public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
            return Stores.inMemorySessionStore(params.name(), params.retentionPeriod());
        }
    }
}
