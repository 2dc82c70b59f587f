//! Inner nodes: up to 64 children, searched by comparing four bytes of every separator at once.
//!
//! ```text
//! 0     head      Head, one line, with the first bytes of the prefix
//! 64    heads     64 x i32: of each separator the four bytes after the prefix, with the top bit flipped so
//!                 that signed comparison orders them; unused ones are i32::MAX
//! 320   slots     n x u64, atomic: the children
//!       ends      (n - 1) x u32: where each separator ends in the bytes below, counted from the prefix's start
//!       bytes     the separators' common prefix, then each separator without it
//! ```
//!
//! Separator *i* is above every key of child *i* and at or below every key of child *i + 1*, and as short as
//! that allows. If several heads equal the key's, a binary search compares the whole separators among them.

use crate::arena::{self, LINE_BYTES, Supply};
use crate::key::{Key, Pieces};
use crate::node::{Common, Node, Share, Slot};
use crate::simd::{Base, HEADS, Isa};
use forrest_machine::prefetch;
use std::cmp::Ordering::{Equal, Less};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most children.
pub(crate) const CHILDREN_MAX: usize = HEADS;
/// A node is split where its separators take more without their common prefix, in bytes, if it has children enough.
const SEPARATOR_BYTES_MAX: usize = 16 << 10;

/// Most lines of separators that are fetched before they are compared.
const FETCHED_LINES_MAX: usize = 8;

const HEADS_AT: usize = 64;
const SLOTS_AT: usize = HEADS_AT + 4 * HEADS;

#[repr(C)]
struct Head {
    common: Common,
    prefix_word: u64,
    prefix_len: u16,
    children: u16,
    lines: u16,
    /// The prefix after its first word, as far as it fits, so that most are compared without another line.
    rest: [u8; REST],
}
/// Bytes of a prefix after its first word that are in the head.
const REST: usize = 34;
#[cfg(not(feature = "loom"))]
const _: () = assert!(size_of::<Head>() == HEADS_AT);

/// An inner node that stays allocated for `'g`.
#[derive(Clone, Copy)]
pub(crate) struct InnerNode<'g>(Node<'g>);

fn signed(head: u32) -> i32 {
    (head ^ 1 << 31) as i32
}

impl<'g> InnerNode<'g> {
    #[inline(always)]
    pub(crate) fn new(node: Node<'g>) -> InnerNode<'g> {
        debug_assert_ne!(node.level(), 0);
        InnerNode(node)
    }

    pub(crate) fn node(self) -> Node<'g> {
        self.0
    }

