//! Tile IR as text. Loop variables are `p` (the grid point), `lane` and `v2`, `v3`, …; a loop's
//! results are the last values of what it carries, and its region ends in a `yield`.

use super::{
    Access, Block, Buf, Carry, Def, FIRST_LOOP, Factor, Fold, For, Guard, Kernel, LANE, Mma, Op, POINT, Panel, Space,
    Ty, Val, kind_name,
};
use crate::index::{Index, Var};
use crate::schedule::text::{
    bounds_attrs, dtype_of, guard_text, parse_bounds, parse_by, parse_guard, parse_scalar, scalar_attr, strides_attr,
    string_list, strings, u32_attr, u64_attr,
};
use crate::text::{Attr, Op as Line, TextError, parse as parse_ops, print as print_ops};
use std::collections::BTreeMap;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Order, Reduction};
use tessera_ops::scalar::Kind;

/// The text of a kernel; [`parse`] reads it back.
pub fn print(k: &Kernel) -> String {
    let buffers = k.bufs.iter().map(|b| {
        let mut line = Line::new("tessera.tile.buffer");
        line.results = vec![b.name.clone()];
        line.attrs =
            vec![("elems".into(), Attr::Int(b.elems as i64)), ("space".into(), Attr::Str(space_name(b.space).into()))];
        line.types = vec![b.dtype.to_string()];
        line
    });
    let mut line = Line::new("tessera.tile.kernel");
    line.attrs = vec![
        ("name".into(), Attr::Str(k.name.clone())),
        ("scalars".into(), strings(k.scalars.iter().map(|d| d.to_string()))),
        ("grid".into(), Attr::Int(k.grid as i64)),
        ("grain".into(), Attr::Int(k.grain as i64)),
        ("last".into(), Attr::List(k.vars.iter().map(|n| Attr::Int(*n)).collect())),
    ];
    if k.warps > 0 {
        line.attrs.push(("warps".into(), Attr::Int(i64::from(k.warps))));
    }
    if k.unroll > 1 {
        line.attrs.push(("unroll".into(), Attr::Int(i64::from(k.unroll))));
    }
    let checks = k.checks.iter().map(|b| {
        let mut check = Line::new("tessera.tile.check");
        check.attrs = bounds_attrs(b);
        check
    });
    line.regions = vec![buffers.chain(checks).collect(), Printer { k }.ops(&k.body)];
    print_ops(&[line], 0)
}

/// Reads one kernel. Errors: the place and what is wrong there; any text is safe.
pub fn parse(text: &str) -> Result<Kernel, TextError> {
    match &parse_ops(text)?[..] {
        [line] => read(line),
        lines => Err(TextError {
            at: lines.first().map_or(0, |o| o.at),
            message: "one `tessera.tile.kernel` is expected".into(),
        }),
    }
}

/// Reads a kernel from its operation. Errors: as [`parse`].
pub fn read(line: &Line) -> Result<Kernel, TextError> {
    match line.name == "tessera.tile.kernel" {
        true => Reader::default().kernel(line),
        false => Err(TextError { at: line.at, message: "a `tessera.tile.kernel` is expected".into() }),
    }
}

fn space_name(s: Space) -> &'static str {
    match s {
        Space::In => "in",
        Space::Out => "out",
        Space::Temp => "temp",
        Space::Scratch => "scratch",
    }
}

fn var_name(v: Var) -> String {
    match v {
        POINT => "p".into(),
        LANE => "lane".into(),
        v => format!("v{}", v.0),
    }
}

fn parse_var(text: &str) -> Option<Var> {
    match text {
        "p" => Some(POINT),
        "lane" => Some(LANE),
        _ => text.strip_prefix('v')?.parse().ok().filter(|n| *n >= FIRST_LOOP).map(Var),
    }
}

fn ty_text(ty: Ty) -> String {
    if ty.lanes == 1 { kind_name(ty.kind).into() } else { format!("{}x{}", kind_name(ty.kind), ty.lanes) }
}

