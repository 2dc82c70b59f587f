package forrest.cluster;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.Uuid;

/** A Kafka broker, which is its own controller (KRaft), in a process of its own and with free ports. */
final class Broker {
    static final int PARTITIONS = 4;

    final String address;
    final Program program;
    final Admin admin;

    /** Formats and starts it. */
    Broker(Path directory) throws IOException, InterruptedException {
        int port = freePort();
        int controller = freePort();
        address = "localhost:" + port;
        Path settings = directory.resolve("broker.properties");
        Files.writeString(settings, String.join("\n", List.of(
                "process.roles=broker,controller",
                "node.id=1",
                "controller.quorum.voters=1@localhost:" + controller,
                "listeners=PLAINTEXT://localhost:" + port + ",CONTROLLER://localhost:" + controller,
                "advertised.listeners=PLAINTEXT://" + address,
                "controller.listener.names=CONTROLLER",
                "log.dirs=" + directory.resolve("broker"),
                "auto.create.topics.enable=false",
                "num.partitions=" + PARTITIONS,
                "offsets.topic.num.partitions=4",
                "offsets.topic.replication.factor=1",
                "transaction.state.log.num.partitions=4",
                "transaction.state.log.replication.factor=1",
                "transaction.state.log.min.isr=1",
                "share.coordinator.state.topic.replication.factor=1",
                "share.coordinator.state.topic.min.isr=1",
                "group.initial.rebalance.delay.ms=0",
                // The controller takes a broker that was killed for alive until this has passed. Until then it loads the
                // offsets of groups as their old leader, and afterwards once more. In 4.3.1, if the first load has not
                // ended by then, it counts as the second, and offsets that were committed are as they once were.
                "broker.session.timeout.ms=9000",
                "broker.heartbeat.interval.ms=500",
                "log.cleaner.dedupe.buffer.size=16777216",
                "")));
        String classpath = System.getProperty("java.class.path");
        Program format = new Program("format", directory, Program.small(256), classpath, List.of(
                "kafka.tools.StorageTool", "format",
                "--cluster-id", Uuid.randomUuid().toString(),
                "--config", settings.toString()));
        format.start();
        format.finish(60);
        program = new Program("broker", directory, Program.small(512), classpath, List.of("kafka.Kafka", settings.toString()));
        program.start();
        admin = Admin.create(Map.of("bootstrap.servers", address));
        waitUntilUp();
    }

    void waitUntilUp() throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (true) {
            program.check();
            try {
                if (!admin.describeCluster().nodes().get(5, TimeUnit.SECONDS).isEmpty()) {
                    return;
                }
            } catch (ExecutionException | TimeoutException e) {
                // Not yet.
            }
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("the broker does not come up in 60 s");
            }
            Thread.sleep(100);
        }
    }

    void topics(List<String> names, int partitions) throws Exception {
        admin.createTopics(names.stream().map(name -> new NewTopic(name, partitions, (short) 1)).toList())
                .all()
                .get(60, TimeUnit.SECONDS);
    }

    static int freePort() {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
