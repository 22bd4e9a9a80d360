//! The tokens of a text, and its variables.

use super::{Storage, Symbols, Variable};
use crate::Error;
use crate::lex::{Token, integer};
use crate::types::Ty;

/// What a name of the module stands for.
#[derive(Clone, Copy, Debug)]
pub enum Symbol {
    /// An address in global or constant memory.
    Global(u64),
    /// A shared array: bytes and alignment.
    Shared(u32, u32),
    /// The dynamic shared memory.
    Dynamic,
}

/// A declaration of a variable: everything but its initial value.
pub struct Declaration<'a> {
    pub name: &'a str,
    pub bytes: u64,
    pub align: u32,
    pub element: u32,
    /// `name[]`
    pub open: bool,
}

pub struct Parser<'t, 'a> {
    text: &'a str,
    tokens: &'t [Token<'a>],
    pos: usize,
    pub external: bool,
    pub symbols: Symbols<'a>,
    /// Values of variables, to be filled in when all addresses are known: variable, place, bytes, value.
    initial: Vec<(usize, u64, u32, Initial<'a>)>,
}

#[derive(Clone, Copy, Debug)]
enum Initial<'a> {
    Number(u64),
    /// A symbol's address plus a number, and which of its bytes.
    Address(&'a str, u64, Option<u32>, u32),
}

