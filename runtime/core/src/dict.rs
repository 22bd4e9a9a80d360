//! Operations on dicts. Keys are strings, ints or bools; entries keep the order of insertion.

use crate::context::Context;
use crate::fault::{Fault, check_memory};
use crate::number::quoted;
use crate::show::{bool_text, key_repr};
use crate::value::{
    DictObj, Key, Own, Probe, RecordObj, StrKey, StrObj, TypeId, TypeInfo, TypeTable, into_word, new_dict, new_list,
    new_record, object, retain_word, text,
};
use tessera_base::near::nearest;

fn key_type(cx: &Context, dict: &DictObj) -> TypeId {
    match cx.types.get(dict.ty) {
        TypeInfo::Dict(key, _) => *key,
        _ => TypeTable::STR,
    }
}

/// The key that a word stands for.
fn probe<'a>(cx: &Context, dict: &DictObj, word: u64) -> Probe<'a> {
    match cx.types.get(key_type(cx, dict)) {
        // SAFETY: the word of a string key is a live string for as long as the call lasts.
        TypeInfo::Str => Probe::Str(unsafe { text(word) }),
        TypeInfo::Bool => Probe::Bool(word != 0),
        _ => Probe::Int(word as i64),
    }
}

fn owned_key(cx: &Context, dict: &DictObj, word: u64) -> Key {
    match cx.types.get(key_type(cx, dict)) {
        // SAFETY: as in `probe`.
        TypeInfo::Str => Key::Str(StrKey::new(unsafe { object::<StrObj>(word) })),
        TypeInfo::Bool => Key::Bool(word != 0),
        _ => Key::Int(word as i64),
    }
}

/// One more owner of a value.
fn shared(cx: &Context, dict: &DictObj, word: u64) -> u64 {
    if cx.types.counted(dict.value) {
        // SAFETY: values of a counted type are live objects.
        unsafe { retain_word(word) }
    }
    word
}

fn missing(dict: &DictObj, key: Probe) -> Fault {
    let shown = match key {
        Probe::Int(i) => i.to_string(),
        Probe::Bool(b) => bool_text(b).into(),
        Probe::Str(s) => quoted(s),
    };
    let fault = Fault::new(704, format!("the key {shown} is not in the dict"));
    let names = || dict.map.keys().filter_map(|k| if let Key::Str(s) = k { Some(s.get().text()) } else { None });
    if let Probe::Str(s) = key
        && let Some(near) = nearest(s, names())
    {
        return fault.note(format!("there is a key {}", quoted(near)));
    }
    const SHOWN: usize = 8;
    let mut keys = vec![];
    for key in dict.map.keys().take(SHOWN) {
        let mut out = String::new();
        key_repr(key, &mut out);
        keys.push(out);
    }
    match dict.map.len() {
        0 => fault.note("the dict is empty"),
        n if n > SHOWN => fault.note(format!("its {n} keys start with {}", keys.join(", "))),
        _ => fault.note(format!("its keys are {}", keys.join(", "))),
    }
}

/// The dict for changing, with room for more entries; the dict as it is where there is none.
fn grown(cx: &Context, dict: Own<DictObj>, more: usize) -> Result<Box<DictObj>, (Fault, u64)> {
    /// Of an entry with its place in the table.
    const ENTRY_BYTES: u128 = 48;
    let map = &dict.get().map;
    let (len, most) = (map.len() + more, map.capacity());
    let grows = if len > most { (2 * most).max(len) } else { 0 };
    let copied = if dict.is_shared() { len } else { 0 };
    if let Err(fault) = check_memory(grows as u128 + copied as u128, ENTRY_BYTES) {
        return Err((fault, dict.word()));
    }
    Ok(dict.unbox(&cx.types))
}

pub fn set(cx: &mut Context, dict: Own<DictObj>, key: u64, value: u64) -> Result<u64, (Fault, u64)> {
    let mut dict = grown(cx, dict, 1)?;
    let value = shared(cx, &dict, value);
    let probe = probe(cx, &dict, key);
    if let Some(slot) = dict.map.get_mut(&probe) {
        let old = std::mem::replace(slot, value);
        cx.release(old, dict.value);
    } else {
        let key = owned_key(cx, &dict, key);
        dict.map.insert(key, value);
    }
    Ok(into_word(dict))
}

