//! The text form that every IR shares: MLIR's generic form.
//!
//! `%2, %3 = "tessera.graph.topk"(%0, %1) {axis=1, largest=true} ({ … }) : Tensor[2, 3, f32], Tensor[2, 3, i64]`
//!
//! This module knows operations, attributes and nesting; what they mean is each IR's business.
//! Reading never panics: input may be any bytes.

use std::fmt::Write;
use tessera_base::Blocks;
use tessera_ops::prim::Order;
use tessera_ops::prim::fold::DOT_LEAF;

/// An attribute value.
#[derive(Clone, PartialEq, Debug)]
pub enum Attr {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(String),
    List(Vec<Attr>),
}

impl Attr {
    pub fn ints(items: &[i64]) -> Attr {
        Attr::List(items.iter().map(|&n| Attr::Int(n)).collect())
    }

    pub fn sizes(items: &[u64]) -> Attr {
        Attr::List(items.iter().map(|&n| Attr::Int(n as i64)).collect())
    }
}

/// The attributes of an operation that is printed.
#[derive(Default)]
pub struct Attrs(pub Vec<(String, Attr)>);

impl Attrs {
    pub fn put(&mut self, key: &str, value: Attr) {
        self.0.push((key.to_owned(), value));
    }

    pub fn int(&mut self, key: &str, value: impl Into<i64>) {
        self.put(key, Attr::Int(value.into()));
    }

    /// An axis, a position, a number of things.
    pub fn place(&mut self, key: &str, value: usize) {
        self.put(key, Attr::Int(value as i64));
    }

    pub fn size(&mut self, key: &str, value: u64) {
        self.put(key, Attr::Int(value as i64));
    }

    pub fn float(&mut self, key: &str, value: f64) {
        self.put(key, Attr::Float(value));
    }

    pub fn bool(&mut self, key: &str, value: bool) {
        self.put(key, Attr::Bool(value));
    }

    pub fn str(&mut self, key: &str, value: &str) {
        self.put(key, Attr::Str(value.to_owned()));
    }

    pub fn ints(&mut self, key: &str, values: &[i64]) {
        self.put(key, Attr::ints(values));
    }

    pub fn sizes(&mut self, key: &str, values: &[u64]) {
        self.put(key, Attr::sizes(values));
    }

    pub fn places(&mut self, key: &str, values: &[usize]) {
        self.put(key, Attr::List(values.iter().map(|&n| Attr::Int(n as i64)).collect()));
    }
}

/// One operation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Op {
    /// Names without `%`.
    pub results: Vec<String>,
    pub name: String,
    pub operands: Vec<String>,
    pub attrs: Vec<(String, Attr)>,
    /// Nested blocks.
    pub regions: Vec<Vec<Op>>,
    /// The text after `:`; types separated by top-level commas.
    pub types: Vec<String>,
    /// Byte offset in the source, for messages.
    pub at: usize,
}

/// What is wrong with a text, and where (byte offset).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextError {
    pub at: usize,
    pub message: String,
}

impl Op {
    pub fn new(name: impl Into<String>) -> Op {
        Op { name: name.into(), ..Op::default() }
    }

