package example;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.state.HostInfo;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * Interactive queries over HTTP. Every instance serves every word: it asks the instance that has it.
 *
 * <pre>
 * GET /state          the state of this instance, RUNNING if all is well
 * GET /count/WORD     how often the word was seen, 0 if never
 * GET /windows/WORD   a line "START_MS COUNT" for each window with the word
 * GET /counts         a line "WORD COUNT" for each word of this instance, in the order of words
 * GET /counts/FROM/TO the same for words of a range, TO included
 * </pre>
 *
 * <p>While tasks move between instances the status is 503, and the caller asks again.
 */
final class Queries {
    /** Marks a query that another instance has passed on. */
    private static final String HERE = "here";
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    private final KafkaStreams streams;
    private final HostInfo self;
    private final HttpServer server;
    private final ExecutorService threads = Executors.newFixedThreadPool(4);
    private final HttpClient client = HttpClient.newBuilder().connectTimeout(TIMEOUT).build();

    Queries(KafkaStreams streams, int port) throws IOException {
        this.streams = streams;
        self = new HostInfo("localhost", port);
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.setExecutor(threads);
        server.createContext("/", this::handle);
    }

    void start() {
        server.start();
    }

    void close() {
        server.stop(0);
        threads.shutdown();
    }

    private void handle(HttpExchange exchange) throws IOException {
        int status = 200;
        String text;
        try {
            text = find(exchange.getRequestURI());
            if (text == null) {
                status = 404;
                text = "there is no such page\n";
            }
        } catch (StreamsException | IllegalStateException | IOException e) {
            status = 503;
            text = e + "\n";
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            status = 503;
            text = "the instance is closing\n";
        }
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    /** The text of a page, or null if there is none. */
    private String find(URI uri) throws IOException, InterruptedException {
        String[] path = uri.getPath().split("/");
        String page = path.length < 2 ? "" : path[1];
        if (path.length == 2 && page.equals("state")) {
            return streams.state() + "\n";
        } else if (path.length == 3 && (page.equals("count") || page.equals("windows"))) {
            return ofWord(page, path[2], HERE.equals(uri.getQuery()));
        } else if (path.length == 2 && page.equals("counts")) {
            return counts(null, null);
        } else if (path.length == 4 && page.equals("counts")) {
            return counts(path[2], path[3]);
        }
        return null;
    }

    /** What the instance with the word has for it. Only the first instance asked passes a query on. */
    private String ofWord(String page, String word, boolean isPassedOn) throws IOException, InterruptedException {
        String store = page.equals("count") ? Trees.COUNTS : Trees.WINDOWS;
        KeyQueryMetadata found = streams.queryMetadataForKey(store, word, Serdes.String().serializer());
        if (KeyQueryMetadata.NOT_AVAILABLE.equals(found)) {
            throw new IOException("the instances divide the work anew");
        }
        HostInfo host = found.activeHost();
        if (host.equals(self)) {
            return page.equals("count") ? count(word, found.partition()) : windows(word, found.partition());
        }
        if (isPassedOn) {
            throw new IOException("the word is on " + host);
        }
        String encoded = URLEncoder.encode(word, StandardCharsets.UTF_8).replace("+", "%20");
        URI uri = URI.create("http://" + host.host() + ":" + host.port() + "/" + page + "/" + encoded + "?" + HERE);
        HttpResponse<String> response = client.send(
                HttpRequest.newBuilder(uri).timeout(TIMEOUT).build(), HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new IOException(host + " has status " + response.statusCode());
        }
        return response.body();
    }

    /** Only the word's partition is asked: if it has just moved away, that is an error, and not a count of 0. */
    private String count(String word, int partition) {
        Long count = streams.store(StoreQueryParameters.fromNameAndType(
                                Trees.COUNTS, QueryableStoreTypes.<String, Long>keyValueStore())
                        .withPartition(partition))
                .get(word);
        return (count == null ? 0 : count) + "\n";
    }

    private String windows(String word, int partition) {
        StringBuilder lines = new StringBuilder();
        var store = streams.store(StoreQueryParameters.fromNameAndType(
                        Trees.WINDOWS, QueryableStoreTypes.<String, Long>windowStore())
                .withPartition(partition));
        try (var windows = store.fetch(word, Instant.EPOCH, Instant.ofEpochMilli(Long.MAX_VALUE))) {
            windows.forEachRemaining(
                    window -> lines.append(window.key).append(' ').append(window.value).append('\n'));
        }
        return lines.toString();
    }

    private String counts(String from, String to) {
        StringBuilder lines = new StringBuilder();
        var store = streams.store(StoreQueryParameters.fromNameAndType(
                Trees.COUNTS, QueryableStoreTypes.<String, Long>keyValueStore()));
        try (var counts = from == null ? store.all() : store.range(from, to)) {
            counts.forEachRemaining(
                    count -> lines.append(count.key).append(' ').append(count.value).append('\n'));
        }
        return lines.toString();
    }
}
