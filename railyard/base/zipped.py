"""The errors of reading a damaged zip archive."""

import lzma
import struct
import zipfile
import zlib

ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, struct.error, UnicodeError)
"""The errors other than OSError. NotImplementedError and RuntimeError: it is encrypted, or compressed in another
way."""
