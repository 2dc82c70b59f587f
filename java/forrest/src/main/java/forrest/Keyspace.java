package forrest;

import java.util.Objects;

/** An ordered map of a store. Threads may share it. */
public final class Keyspace extends Reads {
    Keyspace(long view, Lifetime lifetime) {
        super(view, lifetime);
    }

    /**
     * Sets a key. What it survives is up to the store's {@link Durability}.
     *
     * @throws ForrestException if it cannot be written
     */
    public void put(byte[] key, byte[] value) {
        Native.put(view, Objects.requireNonNull(key, "key"), Objects.requireNonNull(value, "value"));
    }

    /** Deletes a key. */
    public void delete(byte[] key) {
        Native.put(view, Objects.requireNonNull(key, "key"), null);
    }

    /** Deletes a key, and returns the value that it had, or null. */
    public byte[] remove(byte[] key) {
        return Native.remove(view, Objects.requireNonNull(key, "key"));
    }

    /** Sets a key that has no value. Returns the value that it has otherwise, or null. */
    public byte[] putIfAbsent(byte[] key, byte[] value) {
        return Native.putIfAbsent(
                view, Objects.requireNonNull(key, "key"), Objects.requireNonNull(value, "value"));
    }

    /** Changes a key from one value to another, where null is none. Returns whether it had the first one. */
    public boolean compareAndSwap(byte[] key, byte[] from, byte[] to) {
        return Native.compareAndSwap(view, Objects.requireNonNull(key, "key"), from, to);
    }

    /** Deletes the keys with {@code from <= key < to}, at one instant. Null is no bound. */
    public void deleteRange(byte[] from, byte[] to) {
        Native.deleteRange(view, from, to);
    }
}
