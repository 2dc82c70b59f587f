package forrest.kafka;

import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Makes Forrest the store of all of a topology's operators that name none of their own:
 *
 * <pre>
 * dsl.store.suppliers.class=forrest.kafka.ForrestDslStoreSuppliers
 * </pre>
 */
public final class ForrestDslStoreSuppliers implements DslStoreSuppliers {
    /** Called by Kafka Streams. */
    public ForrestDslStoreSuppliers() {}

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
        return isPlain(params.dslStoreFormat())
                ? ForrestStores.keyValueStore(params.name())
                : ForrestStores.timestampedKeyValueStore(params.name());
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        return isPlain(params.dslStoreFormat())
                ? ForrestStores.windowStore(
                        params.name(), params.retentionPeriod(), params.windowSize(), params.retainDuplicates())
                : ForrestStores.timestampedWindowStore(
                        params.name(), params.retentionPeriod(), params.windowSize(), params.retainDuplicates());
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        return ForrestStores.sessionStore(params.name(), params.retentionPeriod());
    }

    /** Whether values have no timestamp. Kafka Streams itself puts headers over a store with timestamps. */
    private static boolean isPlain(DslStoreFormat format) {
        return format == DslStoreFormat.PLAIN;
    }
}