    #[inline(always)]
    fn head(self) -> &'g Head {
        // SAFETY: an inner node starts with its head, in which only the lock word changes.
        unsafe { &*self.0.address().cast() }
    }

    #[inline(always)]
    pub(crate) fn children(self) -> usize {
        usize::from(self.head().children)
    }

    pub(crate) fn lines(self) -> u32 {
        u32::from(self.head().lines)
    }

    #[inline(always)]
    fn heads(self) -> &'g [i32; HEADS] {
        // SAFETY: the heads were built at this place.
        unsafe { &*self.0.address().add(HEADS_AT).cast() }
    }

    #[inline(always)]
    fn slot(self, index: usize) -> &'g AtomicU64 {
        debug_assert!(index < self.children());
        // SAFETY: slots were built at this place, aligned to eight.
        unsafe { &*self.0.address().add(SLOTS_AT + 8 * index).cast() }
    }

    /// The child at an index.
    #[inline(always)]
    pub(crate) fn child(self, index: usize) -> Slot {
        // ORDERING: acquire pairs with `set_child`: the child is complete.
        Slot(self.slot(index).load(Ordering::Acquire))
    }

    /// Replaces a child. The caller holds the lock, or the node is not linked.
    pub(crate) fn set_child(self, index: usize, slot: Slot) {
        self.slot(index).store(slot.0, Ordering::Release);
    }

    /// A copy of this era with one child replaced. `None` if there is no memory. The caller holds the lock, so that no
    /// child changes meanwhile.
    pub(crate) fn copy_with(self, supply: Supply<'_>, era: u64, index: usize, child: Slot) -> Option<Slot> {
        let lines = self.lines();
        let handle = supply.take(lines)?;
        let to = supply.arena.at(handle).as_ptr();
        let common = Common::new(self.0.level(), [0; 3], era);
        let (after, len) = (size_of::<Common>(), lines as usize * LINE_BYTES - size_of::<Common>());
        // SAFETY: both blocks have `lines` lines, and the new one is not linked. The bytes after `Common`, where other
        // threads try the lock, do not change under the lock. A slot is written like an atomic one.
        unsafe {
            to.cast::<Common>().write(common);
            to.add(after).copy_from_nonoverlapping(self.0.address().add(after), len);
            to.add(SLOTS_AT + 8 * index).cast::<u64>().write(child.0);
        }
        let has_runs = has_runs(&self.heads()[..self.children() - 1]);
        Some(Slot::of_inner(handle, SLOTS_AT, self.children(), has_runs))
    }

    fn bytes_at(self) -> usize {
        SLOTS_AT + 8 * self.children() + 4 * (self.children() - 1)
    }

    fn end(self, index: usize) -> usize {
        debug_assert!(index + 1 < self.children());
        // SAFETY: `build` wrote one end for each separator after the slots, aligned to four, and `index` is below their
        // number.
        unsafe {
            self.0.address().add(SLOTS_AT + 8 * self.children() + 4 * index).cast::<u32>().read() as usize
        }
    }

    #[inline(always)]
    fn prefix(self) -> &'g [u8] {
        // SAFETY: the prefix was built at this place.
        unsafe { self.0.bytes(self.bytes_at(), usize::from(self.head().prefix_len)) }
    }

    /// A separator without the prefix.
    fn suffix(self, index: usize) -> &'g [u8] {
        let from = if index == 0 { usize::from(self.head().prefix_len) } else { self.end(index - 1) };
        // SAFETY: separators were built at this place.
        unsafe { self.0.bytes(self.bytes_at() + from, self.end(index) - from) }
    }

    /// A separator.
    pub(crate) fn separator(self, index: usize) -> Pieces<'g> {
        Pieces([self.prefix(), self.suffix(index)])
    }

    /// The child that a key belongs to.
    #[inline(always)]
    pub(crate) fn route(self, key: &Key<'_>) -> usize {
        // SAFETY: every processor has the base.
        unsafe { self.below::<Base>(key, true) }
    }

    /// As [`InnerNode::route`].
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    pub(crate) unsafe fn route_by<I: Isa>(self, key: &Key<'_>) -> usize {
        // SAFETY: the processor has `I`, as this function requires.
        unsafe { self.below::<I>(key, true) }
    }

    /// How far a key is into the range of its child.
    #[inline(always)]
    pub(crate) fn share(self, index: usize, key: &Key<'_>) -> Share {
        let heads = self.heads();
        let at = signed(key.head(usize::from(self.head().prefix_len)));
        let [before, head, behind] =
            [index.wrapping_sub(1), index, index.wrapping_add(1)].map(|index| heads[index % HEADS]);
        // The node does not know the outer bounds of its first and last child. Assume ranges as wide as their
        // neighbours'.
        if index == 0 {
            return Share::between(head.wrapping_sub(behind.wrapping_sub(head)), at, head);
        }
        if index + 1 >= self.children() {
            let width = before.wrapping_sub(heads[index.wrapping_sub(2) % HEADS]);
            return Share::between(before, at, before.wrapping_add(width));
        }
        Share::between(before, at, head)
    }

    /// The child with the largest keys below `key`.
    pub(crate) fn route_before(self, key: &Key<'_>) -> usize {
        // SAFETY: every processor has the base.
        unsafe { self.below::<Base>(key, false) }
    }

    /// How many separators are below the key, or equal to it if `or_equal`.
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    unsafe fn below<I: Isa>(self, key: &Key<'_>, or_equal: bool) -> usize {
        // SAFETY: the processor has `I`, as this function requires.
        match unsafe { self.below_by_heads::<I>(key) } {
            Ok(rank) => rank,
            Err(run) => self.below_among(run, key, or_equal),
        }
    }

    /// How many separators are below the key, or equal to it, if heads alone show it. Otherwise, the separators that
    /// have the key's head, fetched for [`InnerNode::below_among`].
    ///
    /// # Safety
    /// The processor has the instruction set.
    #[inline(always)]
    pub(crate) unsafe fn below_by_heads<I: Isa>(self, key: &Key<'_>) -> Result<usize, Range<usize>> {
        let head = self.head();
        let len = usize::from(head.prefix_len);
        if !key.begins_with(head.prefix_word, &head.rest, len, || self.prefix()) {
            return Ok(if *key.bytes < *self.prefix() { 0 } else { self.children() - 1 });
        }
        let wanted = signed(key.head(len));
        // SAFETY: the processor has `I`, as this function requires.
        let rank = unsafe { I::rank(self.heads(), wanted) };
        // Heads beyond the separators are the greatest of all, so `rank` is below HEADS in any case.
        if rank + 1 < self.children() && self.heads()[rank % HEADS] == wanted {
            return Err(self.run(rank, wanted));
        }
        Ok(rank)
    }

    /// The separators from `first` on that have a head, fetched: they are side by side, without the prefix. Of many,
    /// the first lines are.
    #[inline(never)]
    fn run(self, first: usize, head: i32) -> Range<usize> {
        let equals = self.heads()[first..self.children() - 1].iter().take_while(|&&h| h == head).count();
        let run = first..first + equals;
        let begin = if first == 0 { usize::from(self.head().prefix_len) } else { self.end(first - 1) };
        let end = self.end(run.end - 1).min(begin + FETCHED_LINES_MAX * LINE_BYTES);
        let bytes = self.0.address().wrapping_add(self.bytes_at());
        (begin..end).step_by(LINE_BYTES).for_each(|at| prefetch::read(bytes.wrapping_add(at)));
        run
    }

    /// How many separators are below the key, or equal to it if `or_equal`, where these are the ones with its head.
    #[inline(never)]
    pub(crate) fn below_among(self, run: Range<usize>, key: &Key<'_>, or_equal: bool) -> usize {
        let suffix = &key.bytes[usize::from(self.head().prefix_len)..];
        let (mut from, mut to) = (run.start, run.end);
        while from < to {
            let middle = (from + to) / 2;
            let order = self.suffix(middle).cmp(suffix);
            if order == Less || (or_equal && order == Equal) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    }
}