/// Lanes of the widest vector that a text may name: the longest register holds 64 bytes.
const LANES_MAX: u32 = 128;

fn lanes_attr(line: &Line) -> Result<u32, TextError> {
    let lanes = u32_attr(line, "lanes")?;
    if lanes > LANES_MAX { Err(line.error(format!("{lanes} lanes are more than {LANES_MAX}"))) } else { Ok(lanes) }
}

fn parse_ty(line: &Line, text: &str) -> Result<Ty, TextError> {
    let (kind, lanes) = text.split_once('x').map_or((text, "1"), |(k, n)| (k, n));
    let kind = Kind::ALL
        .into_iter()
        .find(|k| kind_name(*k) == kind)
        .ok_or_else(|| line.error(format!("`{text}` is no value type")))?;
    let lanes = lanes
        .parse()
        .ok()
        .filter(|n| (1..=LANES_MAX).contains(n))
        .ok_or_else(|| line.error(format!("`{text}` has no sensible number of lanes")))?;
    Ok(Ty { kind, lanes })
}

struct Printer<'k> {
    k: &'k Kernel,
}

impl Printer<'_> {
    fn ops(&self, ops: &[Op]) -> Vec<Line> {
        ops.iter().map(|op| self.op(op)).collect()
    }

    fn op(&self, op: &Op) -> Line {
        match op {
            Op::Def { out, def } => self.def(*out, def),
            Op::Store { to, by, value, lanes, stream } => {
                let mut line = Line::new("tessera.tile.store");
                line.operands = vec![self.buf(to.buf), value.0.to_string()];
                line.attrs = self.access(to);
                if !by.is_empty() {
                    line.operands.extend(by.iter().map(|(v, _)| v.0.to_string()));
                    line.attrs.push(("strides".into(), strides_attr(by.iter().map(|(_, n)| *n))));
                }
                line.attrs.push(("lanes".into(), Attr::Int(*lanes as i64)));
                line.attrs.push(("stream".into(), Attr::Bool(*stream)));
                line
            }
            Op::For(f) => {
                let mut line = Line::new("tessera.tile.for");
                line.results = f.carried.iter().map(|c| c.out.0.to_string()).collect();
                line.operands = f.carried.iter().map(|c| c.init.0.to_string()).collect();
                line.attrs = vec![
                    ("var".into(), Attr::Str(var_name(f.var))),
                    ("lo".into(), self.indices(&f.lo)),
                    ("hi".into(), self.indices(&f.hi)),
                    ("step".into(), Attr::Int(f.step as i64)),
                    ("carried".into(), Attr::List(f.carried.iter().map(|c| Attr::Int(c.inner.0 as i64)).collect())),
                ];
                line.attrs.extend(f.dealt.then(|| ("dealt".into(), Attr::Bool(true))));
                let mut body = self.ops(&f.body);
                let mut last = Line::new("tessera.tile.yield");
                last.operands = f.carried.iter().map(|c| c.next.0.to_string()).collect();
                body.push(last);
                line.regions = vec![body];
                line.types = f.carried.iter().map(|c| ty_text(self.k.ty(c.out))).collect();
                line
            }
            Op::Prefetch { buf, at } => {
                let mut line = Line::new("tessera.tile.prefetch");
                line.operands = vec![self.buf(*buf)];
                line.attrs = vec![("at".into(), self.index(at))];
                line
            }
            Op::Transpose { from, to } => {
                let mut line = Line::new("tessera.tile.transpose");
                line.results = to.iter().map(|v| v.0.to_string()).collect();
                line.operands = from.iter().map(|v| v.0.to_string()).collect();
                line.types = to.first().map(|v| ty_text(self.k.ty(*v))).into_iter().collect();
                line
            }
            Op::Block(b) => self.block(b),
            Op::Mma(m) => {
                let mut line = Line::new("tessera.tile.mma");
                line.operands = [&m.a, &m.b, &m.c]
                    .into_iter()
                    .chain(m.fold.iter().map(|f| &f.slots))
                    .chain(&m.ahead)
                    .map(|p| self.buf(p.buf))
                    .collect();
                line.attrs = vec![
                    ("kind".into(), Attr::Str(kind_name(m.kind).into())),
                    ("rows".into(), Attr::Int(m.rows as i64)),
                    ("cols".into(), Attr::Int(m.cols as i64)),
                    ("lanes".into(), Attr::Int(m.lanes as i64)),
                    ("depth".into(), self.indices(&m.depth)),
                    ("unroll".into(), Attr::Int(m.unroll as i64)),
                ];
                line.attrs.extend((m.distance > 0).then(|| ("distance".into(), Attr::Int(m.distance as i64))));
                if m.order != Order::Chain {
                    line.attrs.push(("order".into(), Attr::Str(m.order.name().into())));
                }
                line.attrs.extend(m.half.then(|| ("half".into(), Attr::Bool(true))));
                line.attrs.extend(m.matrix_unit.then(|| ("matrix_unit".into(), Attr::Bool(true))));
                line.attrs.extend(m.ramp.as_ref().map(|e| ("ramp".into(), self.index(e))));
                line.attrs.extend(m.lead.as_ref().map(|e| ("lead".into(), self.index(e))));
                let hops: Vec<Attr> = m.hops.iter().flat_map(|(n, e)| [Attr::Int(*n), Attr::Int(*e)]).collect();
                line.attrs.extend((!hops.is_empty()).then(|| ("hops".into(), Attr::List(hops))));
                let panel = |p: &Panel| Attr::List(vec![self.index(&p.at), Attr::Int(p.row), Attr::Int(p.step)]);
                let panels = [("a", &m.a), ("b", &m.b), ("c", &m.c)];
                line.attrs.extend(panels.into_iter().map(|(key, p)| (key.into(), panel(p))));
                line.attrs.extend(m.fold.iter().flat_map(|f| self.fold(f)));
                let ahead: Vec<Attr> = m.ahead.iter().map(panel).collect();
                line.attrs.extend((!ahead.is_empty()).then(|| ("ahead".into(), Attr::List(ahead))));
                line
            }
        }
    }

    fn block(&self, b: &Block) -> Line {
        let mut line = Line::new("tessera.tile.block");
        let bufs = [b.a.buf, b.b.buf, b.c].into_iter().chain(b.waiting);
        line.operands = bufs.map(|n| self.buf(n)).collect();
        let factor = |f: &Factor| {
            Attr::List(vec![self.index(&f.at), Attr::Int(f.line), Attr::Int(f.step), self.indices(&f.count)])
        };
        let [of_rows, of_cols] = b.warps.map(i64::from);
        line.attrs = vec![
            ("rows".into(), Attr::Int(b.rows.into())),
            ("cols".into(), Attr::Int(b.cols.into())),
            ("warps".into(), Attr::List(vec![Attr::Int(of_rows), Attr::Int(of_cols)])),
            ("depth".into(), Attr::Int(b.depth as i64)),
            ("leaf".into(), Attr::Int(b.leaf as i64)),
            ("chunk".into(), Attr::Int(b.chunk.into())),
            ("stages".into(), Attr::Int(b.stages.into())),
            ("a".into(), factor(&b.a)),
            ("b".into(), factor(&b.b)),
        ];
        line
    }

    fn fold(&self, f: &Fold) -> Vec<(String, Attr)> {
        let levels = [f.levels, f.inner, f.apart, f.slots.row].map(Attr::Int);
        let places = [&f.slots.at, &f.lasting].map(|e| self.index(e));
        vec![
            ("leaf".into(), Attr::Int(f.leaf)),
            ("first".into(), self.index(&f.first)),
            ("begin".into(), self.index(&f.begin)),
            ("leaves".into(), self.indices(&f.leaves)),
            ("levels".into(), Attr::List(levels.into())),
            ("slots".into(), Attr::List(places.into())),
        ]
    }

    fn def(&self, out: Val, def: &Def) -> Line {
        let ids = |vs: &[Val]| vs.iter().map(|v| v.0.to_string()).collect::<Vec<_>>();
        let text = |s: &str| Attr::Str(s.to_string());
        let (word, operands, attrs) = match def {
            Def::Const(c) => ("const", vec![], vec![("value".to_string(), scalar_attr(*c))]),
            Def::Scalar(n) => ("scalar", vec![], vec![("n".into(), Attr::Int(*n as i64))]),
            Def::Index(e) => ("index", vec![], vec![("at".into(), self.index(e))]),
            Def::Load(a) => ("load", vec![self.buf(a.buf)], self.access(a)),
            Def::Gather { from, by } => {
                let mut operands = vec![self.buf(from.buf)];
                operands.extend(by.iter().map(|(v, _)| v.0.to_string()));
                let mut attrs = self.access(from);
                attrs.push(("strides".into(), strides_attr(by.iter().map(|(_, n)| *n))));
                ("gather", operands, attrs)
            }
            Def::Position { arg, check, valid } => {
                let attrs = vec![
                    ("check".into(), Attr::Int(i64::from(*check))),
                    ("valid".into(), Attr::Int(i64::from(*valid))),
                ];
                ("position", ids(&[*arg]), attrs)
            }
            Def::Within(g) => ("within", vec![], vec![("guards".into(), self.guards(g))]),
            Def::HalfBits(arg) => ("half_bits", ids(&[*arg]), vec![]),
            Def::Half { low, high } => ("half", ids(&[*low, *high]), vec![]),
            Def::Random { key, at } => ("random", ids(key), vec![("at".into(), self.index(at))]),
            Def::Map { op, dtype, args } => {
                ("map", ids(args), vec![("op".into(), text(op.name())), ("dtype".into(), text(dtype.name()))])
            }
            Def::Cast { from, to, arg } => {
                ("cast", ids(&[*arg]), vec![("from".into(), text(from.name())), ("to".into(), text(to.name()))])
            }
            Def::RoundTf32(arg) => ("round_tf32", ids(&[*arg]), vec![]),
            Def::Fold { kind, acc, value, valid } => (
                "fold",
                ids(&[*acc, *value]),
                vec![("kind".into(), text(kind.name())), ("valid".into(), Attr::Int(*valid as i64))],
            ),
            Def::Pair { even, odd } => ("pair", ids(&[*even, *odd]), vec![]),
            Def::Lanes { kind, arg } => ("lanes", ids(&[*arg]), vec![("kind".into(), text(kind.name()))]),
            Def::Tree { kind, buf, at, count } => {
                let attrs = vec![
                    ("kind".into(), text(kind.name())),
                    ("at".into(), self.index(at)),
                    ("count".into(), Attr::Int(*count as i64)),
                ];
                ("tree", vec![self.buf(*buf)], attrs)
            }
        };
        let mut line = Line::new(format!("tessera.tile.{word}"));
        (line.results, line.operands, line.attrs) = (vec![out.0.to_string()], operands, attrs);
        line.types = vec![ty_text(self.k.ty(out))];
        line
    }

    fn buf(&self, n: u32) -> String {
        self.k.bufs[n as usize].name.clone()
    }

    fn index(&self, e: &Index) -> Attr {
        Attr::Str(e.print(&var_name))
    }

    fn indices(&self, es: &[Index]) -> Attr {
        Attr::List(es.iter().map(|e| self.index(e)).collect())
    }

    fn guards(&self, guards: &[Guard]) -> Attr {
        strings(guards.iter().map(|g| guard_text(g, &var_name)))
    }

    fn access(&self, a: &Access) -> Vec<(String, Attr)> {
        let mut attrs = vec![("at".to_string(), self.index(&a.at)), ("valid".into(), Attr::Int(a.valid as i64))];
        if !a.guards.is_empty() {
            attrs.push(("guards".into(), self.guards(&a.guards)));
        }
        attrs
    }
}

