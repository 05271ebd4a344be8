//! The namespace of the Python texts that the library runs: the interpreter's own functions and types,
//! also where the program has replaced them.
//!
//! A text must run no code of the program. But a program may put its own function at `builtins.id`,
//! `builtins.__import__` or `gc.collect`, and hold a lock of that function right now. A module in C keeps
//! the table of its functions (`PyModuleDef`), which Python code cannot change. So the texts get new
//! function objects, made from these tables, and an `__import__` that knows only them.

use std::ffi::{c_char, c_int, c_void, CStr};

use super::{class_in, Api, Object, Owned};
use flarena_sys::loader::reference::Reference;

/// The modules of the interpreter that the texts import, and the attributes of these that are no functions.
const IMPORTED: [(&CStr, &[&CStr]); 5] = [
    (c"sys", &[c"implementation", c"version"]),
    (c"_signal", &[c"NSIG"]),
    (c"gc", &[]),
    (c"_io", &[]),
    (c"atexit", &[]),
];

/// The types that the texts use, and the symbols at which the interpreter has them.
const TYPES: [(&CStr, &CStr); 9] = [
    (c"bool", c"PyBool_Type"),
    (c"int", c"PyLong_Type"),
    (c"list", c"PyList_Type"),
    (c"object", c"PyBaseObject_Type"),
    (c"range", c"PyRange_Type"),
    (c"set", c"PySet_Type"),
    (c"str", c"PyUnicode_Type"),
    (c"type", c"PyType_Type"),
    (c"zip", c"PyZip_Type"),
];
/// These symbols are variables that point to the type.
const EXCEPTIONS: [(&CStr, &CStr); 4] = [
    (c"BaseException", c"PyExc_BaseException"),
    (c"Exception", c"PyExc_Exception"),
    (c"StopIteration", c"PyExc_StopIteration"),
    (c"ValueError", c"PyExc_ValueError"),
];

/// `PyMethodDef`
#[repr(C)]
pub struct Method {
    name: *const c_char,
    call: *const c_void,
    flags: c_int,
    doc: *const c_char,
}

/// `PyModuleDef` behind the header of an object, up to the functions.
#[repr(C)]
struct Definition {
    init: *const c_void,
    index: isize,
    copy: Object,
    name: *const c_char,
    doc: *const c_char,
    size: isize,
    /// Null, or a table that ends in a row without a name.
    methods: *const Method,
}

/// The types that the texts use, by name.
pub fn types_in(library: &Reference) -> Option<Vec<(&'static CStr, Object)>> {
    let type_at = |symbol| Some(library.address_of(symbol).cast_mut()).filter(|at| !at.is_null());
    let types = TYPES.map(|(name, symbol)| Some((name, type_at(symbol)?)));
    let exceptions = EXCEPTIONS.map(|(name, symbol)| Some((name, class_in(library, symbol)?)));
    types.into_iter().chain(exceptions).collect()
}

