package forrest.cluster;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs the example on a broker and three instances, kills these in turn while records come, and compares its outputs
 * and queries with what was sent.
 *
 * <pre>
 * java -cp CLASSPATH forrest.cluster.Cluster DIRECTORY SECONDS EXAMPLE_CLASSPATH LINES_A_SECOND SEED [SETTING=VALUE...]
 * </pre>
 *
 * <p>It ends with code 0 if all is equal. Otherwise the directory stays, with the logs of all processes.
 */
final class Cluster {
    private static final int INSTANCES = 3;
    private static final int START_SECONDS = 120;
    /** How long outputs may stand still. A transaction of a killed instance holds them for 10 s. */
    private static final int PROGRESS_SECONDS = 120;
    private static final int END_SECONDS = 240;
    private static final long WINDOW_MS = 10_000;
    /** Where stores are, in a state directory's path. */
    private static final String OURS = "/forrest/";
    private static final String THEIRS = "/rocksdb/";

    private final Path directory;
    private final int seconds;
    private final Random random;
    private final Broker broker;
    private final Instances instances;
    private final Input input;
    private final Outputs outputs;
    private final Thread inputThread;
    private final Thread outputThread;
    private final long start;

    private int instanceKills;
    private int brokerKills;
    private int queries;
    private int refused;

    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]).toAbsolutePath();
        int seconds = Integer.parseInt(arguments[1]);
        Files.createDirectories(directory);
        Thread.setDefaultUncaughtExceptionHandler((thread, failure) -> {
            failure.printStackTrace();
            Program.end(1);
        });
        limit(seconds + 3 * START_SECONDS + PROGRESS_SECONDS + 2 * END_SECONDS);
        try {
            List<String> settings = List.of(arguments).subList(5, arguments.length);
            int linesASecond = Integer.parseInt(arguments[3]);
            new Cluster(directory, seconds, arguments[2], linesASecond, Long.parseLong(arguments[4]), settings).run();
        } catch (Exception e) {
            e.printStackTrace();
            System.err.println("the logs and states are in " + directory);
            Program.end(1);
        }
        Program.end(0);
    }

    /** Ends everything after a time in which it must have ended. */
    private static void limit(int seconds) {
        Thread limit = new Thread(() -> {
            try {
                TimeUnit.SECONDS.sleep(seconds);
            } catch (InterruptedException e) {
                return;
            }
            System.err.println("not done after " + seconds + " s");
            Program.end(1);
        });
        limit.setDaemon(true);
        limit.start();
    }

    private Cluster(
            Path directory, int seconds, String classpath, int linesASecond, long seed, List<String> settings)
            throws Exception {
        this.directory = directory;
        this.seconds = seconds;
        System.out.println("seed " + seed);
        random = new Random(seed);
        broker = new Broker(directory);
        broker.topics(List.of("lines", "orders", "payments", "counts", "paid"), Broker.PARTITIONS);
        instances = new Instances(directory, classpath, broker.address, settings);
        input = new Input(broker.address, linesASecond, random.nextLong());
        outputs = new Outputs(broker.address);
        inputThread = new Thread(input, "input");
        outputThread = new Thread(outputs, "outputs");
        instances.add();
        instances.add();
        until("the instances run", START_SECONDS, this::areRunning);
        start = System.nanoTime();
    }

    private boolean areRunning() throws InterruptedException {
        for (int i = 0; i < instances.size(); i++) {
            if (!"RUNNING\n".equals(instances.page(i, "state"))) {
                return false;
            }
        }
        return true;
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    /** Waits for a condition. Throws after the given time, or when something else failed. */
    private void until(String what, int seconds, Condition condition) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        while (!condition.holds()) {
            checkAll();
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("not in " + seconds + " s: " + what + "; counted " + outputs.counted
                        + ", joined " + outputs.joined + ", of " + input.records + " records");
            }
            Thread.sleep(50);
        }
    }

    private void checkAll() {
        broker.program.check();
        instances.check();
        input.check();
        outputs.check();
    }

    private double elapsed() {
        return (System.nanoTime() - start) / 1e9;
    }

    private void say(String what) {
        System.out.printf("%4.0f s: %s%n", elapsed(), what);
    }

    private void run() throws Exception {
        inputThread.start();
        outputThread.start();
        // The broker comes in turn with each instance.
        for (int turn = 0; elapsed() < seconds; turn++) {
            pause(3, 12);
            if (elapsed() >= seconds) {
                break;
            }
            if (instances.size() < INSTANCES && elapsed() > seconds / 4.0) {
                instances.add();
                say("instance " + (instances.size() - 1) + " started");
                continue;
            }
            int victim = turn % (instances.size() + 1);
            if (victim == instances.size()) {
                kill(broker.program);
                broker.waitUntilUp();
                brokerKills++;
            } else {
                kill(instances.program(victim));
                instanceKills++;
            }
            long before = outputs.counted.get();
            until("outputs go on", PROGRESS_SECONDS, () -> outputs.counted.get() > before);
        }
        input.stop();
        inputThread.join(TimeUnit.SECONDS.toMillis(180));
        if (inputThread.isAlive()) {
            throw new IllegalStateException("the input does not end");
        }
        input.check();
        say("the input ends");
        verify();
    }

    private void kill(Program program) throws Exception {
        double at = elapsed();
        long pid = program.kill();
        double down = random.nextDouble() * 4;
        Thread.sleep((long) (down * 1000));
        program.start();
        System.out.printf("%4.0f s: %s (process %d) killed, back after %.1f s; %d records sent, %d words counted, %d pairs%n",
                at, program.name, pid, down, input.records.get(), outputs.counted.get(), outputs.joined.get());
    }

    /** Waits for some seconds, during which it queries: no word may be counted more often than it was sent. */
    private void pause(int secondsMin, int secondsMax) throws Exception {
        double until = elapsed() + secondsMin + random.nextDouble() * (secondsMax - secondsMin);
        while (elapsed() < Math.min(until, seconds)) {
            checkAll();
            Thread.sleep(20);
            int number = random.nextInt(Input.WORDS);
            String page = instances.page(random.nextInt(instances.size()), "count/" + Input.word(number));
            if (page == null) {
                refused++;
                continue;
            }
            queries++;
            long count = Long.parseLong(page.trim());
            long sent = input.words.get(number);
            if (count > sent) {
                throw new IllegalStateException(
                        "a query counts " + Input.word(number) + " " + count + " times, and it was sent " + sent + " times");
            }
        }
    }

    private void verify() throws Exception {
        Map<String, Long> words = new TreeMap<>();
        for (int i = 0; i < Input.WORDS; i++) {
            if (input.words.get(i) > 0) {
                words.put(Input.word(i), (long) input.words.get(i));
            }
        }
        long total = words.values().stream().mapToLong(Long::longValue).sum();
        Map<String, Set<String>> pairs = pairs();
        long joined = pairs.values().stream().mapToLong(Set::size).sum();
        equal("records in the input topics", (long) input.records.get(), recordsOf(List.of("lines", "orders", "payments")));

        until("all is counted and joined: " + total + " words and " + joined + " pairs", END_SECONDS,
                () -> outputs.counted.get() >= total && outputs.joined.get() >= joined);
        equal("counts in the output", words, outputs.counts());
        equal("pairs in the output", pairs, outputs.paid());
        say("the outputs are right");

        until("the instances run", START_SECONDS, this::areRunning);
        long restarted = queryAll(words, instances.size());
        say("the queries are right");
        // What a standby has must be the same.
        instances.program(0).kill();
        long afterwards = queryAll(words, instances.size() - 1);
        say("the queries are right without instance 0");

        // Nothing came late.
        Thread.sleep(3000);
        outputs.check();
        equal("words in the output", total, outputs.counted.get());
        equal("pairs in the output", joined, outputs.joined.get());
        checkStores();
        System.out.printf(
                "%.0f s, %d kills of instances, %d of the broker, %d threads replaced; %d records sent, %d words counted, %d pairs joined; "
                        + "%d queries while it ran (%d more refused), %d at the end, %d after one more kill: all equal%n",
                elapsed(), instanceKills, brokerKills, replaced(), input.records.get(), total, joined, queries, refused, restarted,
                afterwards);
        Program.killAll();
        Directories.delete(directory);
    }

    /** Waits until every instance that is left has every count and window right. Returns the number of queries. */
    private long queryAll(Map<String, Long> words, int count) throws Exception {
        int first = instances.size() - count;
        long[] asked = {0};
        String[] wrong = {null};
        try {
            until("queries are right", END_SECONDS, () -> {
                asked[0] = 0;
                Map<String, Long> local = new TreeMap<>();
                long lines = 0;
                for (int i = first; i < instances.size(); i++) {
                    String page = instances.page(i, "counts");
                    // An instance without a partition of its own gives none. Another one must have it then.
                    for (String line : page == null ? List.<String>of() : page.lines().toList()) {
                        String[] pair = line.split(" ");
                        local.put(pair[0], Long.valueOf(pair[1]));
                        lines++;
                    }
                }
                if (!local.equals(words) || lines != words.size()) {
                    wrong[0] = "the counts of all instances are not those of the words: " + lines + " lines";
                    return false;
                }
                int turn = 0;
                for (String word : words.keySet()) {
                    int i = first + turn++ % count;
                    String expected = words.get(word) + "\n";
                    String found = instances.page(i, "count/" + word);
                    String windows = instances.page(i, "windows/" + word);
                    if (!expected.equals(found) || !windows(word).equals(windows)) {
                        wrong[0] = word + " at instance " + i + ": " + found + windows + "instead of " + expected
                                + windows(word);
                        return false;
                    }
                    asked[0] += 2;
                }
                return true;
            });
        } catch (IllegalStateException e) {
            throw new IllegalStateException(wrong[0], e);
        }
        return asked[0];
    }

    /** The windows of a word as they were sent. */
    private String windows(String word) {
        TreeMap<Long, Long> windows = new TreeMap<>();
        input.wordTimes.get(word).forEach((time, count) -> windows.merge(time - time % WINDOW_MS, count, Long::sum));
        StringBuilder lines = new StringBuilder();
        windows.forEach((start, count) -> lines.append(start).append(' ').append(count).append('\n'));
        return lines.toString();
    }

    /** The pairs of orders and payments that are near enough. */
    private Map<String, Set<String>> pairs() {
        Map<String, Set<String>> pairs = new HashMap<>();
        input.orders.forEach((key, orders) -> {
            Set<String> found = new HashSet<>();
            for (Input.Event order : orders) {
                for (Input.Event payment : input.payments.getOrDefault(key, List.of())) {
                    if (Math.abs(order.time() - payment.time()) <= WINDOW_MS) {
                        found.add(order.value() + " " + payment.value());
                    }
                }
            }
            if (!found.isEmpty()) {
                pairs.put(key, found);
            }
        });
        return pairs;
    }

    private long recordsOf(List<String> topics) throws Exception {
        Map<TopicPartition, OffsetSpec> ends = new HashMap<>();
        for (String topic : topics) {
            for (int i = 0; i < Broker.PARTITIONS; i++) {
                ends.put(new TopicPartition(topic, i), OffsetSpec.latest());
            }
        }
        return broker.admin.listOffsets(ends).all().get(60, TimeUnit.SECONDS).values().stream()
                .mapToLong(end -> end.offset())
                .sum();
    }

    /** The instances had stores of Forrest, and of nothing else. */
    private void checkStores() throws IOException {
        for (int i = 0; i < instances.size(); i++) {
            List<String> paths = new ArrayList<>();
            Directories.paths(instances.state(i)).forEach(path -> paths.add(path + "/"));
            if (paths.stream().noneMatch(path -> path.contains(OURS))
                    || paths.stream().anyMatch(path -> path.contains(THEIRS))) {
                throw new IllegalStateException("the stores of instance " + i + " are not Forrest's");
            }
        }
    }

    /** How many threads of Kafka Streams failed by an exception, as the instances print it. */
    private long replaced() throws IOException {
        long count = 0;
        for (int i = 0; i < instances.size(); i++) {
            try (Stream<String> lines = Files.lines(instances.program(i).log)) {
                count += lines.filter(line -> line.startsWith("a stream thread failed")).count();
            }
        }
        return count;
    }

    private static void equal(String what, Object expected, Object found) {
        if (expected.equals(found)) {
            return;
        }
        if (expected instanceof Map<?, ?> all && found instanceof Map<?, ?> some) {
            all.forEach((key, value) -> {
                if (!value.equals(some.get(key))) {
                    throw new IllegalStateException(
                            what + ", " + key + ": " + some.get(key) + " instead of " + value);
                }
            });
        }
        throw new IllegalStateException(what + ": " + found + " instead of " + expected);
    }
}
