//! Keys of dicts.

use super::{StrObj, retain};
use indexmap::Equivalent;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// A dict's key. A string is held by one reference.
pub enum Key {
    Int(i64),
    Bool(bool),
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
            Key::Bool(b) => Key::Bool(*b),
            Key::Str(s) => Key::Str(s.clone()),
        }
    }
}

impl Key {
    /// The key as a word that the dict still owns.
    pub fn word(&self) -> u64 {
        match self {
            Key::Int(i) => *i as u64,
            Key::Bool(b) => u64::from(*b),
            Key::Str(s) => s.word(),
        }
    }

    fn probe(&self) -> Probe<'_> {
        match self {
            Key::Int(i) => Probe::Int(*i),
            Key::Bool(b) => Probe::Bool(*b),
            Key::Str(s) => Probe::Str(s.get().text()),
        }
    }
}

/// A key to look for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Probe<'a> {
    Int(i64),
    Bool(bool),
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
