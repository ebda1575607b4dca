"""How interpose is built: one package from the folders at the top, its extensions, and its start-up files.

Names, versions and dependencies are in pyproject.toml.
"""

import ast
import fcntl
import os
import re
import runpy
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from glob import glob
from typing import ClassVar

from setuptools import Command, Extension, find_packages, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.errors import CCompilerError, CompileError, SetupError
from setuptools.modified import newer_group

FOLDERS = {"interpose.timing": "timing", "interpose.experiments": "experiments", "interpose.cext": "cext"}

INCLUDES = ["cext", os.path.join("interpose", "include")]

LIBRARY = "interpose.cext.libinterpose"
LIBRARY_FILE = os.path.join("interpose", "cext", "libinterpose.so")
# What knows Python is built for one version of it, and its name says for which, as an extension's does.
CPYTHON_LIBRARY = "interpose.cext.libinterpose_cpython"
VERSION_TAG = sysconfig.get_config_var("EXT_SUFFIX").removesuffix(".so")
BOOT_LIBRARY = "interpose.cext.libinterpose_boot"
BOOT_SOURCE = os.path.join("cext", "boot", "boot.c")
PROGRAM_LIBRARY = "interpose.cext.libinterpose_program"
# The only one that is no library, but a program.
STARTER = "interpose.cext.interpose_starter"
PLAIN_FILES = {LIBRARY: LIBRARY_FILE, STARTER: os.path.join("interpose", "cext", "interpose_starter")} | {
    name: os.path.join(*name.split(".")) + ".so" for name in (BOOT_LIBRARY, PROGRAM_LIBRARY)
}

# The part without Python: it may run on any thread, and is one library for each process.
PLAIN_SOURCES = [
    *sorted(glob("cext/core/*.c")),
    *(f"cext/lines/{name}.c" for name in ("lines", "line_speed", "line_stretches", "line_tables", "line_threads")),
    *sorted(glob("cext/heap/heap*.c")),
    "cext/coverage/coverage.c",
]


def sources_of(*folders):
    """The sources of an extension besides its own: the rest of these folders of cext."""
    found = {source for folder in folders for source in glob(f"cext/{folder}/*.c")}
    return sorted(found - set(PLAIN_SOURCES))


EXTENSION_SOURCES = {
    "timing/coverage.pyx": sources_of("coverage"),
    "timing/heap.pyx": sources_of("heap"),
    "timing/kernel.pyx": [
        *sources_of("kernel"),
        *(f"cext/sampler/{name}.c" for name in ("met_functions", "numbers", "schedule")),
    ],
    "timing/lines.pyx": sources_of("lines"),
    "timing/sampler.pyx": sources_of("sampler"),
    "timing/shims.pyx": sources_of("hooks", "collectors", "native"),
}

LIBRARIES = (*PLAIN_FILES, CPYTHON_LIBRARY)

# Debug information makes an object file eight times as large and takes a quarter of the time; CFLAGS=-g adds it.
STRIPPED = "-g" not in os.environ.get("CFLAGS", "").split()
FLAGS = ["-O2", "-std=gnu11", "-fvisibility=hidden", "-Wall", "-Wextra", *(["-g0"] if STRIPPED else [])]
LINK_FLAGS = ["-Wl,-s"] if STRIPPED else []
# A library finds its own names in itself: otherwise each start looks for them in Python's libraries first.
OWN_NAMES = ["-Wl,-Bsymbolic"]
WERROR = ["-Werror"] if os.environ.get("INTERPOSE_BUILD_WERROR") == "1" else []
# What Cython's own output is warned about; ours is not excused.
GENERATED = ["-Wno-unused-parameter", "-Wno-missing-field-initializers"]

# It takes less time than -O2. Cython's output works on Python objects, or runs once; what each recorded call
# passes through is in C files.
QUICK = ["-O1"]
# Except these: they read every event of an experiment, in steps that are best compiled into one.
THOROUGH = ["-O3"]
READ_EVENTS = (
    "experiments/format/compiled_columns.pyx",
    "experiments/format/compiled_judge.pyx",
    "interpose/analysis/consolidation/consolidator.pyx",
)

