package forrest.kafka;

import static org.apache.kafka.common.IsolationLevel.READ_UNCOMMITTED;

import forrest.kafka.SegmentIterator.Request;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.ReadOnlySessionStore;
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
                    data.put(at, aggregate);
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
    void restore(Batch batch, ConsumerRecord<byte[], byte[]> record) {
        checkChangelogKey(record, SUFFIX);
        byte[] bytes = record.key();
        long end = SegmentKeys.sessionEnd(bytes);
        if (!isKept(end)) {
            return;
        }
        batch.put(data, SegmentKeys.ofChangelog(segment(end), bytes), record.value());
    }

    @Override
    public byte[] fetchSession(Bytes key, long start, long end) {
        return fetchSession(key, start, end, READ_UNCOMMITTED);
    }

    private byte[] fetchSession(Bytes key, long start, long end, IsolationLevel level) {
        byte[] bytes = of(key);
        if (end < liveFrom(level)) {
            return null;
        }
        return call(() -> data(level).get(SegmentKeys.session(segment(end), bytes, end, start)));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(long earliestEnd, long latestEnd) {
        return read(null, null, earliestEnd, latestEnd, Long.MAX_VALUE, true, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes key, long earliestEnd, long latestStart) {
        return ofKey(key, earliestEnd, latestStart, true, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes key, long earliestEnd, long latestStart) {
        return ofKey(key, earliestEnd, latestStart, false, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes from, Bytes to, long earliestEnd, long latestStart) {
        return between(from, to, earliestEnd, latestStart, true, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes from, Bytes to, long earliestEnd, long latestStart) {
        return between(from, to, earliestEnd, latestStart, false, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return ofKey(key, 0, Long.MAX_VALUE, true, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return ofKey(key, 0, Long.MAX_VALUE, false, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes from, Bytes to) {
        return between(from, to, 0, Long.MAX_VALUE, true, READ_UNCOMMITTED);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes from, Bytes to) {
        return between(from, to, 0, Long.MAX_VALUE, false, READ_UNCOMMITTED);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> ofKey(
            Bytes key, long earliestEnd, long latestStart, boolean isForward, IsolationLevel level) {
        Objects.requireNonNull(key, "key cannot be null");
        return read(key, key, earliestEnd, Long.MAX_VALUE, latestStart, isForward, level);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> between(
            Bytes from, Bytes to, long earliestEnd, long latestStart, boolean isForward, IsolationLevel level) {
        if (KeyRanges.isEmpty(from, to)) {
            return KeyRanges.none();
        }
        return read(from, to, earliestEnd, Long.MAX_VALUE, latestStart, isForward, level);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> read(
            Bytes from,
            Bytes to,
            long earliestEnd,
            long latestEnd,
            long latestStart,
            boolean isForward,
            IsolationLevel level) {
        return new SegmentIterator<>(
                this,
                new Request<>(
                        level,
                        earliestEnd,
                        latestEnd,
                        isForward,
                        new SegmentRange(from, to, SUFFIX),
                        at -> SegmentKeys.sessionStart(at) <= latestStart,
                        ForrestSessionStore::windowed));
    }

    /**
     * What the store has, with what is not committed or without. Kafka Streams 4.4 calls it for queries (KIP-892). Both
     * are the same if the store is not transactional.
     */
    public ReadOnlySessionStore<Bytes, byte[]> readOnly(IsolationLevel level) {
        return new ReadOnly(Objects.requireNonNull(level, "isolationLevel cannot be null"));
    }

    private final class ReadOnly implements ReadOnlySessionStore<Bytes, byte[]> {
        private final IsolationLevel level;

        ReadOnly(IsolationLevel level) {
            this.level = level;
        }

        @Override
        public byte[] fetchSession(Bytes key, long start, long end) {
            return ForrestSessionStore.this.fetchSession(key, start, end, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
                Bytes key, long earliestEnd, long latestStart) {
            return ofKey(key, earliestEnd, latestStart, true, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
                Bytes key, long earliestEnd, long latestStart) {
            return ofKey(key, earliestEnd, latestStart, false, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
                Bytes from, Bytes to, long earliestEnd, long latestStart) {
            return between(from, to, earliestEnd, latestStart, true, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
                Bytes from, Bytes to, long earliestEnd, long latestStart) {
            return between(from, to, earliestEnd, latestStart, false, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
            return ofKey(key, 0, Long.MAX_VALUE, true, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
            return ofKey(key, 0, Long.MAX_VALUE, false, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes from, Bytes to) {
            return between(from, to, 0, Long.MAX_VALUE, true, level);
        }

        @Override
        public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes from, Bytes to) {
            return between(from, to, 0, Long.MAX_VALUE, false, level);
        }
    }

    private static Windowed<Bytes> windowed(byte[] at) {
        SessionWindow window = new SessionWindow(SegmentKeys.sessionStart(at), SegmentKeys.sessionEnd(at));
        return new Windowed<>(SegmentKeys.keyOfSession(at), window);
    }
}