pub fn get(cx: &Context, dict: &DictObj, key: u64) -> Result<u64, Fault> {
    let probe = probe(cx, dict, key);
    let word = dict.map.get(&probe).ok_or_else(|| missing(dict, probe))?;
    Ok(shared(cx, dict, *word))
}

pub fn get_or(cx: &Context, dict: &DictObj, key: u64, default: u64) -> u64 {
    shared(cx, dict, dict.map.get(&probe(cx, dict, key)).copied().unwrap_or(default))
}

pub fn contains(cx: &Context, dict: &DictObj, key: u64) -> bool {
    dict.map.contains_key(&probe(cx, dict, key))
}

fn key_words(dict: &DictObj) -> impl Iterator<Item = u64> {
    dict.map.keys().map(|key| {
        if let Key::Str(s) = key {
            // SAFETY: the key holds a live string.
            unsafe { retain_word(s.word()) }
        }
        key.word()
    })
}

pub fn keys(cx: &Context, dict: &DictObj) -> u64 {
    new_list(&cx.types, key_type(cx, dict), key_words(dict).collect())
}

pub fn values(cx: &Context, dict: &DictObj) -> u64 {
    new_list(&cx.types, dict.value, dict.map.values().map(|&w| shared(cx, dict, w)).collect())
}

/// The entries as a list of tuples; `ty` is the type of the list.
pub fn items(cx: &Context, dict: &DictObj, ty: TypeId) -> u64 {
    let item = match cx.types.get(ty) {
        TypeInfo::List(item) => *item,
        _ => ty,
    };
    let words = key_words(dict).zip(dict.map.values()).map(|(key, &value)| {
        let record = new_record(item, 2);
        // SAFETY: just made, with two fields.
        unsafe { RecordObj::fill(record, &[key, shared(cx, dict, value)]) };
        record
    });
    new_list(&cx.types, item, words.collect())
}

/// With the entries of another dict.
pub fn update(cx: &mut Context, dict: Own<DictObj>, more: &DictObj) -> Result<u64, (Fault, u64)> {
    let mut dict = grown(cx, dict, more.map.len())?;
    for (key, &value) in &more.map {
        let value = shared(cx, more, value);
        if let Some(old) = dict.map.insert(key.clone(), value) {
            cx.release(old, dict.value);
        }
    }
    Ok(into_word(dict))
}

pub fn clear(cx: &mut Context, dict: Own<DictObj>) -> u64 {
    let mut dict = dict.unbox(&cx.types);
    for (_, gone) in std::mem::take(&mut dict.map) {
        cx.release(gone, dict.value);
    }
    into_word(dict)
}

/// Without an entry, which must exist. On failure the dict comes back unchanged.
pub fn delete(cx: &mut Context, dict: Own<DictObj>, key: u64) -> Result<u64, (Fault, u64)> {
    let probe = probe(cx, dict.get(), key);
    if !dict.get().map.contains_key(&probe) {
        let fault = missing(dict.get(), probe);
        return Err((fault, dict.word()));
    }
    let mut dict = dict.unbox(&cx.types);
    if let Some(gone) = dict.map.shift_remove(&probe) {
        cx.release(gone, dict.value);
    }
    Ok(into_word(dict))
}

/// The address of an entry's word.
pub fn slot(cx: &Context, dict: &mut DictObj, key: u64) -> Result<i64, Fault> {
    let probe = probe(cx, dict, key);
    if !dict.map.contains_key(&probe) {
        return Err(missing(dict, probe));
    }
    Ok(dict.map.get_mut(&probe).map_or(0, |word| &raw mut *word as i64))
}

/// An empty dict; `ty` is the dict's type.
pub fn new(cx: &Context, ty: TypeId) -> u64 {
    new_dict(&cx.types, ty)
}