# What recorded calls of C run, on a stack that may be small; what needs more has cext/core/spare_stack.c for it.
ON_ANY_STACK = (
    "cext/native/",
    *(f"cext/core/{name}.c" for name in ("database_name", "detail_levels", "program_name", "readable", "spans")),
    *(f"cext/core/{name}.c" for name in ("passed_variables", "spare_stack", "url")),
    "cext/hooks/descriptors.c",
    *(f"cext/program/{name}.c" for name in ("database_errors", "kept_statements")),
    *(f"cext/program/{name}.c" for name in ("program_children", "program_databases", "program_messages")),
)
SMALL_FRAMES = "-Wframe-larger-than=1024"

KINDS_FILE = os.path.join("interpose", "kinds.py")

NO_COMPILER = (
    "interpose is built from C: a C compiler (gcc or clang) and Python's headers (python3-dev) are needed:"
    " {why}"
)


def packages_of_folders():
    """The packages in the folders at the top, with those below them."""
    for package, folder in FOLDERS.items():
        yield package
        yield from (f"{package}.{inner}" for inner in find_packages(folder))


def library():
    """The plain C library, one for each process, that everything else is linked against."""
    return Extension(
        LIBRARY,
        PLAIN_SOURCES,
        depends=[*glob("cext/*/*.h"), KINDS_FILE],
        include_dirs=INCLUDES,
        extra_compile_args=[*FLAGS, *WERROR, "-pthread"],
        # Threads outlive the interpreter, and their destructors run here: it is never unmapped.
        extra_link_args=[
            *LINK_FLAGS, *OWN_NAMES, "-pthread", "-lm", "-Wl,-soname,libinterpose.so", "-Wl,-z,nodelete"
        ],
    )


def cpython_library():
    """What several extensions know of the interpreter: one owner for each state."""
    return Extension(
        CPYTHON_LIBRARY,
        sources_of("cpython"),
        depends=[*glob("cext/*/*.h"), KINDS_FILE],
        include_dirs=INCLUDES,
        libraries=["interpose"],
        # Symbols of other libraries cannot replace ours, so calls within the library can be inlined.
        extra_compile_args=[*FLAGS, *WERROR, "-fno-semantic-interposition"],
        extra_link_args=[
            *LINK_FLAGS, *OWN_NAMES, f"-Wl,-soname,libinterpose_cpython{VERSION_TAG}.so", "-Wl,-rpath,$ORIGIN"
        ],
    )


def boot_library():
    """The library for interpreters that read no start-up files; it needs no other library of ours."""
    return Extension(
        BOOT_LIBRARY,
        [BOOT_SOURCE],
        extra_compile_args=[*FLAGS, *WERROR],
        extra_link_args=[*LINK_FLAGS, "-Wl,-soname,libinterpose_boot.so", "-Wl,-z,nodelete"],
    )


def program_library():
    """The library that records programs which are not Python; the linker refuses it if it needs Python."""
    native = set(sources_of("native")) - {"cext/native/native_in_python.c"}
    hooks = [f"cext/hooks/{name}.c" for name in ("descriptors", "open_calls", "slot", "without_lock")]
    return Extension(
        PROGRAM_LIBRARY,
        [*sources_of("program"), *sorted(native), *hooks],
        depends=[*glob("cext/*/*.h"), KINDS_FILE],
        include_dirs=INCLUDES,
        libraries=["interpose"],
        extra_compile_args=[*FLAGS, *WERROR],
        extra_link_args=[
            *LINK_FLAGS, "-Wl,-soname,libinterpose_program.so", "-Wl,-rpath,$ORIGIN", "-Wl,-z,nodelete,-z,defs"
        ],
    )


def starter():
    """The program that becomes the monitor of an experiment."""
    return Extension(
        STARTER, sources_of("starter"), extra_compile_args=[*FLAGS, *WERROR], extra_link_args=LINK_FLAGS
    )


