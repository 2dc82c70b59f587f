//! A leaf with one change, put together from runs of its built records, which are copied as they stand. This is
//! [`super::build`] for a leaf that keeps its form, as nearly all do: of the built records it looks at those around
//! the changes only.

use super::build::{LEAF_BYTES_MAX, PREFIX_ENTRIES_MIN, Plan};
use super::walk::meets;
use super::*;
use crate::arena::Supply;
use crate::key::Pieces;

/// Before and after each change there is a run at the most.
const SPANS_MAX: usize = 2 * (APPENDED_MAX + 1) + 1;

/// Records that stay together.
#[derive(Clone, Copy)]
enum Span {
    /// The built ones from a position on.
    Built(usize),
    /// An appended one, by number.
    Appended(usize),
    /// The changed one.
    Own,
}

/// The live records of a leaf with one put, in key order.
pub(crate) struct Runs<'g, 'k> {
    leaf: Leaf<'g>,
    sorted: Sorted<'g>,
    own: Record<'k>,
    own_tag: u8,
    /// Spans, and where each one begins among the records.
    spans: [(Span, usize); SPANS_MAX],
    spans_len: usize,
    len: usize,
    newest: usize,
    replaced: Option<Cell<'g>>,
    /// Free form: what all records take.
    bytes: usize,
}

