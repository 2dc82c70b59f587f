package forrest;

/** The state of a store at one instant. It is closed after use; closing the store closes it too. */
public final class Snapshot extends Reads implements AutoCloseable {
    private final long store;
    private final long snapshot;

    private Snapshot(long store, long snapshot, Lifetime lifetime) {
        super(Native.snapshotKeyspace(snapshot, null), lifetime);
        this.store = store;
        this.snapshot = snapshot;
    }

    static Snapshot of(long store, Lifetime ofStore) {
        long snapshot = Native.snapshot(store);
        try {
            return new Snapshot(store, snapshot, new Lifetime(ofStore));
        } catch (RuntimeException | Error e) {
            Native.closeSnapshot(store, snapshot);
            throw e;
        }
    }

    /** A keyspace of the snapshot. */
    public Reads keyspace(String name) {
        return new Reads(Native.snapshotKeyspace(snapshot, name), lifetime);
    }

    /** Releases the snapshot, and closes its iterators. Calling it again does nothing. */
    @Override
    public void close() {
        lifetime.end();
        Native.closeSnapshot(store, snapshot);
    }
}
