/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The maps of the C++ standard library. */

#include "peer.hh"
#include "peers.hh"

#include <map>
#include <unordered_map>

#define RELEASE PEERS_TEXT(_GLIBCXX_RELEASE)

namespace {
using Map = peers::Peer<std::map<uint64_t, uint64_t>, uint64_t>;
using StringMap = peers::Peer<std::map<std::string, std::string, std::less<>>, kvbench_bytes>;
using Hash = peers::Peer<std::unordered_map<uint64_t, uint64_t>, uint64_t>;
using StringHash = peers::Peer<std::unordered_map<std::string, std::string, peers::StringHash, std::equal_to<>>, kvbench_bytes>;

constexpr auto map = Map::ordered();
constexpr auto string_map = StringMap::ordered();
constexpr auto hash = Hash::hashed();
constexpr auto string_hash = StringHash::hashed();
} // namespace

const kvbench_subject peers::std_map = {
	KVBENCH_ABI, KVBENCH_ORDERED, "std-map", "C++ std::map of libstdc++ " RELEASE "; strings: std::string", &map, &string_map,
};
const kvbench_subject peers::std_hash = {
	KVBENCH_ABI, 0, "std-hash", "C++ std::unordered_map of libstdc++ " RELEASE "; strings: std::string", &hash, &string_hash,
};