impl Api {
    /// A new namespace. It has the originals as `__builtins__`, and under
    /// `originals` the modules by name. `None` sets an exception, or one of these modules is not the
    /// interpreter's.
    ///
    /// # Safety
    /// Python's lock is held.
    pub(super) unsafe fn namespace(&self) -> Option<Owned<'_>> {
        // SAFETY: Python's lock is held. Objects are dicts and modules as the functions require; `Owned`
        // releases the new references, and the others are borrowed from objects that live here.
        unsafe {
            let modules = (self.modules)();
            let importer = self.stand_in(modules, c"_imp", &[], None)?;
            let functions = (self.module_dict)(importer.0);
            let builtins = self.stand_in(modules, c"builtins", &[], None)?;
            let builtins = (self.module_dict)(builtins.0);
            for (name, kind) in &self.types {
                self.set(builtins, name, *kind)?;
            }
            let originals = self.owned((self.new_dict)())?;
            for (name, values) in IMPORTED {
                let stand_in = self.stand_in(modules, name, values, Some(functions))?;
                self.set(originals.0, name, stand_in.0)?;
            }
            let sys = (self.module_dict)(self.get(originals.0, c"sys")?);
            self.set(sys, c"modules", modules)?;
            let names = self.owned((self.new_dict)())?;
            self.set(names.0, c"__builtins__", builtins)?;
            self.set(names.0, c"originals", originals.0)?;
            Some(names)
        }
    }

    /// A module with the original functions and the listed values of a module. One that the program has
    /// not imported is created by the functions of `_imp`.
    ///
    /// # Safety
    /// Python's lock is held. `modules` and `importer` are dicts.
    unsafe fn stand_in(
        &self,
        modules: Object,
        name: &CStr,
        values: &[&CStr],
        importer: Option<Object>,
    ) -> Option<Owned<'_>> {
        // SAFETY: Python's lock is held. The item is borrowed from `modules`, which nothing changes while
        // it is used: no Python code runs here.
        unsafe {
            let mut found = self.get(modules, name);
            if found.is_none() {
                let created = self.create(importer?, name)?;
                self.set(modules, name, created.0)?;
                found = Some(created.0);
            }
            let found = found?;
            let definition = (self.definition)(found);
            if definition.is_null() {
                return None; // the program has replaced it
            }
            let definition: *const Definition = definition.byte_add(self.header_bytes()?).cast();
            if !is_name_of(name, (*definition).name) {
                return None;
            }
            let stand_in = self.owned((self.new_module)(name.as_ptr()))?;
            let names = (self.module_dict)(stand_in.0);
            for name in values {
                if let Some(value) = self.get((self.module_dict)(found), name) {
                    self.set(names, name, value)?;
                }
            }
            let mut method = (*definition).methods;
            while !method.is_null() && !(*method).name.is_null() {
                let function = (self.new_function)(method, found, std::ptr::null_mut());
                let name = CStr::from_ptr((*method).name);
                self.set(names, name, self.owned(function)?.0)?;
                method = method.add(1);
            }
            Some(stand_in)
        }
    }

    /// # Safety
    /// Python's lock is held. `importer` is a dict with the functions of `_imp`.
    unsafe fn create(&self, importer: Object, name: &CStr) -> Option<Owned<'_>> {
        let end = std::ptr::null_mut::<c_void>();
        // SAFETY: Python's lock is held, and the arguments of a call end in a null. `_imp` asks the
        // specification for its name only.
        unsafe {
            let specification = self.owned((self.new_module)(name.as_ptr()))?;
            let text = self.owned((self.new_text)(name.as_ptr()))?;
            self.set((self.module_dict)(specification.0), c"name", text.0)?;
            let create = self.get(importer, c"create_builtin")?;
            let execute = self.get(importer, c"exec_builtin")?;
            let created = self.owned((self.call)(create, specification.0, end))?;
            self.owned((self.call)(execute, created.0, end))?;
            Some(created)
        }
    }

    /// The size of the header of each object. Python without a global lock has a larger one.
    ///
    /// # Safety
    /// Python's lock is held.
    unsafe fn header_bytes(&self) -> Option<usize> {
        let (_, object) = self.types.iter().find(|(name, _)| *name == c"object")?;
        // SAFETY: Python's lock is held, and `object` is a type. Its size is an int.
        unsafe {
            let size = self.owned((self.attribute)(*object, c"__basicsize__".as_ptr()))?;
            usize::try_from((self.number)(size.0)).ok()
        }
    }
}

/// True for the name in a module's definition. Older versions leave out an underscore.
///
/// # Safety
/// `defined` is null or a C string.
unsafe fn is_name_of(name: &CStr, defined: *const c_char) -> bool {
    if defined.is_null() {
        return false;
    }
    // SAFETY: `defined` is a C string, by this function's contract.
    let defined = unsafe { CStr::from_ptr(defined) }.to_bytes();
    let name = name.to_bytes();
    defined == name || name.strip_prefix(b"_") == Some(defined)
}
