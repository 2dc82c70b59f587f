package forrest.kafka;

import forrest.Durability;
import forrest.ForrestException;
import forrest.Keyspace;
import forrest.Reads;
import forrest.Snapshot;
import forrest.Store;
import forrest.WriteBatch;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.api.ProcessingContext;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.GlobalProcessorContextImpl;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What all state stores share: the directory, opening and closing, offsets, positions, restoring, and exceptions.
 *
 * <p>A store is a Forrest store in {@code STATE_DIRECTORY/forrest/NAME}. Records are in its default keyspace. The
 * keyspace {@code kafka} has what Kafka Streams needs to know about them:
 *
 * <pre>
 * kind                    the kind of store and the version of its keys, as text
 * status                  "open" while it has changes that no commit followed, restored records aside; else "closed"
 * position                the position, a line "TOPIC PARTITION OFFSET" for each partition
 * time                    the highest timestamp seen, 8 bytes; of stores that drop old records
 * offset/TOPIC/PARTITION  the committed offset of the changelog, 8 bytes
 * </pre>
 *
 * <p>Changes are applied in memory and written out in order. A commit writes offsets and position after them in the
 * same log. So whatever a crash takes, what is left has all records up to its offset, and Kafka Streams restores the
 * rest. Restored records that are ahead of the offset are restored once more, which changes nothing: under exactly-once
 * the consumer of changelogs returns committed records alone. Changes by the application are another matter. If the
 * status says that there are some, opening under exactly-once fails with {@link TaskCorruptedException}, and Kafka
 * Streams restores the store from its changelog. A global store, which has no task, fails with {@link
 * ProcessorStateException}: only then is its directory deleted.
 *
 * <p>Another thread writes restored records ({@link WriteBehind}). All other calls wait for it, so the paragraph above holds
 * as if the restoring thread wrote them.
 *
 * <p><b>Transactional stores.</b> With the setting {@code forrest.transactional}, or Kafka's own for this, changes by the
 * application are kept apart in memory ({@link Changes}); all reads find them. A commit applies them in one batch with
 * offsets, position and time, so the log has the last commit and nothing after it, and the status stays "closed". What
 * is closed or killed without a commit loses its changes alone. If they take more than {@link #apartBytes}, they are
 * applied with the status "open", and so are all others until the next commit, as without the setting.
 */
abstract class StateStoreBase implements StateStore {
    private static final Logger LOG = LoggerFactory.getLogger(StateStoreBase.class);

    /** Whether changes are kept apart until a commit. */
    static final String TRANSACTIONAL = "forrest.transactional";

    /** The same of Kafka Streams 4.4 (KIP-892). */
    private static final String TRANSACTIONAL_IN_KAFKA = "enable.transactional.statestores";

    /** Bytes of changes that a store keeps apart, if it has the memory to write them. */
    static final long APART_BYTES = 16 << 20;

    /** The directory of stores in that of a task. */
    static final String DIRECTORY = "forrest";

    /** No store of Forrest has a file of this name, and each of RocksDB's has. */
    private static final String FILE_OF_ROCKSDB = "CURRENT";

    private static final String META = "kafka";
    private static final byte[] KIND = bytes("kind");
    private static final byte[] STATUS = bytes("status");
    private static final byte[] OPEN = bytes("open");
    private static final byte[] CLOSED = bytes("closed");
    private static final byte[] POSITION = bytes("position");
    private static final byte[] TIME = bytes("time");
    private static final byte[] OFFSETS = bytes("offset/");
    /** A restore writes batches of this many bytes, if the store has the memory. */
    private static final long RESTORE_BYTES = 4 << 20;
    /** What is not written as a whole is written in batches of this many bytes. */
    private static final long PIECE_BYTES = 1 << 20;
    /** Internal setting of Kafka Streams: whether changelogs carry positions. */
    private static final String CONSISTENCY = "__iq.consistency.offset.vector.enabled__";

    /** The highest timestamp that was seen, or -1. Written under {@link #lock}. */
    volatile long streamTime = -1;

    StateStoreContext context;
    Table data;

    private final String name;
    private final String kind;
    private Position position = Position.emptyPosition();

    /** Guards the position and what is changed with it. Kafka's queries lock the position, so it is that. */
    Object lock = position;

    private File directory;
    private volatile Store store;
    private Keyspace meta;
    /** Writes restored records. */
    volatile WriteBehind behind = new WriteBehind();

    /** The keyspaces with records. */
    private List<Table> tables = List.of();

    private boolean isTransactional;
    /** Whether changes are kept apart now. Written under {@link #lock}. */
    private volatile boolean keepsApart;
    /** Whether a commit was asked for because of what is kept apart. Guarded by {@link #lock}. */
    private boolean isCommitAsked;
    /** The highest timestamp of what was applied. */
    private volatile long committedTime = -1;
    private boolean isConsistent;
    private volatile boolean isOpen;
    /** Whether the log has the status "open". Guarded by {@link #lock}. */
    private boolean hasOpen;
    /** Whether records were processed since the last commit. Guarded by {@link #lock}. */
    private boolean isChanged;

    StateStoreBase(String name, String kind) {
        this.name = Objects.requireNonNull(name, "name");
        this.kind = kind;
    }

    /** Forgets all that is known of records. The directory may have been deleted since the object knew them. */
    void forget() {
        streamTime = -1;
        position = Position.emptyPosition();
        lock = position;
    }

    /** Adds a record of the changelog to a batch. */
    abstract void restore(Batch batch, ConsumerRecord<byte[], byte[]> record);

    /** Called when the store was opened, before anything is read of it. */
    void opened(Store opened) {}

    /** Called under the lock before records are restored. */
    void restores() {}

    /** Called under the lock after records were restored. */
    void restored() {}

    @Override
    public String name() {
        return name;
    }

    @Override
    public boolean persistent() {
        return true;
    }

    @Override
    public boolean isOpen() {
        return isOpen;
    }

    @Override
    @SuppressWarnings("deprecation")
    public boolean managesOffsets() {
        return true;
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        this.context = context;
        forget();
        this.isConsistent = isTrue(context.appConfigs().get(CONSISTENCY));
        isTransactional = MemoryBudget.isTrue(context.appConfigs(), TRANSACTIONAL)
                || isTrue(context.appConfigs().get(TRANSACTIONAL_IN_KAFKA));
        keepsApart = isTransactional;
        isCommitAsked = false;
        directory = new File(new File(context.stateDir(), DIRECTORY), name);
        if (opensAt(directory)) {
            open();
        }
        isOpen = true;
        if (root != null) {
            context.register(root, (RecordBatchingStateRestoreCallback) this::restoreBatch);
        }
        StoreMetrics.register(context, name, () -> isOpen ? store : null);
    }

    private static boolean isTrue(Object setting) {
        return setting != null && Boolean.parseBoolean(setting.toString());
    }

    private void open() {
        if (new File(directory, FILE_OF_ROCKSDB).exists()) {
            throw new ProcessorStateException("the directory of store " + name + " has the files of RocksDB's store: "
                    + directory + "; delete it to restore the store from its changelog");
        }
        try {
            Files.createDirectories(directory.toPath().getParent());
        } catch (IOException e) {
            throw new ProcessorStateException("the directory of store " + name + " cannot be made", e);
        }
        try {
            Store opened = MemoryBudget.open(context.appConfigs(), directory.getAbsolutePath());
            try {
                meta = opened.keyspace(META);
                tables = new ArrayList<>();
                data = table(opened.keyspace());
                opened(opened);
                check(opened);
            } catch (RuntimeException e) {
                MemoryBudget.close(opened);
                throw e;
            }
            behind = new WriteBehind();
            store = opened;
        } catch (ForrestException e) {
            throw failed("opened", e);
        } catch (UnsatisfiedLinkError e) {
            throw new ProcessorStateException(
                    "store " + name + " cannot be opened without the native library: " + e.getMessage(), e);
        }
    }

    /** A keyspace with records of the store that is being opened. */
    final Table table(Keyspace keyspace) {
        Table table = new Table(keyspace, keepsApart);
        tables.add(table);
        return table;
    }

    /** Opens a store again that was closed. */
    final void reopen() {
        isOpen = true;
    }

    /** Whether the store is opened at once. Otherwise it is opened, and made, when it is first used. */
    boolean opensAt(File directory) {
        return true;
    }

    /** Checks what the store has, and reads what is known about it. */
    private void check(Store opened) {
        byte[] found = meta.get(KIND);
        if (found != null && !Arrays.equals(found, bytes(kind))) {
            throw new ProcessorStateException("store " + name + " in " + context.stateDir() + " is a "
                    + new String(found, StandardCharsets.UTF_8) + ", and the topology wants a " + kind
                    + "; delete the directory to restore the store from its changelog");
        }
        Object guarantee = context.appConfigs().get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG);
        boolean isExactlyOnce = StreamsConfig.EXACTLY_ONCE_V2.equals(guarantee);
        hasOpen = Arrays.equals(meta.get(STATUS), OPEN);
        isChanged = hasOpen;
        if (isExactlyOnce && hasOpen) {
            if (context instanceof GlobalProcessorContextImpl) {
                // It has no task that could be revived. At this exception Kafka Streams deletes the global directory.
                throw new ProcessorStateException("global store " + name + " in " + context.stateDir()
                        + " may have more than was committed; Kafka Streams deletes the directory, and restores the store"
                        + " at the next start");
            }
            throw new TaskCorruptedException(Set.of(context.taskId()));
        }
        readPosition(meta.get(POSITION));
        byte[] time = meta.get(TIME);
        streamTime = Math.max(streamTime, time == null ? -1 : ByteBuffer.wrap(time).getLong());
        committedTime = streamTime;
        if (found == null) {
            opened.write(new WriteBatch().put(meta, KIND, bytes(kind)), Durability.BUFFERED);
        }
    }

    @Override
    @SuppressWarnings("deprecation")
    public void flush() {
        // A commit writes out. What was restored is written at least.
        written(() -> null);
    }

    @Override
    public void commit(Map<TopicPartition, Long> offsets) {
        synchronized (lock) {
            call(() -> {
                boolean wasOpen = hasOpen;
                boolean isWhole = approximateNumUncommittedBytes() <= apartBytes();
                if (!isWhole) {
                    begin();
                }
                WriteBatch batch = committed(gather(isWhole ? Long.MAX_VALUE : PIECE_BYTES).changes);
                if (offsets.isEmpty()) {
                    // Kafka Streams gives up a corrupted changelog: the store is restored from its beginning.
                    batch.deleteRange(meta, OFFSETS, Reads.prefixEnd(OFFSETS));
                }
                offsets.forEach((partition, offset) -> {
                    if (offset == null) {
                        batch.delete(meta, offsetKey(partition));
                    } else {
                        batch.put(meta, offsetKey(partition), number(offset));
                    }
                });
                // Kafka Streams also commits tasks whose transaction it could not commit, and then closes and deletes
                // them. So a status from before the commit stays until the store is closed. A global store has no
                // transaction, and may be killed after any commit.
                boolean ends = hasOpen && (!wasOpen || context instanceof GlobalProcessorContextImpl);
                if (ends) {
                    batch.put(meta, STATUS, CLOSED);
                }
                store.write(batch, Durability.BUFFERED);
                isChanged = false;
                hasOpen &= !ends;
                applied(isTransactional);
                return null;
            });
        }
    }

    /** The most bytes of changes that are kept apart: they are written as one batch, which must fit in the memory. */
    private static long apartBytes() {
        return Math.min(APART_BYTES, MemoryBudget.share() / 2);
    }

    /** Divides what is kept apart into batches of at most {@code most} bytes. Writes all but the last, which it returns. */
    private Batch gather(long most) {
        Batch batch = new Batch(false);
        for (Table table : tables) {
            table.addTo(batch, bytes -> {
                if (!batch.hasRoom(bytes, most)) {
                    write(batch);
                    batch.clear();
                }
            });
        }
        return batch;
    }

    /** What was kept apart is applied. From now on changes are kept apart, or not. */
    private void applied(boolean keeps) {
        tables.forEach(table -> table.applied(keeps));
        // In this order: who reads what was committed looks at the time if changes are kept apart.
        committedTime = streamTime;
        keepsApart = keeps;
        isCommitAsked = false;
    }

    /** Adds position and time to a batch. */
    private WriteBatch committed(WriteBatch batch) {
        StringBuilder lines = new StringBuilder();
        for (String topic : position.getTopics()) {
            position.getPartitionPositions(topic).forEach((partition, offset) -> lines.append(topic)
                    .append(' ')
                    .append(partition)
                    .append(' ')
                    .append(offset)
                    .append('\n'));
        }
        return batch.put(meta, POSITION, bytes(lines.toString())).put(meta, TIME, number(streamTime));
    }

    private void readPosition(byte[] lines) {
        if (lines == null) {
            return;
        }
        Map<String, Map<Integer, Long>> found = new HashMap<>();
        for (String line : new String(lines, StandardCharsets.UTF_8).split("\n")) {
            String[] words = line.split(" ");
            if (words.length == 3) {
                found.computeIfAbsent(words[0], topic -> new HashMap<>())
                        .put(Integer.valueOf(words[1]), Long.valueOf(words[2]));
            }
        }
        position.merge(Position.fromMap(found));
    }

    @Override
    public Long committedOffset(TopicPartition partition) {
        byte[] offset = call(() -> meta.get(offsetKey(partition)));
        return offset == null ? null : ByteBuffer.wrap(offset).getLong();
    }

    @Override
    public void close() {
        synchronized (lock) {
            if (!isOpen) {
                return;
            }
            isOpen = false;
            if (store == null) {
                return;
            }
            try {
                behind.await();
                // If a task is closed without a commit, its last changes do not count. What is kept apart goes with its
                // position and time; for what was applied the status stays.
                WriteBatch batch = new WriteBatch();
                if (!keepsApart || !isChanged) {
                    committed(batch);
                }
                if (hasOpen && !isChanged) {
                    batch.put(meta, STATUS, CLOSED);
                }
                store.write(batch, Durability.BUFFERED);
            } catch (ForrestException e) {
                throw failed("closed", e);
            } finally {
                MemoryBudget.close(store);
                store = null;
                tables = List.of();
                behind = new WriteBehind();
            }
        }
    }

    @Override
    public Position getPosition() {
        return written(() -> position);
    }

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig config) {
        return StoreQueryUtils.handleBasicQueries(query, bound, config, this, getPosition(), context);
    }

    /** Changes the position by the record that is being processed, under the lock. */
    final void moved() {
        StoreQueryUtils.updatePosition(position, context);
    }

    /**
     * Changes the store by a record that is being processed, under the lock. The status is in the log before what is not
     * kept apart.
     */
    final <R> R change(Supplier<R> change) {
        return call(() -> {
            isChanged = true;
            if (!keepsApart) {
                begin();
                return change.get();
            }
            R result = change.get();
            long bytes = approximateNumUncommittedBytes();
            long most = apartBytes();
            // Once: Kafka Streams 4.3.1 does not commit the store with each transaction.
            if (bytes > most / 2 && !isCommitAsked && context instanceof ProcessingContext processing) {
                isCommitAsked = true;
                processing.commit();
            }
            if (bytes > most) {
                LOG.warn("store {} has {} bytes of changes; until a commit they are applied at once", name, bytes);
                begin();
                write(gather(PIECE_BYTES));
                applied(false);
            }
            return result;
        });
    }

    /** Notes in the log that changes follow which are not committed. */
    private void begin() {
        if (!hasOpen) {
            store.write(new WriteBatch().put(meta, STATUS, OPEN));
            hasOpen = true;
        }
    }

    /** A batch for changes by a record that is being processed. */
    final Batch batch() {
        return new Batch(keepsApart);
    }

    /** Applies a batch, all of it or nothing. */
    final void write(Batch batch) {
        call(() -> {
            if (batch.changes.size() > 0) {
                store.write(batch.changes);
            }
            return null;
        });
    }

    /**
     * Bytes of memory that the changes take which are kept apart, about; 0 if the store is not transactional. Kafka
     * Streams 4.4 commits early if these are many.
     */
    public long approximateNumUncommittedBytes() {
        return tables.stream().mapToLong(Table::uncommittedBytes).sum();
    }

    /** What is read of the records: with what is not committed, or without. */
    final Source data(IsolationLevel level) {
        return level == IsolationLevel.READ_COMMITTED ? data.committed : data.present();
    }

    /**
     * The highest timestamp that was seen, with what is not committed, or without. The latter is known when what was
     * restored is written.
     */
    final long streamTime(IsolationLevel level) {
        return keepsApart && level == IsolationLevel.READ_COMMITTED ? written(() -> committedTime) : streamTime;
    }

    /** The state of the store at this instant. */
    final Snapshot snapshot() {
        return call(() -> store.snapshot());
    }

    private void restoreBatch(Collection<ConsumerRecord<byte[], byte[]>> records) {
        synchronized (lock) {
            restores();
            demandOpen();
            long most = Math.min(RESTORE_BYTES, MemoryBudget.share() / 2);
            Batch batch = new Batch(false);
            Position reached = Position.emptyPosition();
            // Position and time follow what is written, also if a record is refused.
            long time = streamTime;
            try {
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    if (!batch.hasRoom(Changes.bytes(record.key(), record.value()), most)) {
                        time = writeRestored(batch, most, reached);
                        batch = new Batch(false);
                        reached = Position.emptyPosition();
                    }
                    ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(record, isConsistent, reached);
                    restore(batch, record);
                }
                time = writeRestored(batch, most, reached);
            } finally {
                streamTime = time;
            }
            restored();
            if (!isChanged && approximateNumUncommittedBytes() > 0) {
                // What was dropped because of restored records is applied as they are.
                write(gather(PIECE_BYTES));
                applied(keepsApart);
            }
        }
    }

    /** Writes restored records, and then what they add to the position, after those before. Returns the time then. */
    private long writeRestored(Batch batch, long most, Position reached) {
        long time = streamTime;
        translated(() -> {
            behind.write(batch, most, () -> {
                if (batch.changes.size() > 0) {
                    store.write(batch.changes);
                }
                position.merge(reached);
                committedTime = time;
            });
            return null;
        });
        return time;
    }

    /** Throws if the store is closed, and opens it if it was not used yet. */
    private void demandOpen() {
        checkOpen();
        if (store == null) {
            synchronized (lock) {
                checkOpen();
                if (store == null) {
                    open();
                }
            }
        }
    }

    /**
     * Calls the store, when what was restored is written. What fails, fails with the exceptions that Kafka Streams expects.
     */
    final <R> R call(Supplier<R> call) {
        demandOpen();
        return written(call);
    }

    /** The same for a step of an iterator, which does not wait: it waited when it began. */
    final <R> R step(Supplier<R> call) {
        checkOpen();
        return translated(call);
    }

    /** Waits until what was restored is written, then does the same. It does not check that the store is open. */
    private <R> R written(Supplier<R> call) {
        return translated(() -> {
            behind.await();
            return call.get();
        });
    }

    private <R> R translated(Supplier<R> call) {
        try {
            return call.get();
        } catch (IllegalStateException e) {
            throw closed(e);
        } catch (ForrestException e) {
            throw failed("used", e);
        }
    }

    /** Throws if the store is closed. */
    final void checkOpen() {
        if (!isOpen) {
            throw closed(null);
        }
    }

    /** Checks that a record of the changelog has a key, with the numbers at its end. */
    final void checkChangelogKey(ConsumerRecord<byte[], byte[]> record, int suffix) {
        if (record.key() == null || record.key().length < suffix) {
            throw new ProcessorStateException("store " + name + " cannot be restored: the record of " + record.topic()
                    + "-" + record.partition() + " at offset " + record.offset()
                    + (record.key() == null ? " has no key" : " is of another kind of store"));
        }
    }

    private InvalidStateStoreException closed(Throwable cause) {
        return new InvalidStateStoreException("Store " + name + " is currently closed", cause);
    }

    private ProcessorStateException failed(String what, ForrestException cause) {
        return new ProcessorStateException(
                "store " + name + " in " + context.stateDir() + " cannot be " + what + ": " + cause.getMessage(), cause);
    }

    private static byte[] offsetKey(TopicPartition partition) {
        return bytes("offset/" + partition.topic() + "/" + partition.partition());
    }

    static byte[] number(long number) {
        return ByteBuffer.allocate(8).putLong(number).array();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
