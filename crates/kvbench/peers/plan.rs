//! Which of the peers in C++ can be built: those whose packages are installed. Part of the build script, and of the
//! tests.

/// A file of peers.
#[derive(Debug)]
pub(crate) struct Peers {
    /// The file, without `.cc`. `peers.cc` lists its structures unless `KVBENCH_WITHOUT_` and its name is defined.
    pub(crate) file: &'static str,
    /// The structures in it.
    pub(crate) structures: &'static str,
    /// A header of the library.
    pub(crate) header: &'static str,
    /// Names that pkg-config has for the library, if it is linked and knows it.
    pub(crate) pkg_config: &'static [&'static str],
    /// What else is linked.
    pub(crate) links: &'static [&'static str],
    /// Debian's package.
    pub(crate) package: &'static str,
}

/// All files but `peers.cc`.
pub(crate) const ALL: &[Peers] = &[
    Peers {
        file: "absl",
        structures: "absl-btree, absl-flat",
        header: "absl/container/flat_hash_map.h",
        pkg_config: &["absl_flat_hash_map", "absl_btree"],
        links: &[],
        package: "libabsl-dev",
    },
    Peers {
        file: "boost",
        structures: "boost-flat",
        header: "boost/unordered/unordered_flat_map.hpp",
        pkg_config: &[],
        links: &[],
        package: "libboost1.81-dev",
    },
    Peers {
        file: "cuckoo",
        structures: "libcuckoo",
        header: "libcuckoo/cuckoohash_map.hh",
        pkg_config: &[],
        links: &[],
        package: "libcuckoo-dev",
    },
    Peers {
        file: "judy",
        structures: "judy",
        header: "Judy.h",
        pkg_config: &[],
        links: &["Judy"],
        package: "libjudy-dev",
    },
    Peers {
        file: "robin",
        structures: "robin-map",
        header: "tsl/robin_map.h",
        pkg_config: &[],
        links: &[],
        package: "robin-map-dev",
    },
    Peers {
        file: "std",
        structures: "std-map, std-hash",
        header: "unordered_map",
        pkg_config: &[],
        links: &[],
        package: "g++",
    },
    Peers {
        file: "tbb",
        structures: "tbb-hash",
        header: "tbb/concurrent_hash_map.h",
        pkg_config: &["tbb"],
        links: &[],
        package: "libtbb-dev",
    },
];

/// The peers that can be built, each with what `find` found of its packages, and for each missing package a line. All
/// lines are returned at once, so that one command installs what they name.
pub(crate) fn plan<T>(find: impl Fn(&Peers) -> Option<T>) -> (Vec<(&'static Peers, T)>, Vec<String>) {
    let (mut built, mut lines) = (Vec::new(), Vec::new());
    for peers in ALL {
        match find(peers) {
            Some(found) => built.push((peers, found)),
            None => lines.push(format!(
                "left out: {}: the package {} is missing ({})",
                peers.structures, peers.package, peers.header
            )),
        }
    }
    (built, lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_package_has_a_line_and_the_others_are_built() {
        let (built, lines) = plan(|peers| (!["absl", "judy"].contains(&peers.file)).then_some(()));
        assert_eq!(built.len(), ALL.len() - 2);
        assert_eq!(
            lines,
            [
                "left out: absl-btree, absl-flat: the package libabsl-dev is missing (absl/container/flat_hash_map.h)",
                "left out: judy: the package libjudy-dev is missing (Judy.h)",
            ]
        );
        let (built, lines) = plan(|_| None::<()>);
        assert!(built.is_empty() && lines.len() == ALL.len());
    }

    #[test]
    fn no_library_is_linked_twice() {
        let libraries = |peers: &Peers| [peers.pkg_config, peers.links].concat();
        let mut all: Vec<_> = ALL.iter().flat_map(libraries).collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn every_file_of_peers_is_in_the_plan() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let all = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = all
            .filter(|path| path.extension().is_some_and(|kind| kind == "cc"))
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .filter(|file| file != "peers")
            .collect();
        files.sort();
        assert_eq!(files, ALL.iter().map(|peers| peers.file).collect::<Vec<_>>());
        // Each has its place in the list, under a condition of its own.
        let list = std::fs::read_to_string(folder.join("peers.cc")).unwrap();
        for peers in ALL.iter().filter(|peers| peers.file != "std") {
            let condition = format!("#ifndef KVBENCH_WITHOUT_{}\n", peers.file.to_uppercase());
            assert!(list.contains(&condition), "{condition}");
        }
    }
}
