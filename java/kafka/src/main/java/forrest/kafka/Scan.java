package forrest.kafka;

import forrest.Entry;
import forrest.RangeIterator;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NoSuchElementException;

/** The pairs of a range of a {@link Source}: of the keyspace, with the changes that are kept apart. */
final class Scan implements Iterator<Entry>, AutoCloseable {
    private final RangeIterator range;
    /** The changes, or null: then the pairs are those of {@link #range}. */
    private final Changes changes;

    private final boolean isForward;
    private Iterator<Map.Entry<byte[], byte[]>> changed;
    /** The next change, whose place among the pairs is not reached. */
    private Map.Entry<byte[], byte[]> change;

    private Entry next;

    Scan(RangeIterator range, Changes changes, byte[] from, byte[] to, boolean isClosed, boolean isForward) {
        this.range = range;
        this.changes = changes;
        this.isForward = isForward;
        if (changes != null) {
            NavigableMap<byte[], byte[]> between = changes.between(from, to, isClosed);
            changed = (isForward ? between : between.descendingMap()).entrySet().iterator();
        }
    }

    @Override
    public boolean hasNext() {
        if (changes == null) {
            return range.hasNext();
        }
        while (next == null) {
            boolean hasPair = range.hasNext();
            if (change == null && changed.hasNext()) {
                change = changed.next();
            }
            if (!hasPair && change == null) {
                return false;
            }
            if (change == null || hasPair && isBefore(range.peekKey(), change.getKey())) {
                Entry pair = range.next();
                next = changes.isDeleted(pair.key()) ? null : pair;
            } else {
                if (hasPair && Arrays.equals(range.peekKey(), change.getKey())) {
                    range.next();
                }
                next = change.getValue() == Changes.DELETED ? null : new Entry(change.getKey(), change.getValue());
                change = null;
            }
        }
        return true;
    }

    private boolean isBefore(byte[] key, byte[] other) {
        int order = Arrays.compareUnsigned(key, other);
        return isForward ? order < 0 : order > 0;
    }

    @Override
    public Entry next() {
        if (changes == null) {
            return range.next();
        }
        if (!hasNext()) {
            throw new NoSuchElementException("the range has ended");
        }
        Entry current = next;
        next = null;
        return current;
    }

    /** The key of the next pair, which stays the next. */
    byte[] peekKey() {
        if (changes == null) {
            return range.peekKey();
        }
        if (!hasNext()) {
            throw new NoSuchElementException("the range has ended");
        }
        return next.key();
    }

    @Override
    public void close() {
        range.close();
    }
}
