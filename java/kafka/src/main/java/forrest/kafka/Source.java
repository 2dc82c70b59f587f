package forrest.kafka;

import forrest.Entry;
import forrest.Reads;

/** What is read of a keyspace: what it has, and changes that are kept apart from it, if there are such. */
final class Source {
    private final Reads reads;
    /** The changes, or null. */
    private final Changes changes;

    Source(Reads reads, Changes changes) {
        this.reads = reads;
        this.changes = changes;
    }

    /** The value of a key, or null. */
    byte[] get(byte[] key) {
        byte[] changed = changes == null ? null : changes.get(key);
        if (changed != null) {
            return changed == Changes.DELETED ? null : changed;
        }
        return reads.get(key);
    }

    /** The pairs with {@code from <= key < to}, in order. Null is no bound. */
    Scan range(byte[] from, byte[] to) {
        return new Scan(reads.range(from, to), changes, from, to, false, true);
    }

    /** The pairs with {@code from <= key <= to}, in order. Null is no bound. */
    Scan rangeClosed(byte[] from, byte[] to) {
        return new Scan(reads.rangeClosed(from, to), changes, from, to, true, true);
    }

    /** The pairs with {@code from <= key < to}, from the last to the first. Null is no bound. */
    Scan reverse(byte[] from, byte[] to) {
        return new Scan(reads.reverse(from, to), changes, from, to, false, false);
    }

    /** The pairs with {@code from <= key <= to}, from the last to the first. Null is no bound. */
    Scan reverseClosed(byte[] from, byte[] to) {
        return new Scan(reads.reverseClosed(from, to), changes, from, to, true, false);
    }

    /** The first pair with {@code from <= key < to}, or null. Null is no bound. */
    Entry first(byte[] from, byte[] to) {
        return changes == null ? reads.first(from, to) : first(range(from, to));
    }

    /** The last pair with {@code from <= key < to}, or null. Null is no bound. */
    Entry last(byte[] from, byte[] to) {
        return changes == null ? reads.last(from, to) : first(reverse(from, to));
    }

    private static Entry first(Scan scan) {
        try (scan) {
            return scan.hasNext() ? scan.next() : null;
        }
    }

    /** About how many keys there are. */
    long approximateCount() {
        return reads.approximateCount(null, null) + (changes == null ? 0 : changes.count());
    }
}
