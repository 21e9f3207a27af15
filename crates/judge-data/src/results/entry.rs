//! A field that may be absent.

use serde::Serialize;
use serde::ser::SerializeMap;

/// Writes a field of what a judge says, where there is something to say.
pub(super) fn entry<M: SerializeMap, T: Serialize>(map: &mut M, name: &str, value: Option<T>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, &value))
}
