// SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0
/*
 * Runs of operations: copies them from the user, does them, copies the answers
 * back.
 */
#include "request.h"
#include "groups.h"

/* A run of at most this size, with answers of the same, needs no allocation. */
#define SMALL_BYTES 256
/*
 * A longer run is processed in slices of these sizes, or of one operation.
 * IN_BYTES is small because operations pass through the cache twice; OUT_BYTES
 * has room for the answers of several operations.
 */
#define IN_BYTES 4096
#define OUT_BYTES 16384
/* Maximum bytes of a get, and of its answer, that need no slice. */
#define SHORT_BYTES 64
/* Bytes of a get with a key of 8 bytes, and of an answer with such a value. */
#define GET_BYTES (sizeof(struct llds_op) + 8)
#define ANSWER_BYTES (sizeof(struct llds_answer) + 8)
/* Fewer bytes contain at most one operation. */
#define GROUP_BYTES_MIN (2 * sizeof(struct llds_op))

/**
 * struct buffer - bytes that were copied from a user, or will be copied to one
 * @at: the bytes
 * @room: the capacity
 * @quota: the limit that a long buffer counts for, or NULL
 * @small: the bytes, if they fit here
 */
struct buffer {
	u8 *at;
	u32 room;
	struct llds_quota *quota;
	u8 small[SMALL_BYTES] __aligned(8);
};

static void open_buffer(struct buffer *buffer, struct llds_quota *quota)
{
	buffer->at = buffer->small;
	buffer->room = SMALL_BYTES;
	buffer->quota = quota;
}

/* Frees the bytes if they are not in the buffer itself. */
static noinline void give(struct buffer *buffer)
{
	llds_os_buffer_free(buffer->at);
	if (buffer->quota)
		llds_quota_give(buffer->quota,
				llds_os_buffer_bytes(buffer->room));
}

static inline void close_buffer(struct buffer *buffer)
{
	if (unlikely(buffer->at != buffer->small))
		give(buffer);
}

/* Makes room for more bytes than there is room, and keeps the first @used. */
static noinline int grow(struct buffer *buffer, u32 bytes, u32 used)
{
	const u64 taken = llds_os_buffer_bytes(bytes);
	u8 *at;

	/* Short ones may exceed it, so that full stores can be emptied. */
	if (buffer->quota &&
	    !llds_quota_take(buffer->quota, taken, taken <= OUT_BYTES))
		return -EDQUOT;
	at = llds_os_buffer(bytes);
	if (!at) {
		if (buffer->quota)
			llds_quota_give(buffer->quota, taken);
		return -ENOMEM;
	}
	memcpy(at, buffer->at, used);
	close_buffer(buffer);
	buffer->at = at;
	buffer->room = bytes;
	return 0;
}

/* Makes room for @bytes bytes; discards the content. */
static inline int make_room(struct buffer *buffer, u32 bytes)
{
	return likely(bytes <= buffer->room) ? 0 : grow(buffer, bytes, 0);
}

int llds_shared_init(struct llds_shared *shared, enum llds_index index,
		     u64 bytes_max, u32 value_bytes_max, u64 salt)
{
	llds_os_lock_init(&shared->lock);
	shared->maps = 0;
	shared->value_bytes_max = min_t(u32, value_bytes_max,
					LLDS_VALUE_BYTES_LIMIT);
	return llds_store_init(&shared->store, index, bytes_max, salt);
}

u64 llds_maps_add(struct llds_shared *shared, s64 n)
{
	u64 maps = READ_ONCE(shared->maps);

	while (!try_cmpxchg(&shared->maps, &maps, maps + n))
		;
	return maps + n;
}

bool llds_maps_add_another(struct llds_shared *shared)
{
	u64 maps = READ_ONCE(shared->maps);

	while (maps && !try_cmpxchg(&shared->maps, &maps, maps + 1))
		;
	return maps;
}

void llds_hide_unmapped(struct llds_shared *shared)
{
	if (unlikely(shared->store.memory.is_shown) &&
	    !READ_ONCE(shared->maps))
		llds_show(&shared->store, false);
}

void llds_shared_drop(struct llds_shared *shared)
{
	llds_store_drop(&shared->store);
}

/**
 * struct slice - operations that are done between two copies
 * @in: the operations
 * @bytes: bytes that were copied
 * @taken: bytes of the operations that were done
 * @done: number of the operations that were done
 * @wanted: bytes that the next operation, or its answer, needs
 */
struct slice {
	const u8 *in;
	u32 bytes;
	u32 taken;
	u32 done;
	u32 wanted;
};

