package forrest.kafka;

import forrest.Durability;
import forrest.ForrestException;
import forrest.Store;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One budget of memory for all state stores of a process. Each open store has the same part of it. When one opens or
 * closes, the parts of the others change.
 *
 * <p>The setting {@code forrest.memory.bytes} of a Kafka Streams application gives the budget; if several applications in
 * one process give one, the largest. Default: 512 MiB. A store has at least 4 MiB.
 */
final class MemoryBudget {
    static final String SETTING = "forrest.memory.bytes";
    static final String WORKERS = "forrest.workers";
    static final String LARGE_VALUES = "forrest.large.values";
    static final String COMPRESSION = "forrest.compression";

    private static final Logger LOG = LoggerFactory.getLogger(MemoryBudget.class);
    private static final long DEFAULT_BYTES = 512L << 20;
    private static final long STORE_BYTES_MIN = 4L << 20;

    private static final Set<Store> STORES = new LinkedHashSet<>();
    private static long given;

    private MemoryBudget() {}

    /** Opens a store in its part of the budget. */
    static synchronized Store open(Map<String, Object> settings, String directory) {
        Object bytes = settings.get(SETTING);
        if (bytes != null) {
            given = Math.max(given, Long.parseLong(bytes.toString().trim()));
        }
        Object workers = settings.get(WORKERS);
        Object compression = settings.get(COMPRESSION);
        Store.Options options = new Store.Options()
                .memoryBytes(share(STORES.size() + 1))
                .workers(workers == null ? 1 : Integer.parseInt(workers.toString().trim()))
                .durability(Durability.MEMORY);
        Object largeValues = settings.get(LARGE_VALUES);
        if (largeValues != null) {
            options.largeValues(Long.parseLong(largeValues.toString().trim()));
        }
        if (compression != null) {
            options.compression(compression.toString());
        }
        Store store = options.open(directory);
        STORES.add(store);
        divide(store);
        return store;
    }

    /** Closes a store. The others get its part. */
    static synchronized void close(Store store) {
        STORES.remove(store);
        try {
            store.close();
        } finally {
            divide(null);
        }
    }

    /** Bytes of each store, if there are this many. */
    static synchronized long share(int stores) {
        long total = given == 0 ? DEFAULT_BYTES : given;
        return Math.max(total / Math.max(stores, 1), STORE_BYTES_MIN);
    }

    private static void divide(Store isRight) {
        long share = share(STORES.size());
        for (Store store : STORES) {
            if (store == isRight) {
                continue;
            }
            try {
                store.memoryBytes(share);
            } catch (ForrestException | IllegalStateException e) {
                // Its own next call fails with the reason. That is no reason for another store to fail.
                LOG.warn("the memory of a store cannot be changed to {} bytes", share, e);
            }
        }
    }
}
