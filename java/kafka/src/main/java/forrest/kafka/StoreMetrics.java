package forrest.kafka;

import forrest.Store;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.apache.kafka.common.metrics.Sensor.RecordingLevel;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

/** Numbers about a store in Kafka's registry, in the group {@code stream-state-metrics}, read when they are asked for. */
final class StoreMetrics {
    private static final String SCOPE = "forrest";

    private StoreMetrics() {}

    static void register(StateStoreContext context, String name, Supplier<Store> open) {
        if (!(context.metrics() instanceof StreamsMetricsImpl metrics)) {
            return;
        }
        String task = context.taskId().toString();
        add(metrics, task, name, open, "estimate-num-keys", "Keys in the store, estimated", Store.Stats::keys);
        add(metrics, task, name, open, "table-bytes", "Bytes of its tables on disk", Store.Stats::tableBytes);
        add(metrics, task, name, open, "num-tables", "Number of its tables on disk", Store.Stats::tables);
        add(
                metrics,
                task,
                name,
                open,
                "memory-bytes",
                "Bytes of memory that memtables, cache and indexes take",
                stats -> stats.reservedBytes() + stats.cacheBytes() + stats.indexBytes());
    }

    private static void add(
            StreamsMetricsImpl metrics,
            String task,
            String name,
            Supplier<Store> open,
            String metric,
            String description,
            ToLongFunction<Store.Stats> number) {
        metrics.addStoreLevelMutableMetric(
                task, SCOPE, name, metric, description, RecordingLevel.INFO, (config, now) -> read(open, number));
    }

    private static long read(Supplier<Store> open, ToLongFunction<Store.Stats> number) {
        Store store = open.get();
        try {
            return store == null ? 0 : number.applyAsLong(store.stats());
        } catch (IllegalStateException e) {
            return 0;
        }
    }
}
