//! Values as a notebook shows them: tables, drawings of layouts, pictures. Colours are shades over whatever lies below, so
//! that they fit dark and light pages; what a table cannot show is left to the text.

use crate::repl::output::Shown;
use crate::repl::value::{of_each, rounded, statistics, type_text};
use jupyter_protocol::MediaType;
use std::collections::BTreeMap;
use std::fmt::Write;
use tessera_base::shard::bytes;
use tessera_base::{Mesh, Sharding};
use tessera_core::ty::Ty;
use tessera_runtime::host_value::{HostKey, HostValue};
use tessera_runtime::plot::{self, Figure};
use tessera_runtime::progress::Progress;
use tessera_runtime::show::bool_text;
use tessera_runtime::tensor::Tensor;
use tessera_runtime::tensor_print::{Element, element};

/// Rows of a table, and of them so many at each end where there are more.
const ROWS: (u64, u64) = (12, 5);
/// The same of columns.
const COLUMNS: (u64, u64) = (8, 4);
/// Matrices of a tensor of higher rank.
const MATRICES: usize = 3;
/// Elements of a list, and how deep values are opened.
const ITEMS: usize = 20;
const DEPTH: usize = 4;
/// Devices that a layout is drawn for.
const DEVICES: u64 = 64;

const CELL: &str = "border:1px solid #8885;padding:2px 8px";
const HEAD: &str = "border:none;padding:2px 8px;font-weight:normal;opacity:.6";
const TABLE: &str = "border-collapse:collapse;font-family:monospace;font-size:90%;margin:4px 0;text-align:right";
const NOTE: &str = "opacity:.7;font-size:90%";

/// A value in the forms that a client may choose from.
pub fn media(shown: &Shown) -> Vec<MediaType> {
    if let Some(all) = figure(shown) {
        return all;
    }
    let mut all = vec![];
    if let Some(html) = html(&shown.ty, shown.value.as_ref()) {
        all.push(MediaType::Html(format!("<div>{html}</div>")));
    }
    all.push(MediaType::Plain(shown.text.trim_end().to_owned()));
    all
}

/// How far a loop is: a bar, and for clients without HTML a line.
pub fn progress(progress: &Progress) -> Vec<MediaType> {
    let Progress { current, total, text, .. } = progress;
    let time = progress.time();
    let words: Vec<String> = [format!("{current}/{total}"), escaped(text), escaped(&time)].into();
    let words: Vec<String> = words.into_iter().filter(|w| !w.is_empty()).collect();
    let html = format!(
        "<div style=\"display:flex;align-items:center;gap:1em\"><progress max=\"{total}\" value=\"{current}\" \
         style=\"width:20em\"></progress><span style=\"font-family:monospace\">{}</span></div>",
        words.join("&ensp;")
    );
    vec![MediaType::Html(html), MediaType::Plain(plot::bar(progress))]
}

/// The picture of a figure of `std.plot`, and its text.
pub fn figure(shown: &Shown) -> Option<Vec<MediaType>> {
    let (Ty::Struct(s), Some(value)) = (&shown.ty, &shown.value) else { return None };
    // Other structs of this name have other fields, which are no figure.
    let figure = (*s.name == *"Figure").then(|| Figure::of(value).ok())??;
    Some(vec![MediaType::Svg(figure.svg(0, 0).ok()?), MediaType::Plain(figure.text(0, 0).ok()?)])
}

/// A tensor whose elements can be read, wherever its parts lie.
fn together(t: &Tensor) -> Option<Tensor> {
    let whole = if t.parts.is_some() { t.whole().ok()? } else { t.clone() };
    (!whole.has_no_elements()).then_some(whole)
}

/// A value as HTML, where that shows more than its text.
fn html(ty: &Ty, value: Option<&HostValue>) -> Option<String> {
    match (ty, value) {
        (_, Some(HostValue::Tensor(t))) if !t.shape.is_empty() => Some(tensor(ty, t)),
        (Ty::Mesh(Some(m)), _) if !m.is_unknown() => Some(mesh(m)),
        (Ty::Struct(_) | Ty::Tuple(_) | Ty::List(_) | Ty::Dict(..), Some(value)) if opens(value) => {
            Some(tree(ty, value, DEPTH))
        }
        _ => None,
    }
}

