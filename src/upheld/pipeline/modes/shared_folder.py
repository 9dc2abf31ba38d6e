"""Folders for files that pass facts from task to task, and the removal of those that killed drivers have left."""

from __future__ import annotations

import os
import re
import tempfile
from functools import partial
from uuid import uuid4
from weakref import WeakKeyDictionary, finalize

from pyspark.sql import SparkSession

from upheld.base.ownership import OwnedFolder, sweep
from upheld.pipeline.job import Job
from upheld.pipeline.report import Choice
from upheld.pipeline.sinks import staged
from upheld.store.spark.files import shown

#: How the names of folders in the temporary folder of a machine begin.
_PREFIX = "upheld-facts-"


class SharedFolder:
    """A folder for files that pass facts from task to task. It is removed when nobody holds it any more."""

    def __init__(self, owned: OwnedFolder) -> None:
        self.path = owned.path
        finalize(self, owned.remove)


#: Folders whose files the views of a session are made of.
_viewed: WeakKeyDictionary[SparkSession, list[SharedFolder]] = WeakKeyDictionary()


def shared_folder(spark: SparkSession, job: Job) -> SharedFolder | None:
    """Return a new folder that all tasks share: beside the state or a sink, if the session has several machines.

    Folders in the same place are removed if the drivers that made them have ended without doing so.
    """
    if re.match(r"local(\[|$)", spark.sparkContext.master or ""):
        parent = tempfile.gettempdir()
        sweep(parent, lambda name: name.startswith(_PREFIX))
        return SharedFolder(OwnedFolder.make(lambda: os.path.join(parent, f"{_PREFIX}{uuid4().hex[:8]}")))
    places = [job.settings.state, *(sink.path for sink in job.sinks)]
    known = [path for place in places if place is not None and (path := local_path(place)) is not None]
    if not known:
        return None
    parent, name = os.path.split(known[0])
    sweep(parent, re.compile(rf"_{re.escape(name)}-[0-9a-f]{{8}}").fullmatch)
    return SharedFolder(OwnedFolder.make(partial(staged, known[0])))


def local_path(place: str) -> str | None:
    """Return the path of a place that Python can open, or None if it is on another file system."""
    path = shown(place)
    return path.rstrip("/") if path.startswith("/") else None


def held_for_views(spark: SparkSession, folder: SharedFolder) -> None:
    """Hold a folder for as long as a session has views of its files."""
    _viewed.setdefault(spark, []).append(folder)


def choice_of(folder: SharedFolder | None) -> Choice:
    """Return how facts get to tasks and from there, for the report."""
    if folder is not None:
        return Choice("facts go to tasks by", "files that tasks write and read", "all tasks share a folder")
    return Choice(
        "facts go to tasks by", "the driver", "neither the state nor a sink is in a folder that all tasks may share"
    )
