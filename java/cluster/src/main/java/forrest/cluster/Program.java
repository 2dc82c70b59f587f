package forrest.cluster;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** A program in a process of its own, which can be killed and started again. Its output is appended to a file. */
final class Program {
    private static final Set<Process> RUNNING = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(Program::killAll));
    }

    final String name;
    private final List<String> command;
    final Path log;
    private volatile Process process;

    /** A program of Java, with options of the runtime. */
    Program(String name, Path logs, List<String> options, String classpath, List<String> arguments) {
        this.name = name;
        log = logs.resolve(name.replace(' ', '-') + ".log");
        command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        command.addAll(options);
        command.addAll(List.of("-cp", classpath));
        command.add(Child.class.getName());
        command.addAll(arguments);
    }

    /** The options of a program that shares few cores with others, and starts often. */
    static List<String> small(int heapMegabytes) {
        return List.of("-Xmx" + heapMegabytes + "m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1");
    }

    void start() throws IOException {
        process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
                .start();
        RUNNING.add(process);
    }

    /** Kills it by SIGKILL and waits for its end. Returns the process's number. */
    long kill() throws InterruptedException {
        long pid = process.pid();
        process.destroyForcibly();
        if (!process.waitFor(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException(name + " (process " + pid + ") does not end");
        }
        RUNNING.remove(process);
        return pid;
    }

    /** Waits for the end of a program that ends by itself. */
    void finish(int seconds) throws InterruptedException {
        if (!process.waitFor(seconds, TimeUnit.SECONDS)) {
            throw new IllegalStateException(name + " did not end in " + seconds + " s; see " + log);
        }
        RUNNING.remove(process);
        if (process.exitValue() != 0) {
            throw new IllegalStateException(name + " failed with code " + process.exitValue() + "; see " + log);
        }
    }

    /** Throws if it ended by itself. */
    void check() {
        if (process != null && RUNNING.contains(process) && !process.isAlive()) {
            throw new IllegalStateException(
                    name + " ended by itself with code " + process.exitValue() + "; see " + log);
        }
    }

    static void killAll() {
        RUNNING.forEach(Process::destroyForcibly);
    }

    /** Ends all processes. Consumers and producers of this one may wait for a broker that is gone. */
    static void end(int code) {
        killAll();
        System.out.flush();
        Runtime.getRuntime().halt(code);
    }
}
