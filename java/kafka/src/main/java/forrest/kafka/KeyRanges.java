package forrest.kafka;

import java.util.NoSuchElementException;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Ranges whose bounds are in the wrong order, which Kafka Streams wants warned about. */
final class KeyRanges {
    private static final Logger LOG = LoggerFactory.getLogger(KeyRanges.class);

    private KeyRanges() {}

    /** Whether a range has no keys because its bounds are in the wrong order. Warns as other stores do. */
    static boolean isEmpty(Bytes from, Bytes to) {
        if (from == null || to == null || from.compareTo(to) <= 0) {
            return false;
        }
        LOG.warn("Returning empty iterator for fetch with invalid key range: from > to. This may be due to range"
                + " arguments set in the wrong order, or serdes that don't preserve ordering when lexicographically"
                + " comparing the serialized bytes. Note that the built-in numerical serdes do not follow this for"
                + " negative numbers");
        return true;
    }

    /** The bytes of a key, or null. */
    static byte[] bytes(Bytes key) {
        return key == null ? null : key.get();
    }

    /** An iterator without pairs. */
    static <K, V> KeyValueIterator<K, V> none() {
        return new KeyValueIterator<>() {
            @Override
            public boolean hasNext() {
                return false;
            }

            @Override
            public KeyValue<K, V> next() {
                throw new NoSuchElementException();
            }

            @Override
            public K peekNextKey() {
                throw new NoSuchElementException();
            }

            @Override
            public void close() {}
        };
    }
}
