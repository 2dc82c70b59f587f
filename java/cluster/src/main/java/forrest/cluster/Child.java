package forrest.cluster;

import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;

/**
 * Runs another program's {@code main} in this process, and ends with the process that started it: that one holds the
 * other end of the standard input, so that even its death by a signal closes it.
 */
final class Child {
    private Child() {}

    public static void main(String[] arguments) throws ReflectiveOperationException {
        InputStream starter = System.in;
        Thread watch = new Thread(() -> {
            try {
                while (starter.read() >= 0) {
                    // The starter writes nothing.
                }
            } catch (IOException e) {
                // The same as its end.
            }
            Runtime.getRuntime().halt(3);
        });
        watch.setDaemon(true);
        watch.start();
        Class.forName(arguments[0])
                .getMethod("main", String[].class)
                .invoke(null, (Object) Arrays.copyOfRange(arguments, 1, arguments.length));
    }
}
