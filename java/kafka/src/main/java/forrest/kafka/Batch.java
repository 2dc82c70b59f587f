package forrest.kafka;

import forrest.WriteBatch;

/** Changes that are applied together, or kept apart one by one. */
final class Batch {
    final WriteBatch changes = new WriteBatch();
    private final boolean isApart;
    /** Bytes of memory that the changes to write take. */
    private long bytes;

    private int longestKey;

    /** A batch whose changes are kept apart, if the tables keep any, or one that is written to the store. */
    Batch(boolean isApart) {
        this.isApart = isApart;
    }

    /** Sets a key; null deletes it. */
    void put(Table table, byte[] key, byte[] value) {
        if (isApart) {
            table.put(key, value);
            return;
        }
        bytes += Changes.bytes(key, value);
        longestKey = Math.max(longestKey, key.length);
        if (value == null) {
            changes.delete(table.keyspace, key);
        } else {
            changes.put(table.keyspace, key, value);
        }
    }

    /** Deletes the keys with {@code from <= key < to}. */
    void deleteRange(Table table, byte[] from, byte[] to) {
        if (isApart) {
            table.deleteRange(from, to);
        } else {
            bytes += Changes.rangeBytes(from, to);
            changes.deleteRange(table.keyspace, from, to);
        }
    }

    /** Whether a batch of at most {@code most} bytes has room for {@code more}. An empty one takes any change. */
    boolean hasRoom(long more, long most) {
        return changes.size() == 0 || bytes + more <= most;
    }

    /** Bytes of memory that the changes to write take. */
    long bytes() {
        return bytes;
    }

    /** Bytes of the longest key that it changes. */
    int longestKey() {
        return longestKey;
    }

    /** Forgets the changes to write. */
    void clear() {
        changes.clear();
        bytes = 0;
        longestKey = 0;
    }
}
