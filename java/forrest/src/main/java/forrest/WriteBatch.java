package forrest;

import java.util.Arrays;
import java.util.Objects;

/**
 * Changes that a store applies together: all of them or none. It is for one thread at a time, and can be used again after
 * {@link #clear()}.
 */
public final class WriteBatch {
    private static final int HEAD = 10;
    private static final byte DELETE = 0;
    private static final byte SET = 1;
    private static final byte DELETE_RANGE = 2;
    private static final byte[] NONE = {};
    private static final int KEYSPACES_MAX = 256;

    private byte[] changes = new byte[256];
    private int length;
    private int count;
    private long[] views = {};

    /** Sets a key of a keyspace. */
    public WriteBatch put(Keyspace keyspace, byte[] key, byte[] value) {
        return push(SET, keyspace, key, Objects.requireNonNull(value, "value"));
    }

    /** Deletes a key of a keyspace. */
    public WriteBatch delete(Keyspace keyspace, byte[] key) {
        return push(DELETE, keyspace, key, NONE);
    }

    /** Deletes the keys of a keyspace with {@code from <= key < to}. */
    public WriteBatch deleteRange(Keyspace keyspace, byte[] from, byte[] to) {
        return push(DELETE_RANGE, keyspace, from, Objects.requireNonNull(to, "to"));
    }

    /** Number of changes. */
    public int size() {
        return count;
    }

    /** Bytes of the changes. */
    public int bytes() {
        return length;
    }

    /** Forgets the changes. */
    public void clear() {
        length = 0;
        count = 0;
        views = new long[0];
    }

    void write(long store, int durability) {
        Native.write(store, changes, length, views, durability);
    }

    private WriteBatch push(byte tag, Keyspace keyspace, byte[] key, byte[] value) {
        Objects.requireNonNull(key, "key");
        int view = number(keyspace.view);
        int end = Math.addExact(length, Math.addExact(HEAD, Math.addExact(key.length, value.length)));
        if (end > changes.length) {
            changes = Arrays.copyOf(changes, Math.max(end, (int) Math.min(2L * changes.length, Integer.MAX_VALUE - 8)));
        }
        changes[length] = tag;
        changes[length + 1] = (byte) view;
        number(length + 2, key.length);
        number(length + 6, value.length);
        System.arraycopy(key, 0, changes, length + HEAD, key.length);
        System.arraycopy(value, 0, changes, length + HEAD + key.length, value.length);
        length = end;
        count++;
        return this;
    }

    private void number(int at, int number) {
        for (int i = 0; i < 4; i++) {
            changes[at + i] = (byte) (number >>> 24 - 8 * i);
        }
    }

    private int number(long view) {
        for (int i = 0; i < views.length; i++) {
            if (views[i] == view) {
                return i;
            }
        }
        if (views.length == KEYSPACES_MAX) {
            throw new IllegalArgumentException("a batch changes at most 256 keyspaces");
        }
        views = Arrays.copyOf(views, views.length + 1);
        views[views.length - 1] = view;
        return views.length - 1;
    }
}
