//! The runtime functions of files, by their rows in `abi::rt`.

use crate::context::{Context, Viewed};
use crate::dry_run;
use crate::fault::Fault;
use crate::host_value;
use crate::io::checkpoint::{Checkpoint, saving};
use crate::io::safetensors::Content;
use crate::io::{ahead, csv, files, gguf, idx, npy, npz, onnx, replace, safetensors, sandbox, serialization, tokens};
use crate::pending_save;
use crate::plot::Figure;
use crate::rt::{rows, settle};
use crate::rt_data::{Pools, whole};
use crate::tensor::Tensor;
use crate::value::{
    DictObj, Key, ListObj, Own, StrKey, StrObj, TensorObj, TypeId, TypeTable, into_word, new_dict, new_list, new_str,
    new_tensor, object,
};
use crate::world;
use std::io::Read;
use std::path::Path;
use tessera_abi::rt::RtFn;
use tessera_base::DType;

/// The functions of this part of the table with their addresses.
pub fn symbols() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_1 io_exists;
        takes_2 io_read_idx io_read_npy io_read_text io_read_bytes io_token_count;
        takes_3 io_token_id io_read_tokenizer io_write_npy io_read_npz io_write_npz io_write_text io_append_text io_read_lines io_read_safetensors io_write_safetensors
            io_read_gguf io_read_gguf_meta io_read_onnx_tensors;
        takes_4 io_save io_encode io_decode;
        takes_5 io_read_csv io_write_csv plot_show;
        takes_6 io_load plot_draw;
    }
}

pub(crate) fn give(cx: &mut Context, span: i64, outcome: Result<Tensor, Fault>) -> u64 {
    let word = outcome.map(new_tensor);
    settle(cx, span, word)
}

/// What was read, where all processes have read the same; E0720 where they have not. Each reads by itself: files need not be on
/// one file system.
pub(crate) fn alike<T>(path: &StrObj, read: Result<T, Fault>, content: impl Fn(&T) -> Vec<&[u8]>) -> Result<T, Fault> {
    let read = read?;
    let Some(w) = world::world() else { return Ok(read) };
    w.read_alike(path.text(), world::hash(&content(&read)))?;
    Ok(read)
}

/// The bytes of tensors with their names.
fn bytes_of(all: &[(String, Tensor)]) -> Vec<&[u8]> {
    all.iter().flat_map(|(name, t)| [name.as_bytes(), t.bytes()]).collect()
}

/// A tensor that a file holds, the same in all processes.
pub(crate) fn give_alike(cx: &mut Context, path: &StrObj, span: i64, read: Result<Tensor, Fault>) -> u64 {
    world::at(span as u32);
    let read = alike(path, read, |t| vec![t.bytes()]);
    give(cx, span, read)
}

/// The same of several by name.
fn dict_alike(cx: &mut Context, path: &StrObj, ty: i64, span: i64, read: Result<Vec<(String, Tensor)>, Fault>) -> u64 {
    world::at(span as u32);
    let read = alike(path, read, |all| bytes_of(all)).map(|all| dict(cx, ty, all));
    settle(cx, span, read)
}

fn text_alike(path: &StrObj, span: i64) -> Result<String, Fault> {
    world::at(span as u32);
    alike(path, files::read_text(Path::new(path.text())), |text| vec![text.as_bytes()])
}

extern "C" fn io_exists(cx: &mut Context, path: &StrObj) -> i64 {
    let found = || f64::from(u8::from(files::exists(Path::new(path.text()))));
    let answer = pending_save::finish().and_then(|()| match world::world() {
        None => Ok(found()),
        Some(w) => w.ask_float(path.text(), found),
    });
    i64::from(settle(cx, 0, answer) != 0.0)
}

extern "C" fn io_read_npy(cx: &mut Context, path: &StrObj, span: i64) -> u64 {
    let read = ahead::read("npy", whole(path), |p| npy::read(&p.path));
    give_alike(cx, path, span, read)
}

