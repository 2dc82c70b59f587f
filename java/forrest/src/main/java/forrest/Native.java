package forrest;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * The native methods, which crates/forrest-jni implements, and how their library is loaded.
 *
 * <p>The library is in the jar. It is copied to the directory for temporary files, loaded, and deleted at once, so that
 * no file is left, whatever happens to the process later. The system property {@code forrest.library} names a file to
 * load in its place; {@code forrest.directory} names another directory to copy to, if programs may not be run from the
 * usual one.
 *
 * <p>The jar has a library for each system and processor that {@code cargo xtask java} builds for. If there is none for
 * this one, or it cannot be loaded, {@link #demand()} says so each time.
 */
final class Native {
    static final int CREATE = 1;
    static final int READ_ONLY = 2;
    static final int BACKWARD = 1;
    static final int CLOSED = 2;
    static final int FIRST = 4;

    /** Why the library is not loaded; null if it is. */
    private static final UnsatisfiedLinkError FAILURE = failure();

    private Native() {}

    /**
     * To be called before the first native method.
     *
     * @throws UnsatisfiedLinkError if the library could not be loaded. The virtual machine itself would throw the reason
     *     only once, and at later calls that this class could not be initialized.
     */
    static void demand() {
        if (FAILURE != null) {
            UnsatisfiedLinkError error = new UnsatisfiedLinkError(FAILURE.getMessage());
            error.initCause(FAILURE);
            throw error;
        }
    }

    private static UnsatisfiedLinkError failure() {
        try {
            load();
            return null;
        } catch (UnsatisfiedLinkError e) {
            return e;
        }
    }

    private static void load() {
        String given = System.getProperty("forrest.library");
        if (given != null) {
            System.load(Path.of(given).toAbsolutePath().toString());
            return;
        }
        String name = "native/" + platform() + "/libforrest_jni.so";
        try (InputStream library = Native.class.getResourceAsStream(name)) {
            if (library == null) {
                throw new UnsatisfiedLinkError("forrest has no library for " + platform()
                        + " in this jar; build it there (cargo build --profile dist -p forrest-jni) and name the file in"
                        + " the system property forrest.library");
            }
            String directory = System.getProperty("forrest.directory", System.getProperty("java.io.tmpdir"));
            Path copy = Files.createTempFile(Path.of(directory), "forrest", ".so");
            try {
                Files.copy(library, copy, StandardCopyOption.REPLACE_EXISTING);
                System.load(copy.toAbsolutePath().toString());
            } finally {
                Files.delete(copy);
            }
        } catch (IOException e) {
            UnsatisfiedLinkError error = new UnsatisfiedLinkError("forrest cannot copy its library to load it: " + e
                    + "; name a directory in the system property forrest.directory");
            error.initCause(e);
            throw error;
        }
    }

    /** The system and processor, as directories in the jar are named. */
    private static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        return system + "-" + (processor.equals("amd64") ? "x86_64" : processor);
    }

    static native String version();

    static native long open(
            String url,
            long memoryBytes,
            int workers,
            long largeValues,
            int durability,
            String compression,
            int flags);

    static native boolean close(long store);

    static native long keyspace(long store, String name);

    static native long snapshot(long store);

    static native long snapshotKeyspace(long snapshot, String name);

    static native void closeSnapshot(long store, long snapshot);

    static native byte[] get(long view, byte[] key);

    static native void put(long view, byte[] key, byte[] value);

    static native boolean compareAndSwap(long view, byte[] key, byte[] from, byte[] to);

    static native byte[] putIfAbsent(long view, byte[] key, byte[] value);

    static native byte[] remove(long view, byte[] key);

    static native void write(long store, byte[] changes, int length, long[] views, int durability);

    static native void deleteRange(long view, byte[] from, byte[] to);

    static native byte[] range(long view, byte[] from, byte[] to, int flags, int pageBytes);

    static native byte[] page(long range, int pageBytes);

    static native void closeRange(long range);

    static native long approximate(long view, byte[] from, byte[] to);

    static native void sync(long store);

    static native void setMemory(long store, long memoryBytes);

    static native void checkpoint(long store, String path);

    static native long[] stats(long store);
}
