/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* JudyL: a digital tree of words. */

#include "peer.hh"
#include "peers.hh"

#include <Judy.h>
#include <cstdlib>
#include <utility>

namespace {
struct Judy {
	Pvoid_t array = nullptr;

	static void *create() { return new (std::nothrow) Judy(); }

	static void destroy(void *map)
	{
		auto *judy = static_cast<Judy *>(map);
		JudyLFreeArray(&judy->array, PJE0);
		delete judy;
	}

	static void insert(void *map, uint64_t key, uint64_t value)
	{
		PPvoid_t place = JudyLIns(&static_cast<Judy *>(map)->array, key, PJE0);
		if (!place || place == PPJERR)
			abort();
		*reinterpret_cast<uint64_t *>(place) = value;
	}

	static bool get(const void *map, uint64_t key, uint64_t *value)
	{
		PPvoid_t place = JudyLGet(static_cast<const Judy *>(map)->array, key, PJE0);
		if (!place)
			return false;
		*value = *reinterpret_cast<uint64_t *>(place);
		return true;
	}

	static bool remove(void *map, uint64_t key) { return JudyLDel(&static_cast<Judy *>(map)->array, key, PJE0) == 1; }

	static void scan(const void *map, uint64_t from, size_t pairs, kvbench_see_u64 see, void *context)
	{
		Pcvoid_t array = static_cast<const Judy *>(map)->array;
		peers::Shower<uint64_t> shower(see, context);
		Word_t key = from;
		for (PPvoid_t place = JudyLFirst(array, &key, PJE0); pairs > 0 && place; pairs--) {
			shower.show(std::pair<uint64_t, uint64_t>(key, *reinterpret_cast<uint64_t *>(place)));
			place = JudyLNext(array, &key, PJE0);
		}
		shower.end();
	}

	static void each(const void *map, kvbench_see_u64 see, void *context) { scan(map, 0, SIZE_MAX, see, context); }
};

constexpr kvbench_u64 words = {
	Judy::create, Judy::destroy, nullptr, Judy::insert, Judy::get, Judy::remove, Judy::each, Judy::scan, nullptr,
};
} // namespace

const kvbench_subject peers::judy = {
	KVBENCH_ABI, KVBENCH_ORDERED, "judy", "C JudyL, a digital tree of words", &words, nullptr,
};
