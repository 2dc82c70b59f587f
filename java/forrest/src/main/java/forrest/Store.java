package forrest;

import java.nio.file.Path;
import java.util.Objects;

/**
 * An ordered key-value store. Threads may share it.
 *
 * <p>Closing it waits for calls that use it, and closes its keyspaces, snapshots and iterators. Then every call on these
 * throws {@link IllegalStateException}. Whatever order objects are closed in, nothing is used after it was freed.
 *
 * <pre>{@code
 * try (Store store = Store.open("memory:")) {
 *     store.keyspace().put("oak".getBytes(), "Quercus robur".getBytes());
 * }
 * }</pre>
 */
public final class Store implements AutoCloseable {
    private final long store;
    private final Lifetime lifetime = new Lifetime(null);
    private final Keyspace keyspace;

    private Store(long store) {
        this.store = store;
        this.keyspace = new Keyspace(Native.keyspace(store, null), lifetime);
    }

    /**
     * Opens a store with default options: {@code memory:}, or a directory, which is made if it is missing.
     *
     * @throws ForrestException with {@code BUSY} if it is open elsewhere, {@code CORRUPT} if it is damaged, or another
     *     kind that the message explains
     * @throws UnsatisfiedLinkError if there is no native library for this system and processor, or it cannot be loaded
     */
    public static Store open(String url) {
        return new Options().open(url);
    }

    /** The version of the native library. */
    public static String version() {
        Native.demand();
        return Native.version();
    }

    /** The default keyspace. */
    public Keyspace keyspace() {
        return keyspace;
    }

    /** A keyspace, which is made if it is missing. Keep it: each call makes an object that lives as long as the store. */
    public Keyspace keyspace(String name) {
        return new Keyspace(Native.keyspace(store, Objects.requireNonNull(name, "name")), lifetime);
    }

    /** The state of the store at this instant. */
    public Snapshot snapshot() {
        return Snapshot.of(store, lifetime);
    }

    /** Applies a batch: all of it or nothing. What it survives is up to the store's {@link Durability}. */
    public void write(WriteBatch batch) {
        batch.write(store, -1);
    }

    /** Applies a batch, which survives at least what {@code durability} says, with all that was written before. */
    public void write(WriteBatch batch, Durability durability) {
        batch.write(store, durability.ordinal());
    }

    /** Waits until the device has all that was written. */
    public void sync() {
        Native.sync(store);
    }

    /** Changes the memory that the store may take. A cache grows to four times what it was opened with. */
    public void memoryBytes(long bytes) {
        Native.setMemory(store, bytes);
    }

    /** Writes a copy of a store on disk to a directory that does not exist, on the same file system in milliseconds. */
    public void checkpoint(Path directory) {
        Native.checkpoint(store, directory.toString());
    }

    /** Numbers about the store. */
    public Stats stats() {
        long[] counts = Native.stats(store);
        return new Stats(counts[0], counts[1], counts[2], counts[3], counts[4], counts[5], counts[6]);
    }

    /** Closes the store. On disk, what was written is written out first. Calling it again does nothing. */
    @Override
    public void close() {
        lifetime.end();
        Native.close(store);
    }

    /**
     * Numbers about a store.
     *
     * @param keys keys that it has; on disk an estimate
     * @param tableBytes bytes of its tables on disk
     * @param reservedBytes bytes of memory that memtables or the map take
     * @param cacheBytes bytes of memory that the cache takes
     * @param indexBytes bytes of memory that indexes of tables take
     * @param tables number of tables on disk
     * @param snapshots number of open snapshots
     */
    public record Stats(
            long keys,
            long tableBytes,
            long reservedBytes,
            long cacheBytes,
            long indexBytes,
            long tables,
            long snapshots) {}

    /** How a store is opened. */
    public static final class Options {
        private long memoryBytes;
        private int workers;
        private long largeValues = -1;
        private int durability = -1;
        private String compression;
        private boolean isCreated = true;
        private boolean isReadOnly;

        /** The default options. */
        public Options() {}

        /** Memory of a store on disk, in bytes: memtables, cache and indexes. */
        public Options memoryBytes(long bytes) {
            if (bytes <= 0) {
                throw new IllegalArgumentException("memory of " + bytes + " bytes");
            }
            this.memoryBytes = bytes;
            return this;
        }

        /** The most threads that write and merge tables at the same time. An idle store has one. */
        public Options workers(int threads) {
            if (threads <= 0) {
                throw new IllegalArgumentException(threads + " threads");
            }
            this.workers = threads;
            return this;
        }

        /**
         * Values of at least this many bytes stay in the log of a store on disk, so that they are written once: 64 or
         * more, or 0 for none. Default: 4,096.
         */
        public Options largeValues(long bytes) {
            if (bytes < 0) {
                throw new IllegalArgumentException("large values of " + bytes + " bytes");
            }
            this.largeValues = bytes;
            return this;
        }

        /** What a change survives. Default: {@link Durability#BUFFERED} on disk, else {@link Durability#MEMORY}. */
        public Options durability(Durability durability) {
            this.durability = durability.ordinal();
            return this;
        }

        /** How tables are compressed from now on: {@code none} or {@code lz4}. The store remembers it. */
        public Options compression(String compression) {
            this.compression = compression;
            return this;
        }

        /** Whether a store that is missing is made. Default: true. */
        public Options create(boolean create) {
            this.isCreated = create;
            return this;
        }

        /** Whether the store is only read, possibly while another process changes it. */
        public Options readOnly(boolean readOnly) {
            this.isReadOnly = readOnly;
            return this;
        }

        /** Opens a store; see {@link Store#open(String)}. */
        public Store open(String url) {
            int flags = (isCreated ? Native.CREATE : 0) | (isReadOnly ? Native.READ_ONLY : 0);
            Objects.requireNonNull(url, "url");
            Native.demand();
            long store = Native.open(url, memoryBytes, workers, largeValues, durability, compression, flags);
            try {
                return new Store(store);
            } catch (RuntimeException | Error e) {
                // Nobody else can close it, and the directory would stay locked.
                Native.close(store);
                throw e;
            }
        }
    }
}