extern "C" fn io_read_idx(cx: &mut Context, path: &StrObj, span: i64) -> u64 {
    give_alike(cx, path, span, idx::read(Path::new(path.text())))
}

/// Writes a file. What was printed comes first where both go the same way.
pub(crate) fn write_to(cx: &mut Context, path: &StrObj, span: i64, write: impl FnOnce(&Path) -> Result<(), Fault>) {
    let path = Path::new(path.text());
    if !sandbox::is_on() && replace::is_stream(path) {
        cx.flush();
    }
    settle(cx, span, write(path));
}

extern "C" fn io_write_npy(cx: &mut Context, path: &StrObj, t: &TensorObj, span: i64) {
    write_to(cx, path, span, |path| npy::write(path, &t.tensor));
}

/// A dict of tensors by name.
fn dict(cx: &mut Context, ty: i64, tensors: Vec<(String, Tensor)>) -> u64 {
    dict_of(cx, ty, tensors.into_iter().map(|(name, t)| (name, new_tensor(t))))
}

/// A dict of what words refer to, by name.
fn dict_of(cx: &mut Context, ty: i64, entries: impl Iterator<Item = (String, u64)>) -> u64 {
    let word = new_dict(&cx.types, ty as TypeId);
    // SAFETY: just made, and no one else holds it.
    let mut made = unsafe { Own::<DictObj>::of(word) }.unbox(&cx.types);
    for (name, value) in entries {
        let key = new_str(name);
        // SAFETY: just made; the key takes a reference of its own.
        let key_object: &StrObj = unsafe { object(key) };
        let old = made.map.insert(Key::Str(StrKey::new(key_object)), value);
        for word in [Some(key), old].into_iter().flatten() {
            cx.release(word, TypeTable::STR);
        }
    }
    into_word(made)
}

/// The tensors of a dict, by name in its order.
fn entries(d: &DictObj) -> Vec<(String, Tensor)> {
    let pairs = d.map.iter().filter_map(|(key, &value)| match key {
        // SAFETY: the values of a dict of tensors are live tensors.
        Key::Str(s) => Some((s.get().text().to_owned(), unsafe { crate::value::tensor(value) }.clone())),
        Key::Int(_) | Key::Bool(_) => None,
    });
    pairs.collect()
}

extern "C" fn io_read_npz(cx: &mut Context, path: &StrObj, ty: i64, span: i64) -> u64 {
    dict_alike(cx, path, ty, span, npz::read(Path::new(path.text())))
}

extern "C" fn io_write_npz(cx: &mut Context, path: &StrObj, d: &DictObj, span: i64) {
    write_to(cx, path, span, |path| npz::write(path, &entries(d)));
}

extern "C" fn io_read_safetensors(cx: &mut Context, path: &StrObj, ty: i64, span: i64) -> u64 {
    let read = Checkpoint::read(Path::new(path.text()), Checkpoint::whole);
    dict_alike(cx, path, ty, span, read.map(|all| all.into_iter().collect()))
}

extern "C" fn io_read_gguf(cx: &mut Context, path: &StrObj, ty: i64, span: i64) -> u64 {
    dict_alike(cx, path, ty, span, gguf::read(Path::new(path.text())))
}

extern "C" fn io_read_gguf_meta(cx: &mut Context, path: &StrObj, ty: i64, span: i64) -> u64 {
    world::at(span as u32);
    let read = gguf::read_meta(Path::new(path.text()));
    let read = alike(path, read, |all| all.iter().flat_map(|(k, v)| [k.as_bytes(), v.as_bytes()]).collect());
    let read = read.map(|all| dict_of(cx, ty, all.into_iter().map(|(key, text)| (key, new_str(text)))));
    settle(cx, span, read)
}

extern "C" fn io_read_onnx_tensors(cx: &mut Context, path: &StrObj, ty: i64, span: i64) -> u64 {
    dict_alike(cx, path, ty, span, onnx::read(Path::new(path.text())))
}

extern "C" fn io_write_safetensors(cx: &mut Context, path: &StrObj, d: &DictObj, span: i64) {
    let content = Content { tensors: entries(d).into_iter().collect(), ..Content::default() };
    write_to(cx, path, span, |path| safetensors::write(path, &content));
}