/*
 * Parses the next operations that may be done together, and adds the access
 * that they need to @does. Sets @error if the next one cannot be done: to the
 * error of llds_parse(), or to -EBADF.
 */
static u32 look_ahead(const struct llds_shared *shared, struct slice *slice,
		      u32 at, u32 may, struct llds_parsed *parsed, u32 *does,
		      int *error)
{
	const u32 n = llds_parse(&shared->store, slice->in + at,
				 slice->bytes - at, shared->value_bytes_max,
				 parsed, error);
	u32 i;

	for (i = 0; i < n; i++) {
		if (llds_does(&parsed[i]) & ~may) {
			*error = -EBADF;
			return i;
		}
		*does |= llds_does(&parsed[i]);
	}
	if (*error == -EAGAIN)
		slice->wanted = parsed[n].bytes;
	return n;
}

static int lock(struct llds_shared *shared, u32 does)
{
	int error;

	if (!(does & LLDS_CHANGES))
		return llds_os_lock_shared(&shared->lock);
	error = llds_os_lock_alone(&shared->lock);
	if (!error)
		llds_hide_unmapped(shared);
	return error;
}

static void unlock(struct llds_shared *shared, u32 does)
{
	if (does & LLDS_CHANGES)
		llds_os_unlock_alone(&shared->lock);
	else
		llds_os_unlock_shared(&shared->lock);
}

/*
 * Does gets or sets of a slice in groups, until one needs the general path.
 * Returns their number, or an error.
 */
static int do_groups(struct llds_shared *shared, struct slice *slice,
		     struct llds_room *room, u32 may)
{
	const u8 *const at = slice->in + slice->taken;
	const u32 bytes = slice->bytes - slice->taken;
	const u32 does = *at == LLDS_GET ? LLDS_READS : LLDS_CHANGES;
	u32 done, taken;
	int error;

	if (bytes < GROUP_BYTES_MIN || !(may & does) ||
	    (*at != LLDS_GET && *at != LLDS_SET) ||
	    !llds_has_groups(&shared->store))
		return 0;
	error = lock(shared, does);
	if (error)
		return error;
	if (does == LLDS_READS)
		done = llds_gets(&shared->store, at, bytes, room, &taken);
	else
		done = llds_sets(&shared->store, at, bytes,
				 shared->value_bytes_max, room, &taken);
	unlock(shared, does);
	slice->taken += taken;
	slice->done += done;
	return done;
}

/*
 * Does the operations of a slice, until its end or until the room is used up.
 * Returns 0 at the end; -EAGAIN if the next operation needs more bytes;
 * -EMSGSIZE if its answer needs more room; or its error.
 */
static int do_slice(struct llds_shared *shared, struct slice *slice,
		    struct llds_room *room, u32 may)
{
	struct llds_parsed parsed[LLDS_TOGETHER] __uninitialized;
	u32 n, i, does;
	int error, failed;

	while (slice->taken < slice->bytes) {
		failed = do_groups(shared, slice, room, may);
		if (failed < 0)
			return failed;
		if (failed)
			continue;
		does = 0;
		n = look_ahead(shared, slice, slice->taken, may, parsed, &does,
			       &error);
		if (!n)
			return error;
		failed = lock(shared, does);
		if (failed)
			return failed;
		llds_fetch(&shared->store, parsed, n);
		for (i = 0; i < n; i++) {
			slice->wanted = llds_do(&shared->store, &parsed[i],
						room);
			if (slice->wanted) {
				error = -EMSGSIZE;
				break;
			}
			slice->taken += parsed[i].bytes;
			slice->done++;
		}
		unlock(shared, does);
		if (error == -EMSGSIZE)
			return error;
	}
	return 0;
}

/*
 * Does a run of one short get, if its answer is short as well. Returns whether
 * it did, or an error.
 */
static int do_get(struct llds_shared *shared, struct llds_run *run, u32 may)
{
	u64 in[SHORT_BYTES / 8] __uninitialized;
	u64 out[SHORT_BYTES / 8] __uninitialized;
	struct llds_room room = {
		.at = (u8 *)out,
		.bytes = min_t(u32, run->answers_bytes, SHORT_BYTES),
	};
	bool is_done;

	/* Most keys have 8 bytes; this avoids the loop of a copy. */
	if (likely(run->ops_bytes == GET_BYTES) ?
	    llds_os_from_user(in, run->ops, GET_BYTES) :
	    llds_os_from_user(in, run->ops, run->ops_bytes))
		return -EFAULT;
	if (*(u8 *)in != LLDS_GET || !(may & LLDS_READS) ||
	    !llds_has_groups(&shared->store))
		return false;
	if (lock(shared, LLDS_READS))
		return -EINTR;
	is_done = llds_get_one(&shared->store, (u8 *)in, run->ops_bytes, &room);
	unlock(shared, LLDS_READS);
	if (!is_done)
		return false;
	if (likely(room.used == ANSWER_BYTES) ?
	    llds_os_to_user(run->answers, out, ANSWER_BYTES) :
	    llds_os_to_user(run->answers, out, room.used))
		return -EFAULT;
	run->done = 1;
	run->done_bytes = run->ops_bytes;
	run->answers_bytes = room.used;
	return true;
}

