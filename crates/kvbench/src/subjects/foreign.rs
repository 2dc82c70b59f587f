//! Structures of other languages, from libraries made with `include/kvbench_subject.h`, or from this program if peers
//! in C++ are compiled in.
//!
//! The header is the interface. As far as possible, its rules are checked when a library is loaded. The conformance kit
//! checks what the library does with keys and values.
#![expect(unsafe_code, reason = "functions of a library in another language are called")]

use super::{Pages, Reader, Subject, Writer};
use crate::data::{Kind, Strings, U64};
use forrest_base::lock;
use libloading::Library;
use std::ffi::{CStr, c_char, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Mutex, OnceLock};

/// `KVBENCH_ABI`.
const ABI: u32 = 1;
/// `KVBENCH_ORDERED`.
const ORDERED: u32 = 1;
/// `KVBENCH_SHARED`.
const SHARED: u32 = 2;
/// The function that returns a library's list of structures.
const SUBJECTS: &str = "kvbench_subjects";
/// Maximum number of structures in a library.
const OFFERS_MAX: usize = 1000;

/// `struct kvbench_bytes`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CBytes {
    data: *const u8,
    size: usize,
}

impl CBytes {
    fn of(bytes: &[u8]) -> CBytes {
        CBytes { data: bytes.as_ptr(), size: bytes.len() }
    }

    /// The bytes.
    ///
    /// # Safety
    ///
    /// `data` has `size` valid bytes for `'a`, unless `size` is 0.
    unsafe fn get<'a>(self) -> &'a [u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: `size` is not 0, checked above, so `data` has that many bytes for `'a`: see `# Safety`.
        unsafe { std::slice::from_raw_parts(self.data, self.size) }
    }
}

/// Shows pairs.
type See<T> = unsafe extern "C" fn(context: *mut c_void, keys: *const T, values: *const T, pairs: usize);

/// `struct kvbench_u64` and `struct kvbench_strings`.
#[repr(C)]
struct RawCalls<T> {
    create: Option<unsafe extern "C" fn() -> *mut c_void>,
    destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    reserve: Option<unsafe extern "C" fn(*mut c_void, usize)>,
    insert: Option<unsafe extern "C" fn(*mut c_void, T, T)>,
    get: Option<unsafe extern "C" fn(*const c_void, T, *mut T) -> bool>,
    remove: Option<unsafe extern "C" fn(*mut c_void, T) -> bool>,
    each: Option<unsafe extern "C" fn(*const c_void, See<T>, *mut c_void)>,
    scan: Option<unsafe extern "C" fn(*const c_void, T, usize, See<T>, *mut c_void)>,
    bytes: Option<unsafe extern "C" fn(*const c_void) -> u64>,
}

/// The same, after a check that all mandatory functions are present.
pub(crate) struct Calls<T> {
    create: unsafe extern "C" fn() -> *mut c_void,
    reserve: Option<unsafe extern "C" fn(*mut c_void, usize)>,
    insert: unsafe extern "C" fn(*mut c_void, T, T),
    get: unsafe extern "C" fn(*const c_void, T, *mut T) -> bool,
    remove: unsafe extern "C" fn(*mut c_void, T) -> bool,
    each: unsafe extern "C" fn(*const c_void, See<T>, *mut c_void),
    /// Present if the structure is ordered.
    scan: Option<unsafe extern "C" fn(*const c_void, T, usize, See<T>, *mut c_void)>,
    bytes: Option<unsafe extern "C" fn(*const c_void) -> u64>,
}

impl<T> Calls<T> {
    fn checked(raw: &RawCalls<T>, is_ordered: bool) -> Result<Self, String> {
        let missing = |name: &str| format!("has no function {name:?}");
        raw.destroy.ok_or_else(|| missing("destroy"))?;
        if is_ordered && raw.scan.is_none() {
            return Err(missing("scan"));
        }
        Ok(Calls {
            create: raw.create.ok_or_else(|| missing("create"))?,
            reserve: raw.reserve,
            insert: raw.insert.ok_or_else(|| missing("insert"))?,
            get: raw.get.ok_or_else(|| missing("get"))?,
            remove: raw.remove.ok_or_else(|| missing("remove"))?,
            each: raw.each.ok_or_else(|| missing("each"))?,
            scan: raw.scan,
            bytes: raw.bytes,
        })
    }
}

