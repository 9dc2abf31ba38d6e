"""Facts on disk: complete versions of all relations of a program, one of which is the last."""

from __future__ import annotations

from upheld.store.files import Files, LocalFiles
from upheld.store.manifest import Manifest, SavedBooks, SavedRelation, digest
from upheld.store.versions import Draft, Store

__all__ = ["Draft", "Files", "LocalFiles", "Manifest", "SavedBooks", "SavedRelation", "Store", "digest"]
