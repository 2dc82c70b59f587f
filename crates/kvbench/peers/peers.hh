/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every peer in C++, each in a file of its own. */
#pragma once

#include "kvbench_subject.h"

namespace peers {
extern const kvbench_subject absl_btree, absl_flat, boost_flat, judy, libcuckoo_map, robin_map, std_hash, std_map, tbb_hash;
} // namespace peers