/// Whether a value has parts that are worth a line each.
fn opens(value: &HostValue) -> bool {
    let large = |v: &HostValue| match v {
        HostValue::Tensor(t) => !t.shape.is_empty(),
        HostValue::List(_) | HostValue::Record(_) | HostValue::Dict(_) => true,
        _ => false,
    };
    match value {
        HostValue::List(items) => items.iter().any(large),
        HostValue::Record(items) => items.len() > 2 || items.iter().any(large),
        HostValue::Dict(entries) => entries.iter().any(|(_, v)| large(v)),
        _ => false,
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn note(text: &str) -> String {
    format!("<div style=\"{NOTE}\">{}</div>", escaped(text))
}

/// A tensor: type, elements with the ends of long sides, layout, statistics.
fn tensor(ty: &Ty, t: &Tensor) -> String {
    let of = HostValue::Tensor(t.clone());
    let mut out = format!("<div><code>{}</code></div>", escaped(&type_text(ty, Some(&of))));
    let whole = together(t);
    if let Some(t) = whole.as_ref().filter(|t| t.elems() > 0) {
        out.push_str(&elements(t));
    }
    if let Ty::Tensor(known) = ty
        && !known.sharding.is_replicated()
    {
        out.push_str(&layout(&known.sharding, &t.shape));
    }
    let size = (t.elems() as u64).saturating_mul(t.dtype.bytes() as u64);
    let facts =
        whole.filter(|t| t.elems() > 1).and_then(|t| statistics(&t)).map_or_else(String::new, |f| format!("; {f}"));
    out + &note(&format!("{} elements, {}{facts}", t.elems(), bytes(size)))
}

/// Positions of a side that are shown; `None` stands for those left out.
fn positions(n: u64, (most, ends): (u64, u64)) -> Vec<Option<u64>> {
    if n <= most {
        return (0..n).map(Some).collect();
    }
    (0..ends).map(Some).chain([None]).chain((n - ends..n).map(Some)).collect()
}

fn elements(t: &Tensor) -> String {
    let rank = t.shape.len();
    let (rows, columns) = if rank == 1 { (1, t.shape[0]) } else { (t.shape[rank - 2], t.shape[rank - 1]) };
    let matrices = t.shape.iter().take(rank.saturating_sub(2)).product::<u64>();
    let mut out = String::new();
    for m in 0..(matrices as usize).min(MATRICES) {
        if rank > 2 {
            let mut rest = m as u64;
            let mut at = vec![];
            for n in t.shape[..rank - 2].iter().rev() {
                at.push((rest % n).to_string());
                rest /= n;
            }
            at.reverse();
            out.push_str(&note(&format!("[{}, :, :]", at.join(", "))));
        }
        out.push_str(&matrix(t, m * (rows * columns) as usize, (rows, columns), rank > 1));
    }
    if matrices as usize > MATRICES {
        out.push_str(&note(&format!("… and {} more matrices", matrices as usize - MATRICES)));
    }
    out
}

fn matrix(t: &Tensor, base: usize, (rows, columns): (u64, u64), named: bool) -> String {
    let mut out = format!("<table style=\"{TABLE}\"><tr style=\"background:none\">");
    let head = |at: Option<u64>| at.map_or("…".to_owned(), |i| i.to_string());
    if named {
        let _ = write!(out, "<th style=\"{HEAD}\"></th>");
    }
    for c in positions(columns, COLUMNS) {
        let _ = write!(out, "<th style=\"{HEAD}\">{}</th>", head(c));
    }
    out.push_str("</tr>");
    for r in positions(rows, ROWS) {
        out.push_str("<tr style=\"background:none\">");
        if named {
            let _ = write!(out, "<th style=\"{HEAD}\">{}</th>", head(r));
        }
        for c in positions(columns, COLUMNS) {
            let text = match (r, c) {
                (Some(r), Some(c)) => number(t, base + (r * columns + c) as usize),
                _ => "…".into(),
            };
            let _ = write!(out, "<td style=\"{CELL}\">{text}</td>");
        }
        out.push_str("</tr>");
    }
    out + "</table>"
}

/// One element, to six digits.
fn number(t: &Tensor, i: usize) -> String {
    match element(t, i) {
        Element::Float(x) if x.is_nan() => "nan".into(),
        Element::Float(x) if x.is_infinite() => (if x > 0.0 { "inf" } else { "-inf" }).into(),
        Element::Float(x) => rounded(x),
        Element::Int(n) => n.to_string(),
        Element::Bool(b) => (if b { "True" } else { "False" }).into(),
        Element::Complex(a, b) => format!("{}{}{}j", rounded(a), if b < 0.0 { "" } else { "+" }, rounded(b)),
    }
}

/// A colour for a number, a shade over what lies below.
fn shade(i: usize) -> String {
    // Neighbours differ: the golden angle.
    format!("background:hsla({},70%,50%,.28)", i * 137 % 360)
}

fn named_devices(devices: &[u64]) -> String {
    let names: Vec<String> = devices.iter().map(u64::to_string).collect();
    names.join(" ")
}

/// Which device has which block: a grid for up to two dims, else a list.
fn layout(sharding: &Sharding, shape: &[u64]) -> String {
    let words = note(&sharding.describe(shape.len()));
    let Some(mesh) = sharding.mesh.as_ref().filter(|m| m.devices() <= DEVICES && !m.is_unknown()) else { return words };
    let mut blocks: BTreeMap<Vec<(u64, u64)>, Vec<u64>> = BTreeMap::new();
    for device in 0..mesh.devices() {
        let block = sharding.block(shape, device);
        if block.len() == shape.len() && block.iter().all(|r| !r.is_empty()) {
            blocks.entry(block.iter().map(|r| (r.start, r.end)).collect()).or_default().push(device);
        }
    }
    let mut out = format!("<table style=\"{TABLE}\">");
    let side = |dim: usize| {
        let mut ranges: Vec<(u64, u64)> = blocks.keys().filter_map(|b| b.get(dim).copied()).collect();
        ranges.sort_unstable();
        ranges.dedup();
        ranges
    };
    let range = |(from, to): &(u64, u64)| format!("{from}:{to}");
    if shape.len() <= 2 {
        let (rows, columns) = if shape.len() == 2 { (side(0), side(1)) } else { (vec![], side(0)) };
        let _ = write!(out, "<tr style=\"background:none\"><th style=\"{HEAD}\">device</th>");
        columns.iter().for_each(|c| _ = write!(out, "<th style=\"{HEAD}\">{}</th>", range(c)));
        out.push_str("</tr>");
        let keys: Vec<Option<(u64, u64)>> =
            if rows.is_empty() { vec![None] } else { rows.into_iter().map(Some).collect() };
        for row in keys {
            let name = row.as_ref().map_or_else(String::new, range);
            let _ = write!(out, "<tr style=\"background:none\"><th style=\"{HEAD}\">{name}</th>");
            for column in &columns {
                let key: Vec<(u64, u64)> = row.into_iter().chain([*column]).collect();
                let devices = blocks.get(&key).map(Vec::as_slice).unwrap_or_default();
                let color = devices.first().map_or_else(String::new, |d| shade(*d as usize));
                let _ = write!(
                    out,
                    "<td style=\"{CELL};text-align:center;padding:8px 14px;{color}\">{}</td>",
                    named_devices(devices)
                );
            }
            out.push_str("</tr>");
        }
    } else {
        for (block, devices) in &blocks {
            let ranges: Vec<String> = block.iter().map(range).collect();
            let color = devices.first().map_or_else(String::new, |d| shade(*d as usize));
            let _ = write!(
                out,
                "<tr style=\"background:none\"><th style=\"{HEAD}\">[{}]</th><td style=\"{CELL};{color}\">{}</td></tr>",
                ranges.join(", "),
                named_devices(devices)
            );
        }
    }
    out + "</table>" + &words
}

/// A mesh as a grid: along the last axis from left to right, the others from top to bottom.
fn mesh(mesh: &Mesh) -> String {
    let mut out = format!("<div><code>{}</code></div><table style=\"{TABLE}\">", escaped(&mesh.to_string()));
    let Some(((last, columns), others)) = mesh.axes.split_last() else { return out + "</table>" };
    let rows: u64 = others.iter().map(|a| a.1).product();
    let _ = write!(out, "<tr style=\"background:none\"><th style=\"{HEAD}\"></th>");
    let at = |c: Option<u64>| c.map_or("…".to_owned(), |c| format!("{last}={c}"));
    positions(*columns, COLUMNS)
        .into_iter()
        .for_each(|c| _ = write!(out, "<th style=\"{HEAD}\">{}</th>", escaped(&at(c))));
    out.push_str("</tr>");
    for r in positions(rows, ROWS) {
        let name = r.map_or("…".to_owned(), |r| {
            let coordinate = |a: &(String, u64)| format!("{}={}", a.0, mesh.coordinate(r * columns, &a.0));
            others.iter().map(coordinate).collect::<Vec<_>>().join(", ")
        });
        let _ = write!(out, "<tr style=\"background:none\"><th style=\"{HEAD}\">{}</th>", escaped(&name));
        for c in positions(*columns, COLUMNS) {
            let (text, color) = match (r, c) {
                (Some(r), Some(c)) => ((r * columns + c).to_string(), shade((r * columns + c) as usize)),
                _ => ("…".to_owned(), String::new()),
            };
            let _ = write!(out, "<td style=\"{CELL};text-align:center;padding:6px 12px;{color}\">{text}</td>");
        }
        out.push_str("</tr>");
    }
    out + "</table>"
}

/// A value with its parts, a line each; large parts are opened by a click.
fn tree(ty: &Ty, value: &HostValue, depth: usize) -> String {
    let parts = parts(ty, value);
    let name = escaped(&of_each(ty).to_string());
    let mut out = format!("<div><code>{name}</code></div><table style=\"{TABLE}\">");
    for (name, ty, value) in parts.iter().take(ITEMS) {
        let shown = part(ty, value, depth.saturating_sub(1));
        let _ = write!(
            out,
            "<tr style=\"background:none\"><th style=\"{HEAD};vertical-align:top\">{}</th><td style=\"{CELL};text-align:left;white-space:normal\">{shown}</td></tr>",
            escaped(name)
        );
    }
    out.push_str("</table>");
    if parts.len() > ITEMS {
        out.push_str(&note(&format!("… and {} more", parts.len() - ITEMS)));
    }
    out
}

fn parts<'v>(ty: &Ty, value: &'v HostValue) -> Vec<(String, Ty, &'v HostValue)> {
    match (ty, value) {
        (Ty::Struct(s), HostValue::Record(values)) => {
            s.fields.iter().zip(values).map(|((name, ty), v)| (name.to_string(), ty.clone(), v)).collect()
        }
        (Ty::Tuple(tys), HostValue::Record(values)) => {
            tys.iter().zip(values).enumerate().map(|(i, (ty, v))| (i.to_string(), ty.clone(), v)).collect()
        }
        (Ty::List(elem), HostValue::List(values)) => {
            values.iter().enumerate().map(|(i, v)| (i.to_string(), (**elem).clone(), v)).collect()
        }
        (Ty::Dict(_, elem), HostValue::Dict(entries)) => {
            let name = |key: &HostKey| match key {
                HostKey::Int(n) => n.to_string(),
                HostKey::Bool(b) => bool_text(*b).into(),
                HostKey::Str(s) => s.to_string(),
            };
            entries.iter().map(|(k, v)| (name(k), (**elem).clone(), v)).collect()
        }
        _ => vec![],
    }
}

fn part(ty: &Ty, value: &HostValue, depth: usize) -> String {
    let folded = |head: String, body: String| format!("<details><summary>{}</summary>{body}</details>", escaped(&head));
    match value {
        HostValue::Tensor(t) if !t.shape.is_empty() => folded(type_text(ty, Some(value)), tensor(ty, t)),
        HostValue::List(_) | HostValue::Record(_) | HostValue::Dict(_) if depth > 0 && opens(value) => {
            folded(of_each(ty).to_string(), tree(ty, value, depth))
        }
        _ => escaped(&brief(value)),
    }
}

/// A small value on a line.
fn brief(value: &HostValue) -> String {
    let several = |items: &mut dyn Iterator<Item = String>, n: usize| {
        let shown: Vec<String> = items.take(ITEMS).collect();
        shown.join(", ") + if n > ITEMS { ", …" } else { "" }
    };
    match value {
        HostValue::Int(n) => n.to_string(),
        HostValue::Float(x) => format!("{x:?}"),
        HostValue::Bool(b) => bool_text(*b).into(),
        HostValue::Str(s) => format!("'{s}'"),
        HostValue::None => "None".into(),
        HostValue::DType(d) => d.name().into(),
        HostValue::Tensor(t) if t.shape.is_empty() && !t.has_no_elements() => number(t, 0),
        HostValue::Tensor(t) => t.type_text(),
        HostValue::List(items) => format!("[{}]", several(&mut items.iter().map(brief), items.len())),
        HostValue::Record(items) => format!("({})", several(&mut items.iter().map(brief), items.len())),
        HostValue::Dict(entries) => {
            let entry = |(k, v): &(HostKey, HostValue)| match k {
                HostKey::Int(n) => format!("{n}: {}", brief(v)),
                HostKey::Bool(b) => format!("{}: {}", bool_text(*b), brief(v)),
                HostKey::Str(s) => format!("'{s}': {}", brief(v)),
            };
            format!("{{{}}}", several(&mut entries.iter().map(entry), entries.len()))
        }
        HostValue::Closure(..) => "a function".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_base::DType;

    #[test]
    fn long_sides_show_their_ends() {
        let bytes: Vec<u8> = (0..400u32).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let t = Tensor::from_bytes(DType::F32, &[20, 20], &bytes).unwrap_or_else(|e| panic!("{} bytes", e.bytes));
        let text = tensor(&Ty::AnyTensor, &t);
        assert!(
            text.contains("Tensor[20, 20, f32]") && text.contains("400 elements, 1.6 KiB; min 0.0, max 399.0"),
            "{text}"
        );
        assert_eq!(text.matches("<tr").count(), 12);
        assert!(!text.contains(">210.0<") && text.contains(">399.0<"));
    }

    #[test]
    fn what_is_no_markup_stays_text() {
        let entries = vec![(HostKey::Str("<b>".into()), HostValue::List(vec![HostValue::Str("&\"".into())]))];
        let ty = Ty::Dict(Box::new(Ty::Str), Box::new(Ty::List(Box::new(Ty::Str))));
        let text = tree(&ty, &HostValue::Dict(entries), DEPTH);
        assert!(text.contains("&lt;b&gt;") && text.contains("&amp;&quot;") && !text.contains("<b>"), "{text}");
    }

    #[test]
    fn a_mesh_is_a_grid() {
        let m = Mesh { axes: vec![("dp".into(), 2), ("tp".into(), 3)] };
        let text = mesh(&m);
        assert!(text.contains("Mesh[dp=2, tp=3]") && text.contains("dp=1") && text.contains(">5</td>"), "{text}");
        let sharding = Sharding { mesh: Some(m.into()), dims: vec![vec!["dp".into()], vec![]], ..Default::default() };
        let drawn = layout(&sharding, &[5, 4]);
        assert!(drawn.contains(">3 4 5</td>") && drawn.contains("3:5"), "{drawn}");
    }
}
