package forrest.kafka;

import org.apache.kafka.streams.kstream.EmitStrategy.StrategyType;
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
        return ForrestStores.keyValue(params.name(), params.dslStoreFormat());
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        return ForrestStores.window(
                params.name(),
                params.retentionPeriod(),
                params.windowSize(),
                params.retainDuplicates(),
                params.dslStoreFormat(),
                params.emitStrategy().type() == StrategyType.ON_WINDOW_CLOSE);
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        return ForrestStores.session(params.name(), params.retentionPeriod(), params.storeFormat());
    }
}
