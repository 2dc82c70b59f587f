package forrest.cluster;

import forrest.kafka.ForrestStores;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntUnaryOperator;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.test.InternalMockProcessorContext;

/** One store, measured once; see {@link Benchmark}. Each store has its defaults. */
final class BenchmarkRun {
    /** What is measured: the memory within a budget, or all else. */
    static final String ALL = "all";

    static final String BUDGET = "budget";

    private static final String STORE = "store";
    private static final int WAIT_SECONDS = 120;
    private static final int QUERIES = 20_000;
    private static final int RANGE = 100;
    /** Keys with a prefix of this length are a hundred. */
    private static final int PREFIX_BYTES = Benchmark.KEY_BYTES - 2;
    private static final int STORES = 10;
    /** The budget of Forrest's stores in the run that is about it, and four times as much data in them. */
    private static final long BUDGET_BYTES = 64L << 20;

    private static final int BUDGET_VALUE_BYTES = 1 << 10;
    private static final int BUDGET_RECORDS = (int) (4 * BUDGET_BYTES / BUDGET_VALUE_BYTES);
    /** What is written beside the queries: records a second, in portions. */
    private static final int UPDATES = 20_000;
    private static final int PORTIONS = 100;

    private final String subject;
    private final String brokers;
    private final Path state;
    private final int records;
    private final String application;
    private final StringBuilder results = new StringBuilder();

    public static void main(String[] arguments) throws Exception {
        BenchmarkRun run = new BenchmarkRun(
                arguments[1], arguments[2], Path.of(arguments[3]), Integer.parseInt(arguments[4]));
        if (arguments[0].equals(BUDGET)) {
            run.budget();
        } else {
            run.measure();
        }
        Files.writeString(Path.of(arguments[5]), run.results);
        Runtime.getRuntime().halt(0);
    }

    private BenchmarkRun(String subject, String brokers, Path state, int records) {
        this.subject = subject;
        this.brokers = brokers;
        this.state = state;
        this.records = records;
        // A changelog of its own.
        application = subject + "-" + ProcessHandle.current().pid();
    }

    /** The topic of what is written beside the queries. */
    private String updates() {
        return "updates-" + application;
    }

    private boolean isDiscarding() {
        return subject.equals("discard");
    }

    private KeyValueBytesStoreSupplier supplier(String name) {
        return switch (subject) {
            case "forrest" -> ForrestStores.timestampedKeyValueStore(name);
            case "rocksdb" -> Stores.persistentTimestampedKeyValueStore(name);
            case "discard" -> Discarding.supplier(name);
            default -> throw new IllegalArgumentException(subject);
        };
    }

    private void result(String measure, double figure) {
        results.append(measure).append('\t').append(figure).append('\n');
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put("auto.offset.reset", "earliest");
        // The second application of a run waits for the end of the first one's session.
        settings.put("session.timeout.ms", "6000");
        return settings;
    }

    private void measure() throws Exception {
        put();
        result("bytes on disk / record", (double) Directories.bytes(state) / records);
        if (!isDiscarding()) {
            open();
        }
        Directories.delete(state);
        restore();
        Directories.delete(state);
        memory();
    }

    private interface Use {
        void of(KafkaStreams streams) throws Exception;
    }