def generated(source, link=(), **options):
    """An extension in Cython, named after its source, with its C sources."""
    name = os.path.splitext(source)[0].replace(os.sep, ".")
    beside = glob(os.path.join(os.path.dirname(source), "*.px[di]"))
    return Extension(
        name if name.startswith("interpose.") else f"interpose.{name}",
        [source, *EXTENSION_SOURCES.get(source, ())],
        depends=[*glob("cext/*/*.h"), KINDS_FILE, *glob("interpose/include/*.h"), *beside],
        include_dirs=INCLUDES,
        extra_compile_args=[*FLAGS, *GENERATED, *(THOROUGH if source in READ_EVENTS else QUICK), *WERROR],
        extra_link_args=[*LINK_FLAGS, *link],
        **options,
    )


def shim(source):
    """An extension in Cython that uses the libraries, and finds them beside itself wherever the package is."""
    libraries = [f"interpose_cpython{VERSION_TAG}", "interpose"]
    return generated(source, libraries=libraries, link=["-Wl,--as-needed,-rpath,$ORIGIN/../cext"])


def names_header():
    """The text of `names.h`: what our libraries show to each other begins with `interpose_` for the linker, which would
    take a shorter name for that of a program or of another library (curses has a `filter`), or theirs for ours."""
    declarations = [
        declaration
        for header in sorted(glob("cext/*/*.h"))
        for declaration in re.findall(r"^VISIBLE\s([^;]+);", read(header), re.MULTILINE)
    ]
    names = [name for each in declarations for name in names_declared(each)]
    return "#pragma once\n" + "".join(f"#pragma redefine_extname {name} interpose_{name}\n" for name in names)


def names_declared(declaration):
    """The names in a declaration in C: that of a function, or those of variables."""
    plain = re.sub(r"__attribute__\(\(.*\)\)", "", declaration)
    declarators = [plain.partition("(")[0]] if "(" in plain else plain.split(",")
    return [re.findall(r"\w+", each.partition("[")[0])[-1] for each in declarators]


def packed_fields():
    """The fields of a declaration that a start unpacks, as the code that does it has them."""
    (fields,) = re.findall(r"^PACKED = (\(.*?^\))", read("timing/intrinsics.pxi"), re.MULTILINE | re.DOTALL)
    return ast.literal_eval(fields)


def read(path):
    with open(path) as file:
        return file.read()


def size_of_sources(ext):
    return sum(os.path.getsize(source) for source in ext.sources)


