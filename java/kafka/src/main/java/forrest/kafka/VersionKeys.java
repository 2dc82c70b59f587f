package forrest.kafka;

import forrest.Reads;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Keys and values of a versioned store.
 *
 * <pre>
 * version   key, escaped | end of the key, 00 00 | 2^63 - 1 - timestamp, 8 bytes
 * expiry    segment of the timestamp, 8 bytes | key
 * </pre>
 *
 * <p>In a version's key, a byte 00 of the record's key is written as 00 ff. So the versions of a key are next to each
 * other, the newest first, and the version of a time is the first one from that time on. A value is the byte 01 and the
 * record's value. No bytes are a tombstone.
 *
 * <pre>
 * key "a", timestamp 5, value "x":
 * 61 0000 7ffffffffffffffa = 01 78
 * </pre>
 */
final class VersionKeys {
    private static final byte[] TOMBSTONE = {};
    private static final byte VALUE = 1;

    private VersionKeys() {}

    /** The key of a version. */
    static byte[] version(byte[] key, long time) {
        return escape(key, 8).putLong(Long.MAX_VALUE - time).array();
    }

    /** The lowest key of a version, which is the newest. */
    static byte[] newest(byte[] key) {
        return escape(key, 0).array();
    }

    /** A key with escapes and its end, with room for more bytes. */
    private static ByteBuffer escape(byte[] key, int more) {
        int bytes = key.length + 2 + more;
        for (byte b : key) {
            bytes += b == 0 ? 1 : 0;
        }
        ByteBuffer buffer = ByteBuffer.allocate(bytes);
        for (byte b : key) {
            buffer.put(b);
            if (b == 0) {
                buffer.put((byte) 0xff);
            }
        }
        return buffer.putShort((short) 0);
    }

    /** A key above all versions. */
    static byte[] end(byte[] key) {
        return Reads.prefixEnd(newest(key));
    }

    /** The timestamp in the key of a version. */
    static long time(byte[] version) {
        return Long.MAX_VALUE - ByteBuffer.wrap(version).getLong(version.length - 8);
    }

    /** What is stored for a record's value, where null is a deletion. */
    static byte[] stored(byte[] value) {
        return value == null ? TOMBSTONE : ByteBuffer.allocate(1 + value.length).put(VALUE).put(value).array();
    }

    static boolean isTombstone(byte[] stored) {
        return stored.length == 0;
    }

    /** The record's value of what is stored and is no tombstone. */
    static byte[] value(byte[] stored) {
        return Arrays.copyOfRange(stored, 1, stored.length);
    }

    /** The key that says that a record's key has a version in a segment. */
    static byte[] expiry(long segment, byte[] key) {
        return ByteBuffer.allocate(8 + key.length).putLong(segment).put(key).array();
    }

    /** The record's key in such a key. */
    static byte[] keyOfExpiry(byte[] expiry) {
        return Arrays.copyOfRange(expiry, 8, expiry.length);
    }
}