    pub fn attr(&self, key: &str) -> Option<&Attr> {
        self.attrs.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    pub fn error(&self, message: impl Into<String>) -> TextError {
        TextError { at: self.at, message: format!("`{}`: {}", self.name, message.into()) }
    }

    pub fn int(&self, key: &str) -> Result<i64, TextError> {
        match self.attr(key) {
            Some(Attr::Int(n)) => Ok(*n),
            _ => Err(self.error(format!("the attribute `{key}` must be an integer"))),
        }
    }

    /// An index or count that is not negative.
    pub fn index(&self, key: &str) -> Result<usize, TextError> {
        usize::try_from(self.int(key)?).map_err(|_| self.error(format!("the attribute `{key}` must not be negative")))
    }

    pub fn bool(&self, key: &str) -> Result<bool, TextError> {
        match self.attr(key) {
            Some(Attr::Bool(b)) => Ok(*b),
            _ => Err(self.error(format!("the attribute `{key}` must be true or false"))),
        }
    }

    /// Steps of a leaf of a product.
    pub fn leaf(&self) -> Result<u64, TextError> {
        match self.attr("leaf") {
            None => Ok(DOT_LEAF),
            Some(_) => match self.index("leaf")? {
                0 => Err(self.error("a leaf of a product has steps")),
                n => Ok(n as u64),
            },
        }
    }

    /// The order of a product; without one it is the chain.
    pub fn order(&self) -> Result<Order, TextError> {
        match self.attr("order") {
            None => Ok(Order::Chain),
            Some(_) => Order::parse(self.str("order")?).ok_or_else(|| {
                let names = Order::ALL.map(Order::name).join(", ");
                self.error(format!("the attribute `order` must be one of {names}"))
            }),
        }
    }

    pub fn str(&self, key: &str) -> Result<&str, TextError> {
        match self.attr(key) {
            Some(Attr::Str(s)) => Ok(s),
            _ => Err(self.error(format!("the attribute `{key}` must be a string"))),
        }
    }

    pub fn ints(&self, key: &str) -> Result<Vec<i64>, TextError> {
        let bad = || self.error(format!("the attribute `{key}` must be a list of integers"));
        match self.attr(key) {
            Some(Attr::List(items)) => {
                items.iter().map(|a| if let Attr::Int(n) = a { Ok(*n) } else { Err(bad()) }).collect()
            }
            _ => Err(bad()),
        }
    }

    /// A list of numbers that are not negative.
    pub fn sizes(&self, key: &str) -> Result<Vec<u64>, TextError> {
        let natural = |n| u64::try_from(n).map_err(|_| self.error(format!("`{key}` holds a negative number")));
        self.ints(key)?.into_iter().map(natural).collect()
    }

    /// A list of axes or positions.
    pub fn places(&self, key: &str) -> Result<Vec<usize>, TextError> {
        Ok(self.sizes(key)?.into_iter().map(|n| n as usize).collect())
    }

    /// A format of numbers in blocks.
    pub fn blocks(&self, key: &str) -> Result<Blocks, TextError> {
        Blocks::parse(self.str(key)?).ok_or_else(|| self.error(format!("`{key}` is no block format")))
    }
}

/// Writes operations, two spaces a level.
pub fn print(ops: &[Op], indent: usize) -> String {
    let mut out = String::new();
    for op in ops {
        print_op(&mut out, op, indent);
    }
    out
}

fn print_op(out: &mut String, op: &Op, indent: usize) {
    let pad = "  ".repeat(indent);
    out.push_str(&pad);
    if !op.results.is_empty() {
        let names: Vec<String> = op.results.iter().map(|r| format!("%{r}")).collect();
        let _ = write!(out, "{} = ", names.join(", "));
    }
    let operands: Vec<String> = op.operands.iter().map(|o| format!("%{o}")).collect();
    let _ = write!(out, "\"{}\"({})", op.name, operands.join(", "));
    if !op.attrs.is_empty() {
        let attrs: Vec<String> = op.attrs.iter().map(|(k, v)| format!("{k}={}", attr_text(v))).collect();
        let _ = write!(out, " {{{}}}", attrs.join(", "));
    }
    if !op.regions.is_empty() {
        out.push_str(" (");
        for (i, region) in op.regions.iter().enumerate() {
            out.push_str(if i > 0 { ", {\n" } else { "{\n" });
            for inner in region {
                print_op(out, inner, indent + 1);
            }
            let _ = write!(out, "{pad}}}");
        }
        out.push(')');
    }
    if !op.types.is_empty() {
        let _ = write!(out, " : {}", op.types.join(", "));
    }
    out.push('\n');
}

fn attr_text(a: &Attr) -> String {
    match a {
        Attr::Int(n) => n.to_string(),
        // Debug prints the fewest digits that read back, always with a point or exponent.
        Attr::Float(x) => format!("{x:?}"),
        Attr::Bool(b) => b.to_string(),
        Attr::Str(s) => format!("{s:?}"),
        Attr::List(items) => format!("[{}]", items.iter().map(attr_text).collect::<Vec<_>>().join(", ")),
    }
}

/// Deepest nesting of regions and lists that is read.
const DEPTH_MAX: usize = 64;

/// Reads operations until the end of the text.
pub fn parse(text: &str) -> Result<Vec<Op>, TextError> {
    let mut r = Reader { text, at: 0 };
    let mut ops = vec![];
    r.space();
    while r.at < text.len() {
        ops.push(r.op(0)?);
        r.space();
    }
    Ok(ops)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error<T>(&self, message: impl Into<String>) -> Result<T, TextError> {
        Err(TextError { at: self.at, message: message.into() })
    }

    /// Skips white space and `//` comments.
    fn space(&mut self) {
        loop {
            let trimmed = self.rest().trim_start();
            self.at = self.text.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn eat(&mut self, c: char) -> bool {
        self.space();
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn expect(&mut self, c: char) -> Result<(), TextError> {
        if self.eat(c) {
            return Ok(());
        }
        match self.peek() {
            Some(found) => self.error(format!("`{c}` is expected, `{found}` stands here")),
            None => self.error(format!("`{c}` is expected, the text ends here")),
        }
    }

    fn word(&mut self) -> Result<String, TextError> {
        self.space();
        let len = self
            .rest()
            .find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '$'))
            .unwrap_or(self.rest().len());
        if len == 0 {
            return self.error("a name is expected");
        }
        let word = self.rest()[..len].to_owned();
        self.at += len;
        Ok(word)
    }

    fn values(&mut self) -> Result<Vec<String>, TextError> {
        let mut out = vec![];
        self.space();
        while self.peek() == Some('%') {
            self.at += 1;
            out.push(self.word()?);
            if !self.eat(',') {
                break;
            }
            self.space();
        }
        Ok(out)
    }

    fn op(&mut self, depth: usize) -> Result<Op, TextError> {
        if depth > DEPTH_MAX {
            return self.error(format!("regions are nested more than {DEPTH_MAX} deep"));
        }
        self.space();
        let at = self.at;
        let results = self.values()?;
        if !results.is_empty() {
            self.expect('=')?;
        }
        self.space();
        if self.peek() != Some('"') {
            return self.error("an operation's name in quotes is expected");
        }
        let name = self.string()?;
        self.expect('(')?;
        let operands = self.values()?;
        self.expect(')')?;
        let mut op = Op { results, name, operands, at, ..Op::default() };
        if self.eat('{') {
            op.attrs = self.attrs()?;
        }
        if self.eat('(') {
            loop {
                self.expect('{')?;
                let mut region = vec![];
                while !self.eat('}') {
                    region.push(self.op(depth + 1)?);
                }
                op.regions.push(region);
                if !self.eat(',') {
                    break;
                }
            }
            self.expect(')')?;
        }
        if self.eat(':') {
            op.types = self.types()?;
        }
        Ok(op)
    }

    fn attrs(&mut self) -> Result<Vec<(String, Attr)>, TextError> {
        let mut out = vec![];
        while !self.eat('}') {
            let key = self.word()?;
            self.expect('=')?;
            out.push((key, self.attr(0)?));
            if !self.eat(',') {
                self.expect('}')?;
                break;
            }
        }
        Ok(out)
    }

    fn attr(&mut self, depth: usize) -> Result<Attr, TextError> {
        if depth > DEPTH_MAX {
            return self.error(format!("lists are nested more than {DEPTH_MAX} deep"));
        }
        self.space();
        match self.peek() {
            Some('"') => Ok(Attr::Str(self.string()?)),
            Some('[') => {
                self.at += 1;
                let mut items = vec![];
                while !self.eat(']') {
                    items.push(self.attr(depth + 1)?);
                    if !self.eat(',') {
                        self.expect(']')?;
                        break;
                    }
                }
                Ok(Attr::List(items))
            }
            _ => self.number_or_word(),
        }
    }

    fn number_or_word(&mut self) -> Result<Attr, TextError> {
        let len = self
            .rest()
            .find(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '+' | '-' | '_'))
            .unwrap_or(self.rest().len());
        let word = &self.rest()[..len];
        let attr = match word {
            "true" => Attr::Bool(true),
            "false" => Attr::Bool(false),
            _ => match (word.parse::<i64>(), word.parse::<f64>()) {
                (Ok(n), _) => Attr::Int(n),
                (_, Ok(x)) => Attr::Float(x),
                _ => return self.error(format!("`{word}` is no attribute value")),
            },
        };
        self.at += len;
        Ok(attr)
    }

    /// A quoted string with the escapes that Rust's `{:?}` writes.
    fn string(&mut self) -> Result<String, TextError> {
        let start = self.at;
        self.expect('"')?;
        let mut out = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(out);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => out.push('\n'),
                    Some('t') => out.push('\t'),
                    Some('r') => out.push('\r'),
                    Some('0') => out.push('\0'),
                    Some('u') => {
                        let hex: String = chars
                            .by_ref()
                            .map(|(_, c)| c)
                            .skip_while(|c| *c == '{')
                            .take_while(|c| *c != '}')
                            .take(8)
                            .collect();
                        match u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32) {
                            Some(c) => out.push(c),
                            None => return self.error("an escape that names no character"),
                        }
                    }
                    Some(c) => out.push(c),
                    None => break,
                },
                '\n' => break,
                c => out.push(c),
            }
        }
        Err(TextError { at: start, message: "a string that does not end".into() })
    }

    /// The types after `:` to the end of the line, split at top-level commas.
    fn types(&mut self) -> Result<Vec<String>, TextError> {
        let line = self.rest().split('\n').next().unwrap_or("");
        self.at += line.len();
        let (mut out, mut depth, mut current) = (vec![], 0i32, String::new());
        for c in line.chars() {
            match c {
                '[' | '(' | '<' => depth += 1,
                ']' | ')' | '>' => depth -= 1,
                ',' if depth == 0 => {
                    out.push(std::mem::take(&mut current).trim().to_owned());
                    continue;
                }
                _ => {}
            }
            current.push(c);
        }
        if !current.trim().is_empty() {
            out.push(current.trim().to_owned());
        }
        if out.iter().any(String::is_empty) { self.error("a type is missing") } else { Ok(out) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        let text = "%0, %1 = \"tessera.x.y\"(%a, %b) {m=128, x=0.5, s=\"a\\\"b\\n\", l=[1, [2]], t=true} : Tensor[2, 3, f32], i64\n\
                    \"tessera.x.for\"() {n=3} ({\n  %2 = \"tessera.x.z\"()\n})\n";
        let ops = parse(text).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(ops[0].types, ["Tensor[2, 3, f32]", "i64"]);
        assert_eq!(print(&ops, 0), text);
    }

    #[test]
    fn the_documented_form_without_types_is_read() {
        let ops =
            parse("%0 = \"tessera.schedule.tile\"(%A, %B) {m=128, n=128, k=64, autotune=true}").unwrap_or_default();
        assert_eq!(ops.len(), 1);
        assert_eq!(ops[0].int("m"), Ok(128));
    }

    #[test]
    fn any_cut_of_a_text_is_an_error_or_a_program() {
        let text = "%0 = \"a\"(%x) {k=[1, 2.5], s=\"\\u{41}\"} ({ \"b\"() }) : T[1]\n";
        for i in 0..text.len() {
            let _ = parse(&text[..i]);
        }
        assert!(parse(&"\"a\"() ({".repeat(100_000)).is_err());
    }
}