impl<'g: 'k, 'k> Runs<'g, 'k> {
    /// The records of a leaf with one put; `None` if the leaf would not keep its form.
    #[inline(always)]
    pub(crate) fn gather(leaf: Leaf<'g>, key: &Key<'k>, hash: u64, cell: Cell<'k>) -> Option<Runs<'g, 'k>> {
        // A leaf of few was built without a prefix.
        if matches!(cell, Cell::Tombstone) || leaf.built() < PREFIX_ENTRIES_MIN || !leaf.has_prefix_of(key) {
            return None;
        }
        let (head, sorted) = (leaf.head(), leaf.sorted());
        let suffix = &key.bytes[usize::from(head.prefix_len)..];
        let own = Record { suffix, cell };
        if !leaf.is_free_form() {
            let bytes = sorted.suffix_len + 1 + cell.stored_len();
            // With much shorter records the free form would take less.
            let suits = suffix.len() == sorted.suffix_len && bytes <= sorted.stride;
            if !suits || own.free_bytes() + 2 < sorted.stride {
                return None;
            }
        }
        let order = leaf.order();
        let (own_at, own_hides) = leaf.lower_bound_appended(order, suffix);
        let mut runs = Runs {
            leaf,
            sorted,
            own,
            own_tag: tag_of(hash),
            spans: [(Span::Own, 0); SPANS_MAX],
            spans_len: 0,
            len: 0,
            newest: 0,
            replaced: own_hides.then(|| leaf.appended_record(order.number(own_at)).cell),
            bytes: 0,
        };
        let mut from = 0;
        for listed in 0..=order.listed() {
            if listed == own_at {
                let (at, hides) = meets(sorted, from, suffix);
                if hides && !own_hides {
                    runs.replaced = Some(sorted.at(at).cell);
                }
                runs.push_built(from, at);
                runs.newest = runs.len;
                runs.push(Span::Own, runs.own);
                from = at + usize::from(hides);
                if own_hides {
                    continue;
                }
            }
            if listed < order.listed() {
                let number = order.number(listed);
                let record = leaf.appended_record(number);
                let (at, hides) = meets(sorted, from, record.suffix);
                runs.push_built(from, at);
                if !matches!(record.cell, Cell::Tombstone) {
                    runs.push(Span::Appended(number), record);
                }
                from = at + usize::from(hides);
            }
        }
        runs.push_built(from, leaf.built());
        Some(runs)
    }

    #[inline(always)]
    fn push_built(&mut self, from: usize, to: usize) {
        if from < to {
            self.spans[self.spans_len] = (Span::Built(from), self.len);
            self.spans_len += 1;
            self.len += to - from;
            if self.sorted.free_form {
                self.bytes += self.free_offset(to) - self.free_offset(from);
            }
        }
    }

    #[inline(always)]
    fn push(&mut self, span: Span, record: Record<'_>) {
        self.spans[self.spans_len] = (span, self.len);
        self.spans_len += 1;
        self.len += 1;
        if self.sorted.free_form {
            self.bytes += record.free_bytes();
        }
    }

    /// Where a built record of the free form is, or where they end.
    #[inline(always)]
    fn free_offset(&self, position: usize) -> usize {
        if position < self.sorted.len() {
            return self.leaf.built_at(position);
        }
        let last = self.sorted.len() - 1;
        self.leaf.built_at(last) + self.sorted.at(last).free_bytes()
    }

    /// Where the new record is.
    pub(crate) fn newest(&self) -> usize {
        self.newest
    }

    /// What the new record replaces.
    pub(crate) fn replaced(&self) -> Option<Cell<'g>> {
        self.replaced
    }

    /// The end of the first leaf, and of the second if there must be two. `None` if that is not enough, or if leaves
    /// of the free form have to be cut.
    pub(crate) fn cuts(&self) -> Option<(usize, Option<usize>)> {
        let fits = |len| self.plan(len, 0).bytes() <= LEAF_BYTES_MAX;
        if self.len <= BUILT_MAX && fits(self.len) {
            return Some((self.len, None));
        }
        if self.sorted.free_form {
            return None;
        }
        let fixed = self.plan(0, 0).bytes();
        let most = (LEAF_BYTES_MAX.checked_sub(fixed)? / (self.sorted.stride + 1)).clamp(1, BUILT_MAX);
        let first = match self.newest {
            // Keys that come in order fill each leaf before the next is begun.
            newest if newest + 1 == self.len => most.min(self.len - 1),
            0 => self.len.saturating_sub(most).max(1),
            _ => self.len / 2,
        };
        (first.max(self.len - first) <= most).then_some((first, Some(self.len)))
    }

    /// The layout of a number of records whose prefix is longer by some bytes.
    fn plan(&self, len: usize, longer: usize) -> Plan {
        let prefix_len = usize::from(self.leaf.head().prefix_len) + longer;
        let Sorted { stride, suffix_len, free_form, .. } = self.sorted;
        match free_form {
            true => Plan::free(len, prefix_len, self.bytes),
            false => Plan::fixed(len, prefix_len, suffix_len - longer, stride - longer),
        }
    }

    /// The record at a position.
    fn record(&self, at: usize) -> Record<'k> {
        let spans = &self.spans[..self.spans_len];
        let (span, begin) = spans[spans.partition_point(|(_, begin)| *begin <= at) - 1];
        match span {
            Span::Built(from) => self.sorted.at(from + at - begin),
            Span::Appended(number) => self.leaf.appended_record(number),
            Span::Own => self.own,
        }
    }

    /// The separator before a record.
    pub(crate) fn separator(&self, at: usize) -> Pieces<'k> {
        let (before, after) = (self.record(at - 1).suffix, self.record(at).suffix);
        let common = Pieces([before, &[]]).common_prefix(Pieces([after, &[]]));
        Pieces([self.leaf.prefix(), &after[..common + 1]])
    }

    /// Builds a leaf of records `from..to`. `None` if there is no memory.
    pub(crate) fn build(&self, supply: Supply<'_>, era: u64, from: usize, to: usize) -> Option<Slot> {
        let mut longer = &[][..];
        if to - from < self.len && to - from >= PREFIX_ENTRIES_MIN {
            // Part of the records may have more in common. A record of eight bytes stays one.
            let (first, last) = (self.record(from).suffix, self.record(to - 1).suffix);
            let common = Pieces([first, &[]]).common_prefix(Pieces([last, &[]]));
            longer = &first[..common.min(self.sorted.stride.saturating_sub(8))];
        }
        let plan = self.plan(to - from, longer.len());
        let blobs = self.leaf.has_blobs() || self.own.cell.has_blob();
        let begun = plan.begin(supply, era, [self.leaf.prefix(), longer], blobs)?;
        let ends = self.spans[1..self.spans_len].iter().map(|(_, begin)| *begin).chain([self.len]);
        let mut free_at = plan.records;
        for (&(span, begin), end) in self.spans[..self.spans_len].iter().zip(ends) {
            let (first, last) = (begin.max(from), end.min(to));
            if first < last {
                let span = match span {
                    Span::Built(position) => Span::Built(position + first - begin),
                    single => single,
                };
                // SAFETY: `begin` allocated a block for this plan, which is one for `to - from` records of this leaf,
                // of the same form; and these are some of the first of those that are left.
                unsafe {
                    match self.sorted.free_form {
                        true => {
                            free_at = self.write_free(
                                &plan,
                                begun.base,
                                span,
                                (first - from, last - first),
                                free_at,
                            )
                        }
                        false => self.write_fixed(&plan, begun.base, span, first - from, last - first),
                    }
                }
            }
        }
        Some(plan.slot(&begun))
    }

    /// Writes tags and records of a span, in the fixed form.
    ///
    /// # Safety
    /// `base` is a block that `plan` fits, which has positions `at..at + len`; the span has `len` records.
    #[inline(always)]
    unsafe fn write_fixed(&self, plan: &Plan, base: *mut u8, span: Span, at: usize, len: usize) {
        let skipped = self.sorted.suffix_len - plan.suffix_len;
        let leaf = self.leaf.0.address();
        // SAFETY: the tags and records of the span are in the leaf, and those written in the block, as this function
        // requires. A record of the leaf has `skipped + plan.stride` bytes.
        unsafe {
            let (tags, to) = (base.add(HEAD_BYTES + at), base.add(plan.records + at * plan.stride));
            match span {
                Span::Built(position) => {
                    key::copy(leaf.add(HEAD_BYTES + position), tags, len);
                    let records = self.sorted.fixed(position);
                    if skipped == 0 {
                        std::ptr::copy_nonoverlapping(records, to, len * plan.stride);
                        return;
                    }
                    for i in 0..len {
                        let record = records.add(i * self.sorted.stride + skipped);
                        key::copy(record, to.add(i * plan.stride), plan.stride);
                    }
                }
                Span::Appended(number) => {
                    tags.write(self.leaf.appended_tag(number));
                    let offset = usize::from(self.leaf.head().appended) * UNIT + number * self.sorted.stride;
                    key::copy(leaf.add(offset + skipped), to, plan.stride);
                }
                Span::Own => {
                    tags.write(self.own_tag);
                    key::copy(self.own.suffix.as_ptr().add(skipped), to, plan.suffix_len);
                    self.own.cell.write(to.add(plan.suffix_len));
                }
            }
        }
    }

    /// Writes tags, offsets and records of a span, in the free form, and returns where the next one goes.
    ///
    /// # Safety
    /// As [`Self::write_fixed`]; and the records before take the bytes before `to`.
    #[inline(always)]
    unsafe fn write_free(
        &self,
        plan: &Plan,
        base: *mut u8,
        span: Span,
        (at, len): (usize, usize),
        to: usize,
    ) -> usize {
        let leaf = self.leaf.0.address();
        // SAFETY: as in `write_fixed`; the plan has the sum of the lengths.
        unsafe {
            let tags = base.add(HEAD_BYTES + at);
            let offsets = base.add(HEAD_BYTES + plan.n + plan.n % 2 + 2 * at).cast::<u16>();
            let (from, bytes) = match span {
                Span::Built(position) => {
                    key::copy(leaf.add(HEAD_BYTES + position), tags, len);
                    let from = self.free_offset(position);
                    let moved = (to / UNIT).wrapping_sub(from / UNIT) as u16;
                    for i in 0..len {
                        let offset = (self.leaf.built_at(position + i) / UNIT) as u16;
                        offsets.add(i).write(offset.wrapping_add(moved));
                    }
                    (from, self.free_offset(position + len) - from)
                }
                Span::Appended(number) => {
                    tags.write(self.leaf.appended_tag(number));
                    offsets.write((to / UNIT) as u16);
                    let from = usize::from(self.leaf.head().appended) * UNIT;
                    let from = self.leaf.u16_at(from + 2 * number) * UNIT;
                    (from, self.leaf.appended_record(number).free_bytes())
                }
                Span::Own => {
                    tags.write(self.own_tag);
                    offsets.write((to / UNIT) as u16);
                    write_free(base.add(to), [self.own.suffix, &[]], self.own.cell);
                    return to + self.own.free_bytes();
                }
            };
            std::ptr::copy_nonoverlapping(leaf.add(from), base.add(to), bytes);
            to + bytes
        }
    }
}
