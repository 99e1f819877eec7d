//! Enumerations that a standard numbers.

/// An enumeration with its numbers: all of them, and the one of a number; with texts the standard's names as well.
macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident: $repr:ident {
        $($(#[$doc:meta])* $variant:ident = $number:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr($repr)]
        pub enum $name {
            $($(#[$doc])* $variant = $number,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The one with this number.
            #[inline]
            #[must_use]
            pub const fn from_number(number: $repr) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)* _ => None }
            }
        }
    };
    ($(#[$meta:meta])* $name:ident: $repr:ident {
        $($(#[$doc:meta])* $variant:ident = $number:literal $text:literal;)*
    }) => {
        numbered! { $(#[$meta])* $name: $repr { $($(#[$doc])* $variant = $number;)* } }

        impl $name {
            /// The standard's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

pub(crate) use numbered;
