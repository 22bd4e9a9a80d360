//! A scene as SVG.

use super::colors::Color;
use super::scene::{Anchor, Shape};
use std::fmt::Write;

/// The text of the file.
pub fn write(scene: &[Shape], width: u32, height: u32) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\">\n"
    );
    for shape in scene {
        // Writing to a string does not fail.
        let _ = one(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

fn one(out: &mut String, shape: &Shape) -> std::fmt::Result {
    match shape {
        Shape::Rect { x, y, w, h, fill } => {
            let (x, y, w, h) = (short(*x), short(*y), short(*w), short(*h));
            writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" fill=\"{}\"/>", hex(*fill))
        }
        Shape::Line { points, stroke, width } => {
            let all: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
            writeln!(
                out,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linejoin=\"round\"/>",
                all.join(" "),
                hex(*stroke),
                short(*width)
            )
        }
        Shape::Text { x, y, text, size, anchor, upwards, ink } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let (x, y) = (short(*x), short(*y));
            let turn = if *upwards { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            writeln!(
                out,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{}\"{turn}>{}</text>",
                short(*size),
                hex(*ink),
                escaped(text)
            )
        }
    }
}

/// At most two decimals.
fn short(v: f64) -> String {
    let text = format!("{v:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn hex([r, g, b]: Color) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(|c: char| c.is_control(), " ")
}
