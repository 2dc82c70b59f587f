package forrest.kafka;

import forrest.WriteBatch;
import forrest.kafka.SegmentIterator.Request;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;

/**
 * A session store. Ranges are in the order of segments, then of the bytes of key, end and start of a session together, as
 * those of RocksDB's store, both ways.
 */
public class ForrestSessionStore extends SegmentedStore implements SessionStore<Bytes, byte[]> {
    /** Bytes of a key after the record's key: end, start. */
    private static final int SUFFIX = SegmentKeys.NUMBERS_OF_SESSION;

    ForrestSessionStore(String name, long retention, long interval) {
        this(name, "session store 2", retention, interval);
    }

    private ForrestSessionStore(String name, String kind, long retention, long interval) {
        super(name, kind, retention, interval);
    }

    /** The same, with aggregates that begin with headers. */
    static final class WithHeaders extends ForrestSessionStore implements HeadersBytesStore {
        WithHeaders(String name, long retention, long interval) {
            super(name, "session store with headers 2", retention, interval);
        }
    }

    @Override
    public void put(Windowed<Bytes> session, byte[] aggregate) {
        Objects.requireNonNull(session, "key cannot be null");
        byte[] key = of(session.key());
        long end = session.window().end();
        synchronized (lock) {
            if (isKept(end)) {
                byte[] at = SegmentKeys.session(segment(end), key, end, session.window().start());
                change(() -> {
                    if (aggregate == null) {
                        data.delete(at);
                    } else {
                        data.put(at, aggregate);
                    }
                    return null;
                });
                drop();
            } else {
                expire();
            }
            moved();
        }
    }

    @Override
    public void remove(Windowed<Bytes> session) {
        put(session, null);
    }

    @Override
    void restore(WriteBatch batch, ConsumerRecord<byte[], byte[]> record) {
        checkChangelogKey(record, SUFFIX);
        byte[] bytes = record.key();
        long end = SegmentKeys.sessionEnd(bytes);
        if (!isKept(end)) {
            return;
        }
        byte[] at = SegmentKeys.ofChangelog(segment(end), bytes);
        if (record.value() == null) {
            batch.delete(data, at);
        } else {
            batch.put(data, at, record.value());
        }
    }

    @Override
    public byte[] fetchSession(Bytes key, long start, long end) {
        byte[] bytes = of(key);
        if (end < liveFrom()) {
            return null;
        }
        return call(() -> data.get(SegmentKeys.session(segment(end), bytes, end, start)));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(long earliestEnd, long latestEnd) {
        return read(null, null, earliestEnd, latestEnd, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes key, long earliestEnd, long latestStart) {
        return ofKey(key, earliestEnd, latestStart, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes key, long earliestEnd, long latestStart) {
        return ofKey(key, earliestEnd, latestStart, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes from, Bytes to, long earliestEnd, long latestStart) {
        return between(from, to, earliestEnd, latestStart, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes from, Bytes to, long earliestEnd, long latestStart) {
        return between(from, to, earliestEnd, latestStart, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return ofKey(key, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return ofKey(key, 0, Long.MAX_VALUE, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes from, Bytes to) {
        return between(from, to, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes from, Bytes to) {
        return between(from, to, 0, Long.MAX_VALUE, false);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> ofKey(
            Bytes key, long earliestEnd, long latestStart, boolean isForward) {
        Objects.requireNonNull(key, "key cannot be null");
        return read(key, key, earliestEnd, Long.MAX_VALUE, latestStart, isForward);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> between(
            Bytes from, Bytes to, long earliestEnd, long latestStart, boolean isForward) {
        if (KeyRanges.isEmpty(from, to)) {
            return KeyRanges.none();
        }
        return read(from, to, earliestEnd, Long.MAX_VALUE, latestStart, isForward);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> read(
            Bytes from, Bytes to, long earliestEnd, long latestEnd, long latestStart, boolean isForward) {
        return new SegmentIterator<>(
                this,
                new Request<>(
                        earliestEnd,
                        latestEnd,
                        isForward,
                        new SegmentRange(from, to, SUFFIX),
                        at -> SegmentKeys.sessionStart(at) <= latestStart,
                        ForrestSessionStore::windowed));
    }

    private static Windowed<Bytes> windowed(byte[] at) {
        SessionWindow window = new SessionWindow(SegmentKeys.sessionStart(at), SegmentKeys.sessionEnd(at));
        return new Windowed<>(SegmentKeys.keyOfSession(at), window);
    }
}
