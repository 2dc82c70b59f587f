package forrest.kafka;

import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;

/**
 * The keys that a read of windows or sessions asks for, in each segment a range of {@link SegmentKeys}. The range has all
 * of them, and may have others in between, which {@link #has} tells apart. Of one key these are only keys that go on with
 * a time that is asked for.
 *
 * @param from the lowest record's key, or null
 * @param to the highest record's key, or null
 * @param numbers bytes of the numbers after a record's key
 */
record SegmentRange(Bytes from, Bytes to, int numbers) {
    /** The lowest key of a segment that may be asked for, with a time from {@code low} on. */
    byte[] first(long segment, long low) {
        if (from == null) {
            return StateStoreBase.number(segment);
        }
        // A key of the range may go on with zeros, and be below the time.
        return isOneKey()
                ? SegmentKeys.head(segment, from.get(), numbers).putLong(low).array()
                : SegmentKeys.head(segment, from.get(), 0).array();
    }

    /** A key of a segment, or one after it, above which none is asked for with a time up to {@code high}. */
    byte[] last(long segment, long high) {
        if (to == null) {
            return StateStoreBase.number(segment + 1);
        }
        int end = SegmentKeys.SEGMENT + to.get().length;
        byte[] last = SegmentKeys.head(segment, to.get(), numbers).putLong(high).array();
        Arrays.fill(last, end + 8, last.length, (byte) 0xff);
        if (isOneKey()) {
            return last;
        }
        // A beginning of the highest key is in the range, too, and its numbers may be above the rest of that key.
        byte[] suffix = Arrays.copyOfRange(last, end, last.length);
        int length = last.length;
        for (int at = end - 1; at >= SegmentKeys.SEGMENT; at--) {
            if (Arrays.compareUnsigned(suffix, 0, numbers, last, at, length) > 0) {
                System.arraycopy(suffix, 0, last, at, numbers);
                length = at + numbers;
            }
        }
        return Arrays.copyOf(last, length);
    }

    /** Whether the record's key in a key of the range is asked for. */
    boolean has(byte[] at) {
        int end = at.length - numbers;
        if (isOneKey()) {
            return end == SegmentKeys.SEGMENT + from.get().length;
        }
        return (from == null || compare(at, end, from.get()) >= 0) && (to == null || compare(at, end, to.get()) <= 0);
    }

    /** The time in a key of the range. */
    long time(byte[] at) {
        return SegmentKeys.time(at, numbers);
    }

    private boolean isOneKey() {
        return from != null && from.equals(to);
    }

    private static int compare(byte[] at, int end, byte[] key) {
        return Arrays.compareUnsigned(at, SegmentKeys.SEGMENT, end, key, 0, key.length);
    }
}
