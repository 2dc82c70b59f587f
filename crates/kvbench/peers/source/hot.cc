/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * HOT, a height-optimized trie (Binna, Zangerle, Pichl, Specht and Leis, SIGMOD 2018), for one thread.
 *
 * HOT stores pointers of 63 bits and takes a key from what each leads to, so a pair is an allocation of its own.
 * Its keys are strings of C of less than 255 bytes. Keys with a byte 0 or 1 are stored in an escaped form, which keeps
 * their order. Longer keys are in a std::map beside the trie.
 */

#include "peer.hh"

#include <hot/singlethreaded/HOTSingleThreaded.hpp>
#include <map>
#include <memory>
#include <utility>

namespace {
struct Numbers {
	uint64_t first, second;
};

template <class Pair> struct NumberOf {
	using KeyType = uint64_t;
	KeyType operator()(Pair pair) const { return pair->first; }
};

/* A pair as HOT asks for it: the key as a string of C, and as the bytes that it stands for. */
struct Strings {
	std::string escaped, first, second;

	/* The escaped form is absent if it would be the key itself. */
	const char *asked() const { return escaped.empty() ? first.c_str() : escaped.c_str(); }
};

template <class Pair> struct StringOf {
	using KeyType = const char *;
	KeyType operator()(Pair pair) const { return pair->asked(); }
};

/* A key in the form that HOT compares, without an allocation if it is short. */
class Asked {
	/* What HOT compares, with the byte 0 at its end. */
	static constexpr size_t LIMIT = 255;
	char text[LIMIT];
	size_t size = 0;

public:
	bool fits = true, is_escaped = false;

	explicit Asked(kvbench_bytes key)
	{
		const char *bytes = static_cast<const char *>(key.data);
		for (size_t at = 0; at < key.size && fits; at++) {
			bool escapes = bytes[at] == 0 || bytes[at] == 1;
			is_escaped |= escapes;
			fits = size + (escapes ? 2 : 1) < LIMIT;
			if (!fits)
				break;
			if (escapes)
				text[size++] = 1;
			text[size++] = static_cast<char>(bytes[at] + (escapes ? 1 : 0));
		}
		if (fits)
			text[size] = 0;
	}

	const char *key() const { return text; }
	std::string escaped() const { return is_escaped ? std::string(text, size) : std::string(); }
};

template <class Pair, template <class> class KeyOf> struct Trie {
	hot::singlethreaded::HOTSingleThreaded<Pair *, KeyOf> trie;

	~Trie()
	{
		for (Pair *pair : trie)
			delete pair;
	}

	void insert(Pair *pair)
	{
		auto was = trie.upsert(pair);
		if (was.mIsValid)
			delete was.mValue;
	}

	template <class Key> Pair *find(Key key) const
	{
		/* HOT's lookup changes nothing, though it is not declared so. */
		auto found = const_cast<Trie *>(this)->trie.lookup(key);
		return found.mIsValid ? found.mValue : nullptr;
	}

	template <class Key> bool remove(Key key)
	{
		Pair *found = find(key);
		if (!found || !trie.remove(key))
			return false;
		delete found;
		return true;
	}
};

struct NumberTrie : peers::Made<NumberTrie> {
	Trie<Numbers, NumberOf> pairs;

	static void insert(void *map, uint64_t key, uint64_t value) noexcept
	{
		static_cast<NumberTrie *>(map)->pairs.insert(new Numbers{key, value});
	}

	static bool get(const void *map, uint64_t key, uint64_t *value) noexcept
	{
		const Numbers *found = static_cast<const NumberTrie *>(map)->pairs.find(key);
		if (found)
			*value = found->second;
		return found;
	}

	static bool remove(void *map, uint64_t key) noexcept { return static_cast<NumberTrie *>(map)->pairs.remove(key); }

	static void each(const void *map, kvbench_see_u64 see, void *context) noexcept
	{
		scan(map, 0, SIZE_MAX, see, context);
	}