#[derive(Default)]
struct Reader {
    k: Kernel,
    bufs: BTreeMap<String, u32>,
}

/// Values of one kernel text: numbers beyond this are refused, so that `%4000000000` costs nothing.
const VALUES_MAX: u32 = 1 << 20;

impl Reader {
    fn kernel(mut self, line: &Line) -> Result<Kernel, TextError> {
        self.k.name = line.str("name")?.to_string();
        self.k.scalars = string_list(line, "scalars")?.iter().map(|t| dtype_of(line, t)).collect::<Result<_, _>>()?;
        (self.k.grid, self.k.grain) = (u64_attr(line, "grid")?, u64_attr(line, "grain")?);
        self.k.vars = line.ints("last")?;
        if line.attr("warps").is_some() {
            self.k.warps = u32_attr(line, "warps")?;
        }
        if line.attr("unroll").is_some() {
            self.k.unroll = u32_attr(line, "unroll")?;
        }
        let [buffers, body] = &line.regions[..] else {
            return Err(line.error("two regions are expected: the buffers and the body"));
        };
        for b in buffers {
            match b.name.as_str() {
                "tessera.tile.check" => self.k.checks.push(parse_bounds(b)?),
                _ => self.buffer(b)?,
            }
        }
        self.k.body = self.ops(body)?;
        Ok(self.k)
    }

