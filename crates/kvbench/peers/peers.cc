/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The list of the peers in C++, in the order of the tables. Those whose packages are missing are left out. */

#include "peers.hh"

const kvbench_subject *const *kvbench_subjects(void)
{
	static const kvbench_subject *const all[] = {
		&peers::std_map,
#ifndef KVBENCH_WITHOUT_ABSL
		&peers::absl_btree,
#endif
#ifndef KVBENCH_WITHOUT_JUDY
		&peers::judy,
#endif
		&peers::std_hash,
#ifndef KVBENCH_WITHOUT_ABSL
		&peers::absl_flat,
#endif
#ifndef KVBENCH_WITHOUT_BOOST
		&peers::boost_flat,
#endif
#ifndef KVBENCH_WITHOUT_ROBIN
		&peers::robin_map,
#endif
#ifndef KVBENCH_WITHOUT_CUCKOO
		&peers::libcuckoo_map,
#endif
#ifndef KVBENCH_WITHOUT_TBB
		&peers::tbb_hash,
#endif
		nullptr,
	};
	return all;
}
