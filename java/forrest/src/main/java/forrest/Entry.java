package forrest;

/**
 * A pair of a range.
 *
 * @param key the key; the caller's own copy
 * @param value its value; the caller's own copy
 */
@SuppressWarnings("ArrayRecordComponent")
public record Entry(byte[] key, byte[] value) {}