/// `struct kvbench_subject`.
#[repr(C)]
struct RawSubject {
    abi: u32,
    flags: u32,
    name: *const c_char,
    about: *const c_char,
    u64s: *const RawCalls<u64>,
    strings: *const RawCalls<CBytes>,
}

/// The type of [`SUBJECTS`].
type Subjects = unsafe extern "C" fn() -> *const *const RawSubject;

/// A structure of a library.
pub(crate) struct Offer {
    /// Its name in kvbench: with its library, if it has one.
    pub(crate) name: String,
    /// One line.
    pub(crate) about: String,
    /// Whether it shows pairs in order.
    pub(crate) ordered: bool,
    shared: bool,
    u64s: Option<Calls<u64>>,
    strings: Option<Calls<CBytes>>,
}

/// A string of a library.
///
/// # Safety
///
/// If `of` is not null, it ends in NUL and stays valid.
unsafe fn text(of: *const c_char, what: &str) -> Result<String, String> {
    if of.is_null() {
        return Err(format!("has no {what}"));
    }
    // SAFETY: `of` is not null, checked above; it ends in NUL and stays: see `# Safety`.
    let text =
        unsafe { CStr::from_ptr(of) }.to_str().map_err(|_| format!("has a {what} that is not UTF-8"))?;
    Ok(text.to_owned())
}

/// Whether a structure can have this name: one that no option or part of a name is taken for.
pub(crate) fn is_name(name: &str) -> bool {
    let may = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(may)
}

impl Offer {
    /// Reads a subject. Its name is prefixed with that of the library.
    ///
    /// # Safety
    ///
    /// The pointers of `raw` are null or lead to what the header describes.
    unsafe fn read(raw: &RawSubject, library: Option<&str>) -> Result<Offer, String> {
        if raw.abi != ABI {
            return Err(format!("is made for version {} of kvbench_subject.h, this is {ABI}", raw.abi));
        }
        // SAFETY: both are null, or end in NUL and stay, as the header demands of a subject.
        let (own, about) = unsafe { (text(raw.name, "name")?, text(raw.about, "description")?) };
        if !is_name(&own) {
            return Err(format!("is named {own:?}; names have lower-case letters, digits and -"));
        }
        if about.chars().any(char::is_control) {
            return Err(format!("{own} has a description of more than one line"));
        }
        if raw.flags & !(ORDERED | SHARED) != 0 {
            return Err(format!("{own} has unknown flags: {:#x}", raw.flags));
        }
        let is_ordered = raw.flags & ORDERED != 0;
        // SAFETY: both are null or lead to a table of the header: see `# Safety`.
        let (u64s, strings) = unsafe { (raw.u64s.as_ref(), raw.strings.as_ref()) };
        if u64s.is_none() && strings.is_none() {
            return Err(format!("{own} holds neither numbers nor strings"));
        }
        let of = |why: String| format!("{own} {why}");
        Ok(Offer {
            name: library.map_or_else(|| own.clone(), |library| format!("{library}:{own}")),
            about,
            ordered: is_ordered,
            shared: raw.flags & SHARED != 0,
            u64s: u64s.map(|raw| Calls::checked(raw, is_ordered)).transpose().map_err(of)?,
            strings: strings.map(|raw| Calls::checked(raw, is_ordered)).transpose().map_err(of)?,
        })
    }

