package forrest.kafka;

import forrest.Keyspace;
import forrest.Snapshot;
import java.util.function.LongConsumer;

/**
 * A keyspace of a state store. While the store keeps apart what is not committed, changes stay in memory until {@link
 * #applied}; else they are applied at once.
 */
final class Table {
    final Keyspace keyspace;
    /** What was committed; without changes that are kept apart, all. */
    final Source committed;

    /** Changes that are kept apart, or null. */
    private volatile Changes changes;

    private volatile Source present;

    Table(Keyspace keyspace, boolean keepsApart) {
        this.keyspace = keyspace;
        this.committed = new Source(keyspace, null);
        applied(keepsApart);
    }

    /** All that was changed. */
    Source present() {
        return present;
    }

    /** What a snapshot has, with the changes of a range up to now. Called under the lock of the state store. */
    Source at(Snapshot snapshot, byte[] from, byte[] to) {
        return new Source(snapshot, changes == null ? null : changes.copy(from, to));
    }

    /** Sets a key; null deletes it. */
    void put(byte[] key, byte[] value) {
        if (changes != null) {
            changes.put(key, value == null ? Changes.DELETED : value);
        } else if (value == null) {
            keyspace.delete(key);
        } else {
            keyspace.put(key, value);
        }
    }

    /** Sets a key that has no value. Returns the value that it has otherwise, or null. */
    byte[] putIfAbsent(byte[] key, byte[] value) {
        if (changes == null) {
            return keyspace.putIfAbsent(key, value);
        }
        byte[] found = present.get(key);
        if (found == null) {
            changes.put(key, value);
        }
        return found;
    }

    /** Deletes a key, and returns the value that it had, or null. */
    byte[] remove(byte[] key) {
        if (changes == null) {
            return keyspace.remove(key);
        }
        byte[] found = present.get(key);
        changes.put(key, Changes.DELETED);
        return found;
    }

    /** Deletes the keys with {@code from <= key < to}. */
    void deleteRange(byte[] from, byte[] to) {
        if (changes != null) {
            changes.deleteRange(from, to);
        } else {
            keyspace.deleteRange(from, to);
        }
    }

    /** Bytes of memory that the changes take which are kept apart, about. */
    long uncommittedBytes() {
        Changes now = changes;
        return now == null ? 0 : now.bytes();
    }

    /** Adds the changes that are kept apart to a batch to write. Before each, {@code before} gets its bytes. */
    void addTo(Batch batch, LongConsumer before) {
        if (changes != null) {
            changes.addTo(batch, this, before);
        }
    }

    /**
     * The changes were applied. Who reads them goes on with those that it has.
     *
     * @param keepsApart whether changes are kept apart from now on
     */
    void applied(boolean keepsApart) {
        changes = keepsApart ? new Changes() : null;
        present = keepsApart ? new Source(keyspace, changes) : committed;
    }
}
