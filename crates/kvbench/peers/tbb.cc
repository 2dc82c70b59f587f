/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* oneTBB's concurrent table, with a lock on each pair. */

#include "peer.hh"
#include "peers.hh"

#include <tbb/concurrent_hash_map.h>
#include <tbb/version.h>

namespace {
struct Compare {
	using is_transparent = void;
	template <class Key> size_t hash(const Key &key) const { return std::hash<std::string_view>{}(key); }
	template <class A, class B> bool equal(const A &a, const B &b) const { return std::string_view(a) == std::string_view(b); }
};

template <class Cell, class Compare> struct Table {
	using Of = peers::Shape<Cell>;
	using Owned = typename Of::Owned;
	/* Not TBB's own allocator, which is another where its library is installed. */
	using Map = tbb::concurrent_hash_map<Owned, Owned, Compare, std::allocator<std::pair<const Owned, Owned>>>;

	using Made = peers::Made<Map>;
	static void reserve(void *map, size_t pairs) { static_cast<Map *>(map)->rehash(pairs); }

	static void insert(void *map, Cell key, Cell value) noexcept
	{
		typename Map::accessor place;
		static_cast<Map *>(map)->insert(place, Owned(Of::asked(key)));
		place->second = Owned(Of::asked(value));
	}

	/* Shows a copy: another thread may change the value after the lock is released. */
	static bool get(const void *map, Cell key, Cell *value) noexcept
	{
		static thread_local Owned copy;
		typename Map::const_accessor place;
		/* With a view for a key there is no const find(); this accessor changes nothing but the lock. */
		if (!const_cast<Map *>(static_cast<const Map *>(map))->find(place, Of::asked(key)))
			return false;
		copy = place->second;
		*value = Of::shown(copy);
		return true;
	}

	static bool remove(void *map, Cell key) noexcept { return static_cast<Map *>(map)->erase(Of::asked(key)); }

	/* Only safe without concurrent writers. */
	static void each(const void *map, typename Of::See see, void *context) noexcept
	{
		peers::Shower<Cell> shower(see, context);
		for (const auto &pair : *static_cast<const Map *>(map))
			shower.show(pair);
		shower.end();
	}

	static constexpr typename Of::Calls calls()
	{
		return {Made::create, Made::destroy, reserve, insert, get, remove, each, nullptr, nullptr};
	}
};

constexpr auto table = Table<uint64_t, tbb::tbb_hash_compare<uint64_t>>::calls();
constexpr auto string_table = Table<kvbench_bytes, Compare>::calls();
} // namespace

const kvbench_subject peers::tbb_hash = {
	KVBENCH_ABI, KVBENCH_SHARED, "tbb-hash", "C++ tbb::concurrent_hash_map of oneTBB " TBB_VERSION_STRING ", concurrent; strings: std::string", &table, &string_table,
};
