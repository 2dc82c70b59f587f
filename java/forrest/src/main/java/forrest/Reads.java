package forrest;

import java.util.Objects;

/**
 * What can be read of a keyspace, now or in a snapshot. Keys are in the order of their unsigned bytes. Threads may share
 * it. A call reads the device if what it needs is not in memory.
 *
 * <p>Once the store or snapshot is closed, every call throws {@link IllegalStateException}.
 */
public class Reads {
    /** The handle of the view. */
    final long view;
    /** That of the store or snapshot. */
    final Lifetime lifetime;

    Reads(long view, Lifetime lifetime) {
        this.view = view;
        this.lifetime = lifetime;
    }

    /**
     * The value of a key, or null.
     *
     * @throws ForrestException if it cannot be read
     */
    public byte[] get(byte[] key) {
        return Native.get(view, Objects.requireNonNull(key, "key"));
    }

    /** The pairs with {@code from <= key < to}, in order. Null is no bound. */
    public RangeIterator range(byte[] from, byte[] to) {
        return new RangeIterator(this, from, to, 0);
    }

    /** The pairs with {@code from <= key <= to}, in order. Null is no bound. */
    public RangeIterator rangeClosed(byte[] from, byte[] to) {
        return new RangeIterator(this, from, to, Native.CLOSED);
    }

    /** The pairs with {@code from <= key < to}, from the last to the first. Null is no bound. */
    public RangeIterator reverse(byte[] from, byte[] to) {
        return new RangeIterator(this, from, to, Native.BACKWARD);
    }

    /** The pairs with {@code from <= key <= to}, from the last to the first. Null is no bound. */
    public RangeIterator reverseClosed(byte[] from, byte[] to) {
        return new RangeIterator(this, from, to, Native.BACKWARD | Native.CLOSED);
    }

    /** The first pair with {@code from <= key < to}, or null. Null is no bound. */
    public Entry first(byte[] from, byte[] to) {
        return only(from, to, Native.FIRST);
    }

    /** The last pair with {@code from <= key < to}, or null. Null is no bound. */
    public Entry last(byte[] from, byte[] to) {
        return only(from, to, Native.FIRST | Native.BACKWARD);
    }

    private Entry only(byte[] from, byte[] to, int flags) {
        // Nothing follows that would have to be closed.
        RangeIterator range = new RangeIterator(this, from, to, flags);
        return range.hasNext() ? range.next() : null;
    }

    /** The pairs whose keys begin with {@code prefix}, in order. */
    public RangeIterator prefix(byte[] prefix) {
        return range(prefix, prefixEnd(prefix));
    }

    /** An estimate of the number of keys with {@code from <= key < to}, in microseconds. Null is no bound. */
    public long approximateCount(byte[] from, byte[] to) {
        return Native.approximate(view, from, to);
    }

    /** The lowest key above all keys that begin with {@code prefix}; null if there is none. */
    public static byte[] prefixEnd(byte[] prefix) {
        for (int at = prefix.length - 1; at >= 0; at--) {
            if (prefix[at] != (byte) 0xff) {
                byte[] end = java.util.Arrays.copyOf(prefix, at + 1);
                end[at]++;
                return end;
            }
        }
        return null;
    }
}
