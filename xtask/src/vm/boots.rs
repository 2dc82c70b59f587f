//! Which machines are booted, and for which checks.

/// The command that does it.
pub(crate) const NAME: &str = "vm";

/// One boot.
pub(super) struct Boot {
    pub(super) name: &'static str,
    pub(super) count: u32,
    /// Memory nodes.
    pub(super) nodes: u32,
    pub(super) gibibytes: u32,
    pub(super) parameters: &'static str,
}

pub(super) const BOOTS: &[Boot] = &[
    // The one with time for a million random calls. With two processors, each of the races takes longer.
    Boot {
        name: "plain",
        count: 2,
        nodes: 2,
        gibibytes: 1,
        parameters: "loads=200 races=20 hostile_calls=1000000",
    },
    // Every object of every slab is poisoned, fenced and looked at. And one processor: unloading waits for all of
    // them, which is what a thousand times would mostly do.
    Boot {
        name: "slab-debugging",
        count: 1,
        nodes: 1,
        gibibytes: 1,
        parameters: "slub_debug=FZPU loads=1000",
    },
];
/// The one in which the library and the command line use the module.
pub(super) const CLIENT: Boot =
    Boot { name: "client", count: 2, nodes: 1, gibibytes: 1, parameters: "client=1" };

/// The one in which stores lie on huge pages. It needs no module.
pub(super) const HUGE: Boot = Boot {
    name: "huge",
    count: 1,
    nodes: 1,
    gibibytes: 3,
    parameters: "huge=1 hugepagesz=1G hugepages=1 hugepagesz=2M hugepages=0",
};

/// That of the other machine, `--debug`: everything is checked, and each call is one of a debugger's, so less is done.
pub(super) const DEBUG: Boot = Boot {
    name: "debug",
    count: 1,
    nodes: 1,
    gibibytes: 1,
    parameters: "seconds=600 loads=100 opens=500 stores=200 keys=20000 races=20 attaches=100 asks=300 \
        hostile_calls=10000",
};