/// A list of children with the separators between them, being edited. The separators stay where they are, in nodes or
/// entries.
#[derive(Default)]
pub(crate) struct Children<'s> {
    slots: Vec<Slot>,
    /// The separator before each child; that of the first is not used.
    before: Vec<Pieces<'s>>,
}

impl<'s> Children<'s> {
    pub(crate) fn with_capacity(children: usize) -> Self {
        Children { slots: Vec::with_capacity(children), before: Vec::with_capacity(children) }
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Appends a child, with the separator before it.
    pub(crate) fn push(&mut self, slot: Slot, before: Pieces<'s>) {
        self.slots.push(slot);
        self.before.push(before);
    }

    /// Appends children `range` of a node; `before` separates the first from the children already here.
    pub(crate) fn extend(&mut self, node: InnerNode<'s>, range: Range<usize>, before: Pieces<'s>) {
        let first = range.start;
        for index in range {
            let separator = if index == first { before } else { node.separator(index - 1) };
            self.push(node.child(index), separator);
        }
    }

    /// Appends another list; `before` separates the two.
    pub(crate) fn append(&mut self, other: &Children<'s>, before: Pieces<'s>) {
        for (index, &slot) in other.slots.iter().enumerate() {
            self.push(slot, if index == 0 { before } else { other.before[index] });
        }
    }

    /// The separator before a child.
    pub(crate) fn separator(&self, index: usize) -> Pieces<'s> {
        self.before[index]
    }

    /// Length of what the separators of a node of children `range` have in common.
    fn prefix_len(&self, range: &Range<usize>) -> usize {
        match range.len() {
            0..=2 => 0,
            _ => self.before[range.start + 1].common_prefix(self.before[range.end - 1]),
        }
    }

