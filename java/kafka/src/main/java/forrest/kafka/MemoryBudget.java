package forrest.kafka;

import forrest.Durability;
import forrest.ForrestException;
import forrest.Store;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One budget of memory for all state stores of a process. Each open store gets the same part of it. When one opens or
 * closes, the parts of the others change. What a store makes of a greater part is limited: its cache grows to four times
 * what it was opened with, so one that was opened beside many others does not take all that they leave.
 *
 * <p>The setting {@code forrest.memory.bytes} of a Kafka Streams application gives the budget; if several applications in
 * one process give one, the largest. Default: 512 MiB. A store has at least 4 MiB, so that many stores have more than the
 * budget together: with the default, more than 128.
 */
final class MemoryBudget {
    static final String SETTING = "forrest.memory.bytes";
    static final String WORKERS = "forrest.workers";
    static final String LARGE_VALUES = "forrest.large.values";
    static final String COMPRESSION = "forrest.compression";

    private static final Logger LOG = LoggerFactory.getLogger(MemoryBudget.class);
    private static final long DEFAULT_BYTES = 512L << 20;
    private static final long STORE_BYTES_MIN = 4L << 20;

    /** The open stores. Guarded by the class, as all that is not final. */
    private static final Set<Store> STORES = new LinkedHashSet<>();

    /** Stores that are being opened or closed: they take memory, and theirs cannot be changed. */
    private static int busy;

    /** Other threads read it. */
    private static volatile long given;

    /** What {@link #divide} gave each store. Other threads read it. */
    private static volatile long share = DEFAULT_BYTES;

    private MemoryBudget() {}

    /**
     * Opens a store in its part of the budget. After a crash that takes as long as it takes to read its log; other
     * stores are opened and closed meanwhile.
     *
     * @throws ConfigException with name and value of a setting that is not one
     */
    static Store open(Map<String, Object> settings, String directory) {
        long bytes = begin(number(settings, SETTING, 1, Long.MAX_VALUE, 0));
        Store store = null;
        try {
            store = open(settings, directory, bytes);
            return store;
        } finally {
            end(store);
        }
    }

    /** Takes a part of the budget for a store that is going to be opened. */
    private static synchronized long begin(long wanted) {
        given = Math.max(given, wanted);
        busy++;
        divide();
        return share;
    }

    /** Notes that a store was opened; with null, that one was not, or is closed. */
    private static synchronized void end(Store opened) {
        busy--;
        if (opened != null) {
            STORES.add(opened);
        }
        divide();
    }

    private static Store open(Map<String, Object> settings, String directory, long bytes) {
        Store.Options options = new Store.Options()
                .memoryBytes(bytes)
                .workers((int) number(settings, WORKERS, 1, Integer.MAX_VALUE, 1))
                .durability(Durability.MEMORY);
        long largeValues = number(settings, LARGE_VALUES, 0, Long.MAX_VALUE, -1);
        if (largeValues >= 0) {
            options.largeValues(largeValues);
        }
        Object compression = settings.get(COMPRESSION);
        if (compression != null) {
            options.compression(compression.toString().trim());
        }
        try {
            return options.open(directory);
        } catch (IllegalArgumentException e) {
            // The library has limits of its own. Its message says which one, and of what.
            Map<String, Object> ours = new LinkedHashMap<>();
            for (String name : new String[] {SETTING, WORKERS, LARGE_VALUES, COMPRESSION}) {
                if (settings.get(name) != null) {
                    ours.put(name, settings.get(name));
                }
            }
            if (ours.isEmpty()) {
                // None was given: something else is wrong, for example with what is in the directory.
                throw e;
            }
            ConfigException refused = new ConfigException("of the settings " + ours + " one is refused: " + e.getMessage());
            refused.initCause(e);
            throw refused;
        }
    }

    /** A setting that is a number from {@code least} to {@code most}; {@code none} if it is not there. */
    private static long number(Map<String, Object> settings, String name, long least, long most, long none) {
        Object value = settings.get(name);
        if (value == null) {
            return none;
        }
        try {
            long number = Long.parseLong(value.toString().trim());
            if (least <= number && number <= most) {
                return number;
            }
        } catch (NumberFormatException e) {
            // It is refused below, as one that is out of bounds.
        }
        String upTo = most == Long.MAX_VALUE ? "" : " to " + most;
        throw new ConfigException(name, value, "it must be a whole number from " + least + upTo);
    }

    /** A setting that is true or false; false if it is not there. */
    static boolean isTrue(Map<String, Object> settings, String name) {
        String value = String.valueOf(settings.getOrDefault(name, false)).trim();
        if (value.equalsIgnoreCase("true") || value.equalsIgnoreCase("false")) {
            return Boolean.parseBoolean(value);
        }
        throw new ConfigException(name, settings.get(name), "it must be true or false");
    }

    /** Closes a store. The others get its part. */
    static void close(Store store) {
        synchronized (MemoryBudget.class) {
            STORES.remove(store);
            busy++;
        }
        try {
            store.close();
        } finally {
            end(null);
        }
    }

    /** Bytes of each store now. The next store that opens makes them less. */
    static long share() {
        return share;
    }

    /** Bytes of each store, if there are this many. */
    static long share(int stores) {
        return Math.max(total() / Math.max(stores, 1), STORE_BYTES_MIN);
    }

    /** Bytes of the budget. */
    static long total() {
        return given == 0 ? DEFAULT_BYTES : given;
    }

    private static void divide() {
        // Before the stores shrink, so that none makes a batch that is larger than its new memory.
        share = share(STORES.size() + busy);
        for (Store store : STORES) {
            try {
                store.memoryBytes(share);
            } catch (ForrestException | IllegalStateException e) {
                // Its own next call fails with the reason. That is no reason for another store to fail.
                LOG.warn("the memory of a store cannot be changed to {} bytes", share, e);
            }
        }
    }
}
