package forrest.kafka;

import static org.apache.kafka.common.IsolationLevel.READ_UNCOMMITTED;

import forrest.Entry;
import forrest.Store;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A versioned key-value store: each record is a version, valid from its timestamp to that of the next version of its key,
 * in whatever order they are put. {@link VersionKeys} has the keys.
 *
 * <p>The newest version of a key never expires. Others can be read until their end is older than the history retention.
 * A put that is older is dropped.
 *
 * <p><b>Dropping.</b> A second keyspace has, for each segment of time, the keys with versions in it. When the segment is
 * too old, each of these keys loses the versions that ended in it. That is done a few keys at a time with later puts, so
 * that none waits long; no read depends on how far it is.
 */
public final class ForrestVersionedStore extends ExpiringStore implements VersionedKeyValueStore<Bytes, byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(ForrestVersionedStore.class);
    private static final String EXPIRY = "expiry";
    /** Keys to look at for each record that is put. It adds one at most, so what is to do becomes less. */
    private static final int DUE_PER_RECORD = 4;
    /** Keys to look at together. */
    private static final int DUE_TOGETHER = 256;
    /** More versions than this are deleted as a range. */
    private static final int DELETED_SINGLY = 16;

    private Table expiry;
    /** Keys to look at since the last time. */
    private int due;
    /** Where to go on in the keyspace of what expires. */
    private byte[] dropFrom;
    /** Segments below this are dropped. */
    private long dropped;

    ForrestVersionedStore(String name, long retention, long interval) {
        super(name, "versioned key-value store 1", retention, interval);
    }

    @Override
    void forget() {
        super.forget();
        due = 0;
        dropFrom = null;
        dropped = 0;
    }

    @Override
    void opened(Store opened) {
        expiry = table(opened.keyspace(EXPIRY));
    }

    @Override
    public long put(Bytes key, byte[] value, long time) {
        byte[] bytes = of(key);
        synchronized (lock) {
            checkOpen();
            try {
                if (isTooOld(time)) {
                    expire();
                    return PUT_RETURN_CODE_NOT_PUT;
                }
                return putKept(bytes, value, time);
            } finally {
                moved();
            }
        }
    }

    @Override
    public VersionedRecord<byte[]> delete(Bytes key, long time) {
        byte[] bytes = of(key);
        synchronized (lock) {
            checkOpen();
            try {
                if (isTooOld(time)) {
                    expire();
                    return null;
                }
                VersionedRecord<byte[]> found = get(key, time);
                putKept(bytes, null, time);
                return found;
            } finally {
                moved();
            }
        }
    }

    private boolean isTooOld(long time) {
        return time < streamTime - retention;
    }

    /** Puts a version, and returns its end, or -1. */
    private long putKept(byte[] key, byte[] value, long time) {
        streamTime = Math.max(streamTime, time);
        long end = call(() -> end(data.present(), key, time));
        change(() -> {
            Batch batch = batch();
            push(batch, key, value, time);
            write(batch);
            return null;
        });
        due += DUE_PER_RECORD;
        drop();
        return end;
    }

    private void push(Batch batch, byte[] key, byte[] value, long time) {
        batch.put(data, VersionKeys.version(key, time), VersionKeys.stored(value));
        batch.put(expiry, VersionKeys.expiry(segment(time), key), new byte[0]);
    }

    @Override
    void restore(Batch batch, ConsumerRecord<byte[], byte[]> record) {
        checkChangelogKey(record, 0);
        if (isTooOld(record.timestamp())) {
            // The store never had it.
            return;
        }
        streamTime = Math.max(streamTime, record.timestamp());
        push(batch, record.key(), record.value(), record.timestamp());
        due += DUE_PER_RECORD;
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key) {
        return get(key, READ_UNCOMMITTED);
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key, long asOf) {
        return get(key, asOf, READ_UNCOMMITTED);
    }

    private VersionedRecord<byte[]> get(Bytes key, IsolationLevel level) {
        byte[] bytes = of(key);
        return call(() -> {
            Entry newest = newest(data(level), bytes);
            return newest == null ? null : record(newest, PUT_RETURN_CODE_VALID_TO_UNDEFINED);
        });
    }

    private VersionedRecord<byte[]> get(Bytes key, long asOf, IsolationLevel level) {
        byte[] bytes = of(key);
        // No version is put between the reads.
        synchronized (lock) {
            return call(() -> {
                Source source = data(level);
                // Most ask for the newest version, which is one read.
                Entry newest = newest(source, bytes);
                if (newest == null) {
                    return null;
                }
                if (VersionKeys.time(newest.key()) <= asOf) {
                    return record(newest, PUT_RETURN_CODE_VALID_TO_UNDEFINED);
                }
                if (asOf < streamTime(level) - retention) {
                    LOG.warn("Returning null for expired get.");
                    return null;
                }
                Entry found = source.first(VersionKeys.version(bytes, asOf), VersionKeys.end(bytes));
                return found == null ? null : record(found, end(source, bytes, VersionKeys.time(found.key())));
            });
        }
    }

    /**
     * What the store has, with what is not committed or without; it cannot be changed by this. Kafka Streams 4.4 calls it
     * for queries (KIP-892). Both are the same if the store is not transactional.
     */
    public VersionedKeyValueStore<Bytes, byte[]> readOnly(IsolationLevel level) {
        return new ReadOnly(Objects.requireNonNull(level, "isolationLevel cannot be null"));
    }

    private static Entry newest(Source source, byte[] key) {
        return source.first(VersionKeys.newest(key), VersionKeys.end(key));
    }

    /** The timestamp of the next version after a time, or -1. */
    static long end(Source source, byte[] key, long time) {
        Entry next = source.last(VersionKeys.newest(key), VersionKeys.version(key, time));
        return next == null ? PUT_RETURN_CODE_VALID_TO_UNDEFINED : VersionKeys.time(next.key());
    }

    /** A version that ends at a time; null if it is a tombstone. */
    static VersionedRecord<byte[]> record(Entry version, long end) {
        if (VersionKeys.isTombstone(version.value())) {
            return null;
        }
        byte[] value = VersionKeys.value(version.value());
        long time = VersionKeys.time(version.key());
        return end == PUT_RETURN_CODE_VALID_TO_UNDEFINED
                ? new VersionedRecord<>(value, time)
                : new VersionedRecord<>(value, time, end);
    }

    @Override
    @SuppressWarnings("unchecked")
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        if (!(query instanceof MultiVersionedKeyQuery)) {
            return super.query(query, bound, config);
        }
        // Kafka's own helper takes the store of this query to be RocksDB's.
        long start = System.nanoTime();
        synchronized (lock) {
            QueryResult<R> result;
            if (context == null || !StoreQueryUtils.isPermitted(getPosition(), bound, context.taskId().partition())) {
                result = QueryResult.notUpToBound(
                        getPosition(), bound, context == null ? null : context.taskId().partition());
            } else {
                try {
                    result = (QueryResult<R>) QueryResult.forResult(versions((MultiVersionedKeyQuery<Bytes, byte[]>) query));
                } catch (RuntimeException e) {
                    result = QueryResult.forFailure(
                            FailureReason.STORE_EXCEPTION, getClass() + " failed to handle query " + query + ": " + e);
                }
            }
            if (config.isCollectExecutionInfo()) {
                result.addExecutionInfo("Handled in " + getClass() + " in " + (System.nanoTime() - start) + "ns");
            }
            result.setPosition(getPosition().copy());
            return result;
        }
    }

    private VersionIterator versions(MultiVersionedKeyQuery<Bytes, byte[]> query) {
        byte[] key = of(query.key());
        long from = query.fromTime().map(time -> time.toEpochMilli()).orElse(Long.MIN_VALUE);
        long to = query.toTime().map(time -> time.toEpochMilli()).orElse(Long.MAX_VALUE);
        long live = isTooOld(to) ? Long.MAX_VALUE : liveSegment() * interval;
        return VersionIterator.of(this, data, new VersionIterator.Request(key, from, to, live, query.resultOrder()));
    }

    @Override
    void drop() {
        long live = liveSegment();
        if (live <= dropped) {
            due = 0;
            return;
        }
        if (due < DUE_TOGETHER) {
            return;
        }
        int most = due;
        due = 0;
        call(() -> {
            Batch batch = batch();
            // All that ended before this.
            long end = live * interval;
            byte[] last = null;
            boolean isAll = true;
            try (Scan keys = expiry.present().range(dropFrom, number(live))) {
                for (int i = 0; keys.hasNext(); i++) {
                    if (i == most) {
                        isAll = false;
                        break;
                    }
                    last = keys.next().key();
                    drop(batch, VersionKeys.keyOfExpiry(last), end);
                }
            }
            if (isAll) {
                batch.deleteRange(expiry, new byte[0], number(live));
                dropped = live;
                dropFrom = null;
            } else {
                dropFrom = Arrays.copyOf(last, last.length + 1);
            }
            write(batch);
            return null;
        });
    }

    /** Deletes the versions of a key that ended before a time: all but the newest of those from before. */
    private void drop(Batch batch, byte[] key, long time) {
        byte[] end = VersionKeys.end(key);
        List<byte[]> versions = new ArrayList<>();
        try (Scan range = data.present().range(VersionKeys.version(key, time - 1), end)) {
            if (!range.hasNext()) {
                return;
            }
            Entry newest = range.next();
            if (VersionKeys.isTombstone(newest.value())) {
                // Without it there is nothing at its time, too.
                versions.add(newest.key());
            }
            while (range.hasNext() && versions.size() <= DELETED_SINGLY) {
                versions.add(range.next().key());
            }
        }
        if (versions.size() > DELETED_SINGLY) {
            batch.deleteRange(data, versions.get(0), end);
        } else {
            versions.forEach(version -> batch.put(data, version, null));
        }
    }

    /** The store without a way to change it. What it is as a state store, it is as the store. */
    private final class ReadOnly implements VersionedKeyValueStore<Bytes, byte[]> {
        private final IsolationLevel level;

        ReadOnly(IsolationLevel level) {
            this.level = level;
        }

        @Override
        public VersionedRecord<byte[]> get(Bytes key) {
            return ForrestVersionedStore.this.get(key, level);
        }

        @Override
        public VersionedRecord<byte[]> get(Bytes key, long asOf) {
            return ForrestVersionedStore.this.get(key, asOf, level);
        }

        @Override
        public long put(Bytes key, byte[] value, long time) {
            throw onlyRead();
        }

        @Override
        public VersionedRecord<byte[]> delete(Bytes key, long time) {
            throw onlyRead();
        }

        @Override
        public void init(StateStoreContext context, StateStore root) {
            throw onlyRead();
        }

        @Override
        public void close() {
            throw onlyRead();
        }

        private UnsupportedOperationException onlyRead() {
            return new UnsupportedOperationException("a read-only store cannot be changed");
        }

        @Override
        public String name() {
            return ForrestVersionedStore.this.name();
        }

        @Override
        public boolean persistent() {
            return ForrestVersionedStore.this.persistent();
        }

        @Override
        public boolean isOpen() {
            return ForrestVersionedStore.this.isOpen();
        }
    }
}