    /// All structures of a library.
    ///
    /// # Safety
    ///
    /// `subjects` returns a list as the header describes it.
    unsafe fn all(subjects: Subjects, library: Option<&str>) -> Result<Vec<Offer>, String> {
        // SAFETY: `subjects` is the library's function of the header, and has no arguments.
        let mut list = unsafe { subjects() };
        let mut offers: Vec<Offer> = Vec::new();
        if list.is_null() {
            return Err("offers nothing".to_owned());
        }
        // SAFETY: the list ends in null by the contract of the header, and the loop stops at it.
        while let Some(raw) = unsafe { (*list).as_ref() } {
            if offers.len() == OFFERS_MAX {
                return Err(format!(
                    "offers more than {OFFERS_MAX} structures, or its list does not end in null"
                ));
            }
            // SAFETY: `raw` is a subject as the header describes it: see `# Safety`.
            let offer = unsafe { Offer::read(raw, library) }?;
            if offers.iter().any(|there| there.name == offer.name) {
                return Err(format!("offers {} twice", offer.name));
            }
            offers.push(offer);
            // SAFETY: the current element was not the null at the end, so the list has a next one.
            list = unsafe { list.add(1) };
        }
        if offers.is_empty() { Err("offers nothing".to_owned()) } else { Ok(offers) }
    }

    /// Whether it holds numbers.
    pub(crate) fn holds_u64s(&self) -> bool {
        self.u64s.is_some()
    }

    /// Whether it holds strings.
    pub(crate) fn holds_strings(&self) -> bool {
        self.strings.is_some()
    }
}

/// Whether a name is that of a library, with or without the name of a structure.
pub(crate) fn is_library(name: &str) -> bool {
    name.ends_with(".so") || name.contains(".so:")
}

/// The loaded structures, by library.
static LOADED: Mutex<Vec<(String, &'static [Offer])>> = Mutex::new(Vec::new());

/// The structures of a library. It is loaded once and never unloaded, since the process uses it until it ends.
pub(crate) fn load(path: &str) -> Result<&'static [Offer], String> {
    let mut loaded = lock(&LOADED);
    if let Some((_, offers)) = loaded.iter().find(|(name, _)| name == path) {
        return Ok(offers);
    }
    // dlopen searches the system's libraries for a name without a slash; the user means the file here.
    let file = if path.contains('/') { path.to_owned() } else { format!("./{path}") };
    // SAFETY: loading runs the library's initializers; the user named the library in order to run its code.
    let library =
        unsafe { Library::new(&file) }.map_err(|error| format!("{path} cannot be loaded: {error}"))?;
    let library = Box::leak(Box::new(library));
    // SAFETY: kvbench_subject.h declares a function of this name with this type.
    let subjects = unsafe { library.get::<Subjects>(SUBJECTS.as_bytes()) };
    let subjects =
        subjects.map_err(|_| format!("{path} has no function {SUBJECTS}: see kvbench_subject.h"))?;
    // SAFETY: the library exports the function of the header, so it has to follow the header's rules.
    let offers = unsafe { Offer::all(*subjects, Some(path)) }.map_err(|why| format!("{path} {why}"))?;
    let offers: &'static [Offer] = Vec::leak(offers);
    loaded.push((path.to_owned(), offers));
    Ok(offers)
}

/// The structures that are compiled into this program.
pub(crate) fn compiled_in() -> &'static [Offer] {
    #[cfg(peers)]
    {
        unsafe extern "C" {
            fn kvbench_subjects() -> *const *const RawSubject;
        }
        static OFFERS: OnceLock<Vec<Offer>> = OnceLock::new();
        // SAFETY: `kvbench_subjects` is compiled with the header, and tests load all its structures.
        OFFERS.get_or_init(|| unsafe { Offer::all(kvbench_subjects, None) }.unwrap_or_default())
    }
    #[cfg(not(peers))]
    &[]
}

/// Finds a structure: one that is compiled in, `LIBRARY.so:STRUCTURE`, or `LIBRARY.so` if it has only one.
pub(crate) fn find(name: &str) -> Result<&'static Offer, String> {
    if let Some(offer) = compiled_in().iter().find(|offer| offer.name == name) {
        return Ok(offer);
    }
    let (library, structure) = match name.rsplit_once(".so:") {
        Some((library, structure)) => (format!("{library}.so"), Some(structure)),
        None => (name.to_owned(), None),
    };
    let offers = load(&library)?;
    let own = |offer: &Offer| offer.name[library.len() + 1..].to_owned();
    let all = || offers.iter().map(own).collect::<Vec<_>>().join(", ");
    match (structure, offers) {
        (None, [offer]) => Ok(offer),
        (None, _) => Err(format!("{library} offers several structures: use {library}:NAME, of {}", all())),
        (Some(structure), _) => {
            let found = offers.iter().find(|offer| own(offer) == structure);
            found.ok_or_else(|| format!("{library} offers no {structure:?}, but {}", all()))
        }
    }
}

