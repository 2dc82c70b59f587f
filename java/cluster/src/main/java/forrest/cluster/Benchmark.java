package forrest.cluster;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Compares state stores by turns, each time in a process of its own: Forrest's, RocksDB's, and one that discards
 * everything, whose figures are the ceiling for any store. {@link BenchmarkRun} is the process. The memory of stores with
 * more data than Forrest's budget is measured in one more process, because what a process once took it seldom returns.
 *
 * <pre>
 * java -cp CLASSPATH forrest.cluster.Benchmark DIRECTORY RECORDS ROUNDS
 * </pre>
 */
final class Benchmark {
    static final String INPUT = "input";
    static final int KEY_BYTES = 16;
    static final int VALUE_BYTES = 84;

    private static final List<String> SUBJECTS = List.of("forrest", "rocksdb", "discard");
    private static final int HEAP_MEGABYTES = 512;
    private static final int RUN_SECONDS = 300;

    private Benchmark() {}

    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]).toAbsolutePath();
        int records = Integer.parseInt(arguments[1]);
        int rounds = Integer.parseInt(arguments[2]);
        try {
            compare(directory, records, rounds);
            Program.killAll();
            Directories.delete(directory);
        } catch (Exception e) {
            e.printStackTrace();
            System.err.println("the logs are in " + directory);
            Program.end(1);
        }
        Program.end(0);
    }

    private static void compare(Path directory, int records, int rounds) throws Exception {
        Files.createDirectories(directory);
        Broker broker = new Broker(directory);
        broker.topics(List.of(INPUT), 1);
        produce(broker.address, records);
        System.out.printf("%d records of %d bytes, load %s%n", records, KEY_BYTES + VALUE_BYTES, load());
        // By measure and subject, in the order of measures.
        Map<String, Map<String, List<Double>>> found = new LinkedHashMap<>();
        for (int round = 0; round < rounds; round++) {
            for (String part : List.of(BenchmarkRun.ALL, BenchmarkRun.BUDGET)) {
                for (String subject : SUBJECTS) {
                    run(directory, broker.address, records, subject, part, round)
                            .forEach((measure, figure) -> found.computeIfAbsent(measure, any -> new TreeMap<>())
                                    .computeIfAbsent(subject, any -> new ArrayList<>())
                                    .add(figure));
                }
            }
            System.out.printf("round %d of %d, load %s%n", round + 1, rounds, load());
        }
        print(found);
    }

    /** Records with the keys 0 to {@code records}, in a random order. */
    private static void produce(String address, int records) {
        Random random = new Random(1);
        int[] order = new int[records];
        for (int i = 0; i < records; i++) {
            int j = random.nextInt(i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        byte[] value = new byte[VALUE_BYTES];
        try (var producer = producer(address)) {
            for (int number : order) {
                random.nextBytes(value);
                producer.send(new ProducerRecord<>(INPUT, key(number), value.clone()));
            }
        }
    }

    static KafkaProducer<byte[], byte[]> producer(String address) {
        Map<String, Object> settings = Map.of("bootstrap.servers", address, "linger.ms", "20", "batch.size", "262144");
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static byte[] key(int number) {
        return String.format("key-%012d", number).getBytes(StandardCharsets.US_ASCII);
    }

    private static Map<String, Double> run(
            Path directory, String brokers, int records, String subject, String part, int round) throws Exception {
        Path state = directory.resolve("state");
        Path results = directory.resolve("results");
        Files.deleteIfExists(results);
        // The heap is there from the start, so that what the process grows by is memory of the stores.
        String heap = HEAP_MEGABYTES + "m";
        Program program = new Program(
                subject + "-" + part + "-" + round,
                directory,
                List.of("-Xms" + heap, "-Xmx" + heap, "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", "-Dlevel=WARN"),
                System.getProperty("java.class.path"),
                List.of(
                        BenchmarkRun.class.getName(),
                        part,
                        subject,
                        brokers,
                        state.toString(),
                        Integer.toString(records),
                        results.toString()));
        program.start();
        program.finish(RUN_SECONDS);
        Directories.delete(state);
        Map<String, Double> figures = new LinkedHashMap<>();
        for (String line : Files.readAllLines(results)) {
            String[] pair = line.split("\t");
            figures.put(pair[0], Double.valueOf(pair[1]));
        }
        return figures;
    }

    private static String load() throws IOException {
        return Files.readString(Path.of("/proc/loadavg")).split(" ")[0];
    }

    private static String rounded(double figure) {
        return String.format(Math.abs(figure) < 100 ? "%.1f" : "%,.0f", figure);
    }

    private static void print(Map<String, Map<String, List<Double>>> found) {
        System.out.printf("%-32s", "median (lowest to highest)");
        SUBJECTS.forEach(subject -> System.out.printf("%32s", subject));
        System.out.println();
        found.forEach((measure, subjects) -> {
            System.out.printf("%-32s", measure);
            for (String subject : SUBJECTS) {
                List<Double> figures = new ArrayList<>(subjects.getOrDefault(subject, List.of()));
                figures.sort(null);
                System.out.printf("%32s", figures.isEmpty() ? "" : String.format("%s (%s to %s)",
                        rounded(figures.get(figures.size() / 2)),
                        rounded(figures.get(0)),
                        rounded(figures.get(figures.size() - 1))));
            }
            System.out.println();
        });
    }
}
