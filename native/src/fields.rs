//! The fields of one record by the paths of a schema: item, time and the parts of the key.
//!
//! A record is answered for only if all of it is valid JSON and every field counts as it stands; else Python reads it.

use crate::json;
use crate::times::Times;

/// A text or an integer of a record. A text is a stretch of its bytes, without escapes and in UTF-8.
#[derive(Clone, Copy)]
pub enum Value {
    Text { start: usize, end: usize },
    Integer(i64),
}

/// What was found in a record; `time_ms` is left as it was where the schema has no path for the time.
pub struct Fields {
    pub item: Value,
    pub time_ms: i64,
    pub key: Vec<Value>,
}

#[derive(Clone, Copy)]
enum Role {
    Item,
    Time,
    Key(usize),
}

enum Below {
    Field(Role),
    Object(Level),
}

/// The names that are looked for in one object.
#[derive(Default)]
struct Level {
    names: Vec<Name>,
}

struct Name {
    bytes: Vec<u8>,
    /// Its first eight bytes, which almost always tell it from other names.
    head: u64,
    below: Below,
}

pub struct Paths {
    top: Level,
    key_parts: usize,
    pub has_time: bool,
    max_bytes: usize,
}

/// More names in one object, or objects within each other, than any schema has that we know of: Python reads those.
const MOST_NAMES: usize = 64;
const DEEPEST: usize = 32;

impl Paths {
    /// Paths from the outside in. `None` where only Python can follow them.
    pub fn new(item: Vec<String>, time: Option<Vec<String>>, key: Vec<Vec<String>>, max_bytes: usize) -> Option<Paths> {
        let mut paths = Paths {
            top: Level::default(),
            key_parts: key.len(),
            has_time: time.is_some(),
            max_bytes,
        };
        paths.top.add(&item, Role::Item)?;
        if let Some(time) = time {
            paths.top.add(&time, Role::Time)?;
        }
        for (part, path) in key.iter().enumerate() {
            paths.top.add(path, Role::Key(part))?;
        }
        Some(paths)
    }

    pub fn no_fields(&self) -> Fields {
        Fields {
            item: Value::Integer(0),
            time_ms: 0,
            key: vec![Value::Integer(0); self.key_parts],
        }
    }

    /// Fill in the fields of a record; whether that was possible.
    #[inline(always)]
    pub fn read(&self, record: &[u8], times: &Times, fields: &mut Fields) -> bool {
        if record.len() > self.max_bytes {
            return false;
        }
        let start = json::space(record, 0);
        match self.top.read(record, start, 1, times, fields) {
            Some(end) => json::space(record, end) == record.len(),
            None => false,
        }
    }
}

impl Level {
    fn add(&mut self, path: &[String], role: Role) -> Option<()> {
        let (name, inner) = path.split_first()?;
        if path.len() > DEEPEST {
            return None;
        }
        let place = self.place(name.as_bytes(), 0, name.len());
        if inner.is_empty() {
            self.push(name, Below::Field(role));
            return (place.is_none() && self.names.len() <= MOST_NAMES).then_some(());
        }
        let place = place.unwrap_or_else(|| {
            self.push(name, Below::Object(Level::default()));
            self.names.len() - 1
        });
        match &mut self.names[place].below {
            Below::Object(level) if place < MOST_NAMES => level.add(inner, role),
            _ => None,
        }
    }

    fn push(&mut self, name: &str, below: Below) {
        let bytes = name.as_bytes().to_vec();
        self.names.push(Name {
            head: head(&bytes, 0, bytes.len()),
            bytes,
            below,
        });
    }

    /// The place of the name in json[start..end].
    #[inline(always)]
    fn place(&self, json: &[u8], start: usize, end: usize) -> Option<usize> {
        let (size, head) = (end - start, head(json, start, end));
        let same = |own: &Name| own.head == head && own.bytes.len() == size;
        self.names
            .iter()
            .position(|own| same(own) && (size <= 8 || own.bytes[8..] == json[start + 8..end]))
    }

    /// Behind the object at `at`, once each name has been found in it, and once only.
    fn read(&self, json: &[u8], at: usize, depth: usize, times: &Times, fields: &mut Fields) -> Option<usize> {
        if *json.get(at)? != b'{' {
            return None;
        }
        let mut at = json::space(json, at + 1);
        let mut found = 0u64;
        loop {
            // An empty object has no name, and so lacks what is looked for.
            if *json.get(at)? != b'"' {
                return None;
            }
            let (end, escapes) = json::text(json, at + 1)?;
            if escapes {
                return None; // it may spell a name that is looked for
            }
            let place = self.place(json, at + 1, end);
            at = json::colon(json, end + 1)?;
            match place {
                None => at = json::skip(json, at, depth)?,
                Some(place) => {
                    if found & (1 << place) != 0 {
                        return None;
                    }
                    found |= 1 << place;
                    at = match &self.names[place].below {
                        Below::Field(role) => field(json, at, *role, times, fields)?,
                        Below::Object(level) => level.read(json, at, depth + 1, times, fields)?,
                    };
                }
            }
            at = json::space(json, at);
            match *json.get(at)? {
                b',' => at = json::space(json, at + 1),
                b'}' => break,
                _ => return None,
            }
        }
        (found.count_ones() as usize == self.names.len()).then_some(at + 1)
    }
}

/// The first eight bytes of json[start..end], or all of them where it is shorter.
#[inline(always)]
fn head(json: &[u8], start: usize, end: usize) -> u64 {
    let size = end - start;
    if let Some(Ok(word)) = json.get(start..start + 8).map(<[u8; 8]>::try_from) {
        let word = u64::from_le_bytes(word);
        return if size < 8 { word & ((1 << (8 * size)) - 1) } else { word };
    }
    json[start..end]
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Behind a text or number that is a field.
#[inline(always)]
fn field(json: &[u8], at: usize, role: Role, times: &Times, fields: &mut Fields) -> Option<usize> {
    if *json.get(at)? == b'"' {
        let (start, (end, escapes)) = (at + 1, json::text(json, at + 1)?);
        if escapes {
            return None;
        }
        match role {
            Role::Time => fields.time_ms = times.of_text(&json[start..end])?,
            Role::Item => fields.item = Value::Text { start, end },
            Role::Key(part) => fields.key[part] = Value::Text { start, end },
        }
        return Some(end + 1);
    }
    let (end, whole) = json::number(json, at)?;
    let spelled = &json[at..end];
    match role {
        Role::Time => fields.time_ms = times.of_number(spelled, whole)?,
        Role::Item | Role::Key(_) if !whole => return None,
        Role::Item => fields.item = Value::Integer(json::integer(spelled)?),
        Role::Key(part) => fields.key[part] = Value::Integer(json::integer(spelled)?),
    }
    Some(end)
}
