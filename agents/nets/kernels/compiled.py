"""Compiles the C files beside it on first use, for this processor, and loads them; None where that cannot be done.

The compiled files lie in the user's own cache, by the digest of their source, so that each is compiled once. Only
processors with AVX2 have kernels worth it. `LEAGUE_COMPILE=0` switches them off.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

logger = logging.getLogger(__name__)

SWITCH = "LEAGUE_COMPILE"
"""Environment variable: "0" for torch's own kernels."""

COMMON = ("-O3", "-shared", "-fPIC", "-std=gnu11", "-ffp-contract=fast")
AVX2 = ("-mavx2", "-mfma")
AVX512 = (*AVX2, "-mavx512f")
COMPILE_S = 60.0
"""Longest time of the compiler, which needs one second."""


@functools.cache
def library(name: str) -> ctypes.CDLL | None:
    """The functions of `name`.c in this folder; None where there is no compiler, no cache or another processor."""
    flags = _processor_flags()
    if flags is None or os.environ.get(SWITCH) == "0":
        return None
    source = Path(__file__).with_name(f"{name}.c")
    try:
        return _loaded(source, flags)
    except (OSError, subprocess.SubprocessError) as error:
        logger.info("%s is not compiled, so torch's kernels run: %s", source.name, error)
        return None


def _loaded(source: Path, flags: Sequence[str]) -> ctypes.CDLL:
    sources = b"".join(path.read_bytes() for path in sorted(source.parent.glob("*.c")))  # one may include another
    digest = hashlib.sha256(sources + repr((source.name, COMMON, flags)).encode()).hexdigest()[:24]
    folder = _own_folder()
    compiled = folder / f"{source.stem}-{digest}.so"
    try:
        return ctypes.CDLL(str(compiled))
    except OSError:  # not there, or not whole
        _compile(source, compiled, flags)
        return ctypes.CDLL(str(compiled))


def _compile(source: Path, into: Path, flags: Sequence[str]) -> None:
    """Compile to a name of this process, then rename: several processes may begin at once."""
    compiler = next((found for name in (os.environ.get("CC", ""), "cc", "gcc") if (found := shutil.which(name))), None)
    if compiler is None:
        raise OSError("there is no C compiler")
    with tempfile.TemporaryDirectory(dir=into.parent) as folder:
        draft = Path(folder, into.name)
        subprocess.run(
            [compiler, *COMMON, *flags, str(source), "-o", str(draft)],
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=COMPILE_S,
        )
        draft.replace(into)


def _own_folder() -> Path:
    """A folder that nobody else may write to: code is loaded from it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "league" / "kernels"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise OSError(f"others may write to {folder}")
    return folder


def _processor_flags() -> Sequence[str] | None:
    """The compiler's flags for this processor; None for one without kernels."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return None
    try:
        words = set(Path("/proc/cpuinfo").read_text(errors="replace").partition("\n\n")[0].split())
    except OSError:
        return None
    if not {"avx2", "fma"} <= words:
        return None
    return AVX512 if "avx512f" in words else AVX2
