package example;

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/**
 * One instance of the application. Start several, each with a port and a state directory of its own; they divide the
 * work, and one takes over what another one leaves.
 *
 * <pre>
 * java -cp CLASSPATH example.Application BROKERS STATE_DIRECTORY PORT [SETTING=VALUE...]
 * </pre>
 */
public final class Application {
    private Application() {}

    /** Runs until the process is ended. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 3) {
            System.err.println("usage: example.Application BROKERS STATE_DIRECTORY PORT [SETTING=VALUE...]");
            System.exit(2);
        }
        int port = Integer.parseInt(arguments[2]);
        Properties settings = settings(arguments[0], arguments[1], port);
        for (int i = 3; i < arguments.length; i++) {
            String[] pair = arguments[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }

        KafkaStreams streams = new KafkaStreams(Trees.topology(settings), settings);
        Queries queries = new Queries(streams, port);
        // A thread that fails is replaced; the process keeps its other tasks.
        streams.setUncaughtExceptionHandler(failure -> {
            System.err.println("a stream thread failed and is replaced: " + failure);
            failure.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        // Stores that are closed need not be restored at the next start.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            queries.close();
            streams.close(Duration.ofSeconds(30));
        }));
        queries.start();
        streams.start();
    }

    private static Properties settings(String brokers, String stateDirectory, int port) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "trees");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, stateDirectory);
        // Where the other instances ask for what this one has.
        settings.put(StreamsConfig.APPLICATION_SERVER_CONFIG, "localhost:" + port);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        // The line that makes Forrest the store of every operator.
        settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, "forrest.kafka.ForrestDslStoreSuppliers");
        settings.put("forrest.memory.bytes", Long.toString(128L << 20));
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        // A second instance keeps a copy of each store, and takes over at once.
        settings.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, 1);
        return settings;
    }
}
