//! Values of host code: one 64-bit word each.
//!
//! `int` and `bool` are an i64, `float` an f64 by its bits, `None` is 0, a dtype its position
//! in [`tessera_base::DType::ALL`]; everything else is the address of a counted object. Counts
//! are not atomic: host code runs on one thread (tensor memory is shared through `Arc`).

use crate::tensor::Tensor;
use indexmap::{Equivalent, IndexMap, IndexSet};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, offset_of};
use std::ptr::NonNull;
use std::sync::Arc;
use tessera_abi::layout;

/// A type as values need it: by position in a [`TypeTable`].
pub type TypeId = u32;

/// The runtime's view of a type; the mirror of the compiler's host types.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TypeInfo {
    Int,
    Float,
    Bool,
    Str,
    None,
    DType,
    Tensor,
    List(TypeId),
    /// Keys are strings or ints.
    Dict(TypeId, TypeId),
    Tuple(Vec<TypeId>),
    Struct { name: Arc<str>, fields: Vec<(Arc<str>, TypeId)> },
    Fn { params: Vec<TypeId>, ret: TypeId },
}

impl TypeInfo {
    /// Whether words of this type are addresses of counted objects.
    pub fn counted(&self) -> bool {
        !matches!(self, TypeInfo::Int | TypeInfo::Float | TypeInfo::Bool | TypeInfo::None | TypeInfo::DType)
    }
}

/// Every type of the process, each once. The scalar types have fixed positions.
pub struct TypeTable {
    infos: IndexSet<TypeInfo>,
}

impl Default for TypeTable {
    fn default() -> Self {
        use TypeInfo::*;
        TypeTable { infos: IndexSet::from([Int, Float, Bool, Str, None, DType, Tensor]) }
    }
}

impl TypeTable {
    pub const INT: TypeId = 0;
    pub const FLOAT: TypeId = 1;
    pub const BOOL: TypeId = 2;
    pub const STR: TypeId = 3;
    pub const NONE: TypeId = 4;
    pub const DTYPE: TypeId = 5;
    pub const TENSOR: TypeId = 6;

    pub fn add(&mut self, info: TypeInfo) -> TypeId {
        self.infos.insert_full(info).0 as TypeId
    }

    /// The type at a position; `None` for one that was never added.
    pub fn get(&self, id: TypeId) -> &TypeInfo {
        self.infos.get_index(id as usize).unwrap_or(&TypeInfo::None)
    }

    pub fn counted(&self, id: TypeId) -> bool {
        self.get(id).counted()
    }

