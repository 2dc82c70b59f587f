/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Abseil's flat table and its B-tree. */

#include "peer.hh"
#include "peers.hh"

#include <absl/base/config.h>
#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#define RELEASE PEERS_TEXT(ABSL_LTS_RELEASE_VERSION)

namespace {
/* Abseil may be built with a string_view of its own, which alone its hash knows. */
struct Asked : peers::Shape<kvbench_bytes> {
	static absl::string_view asked(kvbench_bytes cell) { return {static_cast<const char *>(cell.data), cell.size}; }
};

using Tree = peers::Peer<absl::btree_map<uint64_t, uint64_t>, uint64_t>;
using StringTree = peers::Peer<absl::btree_map<std::string, std::string, std::less<>>, kvbench_bytes>;
using Flat = peers::Peer<absl::flat_hash_map<uint64_t, uint64_t>, uint64_t>;
using StringFlat = peers::Peer<absl::flat_hash_map<std::string, std::string>, kvbench_bytes, Asked>;

constexpr auto tree = Tree::ordered();
constexpr auto string_tree = StringTree::ordered();
constexpr auto flat = Flat::hashed();
constexpr auto string_flat = StringFlat::hashed();
} // namespace

const kvbench_subject peers::absl_btree = {
	KVBENCH_ABI, KVBENCH_ORDERED, "absl-btree", "C++ absl::btree_map of Abseil " RELEASE "; strings: std::string", &tree, &string_tree,
};
const kvbench_subject peers::absl_flat = {
	KVBENCH_ABI, 0, "absl-flat", "C++ absl::flat_hash_map of Abseil " RELEASE "; strings: std::string", &flat, &string_flat,
};
