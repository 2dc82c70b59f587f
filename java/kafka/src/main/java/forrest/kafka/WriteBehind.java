package forrest.kafka;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.streams.errors.ProcessorStateException;

/**
 * Writes restored records in another thread, while the restoring thread fetches the next ones.
 *
 * <p>Batches are written one by one, in their order. Each other call of the store waits for all of them ({@link #await}).
 * So all reads find what was restored, and a commit never has an offset whose records are not written. If a write fails,
 * no later batch is written, and each later call fails with the reason, until the store is opened again. A thread that is
 * interrupted waits all the same, and stays interrupted.
 */
final class WriteBehind {
    /** A batch of fewer bytes is written at once: that takes no longer than to hand it over. */
    private static final int BATCH_BYTES_MIN = 16 << 10;

    /**
     * The engine may refuse longer keys. Such a batch is written at once, so that its own restore fails. What comes late are
     * failures of input and output, and that the engine has no memory for 10 seconds (busy).
     */
    private static final int KEY_BYTES_MAX = 16 << 10;

    /** The batches of all stores that wait have at most this part of the budget's bytes, beside it. */
    private static final long PART = 8;

    private static final Executor THREADS = threads();

    /** Bytes of the batches of all stores that are not written yet. */
    static final AtomicLong ALL_WAITING = new AtomicLong();

    private final Executor threads;

    /** Those of this store. */
    private final AtomicLong waiting = new AtomicLong();
    private volatile CompletableFuture<Void> last = CompletableFuture.completedFuture(null);

    WriteBehind() {
        this(THREADS);
    }

    /** For tests, which decide when a write happens. */
    WriteBehind(Executor threads) {
        this.threads = threads;
    }

    /** As many threads as processors, which end when they are idle for a minute. */
    private static Executor threads() {
        int most = Runtime.getRuntime().availableProcessors();
        var pool = new ThreadPoolExecutor(most, most, 1, TimeUnit.MINUTES, new LinkedBlockingQueue<>(), work -> {
            Thread thread = new Thread(work, "forrest-restore");
            thread.setDaemon(true);
            return thread;
        });
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }

    /**
     * Writes a batch after those before: in another thread if it is large enough and cannot be refused, else at once. Waits
     * for those before if more than {@code most} bytes of this store would be waiting, or too many of all stores; if there
     * are too many even then, it is written at once. Called under the lock of the store.
     */
    void write(Batch batch, long most, Runnable write) {
        long bytes = batch.bytes();
        boolean isBehind =
                batch.changes.bytes() >= BATCH_BYTES_MIN && bytes <= most && batch.longestKey() <= KEY_BYTES_MAX;
        if (!isBehind || waiting.get() + bytes > most || last.isCompletedExceptionally() || !isRoomFor(bytes)) {
            await();
            if (!isBehind || !isRoomFor(bytes)) {
                write.run();
                return;
            }
        }
        waiting.addAndGet(bytes);
        last = last.thenRunAsync(write, this::execute).whenComplete((none, failure) -> {
            waiting.addAndGet(-bytes);
            ALL_WAITING.addAndGet(-bytes);
        });
    }

    /** Notes that more bytes wait, unless all stores together have too many then. */
    private static boolean isRoomFor(long bytes) {
        if (ALL_WAITING.addAndGet(bytes) <= MemoryBudget.total() / PART) {
            return true;
        }
        ALL_WAITING.addAndGet(-bytes);
        return false;
    }

    /** Does work in another thread; in this one if there is none and none can be created. */
    private void execute(Runnable work) {
        // Once: a pool that throws may have kept it.
        FutureTask<Void> once = new FutureTask<>(work, null);
        try {
            threads.execute(once);
        } catch (RuntimeException | OutOfMemoryError e) {
            once.run();
        }
    }

    /**
     * Waits until all is written. Throws what a write threw, at each call, but no {@link Error}: it would end Kafka's thread
     * that updates stores.
     */
    void await() {
        try {
            last.join();
        } catch (CompletionException e) {
            if (e.getCause() instanceof RuntimeException failure) {
                throw failure;
            }
            throw new ProcessorStateException("restored records cannot be written: " + e.getCause(), e.getCause());
        }
    }
}