    fn buffer(&mut self, line: &Line) -> Result<(), TextError> {
        let (Some(name), [ty]) = (line.results.first(), &line.types[..]) else {
            return Err(line.error("a name and an element type are expected"));
        };
        let word = line.str("space")?;
        let spaces = [Space::In, Space::Out, Space::Temp, Space::Scratch];
        let space = spaces
            .into_iter()
            .find(|s| space_name(*s) == word)
            .ok_or_else(|| line.error(format!("`{word}` is no memory space")))?;
        if self.bufs.insert(name.clone(), self.k.bufs.len() as u32).is_some() {
            return Err(line.error(format!("`%{name}` is defined twice")));
        }
        self.k.bufs.push(Buf {
            name: name.clone(),
            dtype: dtype_of(line, ty)?,
            elems: u64_attr(line, "elems")?,
            space,
        });
        Ok(())
    }

    fn ops(&mut self, lines: &[Line]) -> Result<Vec<Op>, TextError> {
        lines.iter().map(|l| self.op(l)).collect()
    }

    fn op(&mut self, line: &Line) -> Result<Op, TextError> {
        match line.name.as_str() {
            "tessera.tile.store" => {
                let [_, value, by @ ..] = &line.operands[..] else {
                    return Err(line.error("a buffer and a value are expected"));
                };
                let value = self.val(line, value)?;
                let by = by.iter().map(|o| self.val(line, o)).collect::<Result<Vec<_>, _>>()?;
                let by = if by.is_empty() { vec![] } else { parse_by(line, by)? };
                let (to, lanes) = (self.access(line)?, lanes_attr(line)?);
                Ok(Op::Store { to, by, value, lanes, stream: line.bool("stream")? })
            }
            "tessera.tile.for" => self.for_op(line),
            "tessera.tile.mma" => self.mma(line),
            "tessera.tile.block" => self.block(line),
            "tessera.tile.prefetch" => {
                let name = line.operands.first().ok_or_else(|| line.error("a buffer is expected"))?;
                Ok(Op::Prefetch { buf: self.buf(line, name)?, at: self.parse_index(line, line.str("at")?)? })
            }
            "tessera.tile.transpose" => {
                let from = line.operands.iter().map(|o| self.val(line, o)).collect::<Result<Vec<_>, _>>()?;
                let ty = self.one_type(line)?;
                let to = line.results.iter().map(|r| self.define(line, r, ty)).collect::<Result<Vec<_>, _>>()?;
                Ok(Op::Transpose { from, to })
            }
            _ => {
                let ty = self.one_type(line)?;
                let def = self.def(line)?;
                let out = line.results.first().ok_or_else(|| line.error("a result is expected"))?;
                Ok(Op::Def { out: self.define(line, out, ty)?, def })
            }
        }
    }

