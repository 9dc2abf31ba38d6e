"""Facts on disk: complete versions of all relations of a program, one of which is the last."""

from __future__ import annotations

from upheld.store.draft import ClaimedFacts, Draft, Parted
from upheld.store.feed import FeedStep, SavedProgram, Segment, read_feed
from upheld.store.files import Checksum, Files, LocalFiles
from upheld.store.manifest import Manifest, SavedBooks, SavedFeed, SavedRelation
from upheld.store.programs import check_program, digest, other_program
from upheld.store.versions import Base, Store

__all__ = [
    "Base",
    "Checksum",
    "ClaimedFacts",
    "Draft",
    "FeedStep",
    "Files",
    "LocalFiles",
    "Manifest",
    "Parted",
    "SavedBooks",
    "SavedFeed",
    "SavedProgram",
    "SavedRelation",
    "Segment",
    "Store",
    "check_program",
    "digest",
    "other_program",
    "read_feed",
]
