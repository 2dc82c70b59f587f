/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* libcuckoo: a concurrent cuckoo table, with locks on buckets. */

#include "peer.hh"
#include "peers.hh"

#include <libcuckoo/cuckoohash_map.hh>

namespace {
template <class Cell, class Hash, class Equal> struct Cuckoo {
	using Of = peers::Shape<Cell>;
	using Owned = typename Of::Owned;
	using Map = libcuckoo::cuckoohash_map<Owned, Owned, Hash, Equal>;

	using Made = peers::Made<Map>;
	static void reserve(void *map, size_t pairs) { static_cast<Map *>(map)->reserve(pairs); }

	static void insert(void *map, Cell key, Cell value) noexcept
	{
		static_cast<Map *>(map)->insert_or_assign(Owned(Of::asked(key)), Owned(Of::asked(value)));
	}

	/* Shows a copy: another thread may change the value after the lock is released. */
	static bool get(const void *map, Cell key, Cell *value) noexcept
	{
		static thread_local Owned copy;
		bool found = static_cast<const Map *>(map)->find_fn(Of::asked(key), [](const Owned &value) { copy = value; });
		if (found)
			*value = Of::shown(copy);
		return found;
	}

	static bool remove(void *map, Cell key) noexcept { return static_cast<Map *>(map)->erase(Of::asked(key)); }

	static void each(const void *map, typename Of::See see, void *context) noexcept
	{
		peers::Shower<Cell> shower(see, context);
		/* The locks are the table's own, which changes nothing that a reader sees. */
		auto locked = const_cast<Map *>(static_cast<const Map *>(map))->lock_table();
		for (const auto &pair : locked)
			shower.show(pair);
		shower.end();
	}

	static constexpr typename Of::Calls calls()
	{
		return {Made::create, Made::destroy, reserve, insert, get, remove, each, nullptr, nullptr};
	}
};

constexpr auto cuckoo = Cuckoo<uint64_t, std::hash<uint64_t>, std::equal_to<uint64_t>>::calls();
constexpr auto string_cuckoo = Cuckoo<kvbench_bytes, peers::StringHash, std::equal_to<>>::calls();
} // namespace

const kvbench_subject peers::libcuckoo_map = {
	KVBENCH_ABI, KVBENCH_SHARED, "libcuckoo", "C++ libcuckoo::cuckoohash_map, concurrent; strings: std::string", &cuckoo, &string_cuckoo,
};
