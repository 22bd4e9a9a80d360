//! A scene as SVG.

use super::colors::{Color, GRID, INK, WHITE};
use super::shapes::{Anchor, Shape};
use std::fmt::{Result, Write};

/// Ground, ink and lines of the grid on a dark page, where a browser shows one. The names are of this program, since those
/// of several pictures of a page are one space.
const DARK: &str = "<style>@media (prefers-color-scheme: dark) { .tessera-ground { fill: #1e1e1e } .tessera-ink { fill: #dddddd } \
                    .tessera-axis { stroke: #dddddd } .tessera-rule { stroke: #454545 } }</style>\n";

/// The text of the file.
pub fn write(scene: &[Shape], width: u32, height: u32) -> String {
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\">\n"
    );
    out.push_str(DARK);
    for shape in scene {
        // Writing to a string does not fail.
        let _ = one(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

fn one(out: &mut String, shape: &Shape) -> Result {
    match shape {
        Shape::Rects { rects, fill, opacity, crisp } => {
            let looks = if *crisp { " shape-rendering=\"crispEdges\"" } else { "" };
            let opacity = if *opacity < 1.0 { format!(" fill-opacity=\"{}\"", short(*opacity)) } else { String::new() };
            let looks = format!("{}fill=\"{}\"{opacity}{looks}", of_fill(*fill), hex(*fill));
            if let [[x, y, w, h]] = rects[..] {
                let (x, y, w, h) = (short(x), short(y), short(w), short(h));
                return writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" {looks}/>");
            }
            out.push_str("<path d=\"");
            for [x, y, w, h] in rects {
                let (w, h) = (short(*w), short(*h));
                write!(out, "M{} {}h{w}v{h}h-{w}z", short(*x), short(*y))?;
            }
            writeln!(out, "\" {looks}/>")
        }
        Shape::Line { points, stroke, width } => {
            let all: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
            let class = of_stroke(*stroke);
            let (points, stroke, width) = (all.join(" "), hex(*stroke), short(*width));
            let looks =
                format!("{class}fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"");
            writeln!(out, "<polyline points=\"{points}\" {looks}/>")
        }
        Shape::Area { outline, fill, opacity } => {
            let all: Vec<String> = outline.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect();
            let (points, fill, opacity) = (all.join(" "), hex(*fill), short(*opacity));
            writeln!(out, "<polygon points=\"{points}\" fill=\"{fill}\" fill-opacity=\"{opacity}\"/>")
        }
        Shape::Dots { points, fill, size } => {
            // Strokes of no length with round ends.
            out.push_str("<path d=\"");
            for (x, y) in points {
                write!(out, "M{} {}h0", short(*x), short(*y))?;
            }
            let looks = format!("stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\"", hex(*fill), short(*size));
            writeln!(out, "\" fill=\"none\" {looks}/>")
        }
        Shape::Text { x, y, text, size, anchor, upwards, ink } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let (x, y) = (short(*x), short(*y));
            let turn = if *upwards { format!(" transform=\"rotate(-90 {x} {y})\"") } else { String::new() };
            let looks = format!(
                "{}font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"{}\"",
                of_fill(*ink),
                short(*size),
                hex(*ink)
            );
            writeln!(out, "<text x=\"{x}\" y=\"{y}\" {looks}{turn}>{}</text>", escaped(text))
        }
        Shape::Inside { field, shapes } => {
            // A drawing inside the drawing, which cuts off what lies outside of it, needs no name: names of several pictures
            // of a page are one space.
            let (x, y) = (short(field.left), short(field.top));
            let (w, h) = (short(field.wide()), short(field.tall()));
            writeln!(out, "<svg x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" viewBox=\"{x} {y} {w} {h}\">")?;
            shapes.iter().try_for_each(|s| one(out, s))?;
            writeln!(out, "</svg>")
        }
    }
}

/// What a colour of areas and letters is for, if it is another one on a dark page.
fn of_fill(color: Color) -> &'static str {
    match color {
        WHITE => "class=\"tessera-ground\" ",
        INK => "class=\"tessera-ink\" ",
        _ => "",
    }
}

/// The same of lines.
fn of_stroke(color: Color) -> &'static str {
    match color {
        INK => "class=\"tessera-axis\" ",
        GRID => "class=\"tessera-rule\" ",
        _ => "",
    }
}

/// At most two decimals.
fn short(v: f64) -> String {
    let text = format!("{v:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.to_owned() }
}

fn hex([r, g, b]: Color) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn escaped(text: &str) -> String {
    super::text::plain(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
