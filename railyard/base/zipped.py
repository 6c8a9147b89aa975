"""What reading a damaged zip archive raises."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib

ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, struct.error, UnicodeError)
"""Besides OSError. NotImplementedError and RuntimeError: it is encrypted, or packed in another way."""