extern "C" fn io_save(cx: &mut Context, path: &StrObj, value: u64, ty: i64, span: i64) {
    // SAFETY: compiled code passes a live value of the type.
    let value = unsafe { host_value::read(&cx.types, value, ty as TypeId, false) };
    let content = serialization::content(&cx.types, value, ty as TypeId);
    write_to(cx, path, span, |path| saving::save(path, content?, span as u32));
}

extern "C" fn io_load(
    cx: &mut Context,
    path: &StrObj,
    like: u64,
    prefix: &StrObj,
    extra: i64,
    ty: i64,
    span: i64,
) -> u64 {
    // SAFETY: compiled code passes a live value of the type.
    let like = unsafe { host_value::read(&cx.types, like, ty as TypeId, false) };
    let made = serialization::load(&cx.types, like, ty as TypeId, Path::new(path.text()), prefix.text(), extra != 0);
    world::at(span as u32);
    // Each process reads what its devices hold: the header names all of it, with its sums.
    let header = if world::world().is_some() { header(Path::new(path.text())) } else { Ok(vec![]) };
    let made = made.and_then(|value| alike(path, header, |h| vec![h]).map(|_| value));
    let word = made.map(|value| host_value::write(&cx.types, value, ty as TypeId));
    settle(cx, span, word)
}

/// The header of a safetensors file, and the file's length.
fn header(path: &Path) -> Result<Vec<u8>, Fault> {
    let (mut reader, len) = files::open(path)?;
    let fault = |e: std::io::Error| files::read_fault(path, &e);
    let mut first = [0; 8];
    reader.read_exact(&mut first).map_err(fault)?;
    let mut out = [len.to_le_bytes(), first].concat();
    reader.take(u64::from_le_bytes(first)).read_to_end(&mut out).map_err(fault)?;
    Ok(out)
}

extern "C" fn io_read_tokenizer(cx: &mut Context, path: &StrObj, lowercase: i64, span: i64) -> i64 {
    world::at(span as u32);
    let number = tokens::read(Path::new(path.text()), lowercase != 0).map(|n| n as i64);
    let number = number.and_then(|n| Ok((n, tokens::size(n)?.to_le_bytes())));
    let number = alike(path, number, |(_, size)| vec![size]).map(|(n, _)| n);
    settle(cx, span, number)
}

extern "C" fn io_encode(cx: &mut Context, tokenizer: i64, text: &StrObj, special: i64, span: i64) -> u64 {
    let ids = tokens::encode(tokenizer, text.text(), special != 0);
    let list = ids.map(|ids| new_list(&cx.types, TypeTable::INT, ids.into_iter().map(u64::from).collect()));
    settle(cx, span, list)
}

extern "C" fn io_decode(cx: &mut Context, tokenizer: i64, ids: &ListObj, special: i64, span: i64) -> u64 {
    let ids: Vec<i64> = ids.words().iter().map(|&w| w as i64).collect();
    let text = tokens::decode(tokenizer, &ids, special != 0).map(new_str);
    settle(cx, span, text)
}

extern "C" fn io_token_id(cx: &mut Context, tokenizer: i64, token: &StrObj, span: i64) -> i64 {
    settle(cx, span, tokens::id_of(tokenizer, token.text()))
}

extern "C" fn io_token_count(cx: &mut Context, tokenizer: i64, span: i64) -> i64 {
    settle(cx, span, tokens::size(tokenizer))
}

/// The one byte that separates columns: none that means something else in a table.
pub(crate) fn delimiter(text: &StrObj) -> Result<u8, Fault> {
    match text.text().as_bytes() {
        [b @ (b'"' | b'\n' | b'\r')] => {
            let what = if *b == b'"' { "a quote, which is put around a cell" } else { "the end of a line" };
            Err(Fault::new(711, format!("the delimiter cannot be {what}")))
        }
        [b] if b.is_ascii() => Ok(*b),
        _ => Err(Fault::new(711, format!("the delimiter must be one ASCII character, not `{}`", text.text()))),
    }
}

