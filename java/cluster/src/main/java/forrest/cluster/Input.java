package forrest.cluster;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends records at a steady rate and keeps what is in them: lines of words, and orders and payments, whose keys are few,
 * so that most have several partners within the window and some outside.
 */
final class Input implements Runnable {
    static final int WORDS = 500;
    private static final int WORDS_A_LINE = 3;
    private static final int ORDERS = 200;
    private static final long TICK_MS = 50;

    /** A record with a key. */
    record Event(long time, String value) {}

    /** What was sent. Read when the thread has ended. */
    final Map<String, List<Event>> orders = new HashMap<>();
    final Map<String, List<Event>> payments = new HashMap<>();
    final Map<String, TreeMap<Long, Long>> wordTimes = new HashMap<>();
    /** How often each word was sent, counted before it is sent. */
    final AtomicIntegerArray words = new AtomicIntegerArray(WORDS);
    final AtomicInteger records = new AtomicInteger();
    private final AtomicReference<Exception> failure = new AtomicReference<>();

    private final String address;
    private final int linesASecond;
    private final Random random;
    private volatile boolean isStopped;

    Input(String address, int linesASecond, long seed) {
        this.address = address;
        this.linesASecond = linesASecond;
        random = new Random(seed);
    }

    static String word(int number) {
        return String.format("word-%03d", number);
    }

    void stop() {
        isStopped = true;
    }

    /** Throws if a record was refused. */
    void check() {
        if (failure.get() != null) {
            throw new IllegalStateException("the input cannot be sent", failure.get());
        }
    }

    @Override
    public void run() {
        // Records are neither lost nor doubled on their way to the broker: the producer is idempotent.
        Map<String, Object> settings = Map.of(
                "bootstrap.servers", address,
                "acks", "all",
                "enable.idempotence", "true",
                "linger.ms", "5",
                "max.block.ms", "120000",
                "delivery.timeout.ms", "120000",
                "request.timeout.ms", "5000");
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            long start = System.nanoTime();
            for (long tick = 0; !isStopped; tick++) {
                long due = start + tick * TICK_MS * 1_000_000;
                long ahead = (due - System.nanoTime()) / 1_000_000;
                if (ahead > 0) {
                    Thread.sleep(ahead);
                }
                for (int i = 0; i < linesASecond * TICK_MS / 1000; i++) {
                    line(producer);
                    if (i % 5 == 0) {
                        event(producer, "orders", "o", orders);
                        event(producer, "payments", "p", payments);
                    }
                }
            }
            producer.flush();
        } catch (InterruptedException | RuntimeException e) {
            failure.compareAndSet(null, e);
        }
    }

    private void line(KafkaProducer<String, String> producer) {
        long now = System.currentTimeMillis();
        StringBuilder line = new StringBuilder();
        for (int i = 0; i < WORDS_A_LINE; i++) {
            // The first words are frequent.
            int number = (int) (WORDS * Math.pow(random.nextDouble(), 3));
            words.incrementAndGet(number);
            wordTimes.computeIfAbsent(word(number), word -> new TreeMap<>()).merge(now, 1L, Long::sum);
            line.append(i == 0 ? "" : " ").append(word(number));
        }
        send(producer, "lines", Integer.toString(records.get()), line.toString(), now);
    }

    private void event(
            KafkaProducer<String, String> producer, String topic, String prefix, Map<String, List<Event>> events) {
        long now = System.currentTimeMillis();
        String key = "order-" + random.nextInt(ORDERS);
        Event event = new Event(now, prefix + records.get());
        events.computeIfAbsent(key, any -> new ArrayList<>()).add(event);
        send(producer, topic, key, event.value, now);
    }

    private void send(KafkaProducer<String, String> producer, String topic, String key, String value, long time) {
        records.incrementAndGet();
        producer.send(new ProducerRecord<>(topic, null, time, key, value), (to, problem) -> {
            if (problem != null) {
                failure.compareAndSet(null, problem);
            }
        });
    }
}