class BuildExt(build_ext):
    """Builds the libraries first, under their plain file names, and keeps generated C out of the source tree."""

    def initialize_options(self):
        super().initialize_options()
        # What the extensions share among threads they order themselves (docs/architecture.md).
        self.cython_directives = {"language_level": 3, "freethreading_compatible": True}

    def finalize_options(self):
        super().finalize_options()
        self.parallel = None  # build_extensions chooses

    def get_ext_filename(self, fullname):
        for name, file in PLAIN_FILES.items():
            if fullname == name:
                return file
            if fullname == os.path.splitext(os.path.basename(file))[0]:
                return os.path.basename(file)
        return super().get_ext_filename(fullname)

    def get_export_symbols(self, ext):
        return [] if ext.name in LIBRARIES else super().get_export_symbols(ext)

    def build_extensions(self):
        self.require_compiler()
        made = self.write_headers()
        for ext in self.extensions:
            ext.include_dirs = [*ext.include_dirs, made]
        libraries = [ext for ext in self.extensions if ext.name in LIBRARIES]
        generated = [ext for ext in self.extensions if ext.name not in LIBRARIES]
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as self.compilers:
            self.compiled = {}
            objects = {ext.name: self.compile_plain(ext) for ext in self.extensions if self.is_stale(ext)}
            self.generate_c(generated)
            for ext in sorted(generated, key=size_of_sources, reverse=True):
                if ext.name not in objects and self.is_stale(ext):  # by what Cython made just now
                    objects[ext.name] = self.compile_plain(ext)
                if ext.name in objects:
                    objects[ext.name] += self.compile_generated(ext)
            made = len({each for found in objects.values() for each in found})
            self.say(f"compiling {made} C files, {len(os.sched_getaffinity(0))} at a time" if made else "up to date")
            for ext in self.extensions:
                # Together with what they were made from: setuptools looks whether that is newer.
                ext.depends = [*ext.depends, *ext.sources]
                ext.extra_objects = [each for found in objects.get(ext.name, ()) for each in found.result()]
                ext.sources = []
                ext.library_dirs = [os.path.dirname(self.get_ext_fullpath(LIBRARY))]
        linked = (CPYTHON_LIBRARY, PROGRAM_LIBRARY)  # against the first
        self.extensions = [*sorted(libraries, key=lambda ext: ext.name in linked), *generated]
        self.say(f"linking {len(objects)} libraries")
        super().build_extensions()

    def build_extension(self, ext):
        if ext.name != STARTER:
            return super().build_extension(ext)
        path = self.get_ext_fullpath(ext.name)
        self.mkpath(os.path.dirname(path))
        self.compiler.link_executable(ext.extra_objects, path, extra_postargs=ext.extra_link_args)

    def say(self, what):
        """Print what is being done (`pip install -v` shows it)."""
        print(f"interpose: {what}", flush=True)

    def is_stale(self, ext):
        """Whether something that an extension is made from is newer than it."""
        return self.force or newer_group([*ext.depends, *ext.sources], self.get_ext_fullpath(ext.name), "newer")

    def compile_plain(self, ext):
        """Have the sources of an extension in plain C compiled, and warned about: what gives the object files."""
        flags = [flag for flag in ext.extra_compile_args if flag not in (*GENERATED, *QUICK)]
        for source in ext.sources:
            if source.startswith("cext") and source not in self.compiled:  # several extensions may have it
                small = [SMALL_FRAMES] if source.startswith(ON_ANY_STACK) else []
                self.compiled[source] = self.compile(ext, source, [*flags, *small])
        return [self.compiled[source] for source in ext.sources if source.startswith("cext")]

    def compile_generated(self, ext):
        """The same of the sources that Cython made."""
        made = [each for each in ext.sources if not each.startswith("cext")]
        return [self.compile(ext, each, ext.extra_compile_args) for each in made]

    def compile(self, ext, source, flags):
        return self.compilers.submit(
            self.compiler.compile,
            [source],
            output_dir=self.build_temp,
            include_dirs=ext.include_dirs,
            extra_postargs=flags,
        )

    def generate_c(self, extensions):
        """Replace Cython by C in the sources of `extensions`.

        The C is the same for every interpreter. It is in a place where all of them find it, with a name that does not
        depend on the build, so compiler caches recognise it. Cython itself must not run in several threads.
        """
        from Cython.Build import cythonize

        self.say("generating C from Cython")
        directory = os.path.join(self.get_finalized_command("build").build_base, "generated")
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.renew(directory)
            made = cythonize(
                extensions,
                force=self.force,
                build_dir=directory,
                include_path=[self.link_packages(), *INCLUDES],
                compiler_directives=self.cython_directives,
            )
        for ext, with_c in zip(extensions, made, strict=True):
            ext.sources = with_c.sources

    def renew(self, directory):
        """Make the generated C in `directory` newer than Cython, unless our sources are newer.

        Cython compares it with its own declarations too, which are new whenever pip has installed Cython for a build;
        C of another version of Cython it always makes again.
        """
        import Cython

        folders = (*FOLDERS.values(), "interpose")
        sources = [path for folder in folders for path in glob(f"{folder}/**/*.p[xy][xdi]", recursive=True)]
        newest, cython = max(map(os.path.getmtime, sources)), os.path.getmtime(Cython.__file__)
        for made in glob(f"{directory}/**/*.c", recursive=True):
            if newest <= os.path.getmtime(made) < cython:
                os.utime(made)

    def link_packages(self):
        """A directory with the folders as they are when installed, where Cython looks for `cimport`."""
        packages = os.path.join(self.build_temp, "packages")
        os.makedirs(os.path.join(packages, "interpose"), exist_ok=True)
        with open(os.path.join(packages, "interpose", "__init__.py"), "w"):
            pass  # what makes it a package to Cython
        for name, folder in FOLDERS.items():
            link = os.path.join(packages, *name.split("."))
            if not os.path.islink(link):
                os.symlink(os.path.abspath(folder), link)
        return packages

    def write_headers(self):
        """The directory of the headers that are made: the kinds of calls, which are listed in interpose/kinds.py, and
        what our names are to the linker."""
        directory = os.path.join(self.get_finalized_command("build").build_base, "made")
        os.makedirs(directory, exist_ok=True)
        texts = {"kinds.h": runpy.run_path(KINDS_FILE)["c_header"](), "names.h": names_header()}
        for name, text in texts.items():
            with open(os.path.join(directory, name), "w") as header:
                header.write(text)
        return directory

    def require_compiler(self):
        """Raise SetupError, in one line, where no C that includes Python's headers can be compiled."""
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "probe.c")
            with open(source, "w") as probe:
                probe.write("#include <Python.h>\n")
            try:
                self.compiler.compile([source], output_dir=directory, include_dirs=self.include_dirs)
            except (CompileError, CCompilerError, SetupError) as error:
                raise SetupError(NO_COMPILER.format(why=error)) from None


