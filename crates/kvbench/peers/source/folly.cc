/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Folly's own F14: the table that stores pairs in itself, and the one that chooses a layout by their size. */

#include "peer.hh"

#include <folly/container/F14Map.h>

namespace {
/* Folly's hash of strings takes its own kind of view. */
struct Asked : peers::Shape<kvbench_bytes> {
	static folly::StringPiece asked(kvbench_bytes cell) { return {static_cast<const char *>(cell.data), cell.size}; }
};

using Value = peers::Peer<folly::F14ValueMap<uint64_t, uint64_t>, uint64_t>;
using StringValue = peers::Peer<folly::F14ValueMap<std::string, std::string>, kvbench_bytes, Asked>;
using Fast = peers::Peer<folly::F14FastMap<uint64_t, uint64_t>, uint64_t>;
using StringFast = peers::Peer<folly::F14FastMap<std::string, std::string>, kvbench_bytes, Asked>;

constexpr auto value = Value::hashed();
constexpr auto string_value = StringValue::hashed();
constexpr auto fast = Fast::hashed();
constexpr auto string_fast = StringFast::hashed();

const kvbench_subject f14_value = {
	KVBENCH_ABI, 0, "f14-value", "C++ folly::F14ValueMap; strings: std::string", &value, &string_value,
};
const kvbench_subject f14_fast = {
	KVBENCH_ABI, 0, "f14-fast", "C++ folly::F14FastMap; strings: std::string", &fast, &string_fast,
};
} // namespace

const kvbench_subject *const *kvbench_subjects(void)
{
	static const kvbench_subject *const all[] = {&f14_value, &f14_fast, nullptr};
	return all;
}
