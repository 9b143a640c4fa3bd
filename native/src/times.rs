//! Event times: the plain spellings of one unit, to milliseconds since 1970 UTC. `None` is for Python to judge.
//!
//! The definition is `TimeReader.read` in sfm_stream/events/event_time.py; every step here is one of its steps.

use crate::json;

/// How a time is written, and which times are plausible.
pub struct Times {
    unit: Unit,
    earliest_ms: i64,
    latest_ms: i64,
}

enum Unit {
    /// Numbers, so many of which make a second.
    Number { per_second: i64 },
    /// ISO 8601. `naive_is_utc`: times without an offset are of UTC; otherwise Python reads them.
    Iso { naive_is_utc: bool },
}

impl Times {
    /// The times of a unit by its name in the configuration; `None` for one that only Python knows.
    pub fn new(unit: &str, naive_is_utc: bool, earliest_ms: i64, latest_ms: i64) -> Option<Times> {
        let unit = match unit {
            "s" => Unit::Number { per_second: 1 },
            "ms" => Unit::Number { per_second: 1000 },
            "us" => Unit::Number { per_second: 1_000_000 },
            "ns" => Unit::Number {
                per_second: 1_000_000_000,
            },
            "iso8601" => Unit::Iso { naive_is_utc },
            _ => return None,
        };
        Some(Times {
            unit,
            earliest_ms,
            latest_ms,
        })
    }

    #[inline(always)]
    pub fn plausible(&self, ms: i64) -> Option<i64> {
        (self.earliest_ms <= ms && ms <= self.latest_ms).then_some(ms)
    }

    /// Of a JSON number. `whole`: it has neither fraction nor exponent.
    #[inline(always)]
    pub fn of_number(&self, spelled: &[u8], whole: bool) -> Option<i64> {
        let Unit::Number { per_second } = self.unit else {
            return None;
        };
        if whole {
            self.of_integer(json::integer(spelled)?, per_second)
        } else {
            self.of_float(spelled, per_second)
        }
    }

    /// Of a text without escapes.
    #[inline(always)]
    pub fn of_text(&self, text: &[u8]) -> Option<i64> {
        match self.unit {
            Unit::Number { per_second } => self.of_quoted(text, per_second),
            Unit::Iso { naive_is_utc } => self.plausible(iso_ms(text, naive_is_utc)?),
        }
    }

    #[inline(always)]
    fn of_integer(&self, value: i64, per_second: i64) -> Option<i64> {
        if value < 0 {
            return None;
        }
        self.plausible(if per_second == 1 {
            value.checked_mul(1000)?
        } else {
            value / (per_second / 1000)
        })
    }

    /// Digits in quotes, perhaps with a fraction.
    fn of_quoted(&self, text: &[u8], per_second: i64) -> Option<i64> {
        if text.len() <= 18 && !text.is_empty() && text.iter().all(u8::is_ascii_digit) {
            return self.of_integer(json::integer(text)?, per_second);
        }
        let point = text.iter().position(|byte| *byte == b'.')?;
        let parts = [&text[..point], &text[point + 1..]];
        let plain = |part: &&[u8]| (1..=40).contains(&part.len()) && part.iter().all(u8::is_ascii_digit);
        if parts.iter().all(plain) {
            self.of_float(text, per_second)
        } else {
            None
        }
    }

    /// A fraction is first rounded to whole microseconds, as `epoch_ms` does.
    fn of_float(&self, spelled: &[u8], per_second: i64) -> Option<i64> {
        let value: f64 = std::str::from_utf8(spelled).ok()?.parse().ok()?;
        if !(0.0..9e18).contains(&value) {
            return None;
        }
        if value.fract() == 0.0 {
            return self.of_integer(value as i64, per_second);
        }
        if per_second > 1000 {
            return None;
        }
        let micros = (value * (1_000_000 / per_second) as f64).round_ties_even();
        if micros < 9e18 {
            self.plausible(micros as i64 / 1000)
        } else {
            None
        }
    }
}

/// YYYY-MM-DD, T or a space, HH:MM:SS, perhaps a fraction of up to nine digits, and Z, +HH:MM, -HH:MM or nothing.
fn iso_ms(text: &[u8], naive_is_utc: bool) -> Option<i64> {
    if text.len() < 19 || text[4] != b'-' || text[7] != b'-' || !matches!(text[10], b'T' | b' ') {
        return None;
    }
    let days = days(four_digits(&text[..4])?, pair(&text[5..7])?, pair(&text[8..10])?)?;
    let [hour, minute] = clock(&text[11..16])?;
    let second = pair(&text[17..19])?;
    if text[16] != b':' || second > 59 {
        return None;
    }
    let (fraction, zone) = fraction_ms(&text[19..])?;
    let offset_minutes = match zone {
        b"Z" => 0,
        b"" if naive_is_utc => 0,
        [sign @ (b'+' | b'-'), clock_text @ ..] => {
            let [hours, minutes] = clock(clock_text)?;
            if *sign == b'-' {
                -(hours * 60 + minutes)
            } else {
                hours * 60 + minutes
            }
        }
        _ => return None,
    };
    let minutes = (days * 24 + hour) * 60 + minute - offset_minutes;
    Some((minutes * 60 + second) * 1000 + fraction)
}

/// A fraction of a second in whole milliseconds, rounded down, and what follows it.
fn fraction_ms(text: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.', rest @ ..] = text else {
        return Some((0, text));
    };
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=9).contains(&count) {
        return None;
    }
    let digit = |place: usize| {
        if place < count {
            i64::from(rest[place] - b'0')
        } else {
            0
        }
    };
    Some((digit(0) * 100 + digit(1) * 10 + digit(2), &rest[count..]))
}

/// Hours and minutes of HH:MM.
fn clock(text: &[u8]) -> Option<[i64; 2]> {
    if text.len() != 5 || text[2] != b':' {
        return None;
    }
    let (hour, minute) = (pair(&text[..2])?, pair(&text[3..])?);
    (hour < 24 && minute < 60).then_some([hour, minute])
}

fn pair(text: &[u8]) -> Option<i64> {
    let [tens, ones] = *text else { return None };
    (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
}

fn four_digits(text: &[u8]) -> Option<i64> {
    Some(pair(&text[..2])? * 100 + pair(&text[2..])?)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar; `None` where there is no such date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    const BEFORE_MONTH: [i64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    let leap = i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
    if year < 1 || !(1..=12).contains(&month) {
        return None;
    }
    let (start, end) = (BEFORE_MONTH[month as usize - 1], BEFORE_MONTH[month as usize]);
    if day < 1 || day > end - start + if month == 2 { leap } else { 0 } {
        return None;
    }
    let before = year - 1;
    let years = before * 365 + before / 4 - before / 100 + before / 400 - 719_162;
    Some(years + start + if month > 2 { leap } else { 0 } + day - 1)
}