/// The one that this process measures.
static CHOSEN: OnceLock<&'static Offer> = OnceLock::new();

/// Selects the structure that this process measures, once.
pub(crate) fn choose(name: &str) -> Result<&'static Offer, String> {
    let offer = find(name)?;
    let chosen = CHOSEN.get_or_init(|| offer);
    if ptr::eq(*chosen, offer) { Ok(offer) } else { Err(format!("this process measures {}", chosen.name)) }
}

/// A kind of pairs as the header has it.
pub(crate) trait Native: Kind {
    /// A key or a value.
    type Cell: Copy + 'static;

    /// The calls of a structure for this kind.
    fn calls(offer: &'static Offer) -> Option<&'static Calls<Self::Cell>>;
    /// A key as the library's type; valid as long as `key`.
    fn key_cell(key: Self::Key<'_>) -> Self::Cell;
    /// A value as the library's type; valid as long as `value`.
    fn value_cell(value: Self::Value<'_>) -> Self::Cell;
    /// Space for a value.
    fn empty() -> Self::Cell;
    /// A key that the library showed.
    ///
    /// # Safety
    ///
    /// Its bytes stay valid for `'a`.
    unsafe fn found_of<'a>(cell: Self::Cell) -> Self::Found<'a>;
    /// A value that the library showed.
    ///
    /// # Safety
    ///
    /// Its bytes stay valid for `'a`.
    unsafe fn value_of<'a>(cell: Self::Cell) -> Self::Value<'a>;
}

impl Native for U64 {
    type Cell = u64;

    fn calls(offer: &'static Offer) -> Option<&'static Calls<u64>> {
        offer.u64s.as_ref()
    }

    #[inline]
    fn key_cell(key: u64) -> u64 {
        key
    }

    #[inline]
    fn value_cell(value: u64) -> u64 {
        value
    }

    #[inline]
    fn empty() -> u64 {
        0
    }

    #[inline]
    unsafe fn found_of<'a>(cell: u64) -> Self::Found<'a> {
        cell
    }

    #[inline]
    unsafe fn value_of<'a>(cell: u64) -> Self::Value<'a> {
        cell
    }
}

impl Native for Strings {
    type Cell = CBytes;

    fn calls(offer: &'static Offer) -> Option<&'static Calls<CBytes>> {
        offer.strings.as_ref()
    }

    #[inline]
    fn key_cell(key: Self::Key<'_>) -> CBytes {
        CBytes::of(key.bytes())
    }

    #[inline]
    fn value_cell(value: &[u8]) -> CBytes {
        CBytes::of(value)
    }

    #[inline]
    fn empty() -> CBytes {
        CBytes::of(&[])
    }

    #[inline]
    unsafe fn found_of<'a>(cell: CBytes) -> &'a [u8] {
        // SAFETY: the bytes of `cell` stay for `'a`: see `Native::found_of`.
        unsafe { cell.get() }
    }

    #[inline]
    unsafe fn value_of<'a>(cell: CBytes) -> &'a [u8] {
        // SAFETY: the bytes of `cell` stay for `'a`: see `Native::value_of`.
        unsafe { cell.get() }
    }
}

/// The structure that this process measures.
pub(crate) struct Foreign<K: Native, const ORDERED: bool> {
    map: *mut c_void,
    calls: &'static Calls<K::Cell>,
    shared: bool,
    kind: PhantomData<K>,
}

// SAFETY: the header demands that concurrent readers are safe, and concurrent writers if the structure sets the flag
// for shared writing; without the flag, `shared_writer` returns `None`.
unsafe impl<K: Native, const ORDERED: bool> Send for Foreign<K, ORDERED> {}
// SAFETY: as for `Send`.
unsafe impl<K: Native, const ORDERED: bool> Sync for Foreign<K, ORDERED> {}

/// Calls `see` with pairs that a library shows.
unsafe extern "C" fn show<K: Native, F: FnMut(K::Found<'_>, K::Value<'_>)>(
    see: *mut c_void,
    keys: *const K::Cell,
    values: *const K::Cell,
    pairs: usize,
) {
    // SAFETY: `pointers` passed this pointer together with this function; it is an exclusively borrowed closure.
    let see = unsafe { &mut *see.cast::<F>() };
    for at in 0..pairs {
        // SAFETY: the header demands that `pairs` pairs stay valid until this function returns.
        unsafe { see(K::found_of(*keys.add(at)), K::value_of(*values.add(at))) };
    }
}

/// A closure as a function and its context.
fn pointers<K: Native, F: FnMut(K::Found<'_>, K::Value<'_>)>(see: &mut F) -> (See<K::Cell>, *mut c_void) {
    (show::<K, F>, ptr::from_mut(see).cast())
}

impl<K: Native, const ORDERED: bool> Subject<K> for Foreign<K, ORDERED> {
    const ORDERED: bool = ORDERED;
    const COUNTED: bool = false;
    type Reader<'a> = &'a Self;
    type Writer<'a> = &'a Self;

    fn build(_: Pages) -> Result<Self, String> {
        let offer = CHOSEN.get().ok_or("no structure was selected for this process")?;
        let calls = K::calls(offer).ok_or("it does not hold such pairs")?;
        // SAFETY: `create` has no arguments.
        let map = unsafe { (calls.create)() };
        if map.is_null() {
            return Err("the library could not create it".to_owned());
        }
        Ok(Foreign { map, calls, shared: offer.shared, kind: PhantomData })
    }

    fn reader(&self) -> &Self {
        self
    }

    fn writer(&mut self) -> &Self {
        self
    }

    fn shared_writer(&self) -> Option<&Self> {
        self.shared.then_some(self)
    }

    fn reserve(&mut self, keys: usize) -> bool {
        let Some(reserve) = self.calls.reserve else { return false };
        // SAFETY: `map` is alive, and `&mut self` excludes all other calls.
        unsafe { reserve(self.map, keys) };
        true
    }

    fn own_bytes(&self) -> u64 {
        // SAFETY: `map` is alive.
        self.calls.bytes.map_or(0, |bytes| unsafe { bytes(self.map) })
    }
}

impl<K: Native, const ORDERED: bool> Reader<K> for &Foreign<K, ORDERED> {
    #[inline]
    fn get<R>(&self, key: K::Key<'_>, see: impl FnOnce(K::Value<'_>) -> R) -> Option<R> {
        let mut value = K::empty();
        // SAFETY: `map` is alive, the key outlives the call, and the value stays valid until the next call.
        unsafe { (self.calls.get)(self.map, K::key_cell(key), &mut value).then(|| see(K::value_of(value))) }
    }

    fn scan(&self, from: K::Key<'_>, count: usize, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let Some(scan) = self.calls.scan else { return };
        let (function, context) = pointers::<K, _>(&mut see);
        // SAFETY: `map` is alive, and the context `see` lives until the call returns.
        unsafe { scan(self.map, K::key_cell(from), count, function, context) };
    }

    fn iterate(&self, mut see: impl FnMut(K::Found<'_>, K::Value<'_>)) {
        let (function, context) = pointers::<K, _>(&mut see);
        // SAFETY: `map` is alive, and the context `see` lives until the call returns.
        unsafe { (self.calls.each)(self.map, function, context) };
    }
}

impl<K: Native, const ORDERED: bool> Writer<K> for &Foreign<K, ORDERED> {
    #[inline]
    fn insert(&mut self, key: K::Key<'_>, value: K::Value<'_>) {
        // SAFETY: `map` is alive, and key and value outlive the call. `writer` borrows mutably, so there is no other
        // thread; `shared_writer` returns a writer only with the flag for shared writing.
        unsafe { (self.calls.insert)(self.map, K::key_cell(key), K::value_cell(value)) };
    }

    #[inline]
    fn remove(&mut self, key: K::Key<'_>) -> bool {
        // SAFETY: as in `insert`.
        unsafe { (self.calls.remove)(self.map, K::key_cell(key)) }
    }
}
