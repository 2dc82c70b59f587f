package example;

import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * What the application computes.
 *
 * <pre>
 * lines             counted word by word: in all (store and topic "counts") and by windows (store "windows")
 * orders, payments  joined by key where they are at most ten seconds apart (topic "paid": "ORDER PAYMENT")
 * </pre>
 */
final class Trees {
    static final String COUNTS = "counts";
    static final String WINDOWS = "windows";

    private static final Duration WINDOW = Duration.ofSeconds(10);
    /** How late a word may be: the instance that reads its line may have died, and another one reads it later. */
    private static final Duration LATE_WORD = Duration.ofMinutes(30);
    /** How late an order or a payment may be. One task reads both. */
    private static final Duration LATE_ORDER = Duration.ofMinutes(1);
    /** How long windows can be queried. */
    private static final Duration RETENTION = Duration.ofHours(1);

    private Trees() {}

    static Topology topology(Properties settings) {
        StreamsBuilder builder = new StreamsBuilder();
        var strings = Serdes.String();

        KGroupedStream<String, String> words = builder.stream("lines", Consumed.with(strings, strings))
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy(
                        (key, word) -> word,
                        Grouped.<String, String>as("words").withKeySerde(strings).withValueSerde(strings));
        words.count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(COUNTS).withKeySerde(strings))
                .toStream()
                .to("counts", Produced.with(strings, Serdes.Long()));
        words.windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, LATE_WORD))
                .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as(WINDOWS)
                        .withKeySerde(strings)
                        .withRetention(RETENTION));

        KStream<String, String> orders = builder.stream("orders", Consumed.with(strings, strings));
        KStream<String, String> payments = builder.stream("payments", Consumed.with(strings, strings));
        orders.join(
                        payments,
                        (order, payment) -> order + " " + payment,
                        JoinWindows.ofTimeDifferenceAndGrace(WINDOW, LATE_ORDER),
                        StreamJoined.with(strings, strings, strings).withName("paid").withStoreName("paid"))
                .to("paid", Produced.with(strings, strings));

        return builder.build(settings);
    }
}