    fn one_type(&self, line: &Line) -> Result<Ty, TextError> {
        match &line.types[..] {
            [t] => parse_ty(line, t),
            _ => Err(line.error("one type is expected")),
        }
    }

    fn for_op(&mut self, line: &Line) -> Result<Op, TextError> {
        let word = line.str("var")?;
        let var = parse_var(word)
            .filter(|v| v.0 >= FIRST_LOOP)
            .ok_or_else(|| line.error(format!("`{word}` is no loop variable")))?;
        let inner = line.ints("carried")?;
        let [region] = &line.regions[..] else { return Err(line.error("one region is expected")) };
        let Some((last, body)) = region.split_last().filter(|(l, _)| l.name == "tessera.tile.yield") else {
            return Err(line.error("the region must end in `tessera.tile.yield`"));
        };
        let n = line.results.len();
        if [line.operands.len(), inner.len(), last.operands.len(), line.types.len()].iter().any(|k| *k != n) {
            return Err(line.error("results, operands, carried values, yielded values and types must be equally many"));
        }
        let mut carried = vec![];
        for i in 0..n {
            let ty = parse_ty(line, &line.types[i])?;
            let init = self.val(line, &line.operands[i])?;
            let inner = self.define(line, &inner[i].to_string(), ty)?;
            carried.push(Carry { inner, init, next: inner, out: inner });
        }
        let body = self.ops(body)?;
        for (i, c) in carried.iter_mut().enumerate() {
            c.next = self.val(last, &last.operands[i])?;
            c.out = self.define(line, &line.results[i], parse_ty(line, &line.types[i])?)?;
        }
        Ok(Op::For(For {
            var,
            lo: self.indices(line, "lo")?,
            hi: self.indices(line, "hi")?,
            step: u32_attr(line, "step")?,
            dealt: line.attr("dealt").is_some() && line.bool("dealt")?,
            carried,
            body,
        }))
    }

