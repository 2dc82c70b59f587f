/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tessil's table with linear robin hood probing. */

#include "peer.hh"
#include "peers.hh"

#include <tsl/robin_map.h>

namespace {
using Robin = peers::Peer<tsl::robin_map<uint64_t, uint64_t>, uint64_t>;
using StringRobin = peers::Peer<tsl::robin_map<std::string, std::string, peers::StringHash, std::equal_to<>>, kvbench_bytes>;

constexpr auto robin = Robin::hashed();
constexpr auto string_robin = StringRobin::hashed();
} // namespace

const kvbench_subject peers::robin_map = {
	KVBENCH_ABI, 0, "robin-map", "C++ tsl::robin_map; strings: std::string", &robin, &string_robin,
};
