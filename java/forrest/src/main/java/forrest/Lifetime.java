package forrest;

/** Whether a store or snapshot is open, for iterators, which have pairs of their own to return. */
final class Lifetime {
    private final Lifetime within;
    private volatile boolean isOver;

    /** One that ends by itself, or with another one; null for none. */
    Lifetime(Lifetime within) {
        this.within = within;
    }

    void end() {
        isOver = true;
    }

    boolean isOver() {
        return isOver || within != null && within.isOver();
    }
}
