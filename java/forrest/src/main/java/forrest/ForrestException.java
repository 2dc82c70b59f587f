package forrest;

import java.util.Arrays;

/** A store could not do what it was asked. The message begins with the {@link #kind()}. */
public final class ForrestException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final Kind kind;

    /** What went wrong, and so what to do. */
    public enum Kind {
        /** The operating system refused a call. The store is unchanged. */
        IO("input/output"),
        /** Stored bytes are damaged; the message names file and offset. */
        CORRUPT("corrupt"),
        /** A key, value, name or batch exceeds a limit. */
        LIMIT("limit exceeded"),
        /** The memory, the disk or the file descriptors are used up. */
        OUT_OF_SPACE("out of space"),
        /** Another process or store object has the files open. Try again later. */
        BUSY("busy"),
        /** This home does not have the feature, or the files are of another version. */
        UNSUPPORTED("unsupported"),
        /** An earlier failure made the store refuse all writes. Open it again. */
        STOPPED("stopped"),
        /** Anything else; the message says what. */
        OTHER("");

        private final String words;

        Kind(String words) {
            this.words = words;
        }
    }

    /** Called by the library. */
    ForrestException(String message) {
        super(message);
        this.kind = Arrays.stream(Kind.values())
                .filter(kind -> message.startsWith(kind.words))
                .findFirst()
                .orElse(Kind.OTHER);
    }

    /** What went wrong. */
    public Kind kind() {
        return kind;
    }
}
