package forrest;

/** What a change survives when the call that made it returns. */
public enum Durability {
    /** It is applied. The end of the process may lose it. */
    MEMORY,
    /** The operating system has it. It survives the end of the process. */
    BUFFERED,
    /** The device reported it stored, with all that came before it. It survives power loss. */
    SYNC
}