	static void scan(const void *map, uint64_t from, size_t pairs, kvbench_see_u64 see, void *context) noexcept
	{
		const auto &trie = static_cast<const NumberTrie *>(map)->pairs.trie;
		peers::Shower<uint64_t> shower(see, context);
		for (auto at = trie.lower_bound(from); pairs > 0 && at != trie.end(); ++at, pairs--)
			shower.show(**at);
		shower.end();
	}
};

struct StringTrie : peers::Made<StringTrie> {
	using Cell = kvbench_bytes;
	using Shape = peers::Shape<Cell>;
	Trie<Strings, StringOf> pairs;
	std::map<std::string, std::string, std::less<>> longer;

	static void insert(void *map, Cell key, Cell value) noexcept
	{
		auto &of = *static_cast<StringTrie *>(map);
		Asked asked(key);
		std::string first(Shape::asked(key)), second(Shape::asked(value));
		if (asked.fits)
			of.pairs.insert(new Strings{asked.escaped(), std::move(first), std::move(second)});
		else
			of.longer.insert_or_assign(std::move(first), std::move(second));
	}

	static bool get(const void *map, Cell key, Cell *value) noexcept
	{
		const auto &of = *static_cast<const StringTrie *>(map);
		Asked asked(key);
		if (asked.fits) {
			const Strings *found = of.pairs.find(asked.key());
			if (found)
				*value = Shape::shown(found->second);
			return found;
		}
		auto found = of.longer.find(Shape::asked(key));
		if (found == of.longer.end())
			return false;
		*value = Shape::shown(found->second);
		return true;
	}

	static bool remove(void *map, Cell key) noexcept
	{
		auto &of = *static_cast<StringTrie *>(map);
		Asked asked(key);
		if (asked.fits)
			return of.pairs.remove(asked.key());
		auto found = of.longer.find(Shape::asked(key));
		if (found == of.longer.end())
			return false;
		of.longer.erase(found);
		return true;
	}

	static void each(const void *map, kvbench_see_bytes see, void *context) noexcept
	{
		scan(map, {nullptr, 0}, SIZE_MAX, see, context);
	}

	/* Merges the trie with the longer keys. */
	static void scan(const void *map, Cell from, size_t pairs, kvbench_see_bytes see, void *context) noexcept
	{
		const auto &of = *static_cast<const StringTrie *>(map);
		const auto &trie = of.pairs.trie;
		peers::Shower<Cell> shower(see, context);
		auto longer = of.longer.lower_bound(Shape::asked(from));
		Asked asked(from);
		/* HOT cannot search for a longer key: the search begins at its first bytes. */
		auto at = trie.lower_bound(asked.fits ? asked.key() : Asked({from.data, 100}).key());
		while (at != trie.end() && (*at)->first < Shape::asked(from))
			++at;
		for (; pairs > 0; pairs--) {
			bool has_short = at != trie.end(), has_longer = longer != of.longer.end();
			if (!has_short && !has_longer)
				break;
			if (has_short && (!has_longer || (*at)->first < longer->first)) {
				shower.show(**at);
				++at;
			} else {
				shower.show(*longer);
				++longer;
			}
		}
		shower.end();
	}
};

template <class Of, class Calls> constexpr Calls calls()
{
	return {Of::create, Of::destroy, nullptr, Of::insert, Of::get, Of::remove, Of::each, Of::scan, nullptr};
}
constexpr auto numbers = calls<NumberTrie, kvbench_u64>();
constexpr auto strings = calls<StringTrie, kvbench_strings>();

const kvbench_subject subject = {
	KVBENCH_ABI, KVBENCH_ORDERED, "hot", "C++ HOT, a height-optimized trie; a pair is an allocation", &numbers, &strings,
};
} // namespace

const kvbench_subject *const *kvbench_subjects(void)
{
	static const kvbench_subject *const all[] = {&subject, nullptr};
	return all;
}