extern "C" fn io_read_csv(cx: &mut Context, path: &StrObj, between: &StrObj, skip: i64, dtype: i64, span: i64) -> u64 {
    let dtype = usize::try_from(dtype).ok().and_then(|i| DType::ALL.get(i)).copied().unwrap_or(DType::F32);
    let skip = usize::try_from(skip)
        .map_err(|_| Fault::new(711, format!("`io.read_csv` leaves out at least 0 lines, and `skip` is {skip}")));
    let read = skip.and_then(|skip| {
        let delimiter = delimiter(between)?;
        let how = format!("csv {delimiter} {skip} {dtype}");
        let pools = Pools::of(cx);
        ahead::read(&how, whole(path), move |p| csv::read(&p.path, delimiter, skip, dtype, &pools.here()))
    });
    give_alike(cx, path, span, read)
}

extern "C" fn io_write_csv(
    cx: &mut Context,
    path: &StrObj,
    t: &TensorObj,
    between: &StrObj,
    header: &StrObj,
    span: i64,
) {
    write_to(cx, path, span, |path| csv::write(path, &t.tensor, delimiter(between)?, header.text()));
}

extern "C" fn io_read_text(cx: &mut Context, path: &StrObj, span: i64) -> u64 {
    let text = text_alike(path, span).map(new_str);
    settle(cx, span, text)
}

extern "C" fn io_write_text(cx: &mut Context, path: &StrObj, text: &StrObj, span: i64) {
    write_to(cx, path, span, |path| {
        files::write_atomically(path, |out| {
            out.write_all(text.text().as_bytes()).map_err(|e| files::write_fault(path, &e))
        })
    });
}

extern "C" fn io_append_text(cx: &mut Context, path: &StrObj, text: &StrObj, span: i64) {
    if dry_run::is_on() {
        return;
    }
    write_to(cx, path, span, |path| files::append(path, text.text()));
}

extern "C" fn io_read_lines(cx: &mut Context, path: &StrObj, _ty: i64, span: i64) -> u64 {
    let lines = text_alike(path, span).map(|text| {
        let words = text.lines().map(new_str).collect();
        new_list(&cx.types, TypeTable::STR, words)
    });
    settle(cx, span, lines)
}

/// The file's bytes as a u8 tensor.
extern "C" fn io_read_bytes(cx: &mut Context, path: &StrObj, span: i64) -> u64 {
    let read =
        files::read_raw(Path::new(path.text())).and_then(|b| Ok(Tensor::from_bytes(DType::U8, &[b.len() as u64], &b)?));
    give_alike(cx, path, span, read)
}

/// The figure that a word is.
fn figure(cx: &Context, word: u64, ty: i64) -> Result<Figure, Fault> {
    // SAFETY: compiled code passes a live value of the type.
    Figure::of(&unsafe { host_value::read(&cx.types, word, ty as TypeId, false) })
}

extern "C" fn plot_draw(
    cx: &mut Context,
    word: u64,
    path: &StrObj,
    width: i64,
    height: i64,
    ty: i64,
    span: i64,
) -> u64 {
    let drawn = figure(cx, word, ty).and_then(|figure| match path.text() {
        "" => figure.text(width, height).map(new_str),
        path => figure.save(Path::new(path), width, height).map(|()| new_str(String::new())),
    });
    settle(cx, span, drawn)
}

extern "C" fn plot_show(cx: &mut Context, word: u64, width: i64, height: i64, ty: i64, span: i64) {
    let shown = figure(cx, word, ty).and_then(|figure| {
        // A size is of text; one that is none is an error with and without it.
        let text = figure.text(width, height)?;
        if cx.has_viewer() { Ok((figure.svg(0, 0)?, true)) } else { Ok((text, false)) }
    });
    match shown {
        Ok((svg, true)) => cx.view(Viewed::Picture(svg), span as u32),
        Ok((text, false)) => cx.print(&text, span as u32),
        Err(fault) => cx.fail(fault, span as u32),
    }
}
