"""Facts on disk: complete versions of all relations of a program, one of which is the last."""

from __future__ import annotations

from upheld.store.draft import ClaimedFacts, Draft
from upheld.store.files import Checksum, Files, LocalFiles
from upheld.store.manifest import Manifest, SavedBooks, SavedRelation
from upheld.store.programs import check_program, digest, other_program
from upheld.store.versions import Base, Store

__all__ = [
    "Base",
    "Checksum",
    "ClaimedFacts",
    "Draft",
    "Files",
    "LocalFiles",
    "Manifest",
    "SavedBooks",
    "SavedRelation",
    "Store",
    "check_program",
    "digest",
    "other_program",
]
