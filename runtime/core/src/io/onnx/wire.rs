//! The wire format of protocol buffers: fields of a message, one after the other.

/// What a field holds, by its wire type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    Varint(u64),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
}

/// The fields that are left of a message.
pub struct Fields<'a> {
    left: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { left: message }
    }

    fn take(&mut self, n: u64) -> Result<&'a [u8], String> {
        let whole = usize::try_from(n).ok().and_then(|n| self.left.split_at_checked(n));
        let Some((taken, left)) = whole else {
            return Err(format!("a field of {n} bytes stands where {} are left", self.left.len()));
        };
        self.left = left;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let bytes = self.take(N as u64)?;
        Ok(bytes.first_chunk::<N>().copied().unwrap_or([0; N]))
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let [byte] = self.fixed::<1>()?;
            // The tenth byte has room for one bit.
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number has more than ten bytes".into())
    }

    fn field(&mut self) -> Result<(u64, Field<'a>), String> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(self.fixed()?),
            2 => {
                let n = self.varint()?;
                Field::Bytes(self.take(n)?)
            }
            5 => Field::Fixed32(self.fixed()?),
            kind => return Err(format!("a field has the wire type {kind}, which does not exist")),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.left = &[];
        }
        Some(field)
    }
}

impl<'a> Field<'a> {
    pub fn bytes(self) -> Result<&'a [u8], String> {
        match self {
            Field::Bytes(b) => Ok(b),
            other => Err(format!("{other:?} stands where bytes are expected")),
        }
    }

    pub fn text(self) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes()?).map_err(|_| "a name is not UTF-8 text".into())
    }

    pub fn int(self) -> Result<i64, String> {
        match self {
            Field::Varint(n) => Ok(n as i64),
            other => Err(format!("{other:?} stands where an int is expected")),
        }
    }

    pub fn float(self) -> Result<f32, String> {
        match self {
            Field::Fixed32(b) => Ok(f32::from_le_bytes(b)),
            other => Err(format!("{other:?} stands where a float is expected")),
        }
    }

    /// Adds the ints of a repeated field: one, or several packed together.
    pub fn ints(self, out: &mut Vec<i64>) -> Result<(), String> {
        if let Field::Bytes(packed) = self {
            let mut left = Fields::of(packed);
            while !left.left.is_empty() {
                out.push(left.varint()? as i64);
            }
            return Ok(());
        }
        out.push(self.int()?);
        Ok(())
    }

    /// Adds the floats of a repeated field.
    pub fn floats(self, out: &mut Vec<f32>) -> Result<(), String> {
        match self {
            Field::Bytes(packed) => {
                let words = packed.as_chunks::<4>();
                if !words.1.is_empty() {
                    return Err("packed floats end inside a float".into());
                }
                out.extend(words.0.iter().map(|b| f32::from_le_bytes(*b)));
                Ok(())
            }
            one => {
                out.push(one.float()?);
                Ok(())
            }
        }
    }

    /// Adds the doubles of a repeated field.
    pub fn doubles(self, out: &mut Vec<f64>) -> Result<(), String> {
        match self {
            Field::Bytes(packed) => {
                let words = packed.as_chunks::<8>();
                if !words.1.is_empty() {
                    return Err("packed doubles end inside a double".into());
                }
                out.extend(words.0.iter().map(|b| f64::from_le_bytes(*b)));
                Ok(())
            }
            Field::Fixed64(b) => {
                out.push(f64::from_le_bytes(b));
                Ok(())
            }
            other => Err(format!("{other:?} stands where a double is expected")),
        }
    }
}
