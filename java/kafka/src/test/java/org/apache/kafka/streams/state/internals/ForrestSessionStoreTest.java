package org.apache.kafka.streams.state.internals;

import forrest.kafka.ForrestStores;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;

/** Kafka's tests of session stores, on a store over Forrest. */
class ForrestSessionStoreTest extends AbstractSessionBytesStoreTest {
    @Override
    <K, V> SessionStore<K, V> buildSessionStore(long retention, Serde<K> keys, Serde<V> values) {
        return Stores.sessionStoreBuilder(
                        ForrestStores.sessionStore("session-store", Duration.ofMillis(retention)), keys, values)
                .build();
    }

    @Override
    StoreType storeType() {
        return StoreType.InMemoryStore;
    }
}
