/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A map of C++ as kvbench asks it: what std::map, std::unordered_map and those made like them have in common.
 *
 * Strings are owned as std::string, and looked up as std::string_view without a copy.
 */
#pragma once

#include "kvbench_subject.h"

#include <cstddef>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>

/* The text of a macro's value. */
#define PEERS_QUOTED(of) #of
#define PEERS_TEXT(of) PEERS_QUOTED(of)

namespace peers {

/* What the header has a key, a value, or a function that sees them in. */
template <class Cell> struct Shape;

template <> struct Shape<uint64_t> {
	using See = kvbench_see_u64;
	using Calls = kvbench_u64;
	using Owned = uint64_t;
	static uint64_t asked(uint64_t cell) { return cell; }
	static uint64_t shown(uint64_t owned) { return owned; }
};

template <> struct Shape<kvbench_bytes> {
	using See = kvbench_see_bytes;
	using Calls = kvbench_strings;
	using Owned = std::string;
	static std::string_view asked(kvbench_bytes cell) { return {static_cast<const char *>(cell.data), cell.size}; }
	static kvbench_bytes shown(const std::string &owned) { return {owned.data(), owned.size()}; }
};

/* A hash of strings that takes views. */
struct StringHash : std::hash<std::string_view> {
	using is_transparent = void;
};

/* Shows pairs some at a time. */
template <class Cell> class Shower {
	static constexpr size_t PAIRS = 64;
	typename Shape<Cell>::See see;
	void *context;
	Cell keys[PAIRS], values[PAIRS];
	size_t pairs = 0;

public:
	Shower(typename Shape<Cell>::See see, void *context) : see(see), context(context) {}

	template <class Pair> void show(const Pair &pair)
	{
		keys[pairs] = Shape<Cell>::shown(pair.first);
		values[pairs] = Shape<Cell>::shown(pair.second);
		if (++pairs == PAIRS)
			end();
	}

	void end()
	{
		if (pairs)
			see(context, keys, values, pairs);
		pairs = 0;
	}
};

/* How a map is made. */
template <class Map> struct Made {
	static void *create() { return new (std::nothrow) Map(); }
	static void destroy(void *map) { delete static_cast<Map *>(map); }
};

/* The functions of a map; Of is there for maps that are asked with something else than std::string_view. */
template <class Map, class Cell, class Of = Shape<Cell>> struct Peer : Made<Map> {
	using Made<Map>::create;
	using Made<Map>::destroy;
	using Owned = typename Of::Owned;

	static void reserve(void *map, size_t pairs) { static_cast<Map *>(map)->reserve(pairs); }

	static void insert(void *map, Cell key, Cell value) noexcept
	{
		static_cast<Map *>(map)->insert_or_assign(Owned(Of::asked(key)), Owned(Of::asked(value)));
	}

	static bool get(const void *map, Cell key, Cell *value) noexcept
	{
		const auto &of = *static_cast<const Map *>(map);
		auto found = of.find(Of::asked(key));
		if (found == of.end())
			return false;
		*value = Of::shown(found->second);
		return true;
	}

	static bool remove(void *map, Cell key) noexcept
	{
		auto &of = *static_cast<Map *>(map);
		auto found = of.find(Of::asked(key));
		if (found == of.end())
			return false;
		of.erase(found);
		return true;
	}

	static void each(const void *map, typename Of::See see, void *context) noexcept
	{
		Shower<Cell> shower(see, context);
		for (const auto &pair : *static_cast<const Map *>(map))
			shower.show(pair);
		shower.end();
	}

	static void scan(const void *map, Cell from, size_t pairs, typename Of::See see, void *context) noexcept
	{
		const auto &of = *static_cast<const Map *>(map);
		Shower<Cell> shower(see, context);
		for (auto at = of.lower_bound(Of::asked(from)); pairs > 0 && at != of.end(); ++at, pairs--)
			shower.show(*at);
		shower.end();
	}

	/* For those that keep no order. */
	static constexpr typename Of::Calls hashed()
	{
		return {create, destroy, reserve, insert, get, remove, each, nullptr, nullptr};
	}

	/* For those that do. */
	static constexpr typename Of::Calls ordered()
	{
		return {create, destroy, nullptr, insert, get, remove, each, scan, nullptr};
	}
};

} // namespace peers
