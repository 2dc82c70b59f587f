package forrest.kafka;

import forrest.Entry;
import forrest.Snapshot;
import java.util.NoSuchElementException;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;

/** The versions of a key that are valid in a span of time, of a snapshot, which is released at their end. */
final class VersionIterator implements VersionedRecordIterator<byte[]> {
    private static final long NEWEST = -1;

    private final StateStoreBase store;
    private final Request request;
    private final Snapshot snapshot;
    private final Scan range;
    /** Where the version ends that comes next in a range from the newest on. */
    private long end;

    private VersionedRecord<byte[]> next;
    private boolean isAtEnd;
    private boolean isClosed;

    /**
     * What is asked for.
     *
     * @param from the first time
     * @param to the last time
     * @param live versions that ended before this are not returned
     * @param order whether the oldest or the newest is first
     */
    record Request(byte[] key, long from, long to, long live, ResultOrder order) {
        boolean isAscending() {
            return order == ResultOrder.ASCENDING;
        }
    }

    private VersionIterator(StateStoreBase store, Table table, Request request, Snapshot snapshot) {
        this.store = store;
        this.request = request;
        this.snapshot = snapshot;
        byte[] newest = VersionKeys.newest(request.key);
        byte[] end = VersionKeys.end(request.key);
        Source source = table.at(snapshot, newest, end);
        if (request.isAscending()) {
            Entry first = source.first(VersionKeys.version(request.key, request.from), end);
            range = first == null ? source.reverse(newest, end) : source.reverseClosed(newest, first.key());
        } else {
            this.end = ForrestVersionedStore.end(source, request.key, request.to);
            range = source.range(VersionKeys.version(request.key, request.to), end);
        }
    }

    /** The versions of a key of a table. Called under the lock of the store. */
    static VersionIterator of(StateStoreBase store, Table table, Request request) {
        Snapshot snapshot = store.snapshot();
        try {
            return store.call(() -> new VersionIterator(store, table, request, snapshot));
        } catch (RuntimeException e) {
            snapshot.close();
            throw e;
        }
    }

    @Override
    public boolean hasNext() {
        if (isClosed) {
            throw new IllegalStateException("The iterator is out of scope.");
        }
        while (next == null && !isAtEnd) {
            isAtEnd = !store.step(this::turn);
        }
        if (next == null) {
            snapshot.close();
        }
        return next != null;
    }

    /** Reads a version. Returns whether more may follow. */
    private boolean turn() {
        if (!range.hasNext()) {
            return false;
        }
        Entry entry = range.next();
        long time = VersionKeys.time(entry.key());
        if (request.isAscending()) {
            if (time > request.to) {
                return false;
            }
            end = range.hasNext() ? VersionKeys.time(range.peekKey()) : NEWEST;
        }
        boolean isAsked = end == NEWEST || (end > request.from && end >= request.live);
        if (isAsked) {
            next = ForrestVersionedStore.record(entry, end);
        }
        end = time;
        // What is older ends earlier.
        return isAsked || request.isAscending();
    }

    @Override
    public VersionedRecord<byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        VersionedRecord<byte[]> current = next;
        next = null;
        return current;
    }

    @Override
    public void close() {
        if (!isClosed) {
            isClosed = true;
            range.close();
            snapshot.close();
        }
    }
}
