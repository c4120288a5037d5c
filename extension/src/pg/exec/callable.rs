//! A function of PostgreSQL's with its call, for the functions of an aggregate.

use pgrx::pg_sys::{self, Datum, Oid};

/// The most arguments of such a function, an aggregate's state included.
pub(super) const ARGUMENTS_MAX: usize = 8;

/// A call of a function, which PostgreSQL lays out with the arguments at its end.
#[repr(C)]
pub(super) struct Call {
    pub info: pg_sys::FunctionCallInfoBaseData,
    pub arguments: [pg_sys::NullableDatum; ARGUMENTS_MAX],
}

const _: () = assert!(
    std::mem::offset_of!(Call, arguments)
        == std::mem::offset_of!(pg_sys::FunctionCallInfoBaseData, args)
);

/// A function with its call.
pub(super) struct Callable {
    pub function: Box<pg_sys::FmgrInfo>,
    pub call: Box<Call>,
}

impl Callable {
    /// A function with a parsed expression of its call, from which polymorphic functions take their types.
    ///
    /// # Safety
    /// The function exists and takes so many arguments. Expression and context live as long as the result.
    pub unsafe fn new(
        function: Oid,
        arguments: usize,
        expression: *mut pg_sys::Expr,
        collation: Oid,
        context: *mut pg_sys::AggState,
    ) -> Callable {
        let mut info = Box::new(pg_sys::FmgrInfo::default());
        // SAFETY: this function's contract.
        unsafe { pg_sys::fmgr_info(function, &raw mut *info) };
        info.fn_expr = expression.cast();
        let mut call = Box::new(Call {
            info: pg_sys::FunctionCallInfoBaseData::default(),
            arguments: [pg_sys::NullableDatum::default(); ARGUMENTS_MAX],
        });
        call.info.flinfo = &raw mut *info;
        call.info.context = context.cast();
        call.info.fncollation = collation;
        call.info.nargs = arguments as i16;
        Callable {
            function: info,
            call,
        }
    }

    /// Calls the function with the arguments that are set. The result is a value and whether it is NULL.
    ///
    /// # Safety
    /// The arguments are of the function's types. An error boundary surrounds the call, and no frame between them has
    /// anything to drop.
    pub unsafe fn invoke(&mut self) -> (Datum, bool) {
        self.call.info.isnull = false;
        let Some(function) = self.function.fn_addr else {
            return (Datum::null(), true);
        };
        // SAFETY: this function's contract.
        let value = unsafe { function((&raw mut *self.call).cast()) };
        (value, self.call.info.isnull)
    }

    /// Calls the function with these arguments first, and NULL for all others. A strict function that gets a NULL is not
    /// called, and the result is NULL.
    ///
    /// # Safety
    /// As for [`Self::invoke`].
    pub unsafe fn apply(&mut self, first: &[(Datum, bool)]) -> (Datum, bool) {
        let null = (Datum::null(), true);
        let given = first.iter().copied().chain(std::iter::repeat(null));
        for (argument, (value, isnull)) in self.call.arguments.iter_mut().zip(given) {
            *argument = pg_sys::NullableDatum { value, isnull };
        }
        let count = self.call.info.nargs as usize;
        let mut taken = self.call.arguments[..count].iter();
        match self.function.fn_strict && taken.any(|argument| argument.isnull) {
            true => null,
            // SAFETY: this function's contract.
            false => unsafe { self.invoke() },
        }
    }
}
