/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The list of the peers in C++, in the order of the tables. */

#include "peers.hh"

const kvbench_subject *const *kvbench_subjects(void)
{
	static const kvbench_subject *const all[] = {
		&peers::std_map,   &peers::absl_btree, &peers::judy,	      &peers::std_hash, &peers::absl_flat,
		&peers::boost_flat, &peers::robin_map,  &peers::libcuckoo_map, &peers::tbb_hash, nullptr,
	};
	return all;
}
