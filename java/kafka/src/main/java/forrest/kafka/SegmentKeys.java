package forrest.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;

/**
 * Keys of records that are dropped by time: windows and sessions.
 *
 * <pre>
 * segment, 8 bytes | record's key | first number, 8 bytes | second number, 8 or 4 bytes
 * </pre>
 *
 * <p>A segment is the records of one interval of time, so that one deletion of a range drops it. The numbers are start
 * and sequence number of a window, or end and start of a session. The first one is the record's time.
 *
 * <p>After the segment these are the bytes of the changelog's key. Kafka Streams merges its caches with a store by the
 * order of segments and these bytes, so the store must have that order. It is not the order of the records' keys: if a
 * key begins with another one and goes on as a number does, its windows may be between those of the other. Reads skip
 * them ({@link SegmentRange}).
 *
 * <pre>
 * key "a", window that starts at 5, sequence number 0, segment 0:
 * 0000000000000000 61 0000000000000005 00000000
 * </pre>
 */
final class SegmentKeys {
    /** Bytes of the segment. */
    static final int SEGMENT = 8;

    /** Bytes of the numbers of a window. */
    static final int NUMBERS_OF_WINDOW = 12;

    /** Bytes of the numbers of a session. */
    static final int NUMBERS_OF_SESSION = 16;

    private SegmentKeys() {}

    /** A key of a window. */
    static byte[] window(long segment, byte[] key, long start, int sequence) {
        return head(segment, key, NUMBERS_OF_WINDOW).putLong(start).putInt(sequence).array();
    }

    /** A key of a session. */
    static byte[] session(long segment, byte[] key, long end, long start) {
        return head(segment, key, NUMBERS_OF_SESSION).putLong(end).putLong(start).array();
    }

    /** The key of a record of the changelog. */
    static byte[] ofChangelog(long segment, byte[] key) {
        return head(segment, key, 0).array();
    }

    /** The segment and the record's key, with room for numbers. */
    static ByteBuffer head(long segment, byte[] key, int numbers) {
        return ByteBuffer.allocate(SEGMENT + key.length + numbers).putLong(segment).put(key);
    }

    /** The record's key in a window's key. */
    static Bytes keyOfWindow(byte[] bytes) {
        return Bytes.wrap(Arrays.copyOfRange(bytes, SEGMENT, bytes.length - NUMBERS_OF_WINDOW));
    }

    /** The record's key in a session's key. */
    static Bytes keyOfSession(byte[] bytes) {
        return Bytes.wrap(Arrays.copyOfRange(bytes, SEGMENT, bytes.length - NUMBERS_OF_SESSION));
    }

    /** The start of a window. */
    static long start(byte[] bytes) {
        return time(bytes, NUMBERS_OF_WINDOW);
    }

    /** The end of a session. */
    static long sessionEnd(byte[] bytes) {
        return time(bytes, NUMBERS_OF_SESSION);
    }

    /** The start of a session. */
    static long sessionStart(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getLong(bytes.length - 8);
    }

    /** The first number of a key whose numbers have this many bytes. */
    static long time(byte[] bytes, int numbers) {
        return ByteBuffer.wrap(bytes).getLong(bytes.length - numbers);
    }
}