    /// The types of a record's fields, in order.
    pub fn field(&self, record: TypeId, index: usize) -> TypeId {
        match self.get(record) {
            TypeInfo::Tuple(items) => items.get(index).copied().unwrap_or(Self::NONE),
            TypeInfo::Struct { fields, .. } => fields.get(index).map_or(Self::NONE, |f| f.1),
            _ => Self::NONE,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Kind {
    Str,
    List,
    Dict,
    Record,
    Closure,
    Tensor,
}

/// What every heap object starts with.
#[repr(C)]
pub struct Header {
    pub count: Cell<u64>,
    pub kind: Kind,
}

/// Objects that are never freed start with this many owners.
const IMMORTAL: u64 = 1 << 62;

impl Header {
    fn new(kind: Kind) -> Header {
        Header { count: Cell::new(1), kind }
    }
}

/// Heap objects: structures that begin with a [`Header`].
///
/// # Safety
/// The structure is `repr(C)`, its first field is a header, and `KIND` is what that holds.
pub unsafe trait Object {
    const KIND: Kind;
}

/// UTF-8 text; positions count characters.
#[repr(C)]
pub struct StrObj {
    header: Header,
    chars: usize,
    text: String,
}

/// Words of one type.
#[repr(C)]
pub struct ListObj {
    header: Header,
    data: NonNull<u64>,
    len: usize,
    capacity: usize,
    pub elem: TypeId,
    /// Whether the words are addresses of objects.
    pub counted: bool,
}

/// Words by key, in order of insertion.
#[repr(C)]
pub struct DictObj {
    header: Header,
    /// The dict type.
    pub ty: TypeId,
    pub value: TypeId,
    pub map: IndexMap<Key, u64>,
}

/// A tuple or a struct; the words of the fields follow the structure.
#[repr(C)]
pub struct RecordObj {
    header: Header,
    pub ty: TypeId,
    pub len: u32,
    words: [u64; 0],
}

/// Code and captured words; the type ids of the captures follow them.
#[repr(C)]
pub struct ClosureObj {
    header: Header,
    pub code: usize,
    pub len: usize,
    words: [u64; 0],
}

#[repr(C)]
pub struct TensorObj {
    header: Header,
    pub tensor: Tensor,
}

macro_rules! objects {
    ($($ty:ident $kind:ident),*) => { $(
        // SAFETY: `repr(C)`, and the header comes first.
        unsafe impl Object for $ty { const KIND: Kind = Kind::$kind; }
    )* };
}
objects!(StrObj Str, ListObj List, DictObj Dict, RecordObj Record, ClosureObj Closure, TensorObj Tensor);

const _: () = {
    assert!(offset_of!(Header, count) == layout::object::COUNT as usize);
    assert!(offset_of!(StrObj, chars) == layout::string::CHARS as usize);
    assert!(offset_of!(ListObj, data) == layout::list::DATA as usize);
    assert!(offset_of!(ListObj, len) == layout::list::LEN as usize);
    assert!(offset_of!(RecordObj, words) == layout::record::WORDS as usize);
    assert!(offset_of!(ClosureObj, code) == layout::closure::CODE as usize);
    assert!(offset_of!(ClosureObj, words) == layout::closure::WORDS as usize);
};

/// An owned reference to an object, as a word that compiled code hands over.
#[repr(transparent)]
pub struct Own<T: Object>(NonNull<T>);

impl<T: Object> Own<T> {
    pub fn get(&self) -> &T {
        // SAFETY: an owner keeps the object alive.
        unsafe { self.0.as_ref() }
    }

    pub fn word(self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// # Safety
    /// `word` is an owned reference to a live object of this kind.
    pub unsafe fn of(word: u64) -> Own<T> {
        // SAFETY: the caller's promise: not null.
        Own(unsafe { NonNull::new_unchecked(word as *mut T) })
    }

    fn header(&self) -> &Header {
        // SAFETY: objects start with a header.
        unsafe { self.0.cast().as_ref() }
    }

    fn is_shared(&self) -> bool {
        self.header().count.get() != 1
    }
}

/// The object that a word refers to.
///
/// # Safety
/// `word` is a reference to a live object of this kind, which outlives `'a`.
pub unsafe fn object<'a, T: Object>(word: u64) -> &'a T {
    // SAFETY: the caller's promise.
    unsafe { &*(word as *const T) }
}

/// The text of a string word.
///
/// # Safety
/// `word` is a live string, which outlives `'a`.
pub unsafe fn text<'a>(word: u64) -> &'a str {
    // SAFETY: the caller's promise.
    unsafe { object::<StrObj>(word).text() }
}

/// The tensor of a tensor word.
///
/// # Safety
/// `word` is a live tensor, which outlives `'a`.
pub unsafe fn tensor<'a>(word: u64) -> &'a Tensor {
    // SAFETY: the caller's promise.
    unsafe { &object::<TensorObj>(word).tensor }
}

fn boxed<T: Object>(object: T) -> u64 {
    Box::into_raw(Box::new(object)) as u64
}

/// The word of an unboxed object that no one else holds.
pub fn into_word<T: Object>(object: Box<T>) -> u64 {
    Box::into_raw(object) as u64
}

pub fn new_str(text: impl Into<String>) -> u64 {
    let text = text.into();
    let chars = if text.is_ascii() { text.len() } else { text.chars().count() };
    new_str_counted(text, chars)
}

/// A string whose number of characters is known.
pub fn new_str_counted(text: String, chars: usize) -> u64 {
    boxed(StrObj { header: Header::new(Kind::Str), chars, text })
}

pub fn new_tensor(tensor: Tensor) -> u64 {
    boxed(TensorObj { header: Header::new(Kind::Tensor), tensor })
}

/// Takes over one reference of each word.
pub fn new_list(types: &TypeTable, elem: TypeId, words: Vec<u64>) -> u64 {
    into_word(list_of(elem, types.counted(elem), words))
}

fn list_of(elem: TypeId, counted: bool, words: Vec<u64>) -> Box<ListObj> {
    let mut words = ManuallyDrop::new(words);
    Box::new(ListObj {
        header: Header::new(Kind::List),
        // SAFETY: a vector's pointer is never null.
        data: unsafe { NonNull::new_unchecked(words.as_mut_ptr()) },
        len: words.len(),
        capacity: words.capacity(),
        elem,
        counted,
    })
}

pub fn new_dict(types: &TypeTable, ty: TypeId) -> u64 {
    let value = match types.get(ty) {
        TypeInfo::Dict(_, value) => *value,
        _ => TypeTable::NONE,
    };
    boxed(DictObj { header: Header::new(Kind::Dict), ty, value, map: IndexMap::new() })
}

/// A record whose fields are all 0.
pub fn new_record(ty: TypeId, len: usize) -> u64 {
    trailing(RecordObj { header: Header::new(Kind::Record), ty, len: len as u32, words: [] }, len)
}

/// A closure whose captures and their types are all 0.
pub fn new_closure(code: usize, len: usize) -> u64 {
    trailing(ClosureObj { header: Header::new(Kind::Closure), code, len, words: [] }, 2 * len)
}

fn trailing_layout<T>(words: usize) -> Layout {
    let bytes = size_of::<T>() + words * 8;
    Layout::from_size_align(bytes, 8).unwrap_or(Layout::new::<T>())
}

fn trailing<T: Object>(object: T, words: usize) -> u64 {
    let layout = trailing_layout::<T>(words);
    // SAFETY: the layout holds at least a header.
    let ptr = unsafe { alloc_zeroed(layout) } as *mut T;
    if ptr.is_null() {
        handle_alloc_error(layout)
    }
    // SAFETY: fresh memory of the right size and alignment.
    unsafe { ptr.write(object) };
    ptr as u64
}

/// Makes an object that is never freed by counting.
///
/// # Safety
/// `word` is a live object.
pub unsafe fn make_immortal(word: u64) {
    // SAFETY: the caller's promise.
    unsafe { (*(word as *const Header)).count.set(IMMORTAL) }
}

/// One more owner; null is allowed.
pub fn retain(object: Option<&Header>) {
    if let Some(h) = object {
        h.count.set(h.count.get() + 1);
    }
}

/// [`retain`] of a word of a counted type.
///
/// # Safety
/// `word` is null or a live object.
pub unsafe fn retain_word(word: u64) {
    // SAFETY: the caller's promise; null is `None`.
    retain(unsafe { (word as *const Header).as_ref() });
}

/// One owner less; the last one frees the object and releases its parts. Null is allowed.
///
/// # Safety
/// `word` is null or an owned reference to an object whose type ids belong to `types`.
pub unsafe fn release(types: &TypeTable, word: u64) {
    // SAFETY: the caller's promise.
    let Some(header) = (unsafe { (word as *const Header).as_ref() }) else { return };
    let count = header.count.get();
    if count > 1 {
        header.count.set(count - 1);
        return;
    }
    // SAFETY: this was the last reference, so the object may be taken apart; boxes were made
    // by `boxed`, trailing objects by `trailing` with as many words.
    unsafe {
        match header.kind {
            Kind::Str => drop(Box::from_raw(word as *mut StrObj)),
            Kind::Tensor => drop(Box::from_raw(word as *mut TensorObj)),
            Kind::List => free_list(types, Box::from_raw(word as *mut ListObj)),
            Kind::Dict => free_dict(types, Box::from_raw(word as *mut DictObj)),
            Kind::Record => free_record(types, word),
            Kind::Closure => free_closure(types, word),
        }
    }
}

/// # Safety
/// The words of the list are owned references of its element type.
unsafe fn free_list(types: &TypeTable, list: Box<ListObj>) {
    if list.counted {
        for &w in list.words() {
            // SAFETY: the caller's promise.
            unsafe { release(types, w) }
        }
    }
}

/// # Safety
/// As for [`free_list`].
unsafe fn free_dict(types: &TypeTable, dict: Box<DictObj>) {
    if types.counted(dict.value) {
        for &w in dict.map.values() {
            // SAFETY: the caller's promise.
            unsafe { release(types, w) }
        }
    }
}

/// # Safety
/// `word` is a record without owners.
unsafe fn free_record(types: &TypeTable, word: u64) {
    // SAFETY: the caller's promise.
    let record = unsafe { object::<RecordObj>(word) };
    for (i, &w) in record.words().iter().enumerate() {
        if types.counted(types.field(record.ty, i)) {
            // SAFETY: fields are owned references of their types.
            unsafe { release(types, w) }
        }
    }
    // SAFETY: allocated by `trailing` with this layout.
    unsafe { dealloc(word as *mut u8, trailing_layout::<RecordObj>(record.len as usize)) }
}

/// # Safety
/// `word` is a closure without owners.
unsafe fn free_closure(types: &TypeTable, word: u64) {
    // SAFETY: the caller's promise.
    let closure = unsafe { object::<ClosureObj>(word) };
    let (words, ids) = closure.parts();
    for (&w, &ty) in words.iter().zip(ids) {
        if types.counted(ty as TypeId) {
            // SAFETY: captures are owned references of their types.
            unsafe { release(types, w) }
        }
    }
    // SAFETY: allocated by `trailing` with this layout.
    unsafe { dealloc(word as *mut u8, trailing_layout::<ClosureObj>(2 * closure.len)) }
}

impl StrObj {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Length in characters.
    pub fn chars(&self) -> usize {
        self.chars
    }

    /// Every character is one byte.
    pub fn is_ascii(&self) -> bool {
        self.chars == self.text.len()
    }
}

impl Own<StrObj> {
    /// The string with `tail` after it; in place when no one else holds it.
    pub fn append(self, tail: &StrObj) -> u64 {
        let chars = self.get().chars + tail.chars;
        if self.is_shared() {
            let mut text = String::with_capacity(self.get().text.len() + tail.text.len());
            text.push_str(self.get().text());
            text.push_str(tail.text());
            let header = self.header();
            header.count.set(header.count.get() - 1);
            return new_str_counted(text, chars);
        }
        // SAFETY: no one else holds the object, so `tail` is another one.
        let object = unsafe { &mut *self.0.as_ptr() };
        object.text.push_str(tail.text());
        object.chars = chars;
        self.word()
    }
}

impl ListObj {
    pub fn words(&self) -> &[u64] {
        // SAFETY: `data` and `len` are those of a live vector.
        unsafe { std::slice::from_raw_parts(self.data.as_ptr(), self.len) }
    }

    /// Changes the words as a vector. Whoever adds a word gives a reference away; whoever
    /// takes one out owns it.
    pub fn edit<R>(&mut self, change: impl FnOnce(&mut Vec<u64>) -> R) -> R {
        let mut words = self.take();
        let result = change(&mut words);
        let mut words = ManuallyDrop::new(words);
        // SAFETY: a vector's pointer is never null.
        self.data = unsafe { NonNull::new_unchecked(words.as_mut_ptr()) };
        (self.len, self.capacity) = (words.len(), words.capacity());
        result
    }

    fn take(&mut self) -> Vec<u64> {
        // SAFETY: the parts come from a vector, and the list gives them up.
        let words = unsafe { Vec::from_raw_parts(self.data.as_ptr(), self.len, self.capacity) };
        (self.data, self.len, self.capacity) = (NonNull::dangling(), 0, 0);
        words
    }
}

impl Drop for ListObj {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl Own<ListObj> {
    /// The list itself if this is its only owner, else a copy of its top level.
    pub fn unbox(self) -> Box<ListObj> {
        if self.is_shared() {
            let list = self.get();
            if list.counted {
                for &w in list.words() {
                    // SAFETY: the words are live objects.
                    unsafe { retain_word(w) }
                }
            }
            let copy = list_of(list.elem, list.counted, list.words().to_vec());
            let header = self.header();
            header.count.set(header.count.get() - 1);
            return copy;
        }
        // SAFETY: the only owner of a list that `Box` allocated.
        unsafe { Box::from_raw(self.0.as_ptr()) }
    }
}

impl Own<DictObj> {
    /// The dict itself if this is its only owner, else a copy of its top level.
    pub fn unbox(self, types: &TypeTable) -> Box<DictObj> {
        if self.is_shared() {
            let dict = self.get();
            if types.counted(dict.value) {
                for &w in dict.map.values() {
                    // SAFETY: the values are live objects.
                    unsafe { retain_word(w) }
                }
            }
            let map = dict.map.clone();
            let copy = Box::new(DictObj { header: Header::new(Kind::Dict), ty: dict.ty, value: dict.value, map });
            let header = self.header();
            header.count.set(header.count.get() - 1);
            return copy;
        }
        // SAFETY: the only owner of a dict that `Box` allocated.
        unsafe { Box::from_raw(self.0.as_ptr()) }
    }
}

impl Own<TensorObj> {
    /// The tensor for changing: this object's, or a copy that shares the buffer.
    pub fn unbox(self) -> Box<TensorObj> {
        if self.is_shared() {
            let copy = self.get().tensor.clone();
            let header = self.header();
            header.count.set(header.count.get() - 1);
            return Box::new(TensorObj { header: Header::new(Kind::Tensor), tensor: copy });
        }
        // SAFETY: the only owner of an object that `Box` allocated.
        unsafe { Box::from_raw(self.0.as_ptr()) }
    }
}

impl RecordObj {
    pub fn words(&self) -> &[u64] {
        // SAFETY: `len` words follow the structure.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr(), self.len as usize) }
    }

    /// Sets fields of a record that was just made. The record takes over the words.
    ///
    /// # Safety
    /// `record` is a record that no one else holds, with as many fields.
    pub unsafe fn fill(record: u64, words: &[u64]) {
        let at = record as usize + layout::record::WORDS as usize;
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), at as *mut u64, words.len()) }
    }
}

impl Own<RecordObj> {
    /// The record itself if this is its only owner, else a copy of its top level.
    pub fn unique(self, types: &TypeTable) -> u64 {
        if !self.is_shared() {
            return self.word();
        }
        let record = self.get();
        for (i, &w) in record.words().iter().enumerate() {
            if types.counted(types.field(record.ty, i)) {
                // SAFETY: fields are live objects.
                unsafe { retain_word(w) }
            }
        }
        let copy = new_record(record.ty, record.len as usize);
        // SAFETY: just made, with as many fields.
        unsafe { RecordObj::fill(copy, record.words()) };
        let header = self.header();
        header.count.set(header.count.get() - 1);
        copy
    }
}

impl ClosureObj {
    /// The captured words and the words of their type ids.
    pub fn parts(&self) -> (&[u64], &[u64]) {
        // SAFETY: `2 * len` words follow the structure.
        let all = unsafe { std::slice::from_raw_parts(self.words.as_ptr(), 2 * self.len) };
        all.split_at(self.len)
    }
}

/// A dict's key. A string is held by one reference.
pub enum Key {
    Int(i64),
    Str(StrKey),
}

/// A counted reference to a string.
pub struct StrKey(NonNull<StrObj>, PhantomData<StrObj>);

impl StrKey {
    /// One more reference to a string.
    pub fn new(text: &StrObj) -> StrKey {
        retain(Some(&text.header));
        StrKey(NonNull::from(text), PhantomData)
    }

    pub fn get(&self) -> &StrObj {
        // SAFETY: the key keeps the string alive.
        unsafe { self.0.as_ref() }
    }

    /// The word, still owned by the key.
    pub fn word(&self) -> u64 {
        self.0.as_ptr() as u64
    }
}

impl Clone for StrKey {
    fn clone(&self) -> Self {
        StrKey::new(self.get())
    }
}

impl Drop for StrKey {
    fn drop(&mut self) {
        let header = &self.get().header;
        let count = header.count.get();
        if count > 1 {
            header.count.set(count - 1);
        } else {
            // SAFETY: the last reference to a string that `Box` allocated.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        match self {
            Key::Int(i) => Key::Int(*i),
            Key::Str(s) => Key::Str(s.clone()),
        }
    }
}

impl Key {
    /// The key as a word that the dict still owns.
    pub fn word(&self) -> u64 {
        match self {
            Key::Int(i) => *i as u64,
            Key::Str(s) => s.word(),
        }
    }

    fn probe(&self) -> Probe<'_> {
        match self {
            Key::Int(i) => Probe::Int(*i),
            Key::Str(s) => Probe::Str(s.get().text()),
        }
    }
}

/// A key to look for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Probe<'a> {
    Int(i64),
    Str(&'a str),
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.probe().hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.probe() == other.probe()
    }
}

impl Eq for Key {}

impl Equivalent<Key> for Probe<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self == key.probe()
    }
}

/// A record for reading, for those who only have the word.
///
/// # Safety
/// `word` is a live record, which outlives `'a`.
pub unsafe fn record_words<'a>(word: u64) -> &'a [u64] {
    // SAFETY: the caller's promise.
    unsafe { object::<RecordObj>(word).words() }
}

/// The words of a list, for those who only have the word.
///
/// # Safety
/// `word` is a live list, which outlives `'a`.
pub unsafe fn list_words<'a>(word: u64) -> &'a [u64] {
    // SAFETY: the caller's promise.
    unsafe { object::<ListObj>(word).words() }
}
