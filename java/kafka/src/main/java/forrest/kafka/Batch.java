package forrest.kafka;

import forrest.WriteBatch;

/** Changes that are applied together, or kept apart one by one. */
final class Batch {
    final WriteBatch changes = new WriteBatch();
    private final boolean isApart;

    /** A batch whose changes are kept apart, if the tables keep any, or one that is written to the store. */
    Batch(boolean isApart) {
        this.isApart = isApart;
    }

    /** Sets a key; null deletes it. */
    void put(Table table, byte[] key, byte[] value) {
        if (isApart) {
            table.put(key, value);
        } else if (value == null) {
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
            changes.deleteRange(table.keyspace, from, to);
        }
    }
}
