//! Values to the script engine and back.

use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;
use rquickjs::object::Property;
use rquickjs::{Array, Ctx, Error, IntoJs, Object, Result};
use serde_json::Value as Json;

use crate::value::Value;

/// What is left of the bounds of a result.
pub(super) struct Room {
    pub(super) depth: usize,
    pub(super) bytes: usize,
}

/// Why a result is not taken.
pub(super) enum Refused {
    Limit(String),
    Engine(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

pub(super) fn to_script<'js>(ctx: &Ctx<'js>, value: &Value<'_>) -> Result<rquickjs::Value<'js>> {
    Ok(match value {
        Value::Null => rquickjs::Value::new_null(ctx.clone()),
        Value::False | Value::True => rquickjs::Value::new_bool(ctx.clone(), value.is_true()),
        Value::Int(int) => match i32::try_from(*int) {
            Ok(int) => rquickjs::Value::new_int(ctx.clone(), int),
            Err(_) => rquickjs::Value::new_float(ctx.clone(), *int as f64),
        },
        Value::Float(float) => rquickjs::Value::new_float(ctx.clone(), float.get()),
        Value::Text(text) => text.as_str().into_js(ctx)?,
        Value::Made(text) => text.into_js(ctx)?,
        Value::Json(json) => json_to_script(ctx, json)?,
        Value::List(made) => {
            let list = Array::new(ctx.clone())?;
            for (index, item) in made.items.iter().enumerate() {
                list.set(index, to_script(ctx, item)?)?;
            }
            list.into_value()
        }
        Value::Object(made) => {
            let object = Object::new(ctx.clone())?;
            for (key, item) in made.items {
                define(&object, key, to_script(ctx, item)?)?;
            }
            object.into_value()
        }
    })
}

fn json_to_script<'js>(ctx: &Ctx<'js>, json: &Json) -> Result<rquickjs::Value<'js>> {
    match json {
        Json::Array(items) => {
            let list = Array::new(ctx.clone())?;
            for (index, item) in items.iter().enumerate() {
                list.set(index, json_to_script(ctx, item)?)?;
            }
            Ok(list.into_value())
        }
        Json::Object(map) => {
            let object = Object::new(ctx.clone())?;
            for (key, item) in map {
                define(&object, key.as_str(), json_to_script(ctx, item)?)?;
            }
            Ok(object.into_value())
        }
        scalar => to_script(ctx, &Value::of(scalar)),
    }
}

/// Gives an object a member of its own. Setting it would fail where the frozen prototype has one of that name (`toString`), and
/// exchange the prototype itself for `__proto__`.
fn define<'js>(object: &Object<'js>, name: &str, value: rquickjs::Value<'js>) -> Result<()> {
    let property = Property::from(value).writable().enumerable().configurable();
    object.prop(name, property)
}

/// Numbers up to this are exact integers in JavaScript.
const SAFE: f64 = 9_007_199_254_740_991.0;

pub(super) fn from_script<'a>(
    value: &rquickjs::Value<'_>,
    room: &mut Room,
    arena: &'a Bump,
) -> std::result::Result<Value<'a>, Refused> {
    if let Some(int) = value.as_int() {
        return Ok(Value::Int(int.into()));
    }
    if let Some(yes) = value.as_bool() {
        return Ok(Value::bool(yes));
    }
    if value.is_null() || value.is_undefined() {
        return Ok(Value::Null);
    }
    if let Some(float) = value.as_float() {
        return Ok(number(float));
    }
    if let Some(text) = value.as_string() {
        let text = text.to_string()?;
        room.take(text.len())?;
        return Ok(Value::text(arena.alloc_str(&text), arena));
    }
    if value.is_function() || value.as_object().is_none() {
        return Err(Refused::Limit(format!(
            "the script returned {}; return null, a boolean, a number, a text, a list or an object",
            value.type_name()
        )));
    }
    room.depth = room
        .depth
        .checked_sub(1)
        .ok_or_else(|| Refused::Limit("the script returned a value that nests too deeply".to_owned()))?;
    let made = if let Some(list) = value.as_array() {
        // `Array::len` panics where the length exceeds `i32`.
        let length = list.as_object().get::<_, f64>("length")?;
        room.take((length as usize).saturating_mul(32))?;
        let length = length as usize;
        let items = arena.alloc_slice_fill_copy(length, Value::Null);
        for (index, place) in items.iter_mut().enumerate() {
            *place = from_script(&list.get::<rquickjs::Value<'_>>(index)?, room, arena)?;
        }
        Value::list(items, arena)
    } else {
        let mut members = ArenaVec::new_in(arena);
        if let Some(object) = value.as_object() {
            for entry in object.props::<String, rquickjs::Value<'_>>() {
                let (key, member) = entry?;
                room.take(key.len() + 64)?;
                members.push((&*arena.alloc_str(&key), from_script(&member, room, arena)?));
            }
        }
        Value::object(members.into_bump_slice(), arena)
    };
    room.depth += 1;
    Ok(made)
}

pub(super) fn number<'a>(float: f64) -> Value<'a> {
    if !float.is_finite() {
        Value::Null
    } else if float.fract() == 0.0 && float.abs() <= SAFE {
        Value::Int(float as i64)
    } else {
        Value::float(float)
    }
}

impl Room {
    pub(super) fn take(&mut self, bytes: usize) -> std::result::Result<(), Refused> {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.ok_or_else(|| {
            Refused::Limit("the script returned more than `limits.memoryBytes` allows".to_owned())
        })?;
        Ok(())
    }
}