/* Does a run. REQUIRES: the buffers are open. */
static int carry_out(struct llds_shared *shared, struct llds_run *run,
		     u32 may, struct buffer *in, struct buffer *out,
		     u32 room_bytes)
{
	u32 wanted = min_t(u32, run->ops_bytes, IN_BYTES);
	u32 room_wanted = min_t(u32, room_bytes, SMALL_BYTES);
	int error;

	if (run->ops_bytes > SMALL_BYTES)
		room_wanted = min_t(u32, room_bytes, OUT_BYTES);
	while (run->done_bytes < run->ops_bytes) {
		const u32 left = run->ops_bytes - run->done_bytes;
		const u32 room_left = room_bytes - run->answers_bytes;
		struct slice slice = { 0 };
		struct llds_room room = { 0 };

		if (wanted > left)
			return -EINVAL;
		if (room_wanted > room_left) {
			if (!run->done)
				run->answers_bytes = room_wanted;
			return -EMSGSIZE;
		}
		error = make_room(in, wanted);
		if (!error)
			error = make_room(out, room_wanted);
		if (error)
			return error;
		slice.in = in->at;
		/* Not all of the buffer, which may be as long as a value. */
		slice.bytes = min(left, max_t(u32, wanted, IN_BYTES));
		slice.bytes = min(slice.bytes, in->room);
		error = llds_os_from_user(in->at, run->ops + run->done_bytes,
					  slice.bytes);
		/* A scan ends when its room is full, so give it more. */
		if (!error && in->at[0] == LLDS_SCAN)
			error = make_room(out, min_t(u32, room_left,
						     OUT_BYTES));
		if (error)
			return error;
		room.at = out->at;
		room.bytes = min(room_left, max_t(u32, room_wanted, OUT_BYTES));
		room.bytes = min(room.bytes, out->room);
		error = do_slice(shared, &slice, &room, may);
		if (room.used && llds_os_to_user(run->answers +
						 run->answers_bytes,
						 out->at, room.used))
			return -EFAULT;
		run->done += slice.done;
		run->done_bytes += slice.taken;
		run->answers_bytes += room.used;
		if (likely(run->done_bytes == run->ops_bytes))
			return 0;
		/* An operation may need more of both. */
		if (slice.done) {
			wanted = min_t(u32, left - slice.taken, IN_BYTES);
			room_wanted = 0;
		}
		if (error == -EAGAIN)
			wanted = slice.wanted;
		else if (error == -EMSGSIZE)
			room_wanted = slice.wanted;
		else if (error)
			return error;
		if (llds_os_is_killed())
			return -EINTR;
		llds_os_relax();
	}
	return 0;
}

/* Gives an atomic run room for more answers, and keeps those in it. */
static int widen(struct buffer *out, struct llds_room *room, u32 bytes)
{
	int error = 0;

	if (bytes > out->room)
		error = grow(out, bytes, room->used);
	if (error)
		return error;
	room->at = out->at;
	room->bytes = bytes;
	return 0;
}

/*
 * Does the operations of an atomic run, after llds_begin(). Returns 0 if they
 * can be committed; -EAGAIN if one prevents that, and the answer says why; or
 * an error.
 */
static int do_as_one(struct llds_shared *shared, struct slice *slice,
		     struct buffer *out, struct llds_room *room,
		     u32 room_bytes)
{
	struct llds_parsed parsed[LLDS_TOGETHER] __uninitialized;
	struct llds_answer answer;
	u32 n, i, start, wanted, does = 0;
	int error;

	while (slice->taken < slice->bytes) {
		n = look_ahead(shared, slice, slice->taken, LLDS_ALL, parsed,
			       &does, &error);
		llds_fetch(&shared->store, parsed, n);
		for (i = 0; i < n;) {
			start = room->used;
			wanted = min_t(u64, room_bytes,
				       (u64)start + OUT_BYTES);
			/* A scan ends when its room is full, so give it more. */
			if (parsed[i].op.code == LLDS_SCAN &&
			    wanted > room->bytes) {
				error = widen(out, room, wanted);
				if (error)
					return error;
			}
			slice->wanted = llds_do(&shared->store, &parsed[i],
						room);
			if (slice->wanted) {
				if (slice->wanted > room_bytes - room->used)
					return -EMSGSIZE;
				wanted = min((u64)room_bytes,
					     2 * ((u64)room->used +
						  slice->wanted));
				error = widen(out, room, wanted);
				if (error)
					return error;
				continue;
			}
			memcpy(&answer, room->at + start, sizeof(answer));
			if (llds_fails_as_one(&parsed[i], answer.status)) {
				room->used -= start;
				memmove(room->at, room->at + start, room->used);
				return -EAGAIN;
			}
			slice->taken += parsed[i++].bytes;
			slice->done++;
		}
		if (llds_os_is_killed())
			return -EINTR;
		llds_os_relax();
	}
	return 0;
}

