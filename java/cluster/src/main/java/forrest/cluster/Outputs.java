package forrest.cluster;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Reads what was committed of the application's outputs, while it runs. The counts of a word must be 1, 2, 3 and so on,
 * without a gap and without a second one; of the join, no pair may come twice.
 */
final class Outputs implements Runnable {
    /** Guarded by this. */
    private final Map<String, Long> counts = new HashMap<>();
    private final Map<String, Set<String>> paid = new HashMap<>();

    final AtomicLong counted = new AtomicLong();
    final AtomicLong joined = new AtomicLong();
    private final AtomicReference<RuntimeException> failure = new AtomicReference<>();
    private final String address;
    private volatile boolean isStopped;

    Outputs(String address) {
        this.address = address;
    }

    void stop() {
        isStopped = true;
    }

    /** Throws if an output was wrong. */
    void check() {
        if (failure.get() != null) {
            throw failure.get();
        }
    }

    synchronized Map<String, Long> counts() {
        return new HashMap<>(counts);
    }

    synchronized Map<String, Set<String>> paid() {
        return new HashMap<>(paid);
    }

    @Override
    public void run() {
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", address,
                "isolation.level", "read_committed",
                "enable.auto.commit", "false");
        var strings = new StringDeserializer();
        var longs = new LongDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, strings, new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (int i = 0; i < Broker.PARTITIONS; i++) {
                partitions.add(new TopicPartition("counts", i));
                partitions.add(new TopicPartition("paid", i));
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (!isStopped) {
                for (ConsumerRecord<String, byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    if (record.topic().equals("counts")) {
                        count(record, longs.deserialize(null, record.value()));
                    } else {
                        pair(record, strings.deserialize(null, record.value()));
                    }
                }
            }
        } catch (RuntimeException e) {
            failure.compareAndSet(null, e);
        }
    }

    private synchronized void count(ConsumerRecord<String, byte[]> record, long count) {
        long before = counts.getOrDefault(record.key(), 0L);
        if (count != before + 1) {
            throw new IllegalStateException("the count " + count + " of " + record.key() + " follows " + before
                    + ", partition " + record.partition() + ", offset " + record.offset());
        }
        counts.put(record.key(), count);
        counted.incrementAndGet();
    }

    private synchronized void pair(ConsumerRecord<String, byte[]> record, String pair) {
        if (!paid.computeIfAbsent(record.key(), key -> new HashSet<>()).add(pair)) {
            throw new IllegalStateException("the pair " + pair + " of " + record.key() + " comes a second time, partition "
                    + record.partition() + ", offset " + record.offset());
        }
        joined.incrementAndGet();
    }
}