    fn block(&self, line: &Line) -> Result<Op, TextError> {
        let buf = |n: usize| {
            let name = line.operands.get(n).ok_or_else(|| line.error("a buffer is missing"))?;
            self.buf(line, name)
        };
        let factor = |n: usize, key: &str| {
            let form = || line.error(format!("`{key}` must be [index, line, step, [index]]"));
            let Some(Attr::List(items)) = line.attr(key) else { return Err(form()) };
            let [Attr::Str(at), Attr::Int(of_line), Attr::Int(step), Attr::List(count)] = &items[..] else {
                return Err(form());
            };
            let index = |a: &Attr| if let Attr::Str(t) = a { self.parse_index(line, t) } else { Err(form()) };
            let count = count.iter().map(index).collect::<Result<_, _>>()?;
            Ok(Factor { buf: buf(n)?, at: self.parse_index(line, at)?, line: *of_line, step: *step, count })
        };
        let small = |n: i64| u32::try_from(n).map_err(|_| line.error(format!("{n} warps")));
        let [of_rows, of_cols] = line.ints("warps")?[..] else {
            return Err(line.error("`warps` must be [rows, columns]"));
        };
        let long = |key: &str| {
            let n = line.int(key)?;
            u64::try_from(n).map_err(|_| line.error(format!("`{key}` is {n}")))
        };
        Ok(Op::Block(Block {
            rows: u32_attr(line, "rows")?,
            cols: u32_attr(line, "cols")?,
            warps: [small(of_rows)?, small(of_cols)?],
            depth: long("depth")?,
            leaf: long("leaf")?,
            chunk: u32_attr(line, "chunk")?,
            stages: u32_attr(line, "stages")?,
            a: factor(0, "a")?,
            b: factor(1, "b")?,
            c: buf(2)?,
            waiting: if line.operands.len() > 3 { Some(buf(3)?) } else { None },
        }))
    }

