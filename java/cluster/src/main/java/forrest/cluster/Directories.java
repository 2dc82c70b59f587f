package forrest.cluster;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Stream;

/** What is done with whole directories. */
final class Directories {
    private Directories() {}

    /** All that is in a directory, itself included, each directory before its content. Empty if there is none. */
    static List<Path> paths(Path directory) throws IOException {
        if (!Files.exists(directory)) {
            return List.of();
        }
        try (Stream<Path> found = Files.walk(directory)) {
            return new ArrayList<>(found.toList());
        }
    }

    static void delete(Path directory) throws IOException {
        List<Path> paths = new ArrayList<>(paths(directory));
        Collections.reverse(paths);
        for (Path path : paths) {
            Files.deleteIfExists(path);
        }
    }

    /** The bytes of all files. */
    static long bytes(Path directory) throws IOException {
        return paths(directory).stream()
                .filter(Files::isRegularFile)
                .mapToLong(Directories::size)
                .sum();
    }

    private static long size(Path file) {
        try {
            return Files.size(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
