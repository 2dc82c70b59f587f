package forrest.kafka;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

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

    /** The engine may refuse longer keys. Such a batch is written at once, so that its own restore fails. */
    private static final int KEY_BYTES_MAX = 16 << 10;

    /** Threads that end when they are idle for a minute. */
    private static final Executor THREADS = Executors.newCachedThreadPool(work -> {
        Thread thread = new Thread(work, "forrest-restore");
        thread.setDaemon(true);
        return thread;
    });

    private final Executor threads;

    /** Bytes of the batches that are not written yet. */
    private final AtomicLong waiting = new AtomicLong();
    private volatile CompletableFuture<Void> last = CompletableFuture.completedFuture(null);

    WriteBehind() {
        this(THREADS);
    }

    /** For tests, which decide when a write happens. */
    WriteBehind(Executor threads) {
        this.threads = threads;
    }

    /**
     * Writes a batch after those before: in another thread if it is large enough and cannot be refused, else at once. Waits
     * for those before if more than {@code most} bytes would be waiting. Called under the lock of the store.
     */
    void write(Batch batch, long most, Runnable write) {
        long bytes = batch.bytes();
        boolean isBehind =
                batch.changes.bytes() >= BATCH_BYTES_MIN && bytes <= most && batch.longestKey() <= KEY_BYTES_MAX;
        if (!isBehind || waiting.get() + bytes > most || last.isCompletedExceptionally()) {
            await();
        }
        if (!isBehind) {
            write.run();
            return;
        }
        waiting.addAndGet(bytes);
        last = last.thenRunAsync(write, threads).thenRun(() -> waiting.addAndGet(-bytes));
    }

    /** Waits until all is written. Throws what a write threw, at each call. */
    void await() {
        try {
            last.join();
        } catch (CompletionException e) {
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            throw (RuntimeException) e.getCause();
        }
    }
}
