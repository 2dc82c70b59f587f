package forrest.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import forrest.RangeIterator;
import forrest.Reads;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.VersionedKeyQuery;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Versioned stores: what is kept, dropped and found again, queries, and a table of the DSL. */
class VersionedStoreTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 3);
    private static final QueryConfig PLAIN = new QueryConfig(false);

    @TempDir
    File directory;

    private ForrestVersionedStore open(long retention, long interval) {
        return open(retention, interval, StreamsConfig.AT_LEAST_ONCE);
    }

    private ForrestVersionedStore open(long retention, long interval, String guarantee) {
        Properties settings = StreamsTestUtils.getStreamsConfig(Serdes.ByteArray(), Serdes.ByteArray());
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        ForrestVersionedStore store = new ForrestVersionedStore("store", retention, interval);
        store.init(new InternalMockProcessorContext<>(directory, new StreamsConfig(settings)), store);
        return store;
    }

    private static Bytes key(String text) {
        return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    private static byte[] value(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static long count(Reads reads) {
        long count = 0;
        try (RangeIterator range = reads.range(null, null)) {
            while (range.hasNext()) {
                range.next();
                count++;
            }
        }
        return count;
    }

    /** The example of {@link VersionKeys}. */
    @Test
    void theLayoutIsThatOfTheExample() {
        byte[] version = VersionKeys.version(value("a"), 5);
        assertEquals("6100007ffffffffffffffa", HexFormat.of().formatHex(version));
        assertEquals(5, VersionKeys.time(version));
        byte[] stored = VersionKeys.stored(value("x"));
        assertEquals("0178", HexFormat.of().formatHex(stored));
        assertArrayEquals(value("x"), VersionKeys.value(stored));
        assertTrue(VersionKeys.isTombstone(VersionKeys.stored(null)));
        assertEquals("000000000000000761", HexFormat.of().formatHex(VersionKeys.expiry(7, value("a"))));
        assertArrayEquals(value("a"), VersionKeys.keyOfExpiry(VersionKeys.expiry(7, value("a"))));
    }

    @Test
    void oldVersionsLeaveTheStoreAndTheNewestStays() {
        ForrestVersionedStore store = open(100, 10);
        for (long time = 0; time < 50; time++) {
            store.put(key("oak"), value("oak" + time), time);
        }
        store.put(key("ash"), value("ash"), 7);
        store.put(key("elm"), value("elm"), 8);
        store.delete(key("elm"), 9);
        assertEquals(53, count(store.data.keyspace));
        // Puts of another key do the work.
        for (long time = 1_000; time < 1_400; time++) {
            store.put(key("yew"), value("yew"), time);
        }
        assertEquals(1_399, store.get(key("yew")).timestamp());
        assertArrayEquals(value("oak49"), store.get(key("oak")).value());
        assertArrayEquals(value("ash"), store.get(key("ash"), 7).value());
        assertNull(store.get(key("oak"), 10));
        assertNull(store.get(key("elm")));
        // The newest of oak and ash, and those of yew that are not old.
        long left = count(store.data.keyspace);
        assertTrue(left >= 103 && left < 103 + 90, left + " versions");
        store.close();
    }

    @Test
    void versionsOffsetsAndStreamTimeStayOverARestart() {
        ForrestVersionedStore store = open(100, 10);
        store.put(key("oak"), value("1"), 10);
        store.put(key("oak"), value("2"), 200);
        store.put(key("oak"), value("1.5"), 150);
        store.commit(Map.of(CHANGELOG, 17L));
        store.close();
        assertThrows(InvalidStateStoreException.class, () -> store.get(key("oak")));
        assertThrows(InvalidStateStoreException.class, () -> store.put(key("oak"), value("3"), 300));
        ForrestVersionedStore again = open(100, 10, StreamsConfig.EXACTLY_ONCE_V2);
        assertEquals(17, again.committedOffset(CHANGELOG));
        VersionedRecord<byte[]> found = again.get(key("oak"), 199);
        assertArrayEquals(value("1.5"), found.value());
        assertEquals(150, found.timestamp());
        assertEquals(200, found.validTo().get());
        // Older than the retention, as before.
        assertEquals(VersionedKeyValueStore.PUT_RETURN_CODE_NOT_PUT, again.put(key("oak"), value("0"), 99));
        again.close();
        ProcessorStateException refused = assertThrows(ProcessorStateException.class, () -> open(100, 20));
        assertTrue(refused.getMessage().contains("segments of 10 ms"), refused.getMessage());
    }

    /** A record is older than the retention as of the changelog, not as of what a deleted directory had. */
    @Test
    void aRestoreAfterTheDirectoryWasDeletedKeepsTheNewest() throws IOException {
        ForrestVersionedStore store = new ForrestVersionedStore("store", 1_000, 100);
        List<ConsumerRecord<byte[], byte[]>> changelog = List.of(record("k", 100), record("j", 1_000_000));
        for (int round = 0; round < 2; round++) {
            var context = new InternalMockProcessorContext<>(directory, new StreamsConfig(StreamsTestUtils.getStreamsConfig()));
            store.init(context, store);
            context.restoreWithHeaders("store", changelog);
            assertArrayEquals(value("k"), store.get(key("k")).value(), "round " + round);
            assertArrayEquals(value("j"), store.get(key("j")).value(), "round " + round);
            store.close();
            StateStoreTest.delete(directory);
        }
    }

    private static ConsumerRecord<byte[], byte[]> record(String key, long time) {
        return new ConsumerRecord<>(
                "changelog",
                3,
                time,
                time,
                TimestampType.CREATE_TIME,
                -1,
                -1,
                value(key),
                value(key),
                new RecordHeaders(),
                Optional.empty());
    }

    @Test
    void queriesSeeBoundsAndTheMomentTheyWereMade() {
        ForrestVersionedStore store = open(1_000, 10);
        for (int time = 10; time <= 50; time += 10) {
            store.put(key("oak"), time == 30 ? null : value("oak" + time), time);
        }
        VersionedKeyQuery<Bytes, byte[]> one = VersionedKeyQuery.withKey(key("oak"));
        QueryResult<VersionedRecord<byte[]>> result =
                store.query(one.asOf(Instant.ofEpochMilli(25)), PositionBound.unbounded(), PLAIN);
        assertArrayEquals(value("oak20"), result.getResult().value());
        MultiVersionedKeyQuery<Bytes, byte[]> several = MultiVersionedKeyQuery.withKey(key("oak"));
        several = several.fromTime(Instant.ofEpochMilli(15)).toTime(Instant.ofEpochMilli(40));
        QueryResult<VersionedRecordIterator<byte[]>> versions =
                store.query(several.withAscendingTimestamps(), PositionBound.unbounded(), new QueryConfig(true));
        assertTrue(versions.getExecutionInfo().get(0).contains("ForrestVersionedStore"));
        store.put(key("oak"), value("late"), 15);
        List<String> found = new ArrayList<>();
        versions.getResult().forEachRemaining(version -> found.add(version.timestamp() + " " + version.validTo()));
        assertEquals(List.of("10 Optional[20]", "20 Optional[30]", "40 Optional[50]"), found);
        versions.getResult().close();
        assertThrows(IllegalStateException.class, () -> versions.getResult().hasNext());
        Position unseen = Position.emptyPosition().withComponent("input", 0, 9);
        assertTrue(store.query(several, PositionBound.at(unseen), PLAIN).isFailure());
        store.close();
    }

    @Test
    void suppliersCheckWhatTheyGet() {
        Duration hour = Duration.ofHours(1);
        assertEquals(3_600_000, ForrestStores.persistentVersionedKeyValueStore("a", hour).historyRetentionMs());
        assertThrows(
                NullPointerException.class, () -> ForrestStores.persistentVersionedKeyValueStore(null, hour));
        assertThrows(
                IllegalArgumentException.class,
                () -> ForrestStores.persistentVersionedKeyValueStore("a", Duration.ofMillis(-1)));
        assertThrows(
                IllegalArgumentException.class,
                () -> ForrestStores.persistentVersionedKeyValueStore("a", hour, Duration.ZERO));
    }

    /** A stream finds the price of its own time in a versioned table. */
    @Test
    void aTableOfTheDslIsVersioned() {
        StreamsBuilder builder = new StreamsBuilder();
        var text = Serdes.String();
        KTable<String, String> prices = builder.table(
                "prices",
                Consumed.with(text, text),
                Materialized.as(ForrestStores.persistentVersionedKeyValueStore("prices", Duration.ofHours(1))));
        builder.stream("orders", Consumed.with(text, text))
                .join(prices, (order, price) -> order + " at " + price)
                .to("bills");
        Properties settings = StreamsTestUtils.getStreamsConfig(text, text);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory.getPath());
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(settings), settings)) {
            var price = driver.createInputTopic("prices", text.serializer(), text.serializer());
            var orders = driver.createInputTopic("orders", text.serializer(), text.serializer());
            var bills = driver.createOutputTopic("bills", text.deserializer(), text.deserializer());
            price.pipeInput("oak", "5", 1_000);
            price.pipeInput("oak", "7", 3_000);
            price.pipeInput("oak", "6", 2_000);
            orders.pipeInput("oak", "a", 1_500);
            orders.pipeInput("oak", "b", 2_999);
            orders.pipeInput("oak", "c", 9_000);
            assertEquals(List.of("a at 5", "b at 6", "c at 7"), bills.readValuesToList());
            VersionedKeyValueStore<String, String> store = driver.getVersionedKeyValueStore("prices");
            assertEquals("6", store.get("oak", 2_500).value());
        }
    }
}
