package forrest;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The plain API: what it does, a model of it under random operations, and misuse, which throws and never crashes. */
class StoreTest {
    @TempDir
    Path directory;

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] bytes(int number) {
        return ByteBuffer.allocate(4).putInt(number).array();
    }

    private static List<String> keys(RangeIterator range) {
        try (range) {
            List<String> keys = new ArrayList<>();
            range.forEachRemaining(entry -> keys.add(new String(entry.key(), StandardCharsets.UTF_8)));
            return keys;
        }
    }

    private String url() {
        return directory.resolve("store").toString();
    }

    @Test
    void pairsBatchesRangesAndSnapshots() {
        try (Store store = Store.open(url())) {
            Keyspace trees = store.keyspace();
            Keyspace other = store.keyspace("other");
            trees.put(bytes("oak"), bytes("1"));
            trees.put(bytes(""), bytes(""));
            assertArrayEquals(bytes(""), trees.get(bytes("")));
            assertArrayEquals(bytes("1"), trees.putIfAbsent(bytes("oak"), bytes("2")));
            assertNull(trees.putIfAbsent(bytes("ash"), bytes("2")));
            assertTrue(trees.compareAndSwap(bytes("ash"), bytes("2"), bytes("3")));
            assertFalse(trees.compareAndSwap(bytes("ash"), bytes("2"), null));
            try (Snapshot snapshot = store.snapshot()) {
                store.write(new WriteBatch()
                        .put(trees, bytes("elm"), bytes("4"))
                        .delete(trees, bytes(""))
                        .put(other, bytes("x"), bytes("y")));
                assertEquals(List.of("ash", "elm", "oak"), keys(trees.range(null, null)));
                assertEquals(List.of("elm", "ash"), keys(trees.reverseClosed(bytes("ash"), bytes("elm"))));
                assertEquals(List.of("ash"), keys(trees.reverse(bytes("ash"), bytes("elm"))));
                assertEquals(List.of("oak"), keys(trees.prefix(bytes("o"))));
                assertEquals(List.of("", "ash", "oak"), keys(snapshot.range(null, null)));
                assertNull(snapshot.keyspace("other").get(bytes("x")));
            }
            assertArrayEquals(bytes("1"), trees.remove(bytes("oak")));
            assertNull(trees.remove(bytes("oak")));
            trees.deleteRange(bytes("a"), bytes("b"));
            assertEquals(List.of("elm"), keys(trees.range(null, null)));
            store.sync();
            store.checkpoint(directory.resolve("copy"));
            assertTrue(trees.approximateCount(null, null) >= 1);
        }
        try (Store store = new Store.Options().create(false).readOnly(true).open(url())) {
            assertArrayEquals(bytes("4"), store.keyspace().get(bytes("elm")));
        }
    }

    @Test
    void largeValuesAreRead() {
        byte[] large = new byte[100_000];
        Arrays.fill(large, (byte) 7);
        for (long from : new long[] {0, 64, 1 << 20}) {
            try (Store store = new Store.Options().largeValues(from).open(url())) {
                store.keyspace().put(bytes("from " + from), large);
            }
        }
        try (Store store = Store.open(url())) {
            for (long from : new long[] {0, 64, 1 << 20}) {
                assertArrayEquals(large, store.keyspace().get(bytes("from " + from)));
            }
        }
        assertThrows(IllegalArgumentException.class, () -> new Store.Options().largeValues(-1));
        assertThrows(IllegalArgumentException.class, () -> new Store.Options().largeValues(63).open(url()));
    }

    @Test
    void randomOperationsDoWhatATreeMapDoes() {
        long seed = System.nanoTime();
        Random random = new Random(seed);
        TreeMap<byte[], byte[]> model = new TreeMap<>(Arrays::compareUnsigned);
        try (Store store = new Store.Options().memoryBytes(8 << 20).open(url())) {
            Keyspace keyspace = store.keyspace();
            for (int i = 0; i < 300; i++) {
                WriteBatch batch = new WriteBatch();
                for (int change = random.nextInt(200); change > 0; change--) {
                    byte[] key = bytes(random.nextInt(5000));
                    if (random.nextInt(4) == 0) {
                        batch.delete(keyspace, key);
                        model.remove(key);
                    } else {
                        byte[] value = new byte[random.nextInt(300)];
                        random.nextBytes(value);
                        batch.put(keyspace, key, value);
                        model.put(key, value);
                    }
                }
                store.write(batch);
                byte[] from = bytes(random.nextInt(5000));
                byte[] to = bytes(random.nextInt(5000));
                boolean isEmpty = Arrays.compareUnsigned(from, to) >= 0;
                same(isEmpty ? Map.of() : model.subMap(from, to), keyspace.range(from, to), seed);
                same(
                        isEmpty ? Map.of() : model.subMap(from, true, to, true).descendingMap(),
                        isEmpty ? keyspace.reverse(from, to) : keyspace.reverseClosed(from, to),
                        seed);
                assertEnd(isEmpty ? null : model.subMap(from, true, to, false).firstEntry(), keyspace.first(from, to), seed);
                assertEnd(isEmpty ? null : model.subMap(from, true, to, false).lastEntry(), keyspace.last(from, to), seed);
            }
            same(model, keyspace.range(null, null), seed);
        }
    }

    private static void assertEnd(Map.Entry<byte[], byte[]> expected, Entry found, long seed) {
        assertEquals(expected == null, found == null, "seed " + seed);
        if (expected != null) {
            assertArrayEquals(expected.getKey(), found.key(), "seed " + seed);
            assertArrayEquals(expected.getValue(), found.value(), "seed " + seed);
        }
    }

    private static void same(Map<byte[], byte[]> expected, RangeIterator range, long seed) {
        try (range) {
            for (Map.Entry<byte[], byte[]> pair : expected.entrySet()) {
                Entry entry = range.next();
                assertArrayEquals(pair.getKey(), entry.key(), "seed " + seed);
                assertArrayEquals(pair.getValue(), entry.value(), "seed " + seed);
            }
            assertFalse(range.hasNext(), "seed " + seed);
        }
    }

    @Test
    void misuseThrows() {
        Store store = Store.open("memory:");
        Keyspace keyspace = store.keyspace();
        for (int i = 0; i < 100_000; i++) {
            keyspace.put(bytes(i), bytes(i));
        }
        RangeIterator closed = keyspace.range(null, null);
        closed.close();
        closed.close();
        assertThrows(IllegalStateException.class, closed::hasNext);
        Snapshot snapshot = store.snapshot();
        RangeIterator ofSnapshot = snapshot.range(null, null);
        snapshot.close();
        snapshot.close();
        assertThrows(IllegalStateException.class, () -> snapshot.get(bytes(1)));
        assertThrows(IllegalStateException.class, () -> keys(ofSnapshot));
        assertThrows(NullPointerException.class, () -> keyspace.get(null));
        assertThrows(NullPointerException.class, () -> keyspace.put(bytes(1), null));
        ForrestException long1 =
                assertThrows(ForrestException.class, () -> keyspace.put(new byte[1 << 16], bytes(1)));
        assertEquals(ForrestException.Kind.LIMIT, long1.kind());
        RangeIterator open = keyspace.range(null, null);
        Snapshot left = store.snapshot();
        store.close();
        store.close();
        assertThrows(IllegalStateException.class, () -> keys(open));
        assertThrows(IllegalStateException.class, () -> left.get(bytes(1)));
        assertThrows(IllegalStateException.class, () -> keyspace.get(bytes(1)));
        assertThrows(IllegalStateException.class, () -> store.keyspace("more"));
        assertThrows(IllegalStateException.class, store::snapshot);
        assertThrows(
                IllegalStateException.class,
                () -> store.write(new WriteBatch().put(keyspace, bytes(1), bytes(1))));
        left.close();
        open.close();
    }

    /** Also where the iterator has pairs that it could return without the library. */
    @Test
    void anIteratorEndsWithItsStoreAndSnapshot() {
        Store store = Store.open("memory:");
        store.keyspace().put(bytes(1), bytes(1));
        store.keyspace().put(bytes(2), bytes(2));
        RangeIterator ofStore = store.keyspace().range(null, null);
        RangeIterator ofOther = store.keyspace("other").range(null, null);
        Snapshot snapshot = store.snapshot();
        Snapshot second = store.snapshot();
        RangeIterator ofSnapshot = snapshot.range(null, null);
        RangeIterator ofSecond = second.keyspace("other").range(null, null);
        snapshot.close();
        assertThrows(IllegalStateException.class, ofSnapshot::next);
        assertArrayEquals(bytes(1), ofStore.next().key());
        assertFalse(ofSecond.hasNext());
        store.close();
        for (RangeIterator range : List.of(ofStore, ofOther, ofSecond)) {
            assertThrows(IllegalStateException.class, range::hasNext);
            assertThrows(IllegalStateException.class, range::next);
            assertThrows(IllegalStateException.class, range::peekKey);
            range.close();
        }
    }

    /** Flips a bit in the value of a key that is in a table. Twice is not at all. */
    private void flip(int key) throws IOException {
        byte[] mark = ByteBuffer.allocate(12).putInt(key).putInt(~key).putInt(key).array();
        try (var files = Files.list(directory.resolve("store"))) {
            for (Path file : files.filter(path -> path.toString().endsWith(".table")).toList()) {
                byte[] content = Files.readAllBytes(file);
                for (int at = 0; at + mark.length <= content.length; at++) {
                    if (Arrays.equals(content, at, at + mark.length, mark, 0, mark.length)) {
                        // In place: an open store may have mapped the file.
                        try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
                            bytes.seek(at + 500);
                            bytes.write(content[at + 500] ^ 1);
                        }
                    }
                }
            }
        }
    }

    /** The pairs of a page that could not be read are lost. Those after it would hide that. */
    @Test
    void aRangeThatCannotBeReadDoesNotGoOn() throws IOException {
        int keys = 20_000;
        byte[] value = new byte[1000];
        try (Store store = new Store.Options().memoryBytes(8 << 20).open(url())) {
            for (int i = 0; i < keys; i++) {
                ByteBuffer.wrap(value).putInt(i).putInt(~i).putInt(i);
                store.keyspace().put(bytes(i), value);
            }
        }
        int damaged = 5_000;
        flip(damaged);
        try (Store store = Store.open(url());
                RangeIterator range = store.keyspace().range(null, null)) {
            int read = 0;
            ForrestException first = null;
            while (first == null) {
                try {
                    assertArrayEquals(bytes(read), range.next().key());
                    read++;
                } catch (ForrestException e) {
                    first = e;
                }
            }
            assertEquals(ForrestException.Kind.CORRUPT, first.kind());
            assertTrue(read > 0 && read <= damaged, read + " pairs");
            // Even where it could be read now.
            flip(damaged);
            assertThrows(ForrestException.class, range::hasNext);
            assertThrows(ForrestException.class, range::next);
            assertThrows(ForrestException.class, range::peekKey);
        }
    }

    @Test
    void keyspacesOfOtherStoresAndHandlesThatNeverWereAreRefused() {
        try (Store one = Store.open("memory:");
                Store two = Store.open("memory:")) {
            WriteBatch batch = new WriteBatch().put(two.keyspace(), bytes(1), bytes(1));
            assertThrows(IllegalArgumentException.class, () -> one.write(batch));
        }
        for (long handle : new long[] {0, -1, Long.MIN_VALUE, Long.MAX_VALUE}) {
            assertThrows(IllegalStateException.class, () -> Native.get(handle, bytes(1)));
            assertThrows(IllegalStateException.class, () -> Native.page(handle, 1));
            assertThrows(IllegalStateException.class, () -> Native.stats(handle));
            assertFalse(Native.close(handle));
            Native.closeRange(handle);
            Native.closeSnapshot(handle, handle);
        }
        try (Store store = Store.open("memory:")) {
            // A snapshot cannot be changed, also not by way of the native methods.
            long view = store.snapshot().view;
            assertThrows(IllegalArgumentException.class, () -> Native.put(view, bytes(1), bytes(1)));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> new WriteBatch()
                            .put(new Keyspace(view, new Lifetime(null)), bytes(1), bytes(1))
                            .write(1, 9));
        }
        byte[] malformed = {1, 0, 0, 0, 0, 9, 0, 0, 0, 9, 1};
        try (Store store = Store.open("memory:")) {
            long[] views = {store.keyspace().view};
            assertThrows(
                    RuntimeException.class, () -> Native.write(0, malformed, malformed.length, views, -1));
        }
    }

    @Test
    void stringsThatAreNoStoreAreRefused() {
        assertThrows(NullPointerException.class, () -> Store.open(null));
        assertThrows(IllegalArgumentException.class, () -> Store.open("nowhere:x"));
        ForrestException missing = assertThrows(
                ForrestException.class, () -> new Store.Options().create(false).open(url()));
        assertEquals(ForrestException.Kind.IO, missing.kind());
        try (Store store = Store.open(url())) {
            assertEquals(0, store.stats().snapshots());
            ForrestException busy = assertThrows(ForrestException.class, () -> Store.open(url()));
            assertEquals(ForrestException.Kind.BUSY, busy.kind());
        }
    }

    @Test
    void closingWaitsForCallsOfOtherThreads() throws InterruptedException {
        for (int round = 0; round < 20; round++) {
            Store store = Store.open("memory:");
            Keyspace keyspace = store.keyspace();
            CountDownLatch running = new CountDownLatch(4);
            List<Throwable> failures = new ArrayList<>();
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < 4; number++) {
                Thread thread = new Thread(() -> {
                    try {
                        for (int i = 0; ; i++) {
                            keyspace.put(bytes(i), bytes(i));
                            keys(keyspace.range(bytes(i / 2), null));
                            if (i == 3) {
                                running.countDown();
                            }
                        }
                    } catch (IllegalStateException e) {
                        running.countDown();
                    } catch (Throwable e) {
                        synchronized (failures) {
                            failures.add(e);
                        }
                        running.countDown();
                    }
                });
                thread.start();
                threads.add(thread);
            }
            running.await();
            store.close();
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(List.of(), failures);
        }
    }
}
