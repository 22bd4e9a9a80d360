//! The runtime functions of pictures, sound, tables, JSON and folders, by their rows in `abi::rt`.

use crate::context::Context;
use crate::fault::{Fault, shown};
use crate::host_value::{self, HostValue};
use crate::io::{files, image, json, table, wav};
use crate::pending_save;
use crate::rt::{rows, settle};
use crate::rt_files::{alike, delimiter, give, write_to};
use crate::value::{StrObj, TensorObj, TypeId, TypeTable, new_list, new_str};
use crate::world;
use std::path::Path;
use tessera_abi::rt::RtFn;

/// The functions of this part of the table with their addresses.
pub fn symbols() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_3 io_read_image io_read_wav io_glob;
        takes_4 io_write_image io_read_json io_write_json;
        takes_5 io_write_wav;
        takes_7 io_read_table;
    }
}

/// The bytes of a file, the same in all processes; of a table or JSON what gzip data stands for.
fn bytes(path: &StrObj, span: i64, read: fn(&Path) -> Result<Vec<u8>, Fault>) -> Result<Vec<u8>, Fault> {
    world::at(span as u32);
    alike(path, read(Path::new(path.text())), |b| vec![b])
}

/// The word of what was read as a type.
fn settle_value(cx: &mut Context, span: i64, ty: i64, read: Result<HostValue, Fault>) -> u64 {
    let word = read.map(|value| host_value::write(&cx.types, value, ty as TypeId));
    settle(cx, span, word)
}

extern "C" fn io_read_image(cx: &mut Context, path: &StrObj, channels: i64, span: i64) -> u64 {
    let read = bytes(path, span, files::read_raw);
    give(cx, span, read.and_then(|b| image::read(Path::new(path.text()), &b, channels)))
}

extern "C" fn io_write_image(cx: &mut Context, path: &StrObj, t: &TensorObj, quality: i64, span: i64) {
    write_to(cx, path, span, |path| image::write(path, &t.tensor, quality));
}

extern "C" fn io_read_wav(cx: &mut Context, path: &StrObj, ty: i64, span: i64) -> u64 {
    let read = bytes(path, span, files::read_raw).and_then(|b| wav::read(Path::new(path.text()), &b));
    let value = read.map(|(samples, rate)| HostValue::Record(vec![HostValue::Tensor(samples), HostValue::Int(rate)]));
    settle_value(cx, span, ty, value)
}

extern "C" fn io_write_wav(cx: &mut Context, path: &StrObj, t: &TensorObj, rate: i64, bits: i64, span: i64) {
    write_to(cx, path, span, |path| wav::write(path, &t.tensor, rate, bits));
}

extern "C" fn io_read_table(
    cx: &mut Context,
    path: &StrObj,
    columns: &StrObj,
    between: &StrObj,
    has_missing: i64,
    missing: i64,
    ty: i64,
    span: i64,
) -> u64 {
    let missing = (has_missing != 0).then_some(missing);
    let read = delimiter(between).and_then(|between| {
        let content = bytes(path, span, files::read_all)?;
        table::read(Path::new(path.text()), &content, columns.text(), between, missing)
    });
    settle_value(cx, span, ty, read)
}

extern "C" fn io_read_json(cx: &mut Context, path: &StrObj, extra: i64, ty: i64, span: i64) -> u64 {
    let read = bytes(path, span, files::read_all);
    let read = read.and_then(|b| json::read(&cx.types, Path::new(path.text()), &b, extra != 0, ty as TypeId));
    settle_value(cx, span, ty, read)
}

extern "C" fn io_write_json(cx: &mut Context, path: &StrObj, value: u64, ty: i64, span: i64) {
    // SAFETY: compiled code passes a live value of the type.
    let value = unsafe { host_value::read(&cx.types, value, ty as TypeId, false) };
    let text = json::text(&cx.types, &value, ty as TypeId);
    write_to(cx, path, span, |path| {
        let text = text?;
        files::write_atomically(path, |out| out.write_all(text.as_bytes()).map_err(|e| files::write_fault(path, &e)))
    });
}

/// The paths that a pattern fits, by their bytes in order, so that no file system decides it.
fn fitting(pattern: &str) -> Result<Vec<String>, Fault> {
    let paths = glob::glob(pattern)
        .map_err(|e| Fault::new(711, format!("`{}` is no pattern of paths: {}", shown(pattern), e.msg)))?;
    let mut out = vec![];
    for path in paths {
        let path = path.map_err(|e| files::read_fault(e.path(), e.error()))?;
        match path.to_str() {
            Some(text) => out.push(text.to_owned()),
            None => {
                let text = format!("`{}` cannot be named: it is not UTF-8 text", shown(&path));
                return Err(Fault::new(706, text));
            }
        }
    }
    out.sort();
    Ok(out)
}

extern "C" fn io_glob(cx: &mut Context, pattern: &StrObj, _ty: i64, span: i64) -> u64 {
    world::at(span as u32);
    // A file that is still being written is there before it is looked for.
    let found = pending_save::finish().and_then(|()| fitting(pattern.text()));
    let found = alike(pattern, found, |all| all.iter().map(|p| p.as_bytes()).collect());
    let list = found.map(|all| new_list(&cx.types, TypeTable::STR, all.into_iter().map(new_str).collect()));
    settle(cx, span, list)
}