    /// True if a node should not have children `range`, because their separators take more than these bytes without
    /// their common prefix. Three children may be together whatever their separators take.
    fn takes_more(&self, range: Range<usize>, bytes_max: usize) -> bool {
        let separators = range.len() - 1;
        let bytes: usize = self.before[range.start + 1..range.end].iter().map(|before| before.len()).sum();
        separators > 2 && bytes > bytes_max && bytes - separators * self.prefix_len(&range) > bytes_max
    }

    /// True if all children may be together in a node and more may come.
    pub(crate) fn suit_one(&self) -> bool {
        !self.takes_more(0..self.len(), SEPARATOR_BYTES_MAX / 2)
    }

    /// Where to cut so that each piece fits a node, given which child is the newest: ends of pieces.
    pub(crate) fn cuts(&self, newest: usize) -> Vec<usize> {
        let mut cuts = Vec::new();
        self.cut(0, self.len(), newest, &mut cuts);
        cuts.push(self.len());
        cuts
    }

    fn cut(&self, from: usize, to: usize, newest: usize, cuts: &mut Vec<usize>) {
        if to - from <= CHILDREN_MAX && !self.takes_more(from..to, SEPARATOR_BYTES_MAX) {
            return;
        }
        // In order of keys, nodes are left nearly full.
        let at = if newest + 1 == to && to - from == CHILDREN_MAX + 1 { to - 2 } else { (from + to) / 2 };
        self.cut(from, at, newest, cuts);
        cuts.push(at);
        self.cut(at, to, newest, cuts);
    }

    /// Builds a node of children `range`. `None` if there is no memory.
    pub(crate) fn build(&self, supply: Supply<'_>, era: u64, level: u8, range: Range<usize>) -> Option<Slot> {
        let n = range.len();
        debug_assert!((1..=CHILDREN_MAX).contains(&n));
        let prefix_len = self.prefix_len(&range);
        let separators = &self.before[range.start + 1..range.end];
        let prefix = separators.first().copied().unwrap_or_default().split_at(prefix_len).0;
        let bytes: usize = separators.iter().map(|separator| separator.len() - prefix_len).sum();
        let total = SLOTS_AT + 8 * n + 4 * (n - 1) + prefix_len + bytes;
        let lines = arena::rounded(total.div_ceil(LINE_BYTES) as u32);
        let handle = supply.take(lines)?;
        let base = supply.arena.at(handle).as_ptr();
        let mut heads = [i32::MAX; HEADS];
        let head = Head {
            common: Common::new(level, [0; 3], era),
            prefix_word: u64::from_be_bytes(prefix.start()),
            prefix_len: prefix_len as u16,
            children: n as u16,
            lines: lines as u16,
            rest: prefix.split_at(prefix_len.min(8)).1.start(),
        };
        // SAFETY: the block was allocated above and is not linked; all offsets are below `total`.
        unsafe {
            base.cast::<Head>().write(head);
            let slots = base.add(SLOTS_AT).cast::<u64>();
            self.slots[range].iter().enumerate().for_each(|(i, slot)| slots.add(i).write(slot.0));
            let ends = slots.add(n).cast::<u32>();
            let text = ends.add(n - 1).cast::<u8>();
            prefix.write(text);
            let mut end = prefix_len;
            for (i, separator) in separators.iter().enumerate() {
                let suffix = separator.split_at(prefix_len).1;
                heads[i] = signed(u32::from_be_bytes(suffix.start()));
                suffix.write(text.add(end));
                end += suffix.len();
                ends.add(i).write(end as u32);
            }
            base.add(HEADS_AT).cast::<[i32; HEADS]>().write(heads);
        }
        Some(Slot::of_inner(handle, SLOTS_AT, n, has_runs(&heads[..n - 1])))
    }
}

/// Whether heads that are next to each other are equal, so that whole separators are compared.
fn has_runs(heads: &[i32]) -> bool {
    heads.windows(2).any(|pair| pair[0] == pair[1])
}