    fn mma(&self, line: &Line) -> Result<Op, TextError> {
        let word = line.str("kind")?;
        let kind = Kind::ALL
            .into_iter()
            .find(|k| kind_name(*k) == word)
            .ok_or_else(|| line.error(format!("`{word}` is no kind")))?;
        let panel = |n: usize, key: &str, of: Option<&Attr>| -> Result<Panel, TextError> {
            let name = line.operands.get(n).ok_or_else(|| line.error("a buffer is missing"))?;
            let form = || line.error(format!("`{key}` must be [index, row, step]"));
            let Some(Attr::List(items)) = of else { return Err(form()) };
            let [Attr::Str(at), Attr::Int(row), Attr::Int(step)] = &items[..] else { return Err(form()) };
            Ok(Panel { buf: self.buf(line, name)?, at: self.parse_index(line, at)?, row: *row, step: *step })
        };
        let ahead = match line.attr("ahead") {
            Some(Attr::List(items)) => &items[..],
            _ => &[],
        };
        let bound =
            |word: &str| line.attr(word).map(|_| line.str(word).and_then(|t| self.parse_index(line, t))).transpose();
        Ok(Op::Mma(Mma {
            kind,
            rows: u32_attr(line, "rows")?,
            cols: u32_attr(line, "cols")?,
            lanes: lanes_attr(line)?,
            depth: self.indices(line, "depth")?,
            order: line.order()?,
            half: line.attr("half").is_some() && line.bool("half")?,
            matrix_unit: line.attr("matrix_unit").is_some() && line.bool("matrix_unit")?,
            ramp: bound("ramp")?,
            lead: bound("lead")?,
            hops: line.attr("hops").map(|_| line.ints("hops")).transpose()?.map_or_else(Vec::new, in_twos),
            unroll: u32_attr(line, "unroll")?,
            distance: line.attr("distance").map_or(Ok(0), |_| u32_attr(line, "distance"))?,
            fold: line.attr("leaf").map(|_| self.parse_fold(line)).transpose()?,
            a: panel(0, "a", line.attr("a"))?,
            b: panel(1, "b", line.attr("b"))?,
            c: panel(2, "c", line.attr("c"))?,
            ahead: ahead
                .iter()
                .zip(if line.attr("leaf").is_some() { 4.. } else { 3.. })
                .map(|(p, n)| panel(n, "ahead", Some(p)))
                .collect::<Result<_, _>>()?,
        }))
    }

    fn parse_fold(&self, line: &Line) -> Result<Fold, TextError> {
        let name = line.operands.get(3).ok_or_else(|| line.error("a buffer is missing"))?;
        let [levels, inner, apart, row] = line.ints("levels")?[..] else {
            return Err(line.error("`levels` must be [levels, inner, apart, row]"));
        };
        let [at, lasting] = &self.indices(line, "slots")?[..] else {
            return Err(line.error("`slots` must be [index, index]"));
        };
        let index = |key: &str| self.parse_index(line, line.str(key)?);
        Ok(Fold {
            leaf: line.int("leaf")?,
            first: index("first")?,
            begin: index("begin")?,
            leaves: self.indices(line, "leaves")?,
            slots: Panel { buf: self.buf(line, name)?, at: at.clone(), row, step: 0 },
            apart,
            inner,
            lasting: lasting.clone(),
            levels,
        })
    }

