package forrest;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** How the native library is loaded, and what is thrown where it cannot be. Each test has a process of its own. */
class LibraryTest {
    @TempDir
    Path directory;

    /** Opens a store twice, because only the first call loads the library. Prints what is thrown. */
    static final class Opening {
        private Opening() {}

        public static void main(String[] arguments) {
            for (int i = 0; i < 2; i++) {
                try (Store store = Store.open("memory:")) {
                    store.keyspace().put(new byte[] {1}, new byte[] {2});
                    System.out.println("opened by " + Store.version());
                } catch (Throwable e) {
                    System.out.println(e);
                }
            }
        }
    }

    /** Runs the class above with options, and the empty directory for temporary files. Returns the lines it prints. */
    private List<String> open(String... options) throws Exception {
        // What emulates another processor names its Java there.
        String java = System.getenv("FORREST_JAVA");
        List<String> command = new ArrayList<>();
        command.add(java != null ? java : Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-Djava.io.tmpdir=" + directory);
        command.addAll(List.of(options));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), Opening.class.getName()));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor(), printed);
        List<String> lines = printed.lines().toList();
        assertEquals(2, lines.size(), printed);
        assertEquals(lines.get(0), lines.get(1));
        return lines;
    }

    private void assertNoFileIsLeft() throws Exception {
        try (Stream<Path> files = Files.list(directory)) {
            assertEquals(List.of(), files.toList());
        }
    }

    @Test
    void theLibraryLeavesNoFile() throws Exception {
        assertEquals("opened by " + Store.version(), open().get(0));
        assertNoFileIsLeft();
    }

    @Test
    void aProcessorWithoutALibraryIsNamed() throws Exception {
        String thrown = open("-Dos.arch=riscv64").get(0);
        assertTrue(thrown.startsWith("java.lang.UnsatisfiedLinkError: "), thrown);
        assertTrue(thrown.contains("no library for linux-riscv64"), thrown);
        assertTrue(thrown.contains("forrest.library"), thrown);
        assertNoFileIsLeft();
    }

    @Test
    void aLibraryOfAnotherProcessorIsRefused() throws Exception {
        String here = System.getProperty("os.arch").replace("amd64", "x86_64");
        Path library = directory.resolve("riscv64.so");
        try (InputStream built = Store.class.getResourceAsStream("native/linux-" + here + "/libforrest_jni.so")) {
            assumeTrue(built != null, "the classes have no library for " + here);
            byte[] bytes = built.readAllBytes();
            // The processor in the head of an ELF file: RISC-V.
            bytes[18] = (byte) 0xf3;
            Files.write(library, bytes);
        }
        String thrown = open("-Dforrest.library=" + library).get(0);
        assertTrue(thrown.startsWith("java.lang.UnsatisfiedLinkError: "), thrown);
        assertTrue(thrown.contains(library.toString()), thrown);
    }

    @Test
    void aDirectoryThatIsMissingIsNamed() throws Exception {
        String thrown = open("-Dforrest.directory=" + directory.resolve("nowhere")).get(0);
        assertTrue(thrown.startsWith("java.lang.UnsatisfiedLinkError: "), thrown);
        assertTrue(thrown.contains("nowhere"), thrown);
        assertTrue(thrown.contains("forrest.directory"), thrown);
    }
}
