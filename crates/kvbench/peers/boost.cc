/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Boost's flat table. */

#include "peer.hh"
#include "peers.hh"

#include <boost/version.hpp>
#include <boost/unordered/unordered_flat_map.hpp>

namespace {
struct StringHash : boost::hash<std::string_view> {
	using is_transparent = void;
};

using Flat = peers::Peer<boost::unordered_flat_map<uint64_t, uint64_t>, uint64_t>;
using StringFlat = peers::Peer<boost::unordered_flat_map<std::string, std::string, StringHash, std::equal_to<>>, kvbench_bytes>;

constexpr auto flat = Flat::hashed();
constexpr auto string_flat = StringFlat::hashed();
} // namespace

const kvbench_subject peers::boost_flat = {
	KVBENCH_ABI, 0, "boost-flat", "C++ boost::unordered_flat_map of Boost " BOOST_LIB_VERSION "; strings: std::string", &flat, &string_flat,
};