    fn def(&self, line: &Line) -> Result<Def, TextError> {
        let arg = |i: usize| {
            line.operands.get(i).ok_or_else(|| line.error("an operand is missing")).and_then(|o| self.val(line, o))
        };
        let dtype = |key: &str| line.str(key).and_then(|t| dtype_of(line, t));
        let kind = || {
            let word = line.str("kind")?;
            Reduction::parse(word).ok_or_else(|| line.error(format!("`{word}` is no reduction")))
        };
        Ok(match line.name.strip_prefix("tessera.tile.").unwrap_or("") {
            "const" => Def::Const(parse_scalar(line)?),
            "scalar" => Def::Scalar(u32_attr(line, "n")?),
            "index" => Def::Index(self.parse_index(line, line.str("at")?)?),
            "load" => Def::Load(self.access(line)?),
            "gather" => {
                let by = (1..line.operands.len()).map(arg).collect::<Result<Vec<_>, _>>()?;
                Def::Gather { from: self.access(line)?, by: parse_by(line, by)? }
            }
            "position" => {
                Def::Position { arg: arg(0)?, check: u32_attr(line, "check")?, valid: u32_attr(line, "valid")? }
            }
            "within" => Def::Within(self.guards(line)?),
            "half_bits" => Def::HalfBits(arg(0)?),
            "half" => Def::Half { low: arg(0)?, high: arg(1)? },
            "random" => Def::Random { key: [arg(0)?, arg(1)?], at: self.parse_index(line, line.str("at")?)? },
            "map" => {
                let word = line.str("op")?;
                let op =
                    MapOp::parse(word).ok_or_else(|| line.error(format!("`{word}` is no elementwise function")))?;
                Def::Map {
                    op,
                    dtype: dtype("dtype")?,
                    args: (0..line.operands.len()).map(arg).collect::<Result<_, _>>()?,
                }
            }
            "cast" => Def::Cast { from: dtype("from")?, to: dtype("to")?, arg: arg(0)? },
            "fold" => Def::Fold { kind: kind()?, acc: arg(0)?, value: arg(1)?, valid: u32_attr(line, "valid")? },
            "round_tf32" => Def::RoundTf32(arg(0)?),
            "pair" => Def::Pair { even: arg(0)?, odd: arg(1)? },
            "lanes" => Def::Lanes { kind: kind()?, arg: arg(0)? },
            "tree" => {
                let name = line.operands.first().ok_or_else(|| line.error("a buffer is expected"))?;
                Def::Tree {
                    kind: kind()?,
                    buf: self.buf(line, name)?,
                    at: self.parse_index(line, line.str("at")?)?,
                    count: u64_attr(line, "count")?,
                }
            }
            _ => return Err(line.error("no such operation in Tile IR")),
        })
    }

    fn define(&mut self, line: &Line, name: &str, ty: Ty) -> Result<Val, TextError> {
        let n: u32 = name
            .parse()
            .ok()
            .filter(|n| *n < VALUES_MAX)
            .ok_or_else(|| line.error(format!("`%{name}` is no value number")))?;
        if self.k.values.len() <= n as usize {
            self.k.values.resize(n as usize + 1, ty);
        }
        self.k.values[n as usize] = ty;
        Ok(Val(n))
    }

    fn val(&self, line: &Line, name: &str) -> Result<Val, TextError> {
        name.parse()
            .ok()
            .filter(|n| (*n as usize) < self.k.values.len())
            .map(Val)
            .ok_or_else(|| line.error(format!("`%{name}` is not defined")))
    }

    fn buf(&self, line: &Line, name: &str) -> Result<u32, TextError> {
        self.bufs.get(name).copied().ok_or_else(|| line.error(format!("`%{name}` is no buffer")))
    }

    fn parse_index(&self, line: &Line, text: &str) -> Result<Index, TextError> {
        Index::parse(text, &parse_var).map_err(|e| line.error(e))
    }

    fn indices(&self, line: &Line, key: &str) -> Result<Vec<Index>, TextError> {
        string_list(line, key)?.iter().map(|t| self.parse_index(line, t)).collect()
    }

    fn guards(&self, line: &Line) -> Result<Vec<Guard>, TextError> {
        string_list(line, "guards")?.iter().map(|t| parse_guard(line, t, &parse_var)).collect()
    }

    fn access(&self, line: &Line) -> Result<Access, TextError> {
        let name = line.operands.first().ok_or_else(|| line.error("a buffer is expected"))?;
        let buf = self.buf(line, name)?;
        Ok(Access {
            buf,
            at: self.parse_index(line, line.str("at")?)?,
            valid: u32_attr(line, "valid")?,
            guards: self.guards(line)?,
        })
    }
}

/// Numbers that stand in twos.
fn in_twos(all: Vec<i64>) -> Vec<(i64, i64)> {
    all.chunks_exact(2).map(|two| (two[0], two[1])).collect()
}
