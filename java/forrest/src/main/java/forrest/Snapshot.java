package forrest;

/** The state of a store at one instant. It is closed after use; closing the store closes it too. */
public final class Snapshot extends Reads implements AutoCloseable {
    private final long store;
    private final long snapshot;

    private Snapshot(long store, long snapshot) {
        super(Native.snapshotKeyspace(snapshot, null));
        this.store = store;
        this.snapshot = snapshot;
    }

    static Snapshot of(long store) {
        return new Snapshot(store, Native.snapshot(store));
    }

    /** A keyspace of the snapshot. */
    public Reads keyspace(String name) {
        return new Reads(Native.snapshotKeyspace(snapshot, name));
    }

    /** Releases the snapshot, and closes its iterators. Calling it again does nothing. */
    @Override
    public void close() {
        Native.closeSnapshot(store, snapshot);
    }
}
