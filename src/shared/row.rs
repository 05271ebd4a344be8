//! What one row of the table of settings is made of, and what is made from it: see
//! [`crate::settings`], which uses this macro once.

/// A row is
///
/// ```text
/// Key {
///     name: the environment variable,
///     value: field: type, read by parser, shown by function,
///     default: the text that holds when it is not set,
///     accepts: what it takes, as a reader of an error message wants to see it,
///     good: values that it takes, bad: values that it does not,
///     doc: one sentence,
/// }
/// ```
///
/// From `value` come a field of `Settings`, its default (`default` read by the parser, at compile
/// time), its reading and its showing. `optional` instead of `value` makes a field that is `None`
/// where the user chose nothing; its default is then a phrase. A row with neither is a text that
/// its user reads by itself, such as a path. `good` and `bad` feed the tests of all who read.
macro_rules! settings {
    ($($key:ident {
        name: $name:literal,
        $(value: $field:ident: $type:ty, read by $parse:path, shown by $show:path,)?
        $(optional: $choice:ident: $choice_type:ty, read by $parse_choice:path, shown by $show_choice:path,)?
        default: $default:expr,
        accepts: $accepts:literal,
        good: $good:expr, bad: $bad:expr,
        doc: $doc:literal,
    })*) => {
        /// Names a row of [`TABLE`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Key { $($key),* }

        /// Every setting that flarena reads, in the order in which it is documented.
        pub const TABLE: &[Setting] = &[$(Setting {
            key: Key::$key, name: $name, default: $default, accepts: $accepts,
            good: &$good, bad: &$bad, doc: $doc,
        }),*];

        /// What the user asked for, defaults filled in. `None` means: not the user's business.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Settings {
            $($(pub $field: $type,)? $(pub $choice: Option<$choice_type>,)?)*
        }

        impl Settings {
            /// What holds when nothing is set.
            pub const DEFAULT: Settings = Settings {
                $($($field: match $parse($default.as_bytes()) {
                    Some(value) => value,
                    None => panic!("the default of a setting is none of its values"),
                },)? $($choice: None,)?)*
            };

            /// Reads the text of one row; false when it is none of its values.
            fn take(&mut self, key: Key, text: &[u8]) -> bool {
                match key {
                    $(Key::$key => {
                        $(let Some(value) = $parse(text) else { return false };
                        self.$field = value;)?
                        $(self.$choice = $parse_choice(text);
                        return self.$choice.is_some();)?
                    })*
                }
                true
            }

            /// The value of a row as text; `None` where there is no value.
            pub fn shown(&self, key: Key) -> Option<String> {
                match key {
                    $(Key::$key => {
                        $(return Some($show(self.$field).to_string());)?
                        $(return Some($show_choice(self.$choice?).to_string());)?
                    })*
                }
                None
            }
        }
    };
}

pub(crate) use settings;
