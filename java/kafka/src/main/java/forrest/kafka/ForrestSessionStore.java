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

    private final ReadOnly all = new ReadOnly(READ_UNCOMMITTED);

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
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(long earliestEnd, long latestEnd) {
        return all.read(null, null, earliestEnd, latestEnd, Long.MAX_VALUE, true);
    }

    @Override
    public byte[] fetchSession(Bytes key, long start, long end) {
        return all.fetchSession(key, start, end);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes key, long earliestEnd, long latestStart) {
        return all.findSessions(key, earliestEnd, latestStart);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes key, long earliestEnd, long latestStart) {
        return all.backwardFindSessions(key, earliestEnd, latestStart);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes from, Bytes to, long earliestEnd, long latestStart) {
        return all.findSessions(from, to, earliestEnd, latestStart);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes from, Bytes to, long earliestEnd, long latestStart) {
        return all.backwardFindSessions(from, to, earliestEnd, latestStart);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return all.fetch(key);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return all.backwardFetch(key);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes from, Bytes to) {
        return all.fetch(from, to);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes from, Bytes to) {
        return all.backwardFetch(from, to);
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
            byte[] bytes = of(key);
            if (end < liveFrom(level)) {
                return null;
            }
            return call(() -> data(level).get(SegmentKeys.session(segment(end), bytes, end, start)));
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
                    ForrestSessionStore.this,
                    new Request<>(
                            level,
                            earliestEnd,
                            latestEnd,
                            isForward,
                            new SegmentRange(from, to, SUFFIX),
                            at -> SegmentKeys.sessionStart(at) <= latestStart,
                            ForrestSessionStore::windowed));
        }
    }

    private static Windowed<Bytes> windowed(byte[] at) {
        SessionWindow window = new SessionWindow(SegmentKeys.sessionStart(at), SegmentKeys.sessionEnd(at));
        return new Windowed<>(SegmentKeys.keyOfSession(at), window);
    }
}
