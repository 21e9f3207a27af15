use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{Reason, Unscored};

/// Named texts of an item, which a [`PromptTemplate`](crate::PromptTemplate) puts in place of its placeholders.
///
/// Implement it for your own item type; maps from names to strings have it already.
///
/// ```
/// use std::borrow::Cow;
/// use judge_core::Fields;
///
/// struct Answer { question: String, text: String }
///
/// impl Fields for Answer {
///     fn field(&self, name: &str) -> Option<Cow<'_, str>> {
///         match name {
///             "instruction" => Some(Cow::Borrowed(&self.question)),
///             "response" => Some(Cow::Borrowed(&self.text)),
///             _ => None,
///         }
///     }
///
///     fn names(&self) -> Vec<String> {
///         vec!["instruction".to_owned(), "response".to_owned()]
///     }
/// }
/// ```
pub trait Fields {
    /// The text of a field; `None` if this item has none of that name. An empty text is a text.
    fn field(&self, name: &str) -> Option<Cow<'_, str>>;

    /// The text of a field in a prompt that shows the fields `shown`. An item with a field that holds what another shows leaves that out
    /// here, so that nothing is shown twice; by default a field is the same beside any others.
    fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
        let _ = shown;
        self.field(name)
    }

    /// The text of a field that a judge cannot do without. An empty text is a text.
    ///
    /// # Errors
    /// [`Unscored`] for [`Reason::Missing`], with what is there instead: nothing, a list or an object. As an error of
    /// [`Judge::ask`](crate::Judge::ask) it costs this item its verdict, and nothing else.
    fn text(&self, name: &str) -> Result<Cow<'_, str>, Unscored> {
        self.field(name).ok_or_else(|| {
            let found = no_text(self, name).map_or_else(
                || match self.names() {
                    // An item need not say what it has.
                    names if names.is_empty() => "none".to_owned(),
                    names => format!("the fields {names:?}"),
                },
                str::to_owned,
            );
            Unscored::new(Reason::Missing, format!("expected text in the field {name:?}, found {found}"))
        })
    }

    /// A field that is a list or an object; `None` if this item has none of that name.
    fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
        let _ = name;
        None
    }

    /// The names it has, for error messages, which say nothing of them where there are none. Need not be complete.
    fn names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a field without a text is in words; `None` if there is none of that name.
pub(crate) fn no_text(item: &(impl Fields + ?Sized), name: &str) -> Option<&'static str> {
    item.json(name).map(|value| if value.is_array() { "a list" } else { "an object" })
}

macro_rules! fields_of_what_it_points_to {
    ($($pointer:ty),+) => {
        $(impl<T: Fields + ?Sized> Fields for $pointer {
            fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
                (**self).json(name)
            }

            fn field(&self, name: &str) -> Option<Cow<'_, str>> {
                (**self).field(name)
            }

            fn field_beside(&self, name: &str, shown: &[&str]) -> Option<Cow<'_, str>> {
                (**self).field_beside(name, shown)
            }

            fn names(&self) -> Vec<String> {
                (**self).names()
            }
        })+
    };
}

fields_of_what_it_points_to!(&T, Box<T>, Arc<T>);

impl<K: AsRef<str> + Ord, V: AsRef<str>> Fields for BTreeMap<K, V> {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.iter().find(|(key, _)| key.as_ref() == name).map(|(_, value)| value.as_ref().into())
    }

    fn names(&self) -> Vec<String> {
        self.keys().map(|key| key.as_ref().to_owned()).collect()
    }
}

impl<K: AsRef<str>, V: AsRef<str>, S: BuildHasher> Fields for HashMap<K, V, S> {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.iter().find(|(key, _)| key.as_ref() == name).map(|(_, value)| value.as_ref().into())
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.keys().map(|key| key.as_ref().to_owned()).collect();
        names.sort_unstable();
        names
    }
}

/// Text as it is, numbers and booleans as JSON writes them; `null` is absent, and so are lists and objects, which are no text.
impl Fields for Map<String, Value> {
    fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.get(name).filter(|value| value.is_array() || value.is_object()).map(Cow::Borrowed)
    }

    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        match self.get(name)? {
            Value::String(text) => Some(text.as_str().into()),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string().into()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }
}

/// Those of an object. Any other value has no field.
impl Fields for Value {
    fn json(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.as_object()?.json(name)
    }

    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.as_object()?.field(name)
    }

    fn names(&self) -> Vec<String> {
        self.as_object().map(Fields::names).unwrap_or_default()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> Fields for Vec<(K, V)> {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.as_slice().field(name)
    }

    fn names(&self) -> Vec<String> {
        self.as_slice().names()
    }
}

impl<K: AsRef<str>, V: AsRef<str>, const N: usize> Fields for [(K, V); N] {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.as_slice().field(name)
    }

    fn names(&self) -> Vec<String> {
        self.as_slice().names()
    }
}

/// Pairs of name and text; the first pair of a name counts.
impl<K: AsRef<str>, V: AsRef<str>> Fields for [(K, V)] {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.iter().find(|(key, _)| key.as_ref() == name).map(|(_, value)| value.as_ref().into())
    }

    fn names(&self) -> Vec<String> {
        self.iter().map(|(key, _)| key.as_ref().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_points_to_an_item_has_its_fields() {
        let item = json!({"instruction": "q", "contexts": ["a", "b"]});
        let boxed: Box<dyn Fields> = Box::new(item.clone());
        for pointer in [&boxed as &dyn Fields, &Arc::new(item.clone()), &&item] {
            assert_eq!(pointer.field_beside("instruction", &[]).as_deref(), Some("q"));
            assert_eq!(pointer.json("contexts").as_deref(), Some(&json!(["a", "b"])));
            assert_eq!(pointer.names().len(), 2);
        }
    }

    #[test]
    fn a_field_without_a_text_says_what_it_is() {
        let item = json!({"instruction": "q", "contexts": ["a", "b"], "about": {"n": 1}, "none": null});
        assert_eq!(item.text("instruction").unwrap(), "q");
        let why = |name| item.text(name).unwrap_err();
        assert_eq!(why("contexts").reason, Reason::Missing);
        assert_eq!(why("contexts").detail, "expected text in the field \"contexts\", found a list");
        assert_eq!(why("about").detail, "expected text in the field \"about\", found an object");
        assert!(why("none").detail.contains("found the fields [\"instruction\""), "{}", why("none").detail);
        assert!(why("instructoin").detail.contains("found the fields"));
    }

    #[test]
    fn what_does_not_say_its_fields_is_not_said_to_have_none() {
        struct Silent;
        impl Fields for Silent {
            fn field(&self, _: &str) -> Option<Cow<'_, str>> {
                None
            }
        }
        let why = Silent.text("response").unwrap_err().detail;
        assert_eq!(why, "expected text in the field \"response\", found none");
    }
}