    /** Runs the application: a table of the input topic, in the store. */
    private void running(Runnable each, StateRestoreListener restored, Use use) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", brokers))) {
            NewTopic topic = new NewTopic(updates(), 1, (short) 1);
            admin.createTopics(List.of(topic)).all().get();
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof TopicExistsException)) {
                throw e;
            }
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(List.of(Benchmark.INPUT, updates()), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
                .toTable(Materialized.<byte[], byte[]>as(supplier(STORE))
                        .withKeySerde(Serdes.ByteArray())
                        .withValueSerde(Serdes.ByteArray())
                        .withCachingDisabled())
                .toStream()
                .foreach((key, value) -> each.run());
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings())) {
            streams.setGlobalStateRestoreListener(restored);
            streams.setUncaughtExceptionHandler(failure -> {
                failure.printStackTrace();
                Runtime.getRuntime().halt(1);
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            use.of(streams);
        }
    }

    private static void await(CountDownLatch latch) throws InterruptedException {
        if (!latch.await(WAIT_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not done in " + WAIT_SECONDS + " s");
        }
    }

    /** From the first record on, with reading what was there before and writing the changelog. Then queries beside writes. */
    private void put() throws Exception {
        AtomicLong first = new AtomicLong();
        AtomicLong count = new AtomicLong();
        CountDownLatch done = new CountDownLatch(1);
        Runnable each = () -> {
            first.compareAndSet(0, System.nanoTime());
            if (count.incrementAndGet() == records) {
                done.countDown();
            }
        };
        running(each, new Restored(), streams -> {
            await(done);
            result("put, records/s", records / seconds(first.get()));
            ReadOnlyKeyValueStore<byte[], byte[]> store = streams.store(StoreQueryParameters.fromNameAndType(
                    STORE, QueryableStoreTypes.<byte[], byte[]>keyValueStore()));
            try (Updates updates = new Updates()) {
                query(store);
                updates.checkRate();
            }
        });
    }

    private static double seconds(long since) {
        return (System.nanoTime() - since) / 1e9;
    }

    /** Writes pairs of the store again, at a steady rate, until it is closed. */
    private final class Updates implements AutoCloseable {
        private final AtomicLong written = new AtomicLong();
        private final long start = System.nanoTime();
        private final Thread thread = new Thread(this::run);
        private volatile boolean isClosed;

        Updates() {
            thread.start();
        }

        private void run() {
            Random random = new Random(5);
            byte[] value = new byte[Benchmark.VALUE_BYTES];
            try (var producer = Benchmark.producer(brokers)) {
                for (int portion = 1; !isClosed; portion++) {
                    for (int i = 0; i < UPDATES / PORTIONS; i++) {
                        random.nextBytes(value);
                        byte[] key = Benchmark.key(random.nextInt(records));
                        producer.send(new ProducerRecord<>(updates(), key, value.clone()));
                        written.incrementAndGet();
                    }
                    LockSupport.parkNanos(start + portion * (1_000_000_000L / PORTIONS) - System.nanoTime());
                }
            }
        }

        /** Fails if it was too slow, as its load would be another than that of the other stores. */
        void checkRate() {
            double rate = written.get() / seconds(start);
            if (rate < 0.9 * UPDATES) {
                throw new IllegalStateException("only " + (long) rate + " records/s were written beside the queries");
            }
        }

        @Override
        public void close() {
            isClosed = true;
            try {
                thread.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private void query(ReadOnlyKeyValueStore<byte[], byte[]> store) {
        // The first calls run before the machine's code is compiled.
        for (boolean isMeasured : List.of(false, true)) {
            latencies("get", isMeasured, QUERIES, number -> store.get(Benchmark.key(number)) == null ? 0 : 1, 1);
            if (isDiscarding()) {
                continue;
            }
            latencies("range of 100", isMeasured, QUERIES / 4, number -> {
                int from = Math.min(number, records - RANGE);
                return counted(store.range(Benchmark.key(from), Benchmark.key(from + RANGE - 1)));
            }, RANGE);
            // Text, so that the prefix's serializer keeps the bytes.
            latencies("prefix of 100", isMeasured, QUERIES / 4, number -> counted(store.prefixScan(
                    new String(Benchmark.key(number), 0, PREFIX_BYTES, StandardCharsets.US_ASCII),
                    new StringSerializer())), RANGE);
        }
    }

    private static int counted(KeyValueIterator<byte[], byte[]> range) {
        int found = 0;
        try (range) {
            while (range.hasNext()) {
                range.next();
                found++;
            }
        }
        return found;
    }

    private void latencies(String name, boolean isMeasured, int queries, IntUnaryOperator query, int expected) {
        Random random = new Random(3);
        long[] times = new long[queries];
        for (int i = 0; i < queries; i++) {
            int number = random.nextInt(records);
            long start = System.nanoTime();
            int found = query.applyAsInt(number);
            times[i] = System.nanoTime() - start;
            if (found != (isDiscarding() ? 0 : expected)) {
                throw new IllegalStateException(name + ": " + found + " pairs");
            }
        }
        if (isMeasured) {
            Arrays.sort(times);
            result(name + ", p50, us", times[queries / 2] / 1e3);
            result(name + ", p99, us", times[queries / 100 * 99] / 1e3);
        }
    }

    /** Opens what the application left, and closes it. */
    private void open() {
        File task = state.resolve(application).resolve("0_0").toFile();
        int rounds = 5;
        long start = System.nanoTime();
        for (int i = 0; i < rounds; i++) {
            KeyValueStore<Bytes, byte[]> store = open(task, STORE);
            if (store.get(Bytes.wrap(Benchmark.key(0))) == null) {
                throw new IllegalStateException("an opened store is empty");
            }
            store.close();
        }
        result("open, get, close, ms", seconds(start) * 1000 / rounds);
    }

    private KeyValueStore<Bytes, byte[]> open(File task, String name) {
        return open(task, name, settings());
    }

    private KeyValueStore<Bytes, byte[]> open(File task, String name, Properties settings) {
        KeyValueStore<Bytes, byte[]> store = supplier(name).get();
        store.init(new InternalMockProcessorContext<>(task, new StreamsConfig(settings)), store);
        return store;
    }

    private record Restored(AtomicLong start, AtomicLong records, CountDownLatch done) implements StateRestoreListener {
        Restored() {
            this(new AtomicLong(), new AtomicLong(), new CountDownLatch(1));
        }

        @Override
        public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
            start.set(System.nanoTime());
        }

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long to, long count) {}

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long total) {
            records.set(total);
            done.countDown();
        }
    }

    /** From the changelog, which has all that was written. */
    private void restore() throws Exception {
        Restored restored = new Restored();
        running(() -> {}, restored, streams -> {
            await(restored.done);
            result("restore, records/s", restored.records.get() / seconds(restored.start.get()));
        });
    }

    /** What the process grows by with ten stores, a tenth of the records in each. */
    private void memory() throws IOException {
        System.gc();
        long before = residentBytes();
        List<KeyValueStore<Bytes, byte[]>> stores = new ArrayList<>();
        Random random = new Random(4);
        byte[] value = new byte[Benchmark.VALUE_BYTES];
        for (int i = 0; i < STORES; i++) {
            stores.add(open(state.resolve("memory").toFile(), STORE + i));
        }
        for (int number = 0; number < records; number++) {
            random.nextBytes(value);
            stores.get(number % STORES).put(Bytes.wrap(Benchmark.key(number)), value.clone());
        }
        result("memory of ten stores, MB", (residentBytes() - before) / 1e6);
        stores.forEach(KeyValueStore::close);
    }

    /**
     * The most that the process grows by with ten stores that have four times the budget of Forrest's, while they are
     * written, and then read in a random order. RocksDB's stores have no budget, but their defaults. What the process
     * grows by without any is measured with those that discard everything.
     */
    private void budget() throws IOException {
        Properties settings = settings();
        settings.put("forrest.memory.bytes", Long.toString(BUDGET_BYTES));
        System.gc();
        long before = residentBytes();
        List<KeyValueStore<Bytes, byte[]>> stores = new ArrayList<>();
        for (int i = 0; i < STORES; i++) {
            stores.add(open(state.resolve("budget").toFile(), STORE + i, settings));
        }
        Random random = new Random(6);
        byte[] value = new byte[BUDGET_VALUE_BYTES];
        long most = 0;
        for (int number = 0; number < 2 * BUDGET_RECORDS; number++) {
            if (number < BUDGET_RECORDS) {
                random.nextBytes(value);
                stores.get(number % STORES).put(Bytes.wrap(Benchmark.key(number)), value.clone());
            } else {
                int asked = random.nextInt(BUDGET_RECORDS);
                byte[] found = stores.get(asked % STORES).get(Bytes.wrap(Benchmark.key(asked)));
                if (found == null && !isDiscarding()) {
                    throw new IllegalStateException("key " + asked + " is not there");
                }
            }
            if (number % 1_000 == 0) {
                most = Math.max(most, residentBytes() - before);
            }
        }
        result("memory, 64 MiB budget, MB", most / 1e6);
        stores.forEach(KeyValueStore::close);
    }

    private static long residentBytes() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
            }
        }
        throw new IOException("/proc/self/status has no VmRSS");
    }
}
