//! What an enum of plain variants needs to be written and listed by names.

/// Gives an enum its variants as `ALL`, the name of each as `as_str`, the way back as `from_name`, and a
/// [`Display`](std::fmt::Display) that writes the name.
///
/// For the crates of this workspace. The names that serde writes are declared at the enum.
#[doc(hidden)]
#[macro_export]
macro_rules! names {
    ($Named:ident { $($Variant:ident: $name:literal,)+ }) => {
        impl $Named {
            /// All of them, in the order in which they are listed.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Variant),+];

            /// The name used in files and on command lines.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)+
                }
            }

            /// The one of this name; `None` if there is none.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == name)
            }
        }

        impl std::fmt::Display for $Named {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