class BuildStartup(Command):
    """Puts the start-up files at the top of site-packages, in wheels and editable installs alike, and in wheels the
    bundles of what the start of a recording imports."""

    user_options: ClassVar = []
    editable_mode = False
    SOURCES = ("interpose.pth", "interpose.start")
    # The second stands for the first from 3.18 on. From 3.15 on it would do so too, but has every start of Python
    # import what finds our function, recorded or not: more than all else that it does.
    FILES = SOURCES if sys.version_info >= (3, 18) else SOURCES[:1]
    BUNDLES = tuple(
        os.path.join("interpose", runpy.run_path(os.path.join("interpose", "boot.py"))[name])
        for name in ("BUNDLE", "SETTINGS_BUNDLE")
    )

    def initialize_options(self):
        self.build_lib = None

    def finalize_options(self):
        self.set_undefined_options("build", ("build_lib", "build_lib"))

    def destination(self):
        if self.editable_mode:
            return self.get_finalized_command("install").install_lib
        return self.build_lib

    def run(self):
        self.mkpath(self.destination())
        for file in self.SOURCES:
            there = os.path.join(self.destination(), file)
            if file in self.FILES:
                self.copy_file(file, there)
            elif os.path.exists(there):  # an earlier build's
                os.remove(there)
        if not self.editable_mode:
            self.write_bundles(os.path.join(self.build_lib, "interpose"))

    def write_bundles(self, package):
        bundle = runpy.run_path(os.path.join("interpose", "bundle.py"))
        sys.path.insert(0, os.path.abspath(self.build_lib))  # the declarations are imported
        writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        made = (
            bundle["make_for_start"]([package], packed_fields(), within=f"{package}/"),
            bundle["make_for_settings"]([package], within=f"{package}/"),
        )
        sys.path.pop(0)
        sys.dont_write_bytecode = writes
        for name, each in zip(self.BUNDLES, made, strict=True):
            with open(os.path.join(self.build_lib, name), "wb") as file:
                file.write(each.as_file())

    def get_outputs(self):
        made = () if self.editable_mode else (*self.FILES, *self.BUNDLES)
        return [os.path.join(self.build_lib, file) for file in made]

    def get_output_mapping(self):
        return {}

    def get_source_files(self):
        return list(self.SOURCES)


class Build(build):
    sub_commands: ClassVar = [*build.sub_commands, ("build_startup", None)]


setup(
    packages=[*find_packages(include=["interpose", "interpose.*"]), *packages_of_folders()],
    package_dir=FOLDERS,
    include_package_data=False,
    package_data={"": ["py.typed", "*.pyi"], "interpose": ["include/*.h"], "interpose.reports.page": ["assets/*"]},
    ext_modules=[
        library(),
        cpython_library(),
        boot_library(),
        program_library(),
        starter(),
        *(shim(source) for source in sorted(glob("timing/*.pyx"))),
        *(generated(source) for source in sorted(glob("experiments/**/*.pyx", recursive=True))),
        *(generated(source) for source in sorted(glob("interpose/**/*.pyx", recursive=True))),
    ],
    cmdclass={"build": Build, "build_ext": BuildExt, "build_startup": BuildStartup},
    zip_safe=False,
)
