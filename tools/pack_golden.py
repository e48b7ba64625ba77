#!/usr/bin/env python3
"""Packs a golden file: tools/pack_golden.py FILE... writes FILE.tar.xz and removes FILE.

Large golden texts lie packed in the repository; configuring unpacks them to golden/ of the build folder
(strata_golden in cmake/strata.cmake). The same bytes give the same archive.
"""

import io
import lzma
import pathlib
import sys
import tarfile


def pack(name, content):
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return lzma.compress(tar.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def read(path):
    """The content of a packed file."""
    with tarfile.open(path, mode="r:xz") as archive:
        return archive.extractfile(archive.next()).read()


def main():
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        pathlib.Path(f"{name}.tar.xz").write_bytes(pack(path.name, path.read_bytes()))
        path.unlink()


if __name__ == "__main__":
    main()