impl<'t, 'a> Parser<'t, 'a> {
    pub fn new(text: &'a str, tokens: &'t [Token<'a>]) -> Parser<'t, 'a> {
        Parser { text, tokens, pos: 0, external: false, symbols: Symbols::new(), initial: Vec::new() }
    }

    pub fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.pos).copied()
    }

    pub fn peek_text(&self) -> &'a str {
        self.peek().map_or("", |t| t.text)
    }

    pub fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek();
        self.pos += usize::from(token.is_some());
        token
    }

    pub fn position(&self) -> usize {
        self.pos
    }

    pub fn line(&self) -> u32 {
        self.peek().or(self.tokens.last().copied()).map_or(1, |t| t.line)
    }

    /// An error at the next token.
    pub fn wrong(&self, what: &str) -> Error {
        Error::text(self.line(), self.peek_text(), what)
    }

    /// The text from a token up to the current one, on one line and not too long.
    pub fn text_since(&self, start: usize) -> String {
        let (Some(first), Some(last)) = (self.tokens.get(start), self.tokens.get(self.pos.max(start + 1) - 1)) else {
            return String::new();
        };
        let text = self.text.get(first.at..last.at + last.text.len()).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        let line = words.join(" ");
        let short: String = line.chars().take(120).collect();
        if short.len() < line.len() { short + "…" } else { short }
    }

    /// Takes a mark if it comes next.
    pub fn take(&mut self, mark: &str) -> bool {
        let found = self.peek_text() == mark;
        self.pos += usize::from(found);
        found
    }

    pub fn expect(&mut self, mark: &str) -> Result<(), Error> {
        if self.take(mark) { Ok(()) } else { Err(self.wrong(&format!("`{mark}` is expected"))) }
    }

    /// The next token, which must be a word.
    pub fn word(&mut self) -> Result<&'a str, Error> {
        match self.peek() {
            Some(t) if t.text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_$%.:".contains(&b)) && t.text != ":" => {
                self.pos += 1;
                Ok(t.text)
            }
            _ => Err(self.wrong("a word is expected")),
        }
    }

    /// A number without a sign.
    pub fn number(&mut self) -> Result<u64, Error> {
        match integer(self.peek_text()) {
            Some(value) => {
                self.pos += 1;
                Ok(value)
            }
            None => Err(self.wrong("a number is expected")),
        }
    }

    pub fn small(&mut self) -> Result<u32, Error> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_| self.wrong("the number is too large"))
    }

    /// A number with an optional sign.
    pub fn signed(&mut self) -> Result<u64, Error> {
        let negative = self.take("-");
        let value = self.number()?;
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    /// Skips the tokens of the current line.
    pub fn skip_line(&mut self) {
        let line = self.line();
        while self.peek().is_some_and(|t| t.line == line) {
            self.pos += 1;
        }
    }

    pub fn skip_statement(&mut self) -> Result<(), Error> {
        while let Some(token) = self.next() {
            if token.text == ";" {
                return Ok(());
            }
        }
        Err(self.wrong("`;` is expected"))
    }

    /// Skips `{…}`.
    pub fn skip_block(&mut self) -> Result<(), Error> {
        self.expect("{")?;
        let mut depth = 1;
        while depth > 0 {
            match self.next().map(|t| t.text) {
                Some("{") => depth += 1,
                Some("}") => depth -= 1,
                Some(_) => {}
                None => return Err(self.wrong("`}` is expected")),
            }
        }
        Ok(())
    }

    /// Skips a function, or its declaration; whoever calls it is refused.
    pub fn skip_function(&mut self) -> Result<(), Error> {
        while let Some(token) = self.peek() {
            match token.text {
                ";" => {
                    self.pos += 1;
                    return Ok(());
                }
                "{" => return self.skip_block(),
                _ => self.pos += 1,
            }
        }
        Err(self.wrong("the function has no end"))
    }

    /// What follows the space of a declaration: `.align 4 .b8 name[8]`.
    pub fn declaration(&mut self) -> Result<Declaration<'a>, Error> {
        let (mut align, mut element, mut vector) = (0, 0, 1);
        loop {
            match self.peek_text() {
                ".align" => {
                    self.pos += 1;
                    align = self.small()?;
                    if !align.is_power_of_two() || align > 1 << 16 {
                        return Err(self.wrong("wrong alignment"));
                    }
                }
                ".v2" => (self.pos, vector) = (self.pos + 1, 2),
                ".v4" => (self.pos, vector) = (self.pos + 1, 4),
                ".ptr" | ".global" | ".const" | ".shared" | ".local" | ".generic" => self.pos += 1,
                ".attribute" => {
                    while !matches!(self.peek_text(), ")" | "") {
                        self.pos += 1;
                    }
                    self.expect(")")?;
                }
                word if word.starts_with('.') => {
                    let ty = Ty::of(&word[1..]).filter(|ty| ty.bits >= 8).ok_or_else(|| self.wrong("unknown type"))?;
                    self.pos += 1;
                    element = ty.bytes() * vector;
                    // `.param .u64 .ptr .global .align 1 name`: that alignment is the pointee's.
                    if self.peek_text() == ".ptr" {
                        while self.peek_text().starts_with('.') {
                            let is_align = self.peek_text() == ".align";
                            self.pos += 1 + usize::from(is_align);
                        }
                    }
                }
                _ => break,
            }
        }
        if element == 0 {
            return Err(self.wrong("a type is expected"));
        }
        let name = self.word()?;
        let (mut count, mut open) = (1u64, false);
        while self.take("[") {
            if self.take("]") {
                open = true;
                continue;
            }
            count = count.saturating_mul(self.number()?);
            self.expect("]")?;
        }
        let bytes = count.saturating_mul(element.into());
        Ok(Declaration { name, bytes, align: align.max(element.min(16)), element, open })
    }

    /// A variable of the module.
    pub fn variable(&mut self, variables: &mut Vec<Variable>) -> Result<(), Error> {
        let shared = self.peek_text() == ".shared";
        self.pos += 1;
        let found = self.declaration()?;
        if self.symbols.contains_key(found.name) {
            return Err(self.wrong("the name is taken"));
        }
        let symbol = if shared && (self.external || found.open) {
            Symbol::Dynamic
        } else if shared {
            let bytes = u32::try_from(found.bytes).map_err(|_| self.wrong("the array is too large"))?;
            Symbol::Shared(bytes, found.align)
        } else {
            if self.external {
                return Err(self.wrong("the variable is defined nowhere"));
            }
            let storage = usize::try_from(found.bytes).ok().and_then(|n| Storage::new(n, found.align as usize));
            let storage = storage.ok_or_else(|| self.wrong("the array is too large"))?;
            let address = storage.address();
            variables.push(Variable { name: found.name.to_string(), storage });
            if self.take("=") {
                self.initialiser(variables.len() - 1, found.element, 0, 0)?;
            }
            Symbol::Global(address)
        };
        self.symbols.insert(found.name, symbol);
        self.expect(";")
    }

    /// The value of a variable from a place on; returns where it ends.
    fn initialiser(&mut self, variable: usize, element: u32, mut at: u64, depth: u32) -> Result<u64, Error> {
        if self.take("{") {
            if depth > 3 {
                return Err(self.wrong("braces too deep"));
            }
            while !self.take("}") {
                at = self.initialiser(variable, element, at, depth + 1)?;
                if !self.take(",") && self.peek_text() != "}" {
                    return Err(self.wrong("`,` is expected"));
                }
            }
            return Ok(at);
        }
        let value = self.initial_value(element)?;
        self.initial.push((variable, at, element, value));
        Ok(at + u64::from(element))
    }

    fn initial_value(&mut self, element: u32) -> Result<Initial<'a>, Error> {
        let text = self.peek_text();
        for (prefix, digits) in [("0f", 8), ("0F", 8), ("0d", 16), ("0D", 16)] {
            if let Some(hex) = text.strip_prefix(prefix).filter(|h| h.len() == digits) {
                let bits = u64::from_str_radix(hex, 16).map_err(|_| self.wrong("wrong number"))?;
                self.pos += 1;
                return Ok(Initial::Number(bits));
            }
        }
        if text == "-" || text.starts_with(|c: char| c.is_ascii_digit()) {
            let value = self.signed()?;
            // `0xFF00(symbol)` takes a byte of an address.
            if element == 1 && self.take("(") {
                let (name, plus) = self.symbol_sum()?;
                self.expect(")")?;
                return Ok(Initial::Address(name, plus, Some(value.trailing_zeros().min(63)), self.line()));
            }
            return Ok(Initial::Number(value));
        }
        let (name, plus) = self.symbol_sum()?;
        Ok(Initial::Address(name, plus, None, self.line()))
    }

    /// `name`, `name+4` or `generic(name)+4`.
    fn symbol_sum(&mut self) -> Result<(&'a str, u64), Error> {
        let mut name = self.word()?;
        if name == "generic" && self.take("(") {
            name = self.word()?;
            self.expect(")")?;
        }
        let plus = match self.peek_text() {
            "+" => {
                self.pos += 1;
                self.signed()?
            }
            "-" => self.signed()?,
            _ => 0,
        };
        Ok((name, plus))
    }

    /// Fills variables in, now that every address is known.
    pub fn initialise(&self, variables: &mut [Variable]) -> Result<(), Error> {
        for (variable, at, element, value) in &self.initial {
            let value = match value {
                Initial::Number(value) => *value,
                Initial::Address(name, plus, shift, line) => match self.symbols.get(name) {
                    Some(Symbol::Global(address)) => address.wrapping_add(*plus) >> shift.unwrap_or(0),
                    _ => return Err(Error::text(*line, name, "not the name of a variable in global memory")),
                },
            };
            let Some(found) = variables.get_mut(*variable) else { continue };
            let bytes = value.to_le_bytes();
            let count = (*element as usize).min(8);
            let place = usize::try_from(*at).ok().and_then(|at| found.storage.bytes_mut().get_mut(at..at + count));
            let Some(place) = place else {
                return Err(Error::text(1, &found.name, "more values than the array has elements"));
            };
            place.copy_from_slice(&bytes[..count]);
        }
        Ok(())
    }
}