/* Checks that all operations are valid and permitted; finds their access. */
static int check_all(const struct llds_shared *shared, struct slice *slice,
		     u32 may, u32 *does)
{
	struct llds_parsed parsed[LLDS_TOGETHER] __uninitialized;
	int error = 0;
	u32 at = 0, n;

	*does = 0;
	while (at < slice->bytes) {
		n = look_ahead(shared, slice, at, may, parsed, does, &error);
		if (error)
			return error == -EAGAIN ? -EINVAL : error;
		while (n > 0)
			at += parsed[--n].bytes;
		llds_os_relax();
	}
	return 0;
}

/* Does an atomic run. REQUIRES: the buffers are open. */
static int carry_out_as_one(struct llds_shared *shared, struct llds_run *run,
			    u32 may, struct buffer *in, struct buffer *out,
			    u32 room_bytes)
{
	struct slice slice = { 0 };
	struct llds_room room = { 0 };
	bool changes;
	u32 does;
	int error;

	if (run->ops_bytes > LLDS_ATOMIC_BYTES_MAX)
		return -E2BIG;
	room_bytes = min_t(u32, room_bytes, LLDS_ATOMIC_BYTES_MAX);
	error = make_room(in, run->ops_bytes);
	if (error)
		return error;
	error = llds_os_from_user(in->at, run->ops, run->ops_bytes);
	if (error)
		return error;
	slice.in = in->at;
	slice.bytes = run->ops_bytes;
	error = check_all(shared, &slice, may, &does);
	if (error)
		return error;
	changes = does & LLDS_CHANGES;
	room.at = out->at;
	room.bytes = min(room_bytes, out->room);
	error = lock(shared, does);
	if (error)
		return error;
	if (changes)
		llds_begin(&shared->store);
	error = do_as_one(shared, &slice, out, &room, room_bytes);
	if (changes && error)
		llds_abort(&shared->store);
	else if (changes)
		llds_commit(&shared->store);
	unlock(shared, does);
	if (error == -EMSGSIZE) {
		if ((u64)room.used + slice.wanted > LLDS_ATOMIC_BYTES_MAX)
			return -E2BIG;
		run->answers_bytes = room.used + slice.wanted;
	}
	if (error && error != -EAGAIN)
		return error;
	run->done = slice.done;
	run->done_bytes = slice.taken;
	run->answers_bytes = room.used;
	return llds_os_to_user(run->answers, room.at, room.used);
}

/* Does a run that has been checked, and is not one short get. */
static noinline int do_run(struct llds_shared *shared, struct llds_run *run,
			   u32 may, struct llds_quota *quota)
{
	const bool as_one = run->flags & LLDS_RUN_ATOMIC;
	const u32 room_bytes = run->answers_bytes;
	struct buffer in __uninitialized, out __uninitialized;
	int error;

	run->answers_bytes = 0;
	open_buffer(&in, quota);
	open_buffer(&out, quota);
	error = (as_one ? carry_out_as_one : carry_out)(shared, run, may, &in,
							&out, room_bytes);
	close_buffer(&in);
	close_buffer(&out);
	if (as_one)
		return error;
	/* Some operations were done. A run of the rest reports the error. */
	if (run->done && error != -EFAULT)
		return 0;
	return error;
}

int llds_request(struct llds_shared *shared, struct llds_run *run, u32 may,
		 struct llds_quota *quota)
{
	int done;

	if (run->flags & ~LLDS_RUN_ATOMIC || run->reserved || run->done ||
	    run->done_bytes)
		return -EINVAL;
	if (run->ops_bytes >= sizeof(struct llds_op) &&
	    run->ops_bytes <= SHORT_BYTES && !run->flags) {
		done = do_get(shared, run, may);
		if (done)
			return min(done, 0);
	}
	return do_run(shared, run, may, quota);
}
