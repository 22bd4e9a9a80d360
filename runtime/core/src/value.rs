//! Values of host code: one 64-bit word each.
//!
//! `int` and `bool` are an i64, `float` an f64 by its bits, `None` is 0, a dtype its position
//! in [`tessera_base::DType::ALL`]; everything else is the address of a counted object. Counts
//! are not atomic: host code runs on one thread (tensor memory is shared through `Arc`).

mod count;
mod key;
mod types;

pub use count::{make_immortal, release, retain, retain_word};
pub use key::{Key, Probe, StrKey};
pub use types::{TypeId, TypeInfo, TypeTable};

use crate::fault;
use crate::fault::Fault;
use crate::tensor::Tensor;
use indexmap::IndexMap;
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::cell::Cell;
use std::mem::{ManuallyDrop, offset_of};
use std::ptr::NonNull;
use tessera_abi::layout;

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

    /// Whether someone else holds it too, so that a change copies it.
    pub fn is_shared(&self) -> bool {
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
    /// The string with `tail` after it; in place when no one else holds it. Where there is no room, the string as it is.
    pub fn append(self, tail: &StrObj) -> Result<u64, (Fault, u64)> {
        let chars = self.get().chars + tail.chars;
        if self.is_shared() {
            let mut text = String::new();
            if let Err(fault) = fault::reserve_text(&mut text, self.get().text.len() + tail.text.len()) {
                return Err((fault, self.word()));
            }
            text.push_str(self.get().text());
            text.push_str(tail.text());
            let header = self.header();
            header.count.set(header.count.get() - 1);
            return Ok(new_str_counted(text, chars));
        }
        // SAFETY: no one else holds the object, so `tail` is another one.
        let object = unsafe { &mut *self.0.as_ptr() };
        if let Err(fault) = fault::reserve_text(&mut object.text, tail.text.len()) {
            return Err((fault, self.word()));
        }
        object.text.push_str(tail.text());
        object.chars = chars;
        Ok(self.word())
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
    /// What a change has to copy first.
    pub fn copied_bytes(&self) -> u64 {
        if self.is_shared() { 8 * self.get().len as u64 } else { 0 }
    }

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
