//! JSON, read strictly: RFC 8259 in UTF-8, and nothing beside it. Whatever is not that is `None`, and Python reads it.
//!
//! Every function takes the bytes of a record and a position in them, and gives the position behind what it has read.

/// Objects and arrays that may lie within each other, as `json_strict.MAX_DEPTH`.
pub const MAX_DEPTH: usize = 256;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Behind the white space at `at`.
#[inline(always)]
pub fn space(json: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = json.get(at) {
        at += 1;
    }
    at
}

/// Behind the colon that follows a name, and the white space around it.
#[inline(always)]
pub fn colon(json: &[u8], at: usize) -> Option<usize> {
    let at = space(json, at);
    (*json.get(at)? == b':').then(|| space(json, at + 1))
}

/// A text of which `start` is the first byte, behind its quote: where its closing quote is, and whether it has escapes.
///
/// Eight bytes are looked at in one step: whether one of them is a quote, a backslash or a control character.
#[inline(always)]
pub fn text(json: &[u8], start: usize) -> Option<(usize, bool)> {
    let (mut at, mut escapes, mut high) = (start, false, 0u64);
    loop {
        while let Some(word) = json.get(at..at + 8) {
            let word = u64::from_le_bytes(word.try_into().ok()?);
            let stops = zeros(word ^ (ONES * b'"' as u64))
                | zeros(word ^ (ONES * b'\\' as u64))
                | (word.wrapping_sub(ONES * 0x20) & !word & HIGH);
            if stops == 0 {
                high |= word;
                at += 8;
                continue;
            }
            let before = stops.trailing_zeros() / 8;
            high |= word & ((1u64 << (8 * before)) - 1);
            at += before as usize;
            break;
        }
        match *json.get(at)? {
            b'"' => break,
            b'\\' => {
                escapes = true;
                at = escape(json, at + 1)?;
            }
            0..=0x1f => return None,
            byte => {
                high |= u64::from(byte);
                at += 1;
            }
        }
    }
    if high & HIGH != 0 && std::str::from_utf8(&json[start..at]).is_err() {
        return None;
    }
    Some((at, escapes))
}

/// The high bit of each byte that is zero. A byte above a zero one may be marked wrongly, the lowest mark never is.
#[inline(always)]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH
}

/// Behind the escape whose character after the backslash is at `at`.
fn escape(json: &[u8], at: usize) -> Option<usize> {
    match *json.get(at)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' => {
            let digits = json.get(at + 1..at + 5)?;
            digits.iter().all(u8::is_ascii_hexdigit).then_some(at + 5)
        }
        _ => None,
    }
}

/// Behind a number, and whether it has neither fraction nor exponent.
#[inline(always)]
pub fn number(json: &[u8], start: usize) -> Option<(usize, bool)> {
    let first = if json.get(start) == Some(&b'-') {
        start + 1
    } else {
        start
    };
    let mut at = digits(json, first)?;
    if json[first] == b'0' && at > first + 1 {
        return None;
    }
    let mut whole = true;
    if json.get(at) == Some(&b'.') {
        at = digits(json, at + 1)?;
        whole = false;
    }
    if let Some(b'e' | b'E') = json.get(at) {
        let signed = matches!(json.get(at + 1), Some(b'+' | b'-'));
        at = digits(json, at + 1 + usize::from(signed))?;
        whole = false;
    }
    Some((at, whole))
}

/// Behind one decimal digit or more.
#[inline(always)]
fn digits(json: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while json.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    (at > start).then_some(at)
}

/// The value of decimal digits, perhaps behind a minus; `None` beyond int64.
#[inline(always)]
pub fn integer(digits: &[u8]) -> Option<i64> {
    let (negative, digits) = match digits.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, digits),
    };
    if digits.len() > 19 {
        return None; // 19 digits always fit into 64 bits without a sign
    }
    let size = digits
        .iter()
        .fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    if negative {
        0i64.checked_sub_unsigned(size)
    } else {
        i64::try_from(size).ok()
    }
}

/// Behind the value at `at`, whatever it is. `depth`: of the object or array that it lies in, from 1.
#[inline(always)]
pub fn skip(json: &[u8], at: usize, depth: usize) -> Option<usize> {
    match *json.get(at)? {
        b'{' | b'[' => nested(json, at, depth),
        _ => scalar(json, at),
    }
}

#[inline(always)]
fn scalar(json: &[u8], at: usize) -> Option<usize> {
    match *json.get(at)? {
        b'"' => Some(text(json, at + 1)?.0 + 1),
        b'-' | b'0'..=b'9' => Some(number(json, at)?.0),
        b't' => json[at..].starts_with(b"true").then_some(at + 4),
        b'f' => json[at..].starts_with(b"false").then_some(at + 5),
        b'n' => json[at..].starts_with(b"null").then_some(at + 4),
        _ => None,
    }
}

/// Behind the object or array at `at`. A loop, since the depth of a call stack is not ours to spend.
fn nested(json: &[u8], mut at: usize, outside: usize) -> Option<usize> {
    let mut closing = [0u8; MAX_DEPTH];
    let mut open = 0;
    loop {
        // At a value.
        let byte = *json.get(at)?;
        if let b'{' | b'[' = byte {
            if outside + open == MAX_DEPTH {
                return None;
            }
            closing[open] = byte + 2; // '}' and ']' each follow two behind
            open += 1;
            at = space(json, at + 1);
            if *json.get(at)? != closing[open - 1] {
                if byte == b'{' {
                    at = name(json, at)?;
                }
                continue;
            }
        } else {
            at = space(json, scalar(json, at)?);
        }
        // Behind a value, or at the bracket that closes an empty one.
        loop {
            let last = closing[open - 1];
            match *json.get(at)? {
                b',' => {
                    at = space(json, at + 1);
                    if last == b'}' {
                        at = name(json, at)?;
                    }
                    break;
                }
                byte if byte == last => {
                    open -= 1;
                    if open == 0 {
                        return Some(at + 1);
                    }
                    at = space(json, at + 1);
                }
                _ => return None,
            }
        }
    }
}

/// Behind a name and its colon.
#[inline(always)]
fn name(json: &[u8], at: usize) -> Option<usize> {
    if *json.get(at)? != b'"' {
        return None;
    }
    colon(json, text(json, at + 1)?.0 + 1)
}
