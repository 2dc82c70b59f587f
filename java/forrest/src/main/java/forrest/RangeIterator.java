package forrest;

import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * The pairs of a range. It fetches them in pages, each larger than the one before, so that one call into the library
 * brings many. It is for one thread at a time, and is closed after use; closing the store or snapshot closes it too.
 *
 * <p>Of a store that changes meanwhile it returns each key that exists throughout exactly once, and may or may not
 * return others. Of a snapshot it returns exactly what was there.
 */
public final class RangeIterator implements Iterator<Entry>, AutoCloseable {
    private static final int PAGE_FIRST = 2 << 10;
    /** The first page of a range with two bounds: most are small and are read to their end. */
    private static final int PAGE_BOUNDED = 16 << 10;
    private static final int PAGE_GROWTH = 4;
    private static final int PAGE_MAX = 256 << 10;

    private ByteBuffer page;
    private int pageBytes;
    /** The handle of what follows the page, 0 at the end. */
    private long rest;
    /** Why the rest cannot be read. What the failed page had is lost, so nothing after it is returned. */
    private RuntimeException failure;
    private final Lifetime lifetime;
    private boolean isClosed;

    RangeIterator(Reads reads, byte[] from, byte[] to, int flags) {
        lifetime = reads.lifetime;
        pageBytes = from == null || to == null ? PAGE_FIRST : PAGE_BOUNDED;
        turn(Native.range(reads.view, from, to, flags, pageBytes));
    }

    private void turn(byte[] bytes) {
        page = ByteBuffer.wrap(bytes);
        rest = page.getLong();
        pageBytes = Math.min(pageBytes * PAGE_GROWTH, PAGE_MAX);
    }

    /**
     * Whether a pair follows.
     *
     * @throws IllegalStateException if the iterator, the store or the snapshot is closed
     * @throws ForrestException if it cannot be read, and then at each call
     */
    @Override
    public boolean hasNext() {
        if (isClosed) {
            throw new IllegalStateException("the iterator is closed");
        }
        if (lifetime.isOver()) {
            throw new IllegalStateException("the store or snapshot is closed");
        }
        if (failure != null) {
            throw failure;
        }
        while (!page.hasRemaining() && rest != 0) {
            try {
                turn(Native.page(rest, pageBytes));
            } catch (RuntimeException | Error e) {
                failure = e instanceof RuntimeException thrown
                        ? thrown
                        : new IllegalStateException("the iteration has lost pairs", e);
                throw e;
            }
        }
        return page.hasRemaining();
    }

    /** The next pair. Fails as {@link #hasNext()} does. */
    @Override
    public Entry next() {
        if (!hasNext()) {
            throw new NoSuchElementException("the range has ended");
        }
        byte[] key = new byte[page.getInt()];
        byte[] value = new byte[page.getInt()];
        page.get(key).get(value);
        return new Entry(key, value);
    }

    /** The key of the next pair, which stays the next. Fails as {@link #next()} does. */
    public byte[] peekKey() {
        if (!hasNext()) {
            throw new NoSuchElementException("the range has ended");
        }
        byte[] key = new byte[page.getInt(page.position())];
        page.get(page.position() + 8, key);
        return key;
    }

    /** Releases what the iterator holds. Calling it again does nothing. */
    @Override
    public void close() {
        if (!isClosed) {
            isClosed = true;
            if (rest != 0) {
                Native.closeRange(rest);
            }
        }
    }
}
