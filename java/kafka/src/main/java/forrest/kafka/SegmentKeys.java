package forrest.kafka;

import forrest.Reads;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;

/**
 * Keys of records that are dropped by time: windows and sessions.
 *
 * <pre>
 * segment, 8 bytes | key, escaped | end of the key, 00 00 | first number, 8 bytes | second number, 8 or 4 bytes
 * </pre>
 *
 * <p>A segment is the records of one interval of time, so that one deletion of a range drops it. In the key, a byte 00 is
 * written as 00 ff. So these keys are ordered by the segment, then by the whole of the record's key, then by the numbers,
 * and a range of keys is one range. The numbers are start and sequence number of a window, or end and start of a session.
 *
 * <pre>
 * key "a", window that starts at 5, sequence number 0, segment 0:
 * 0000000000000000 61 0000 0000000000000005 00000000
 * </pre>
 */
final class SegmentKeys {
    private static final int NUMBERS_OF_WINDOW = 12;
    private static final int NUMBERS_OF_SESSION = 16;

    private SegmentKeys() {}

    /** A key of a window. */
    static byte[] window(long segment, byte[] key, long start, int sequence) {
        ByteBuffer buffer = head(segment, key, NUMBERS_OF_WINDOW);
        return buffer.putLong(start).putInt(sequence).array();
    }

    /** A key of a session. */
    static byte[] session(long segment, byte[] key, long end, long start) {
        ByteBuffer buffer = head(segment, key, NUMBERS_OF_SESSION);
        return buffer.putLong(end).putLong(start).array();
    }

    /** The lowest key of a segment with this record's key or a higher one; without a key, of the segment. */
    static byte[] from(long segment, Bytes key) {
        return key == null ? StateStoreBase.number(segment) : head(segment, key.get(), 0).array();
    }

    /** A key above all of a segment with this record's key or a lower one; without a key, of the segment. */
    static byte[] to(long segment, Bytes key) {
        return Reads.prefixEnd(from(segment, key));
    }

    private static ByteBuffer head(long segment, byte[] key, int numbers) {
        return escape(ByteBuffer.allocate(8 + escapedBytes(key) + numbers).putLong(segment), key);
    }

    /** Bytes of a key with escapes and its end. */
    static int escapedBytes(byte[] key) {
        int bytes = key.length + 2;
        for (byte b : key) {
            bytes += b == 0 ? 1 : 0;
        }
        return bytes;
    }

    /** Appends a key with escapes and its end. */
    static ByteBuffer escape(ByteBuffer buffer, byte[] key) {
        for (byte b : key) {
            buffer.put(b);
            if (b == 0) {
                buffer.put((byte) 0xff);
            }
        }
        return buffer.putShort((short) 0);
    }

    /** The segment of a key. */
    static long segment(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getLong();
    }

    /** The record's key in a window's key. */
    static Bytes keyOfWindow(byte[] bytes) {
        return key(bytes, NUMBERS_OF_WINDOW);
    }

    /** The record's key in a session's key. */
    static Bytes keyOfSession(byte[] bytes) {
        return key(bytes, NUMBERS_OF_SESSION);
    }

    private static Bytes key(byte[] bytes, int numbers) {
        int end = bytes.length - numbers - 2;
        int at = 8;
        while (at < end && bytes[at] != 0) {
            at++;
        }
        if (at == end) {
            return Bytes.wrap(Arrays.copyOfRange(bytes, 8, end));
        }
        ByteArrayOutputStream key = new ByteArrayOutputStream(end - 8);
        for (at = 8; at < end; at++) {
            key.write(bytes[at]);
            if (bytes[at] == 0) {
                at++;
            }
        }
        return Bytes.wrap(key.toByteArray());
    }

    /** The start of a window. */
    static long start(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getLong(bytes.length - NUMBERS_OF_WINDOW);
    }

    /** The end of a session. */
    static long sessionEnd(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getLong(bytes.length - NUMBERS_OF_SESSION);
    }

    /** The start of a session. */
    static long sessionStart(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getLong(bytes.length - 8);
    }
}
