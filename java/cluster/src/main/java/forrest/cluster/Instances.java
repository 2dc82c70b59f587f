package forrest.cluster;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** The example's instances, and queries to them. */
final class Instances {
    private final List<Program> programs = new ArrayList<>();
    private final List<Integer> ports = new ArrayList<>();
    private final HttpClient client =
            HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(5)).build();
    private final Path directory;
    private final String classpath;
    private final String brokers;
    private final List<String> settings;

    /** None yet; with settings that go before those of the example. */
    Instances(Path directory, String classpath, String brokers, List<String> settings) {
        this.directory = directory;
        this.classpath = classpath + File.pathSeparator + classesOfThis();
        this.brokers = brokers;
        this.settings = settings;
    }

    /** Where {@link Child} is; without what else is on the class path here. */
    private static String classesOfThis() {
        return Path.of(URI.create(
                        Child.class.getProtectionDomain().getCodeSource().getLocation().toString()))
                .toString();
    }

    int size() {
        return programs.size();
    }

    Program program(int number) {
        return programs.get(number);
    }

    Path state(int number) {
        return directory.resolve("state-" + number);
    }

    /** Starts one more. */
    void add() throws IOException {
        int number = programs.size();
        int port = Broker.freePort();
        List<String> arguments = new ArrayList<>(List.of(
                "example.Application",
                brokers,
                state(number).toString(),
                Integer.toString(port),
                // Each record's result is in the output.
                "statestore.cache.max.bytes=0",
                // A killed instance is missed soon.
                "session.timeout.ms=6000",
                "heartbeat.interval.ms=1500",
                // A broker that is killed soon after it came back may load a group twice and lose the timers of its
                // members. The next rebalance then ends after this time, which is 5 minutes by default.
                "max.poll.interval.ms=30000",
                "probing.rebalance.interval.ms=60000"));
        arguments.addAll(settings);
        Program program = new Program("instance " + number, directory, Program.small(256), classpath, arguments);
        programs.add(program);
        ports.add(port);
        program.start();
    }

    void check() {
        programs.forEach(Program::check);
    }

    /** The page of an instance, or null if it has none to give now. */
    String page(int number, String path) throws InterruptedException {
        try {
            HttpResponse<String> response = client.send(
                    HttpRequest.newBuilder(URI.create("http://localhost:" + ports.get(number) + "/" + path))
                            .timeout(Duration.ofSeconds(10))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            return response.statusCode() == 200 ? response.body() : null;
        } catch (IOException e) {
            return null;
        }
    }
}
