"""Numbered frames of a video or light field: numbers, paths, and the manifest from which a killed export resumes.

plan.py parses --frames by frame_numbers() and opens the Manifest; run.py and farm.py draw the missing frames.
"""

import hashlib
import itertools
import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from renderer.errors import IncompleteError, InputError, UserError
from renderer.formats.images import is_picture, read_digest, read_recipe
from renderer.plain import Json, format_value, parse_whole
from renderer.system.files import read_json_lines
from renderer.system.outputs import append_line, is_own, write_text, writing
from renderer.system.trust import Limits, refuse_links

VIDEO_SUFFIXES = (".mp4", ".webm", ".mkv", ".gif")
FRAME_PLACEHOLDER = re.compile(r"#+")
MAX_FRAMES = 1_000_000
MAX_NUMBER = 999_999_999  # largest number of a frame


def frame_numbers(text: str) -> list[int]:
    """Parses "1-48" or "1-30,47" to numbers, ascending and once each; raises UserError."""
    numbers: set[int] = set()
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        first = parse_whole(low, 0, MAX_NUMBER)
        last = parse_whole(high, 0, MAX_NUMBER) if dash else first
        if first is None or last is None or last < first:
            raise UserError(f"--frames {text}: must be numbers and ranges such as 1-48 or 1-30,47, up to {MAX_NUMBER}")
        if last - first >= MAX_FRAMES or len(numbers) + last - first >= MAX_FRAMES:
            raise UserError(f"--frames {text}: names more than the {MAX_FRAMES} frames allowed")
        numbers.update(range(first, last + 1))
    return sorted(numbers)


def frame_path(pattern: Path, number: int) -> Path:
    """Returns the path of a frame: out_####.png and 7 make out_0007.png."""
    return pattern.with_name(FRAME_PLACEHOLDER.sub(lambda marks: str(number).zfill(len(marks[0])), pattern.name))


def manifest_path(pattern: Path) -> Path:
    """Returns the path of the manifest of a pattern's frames: f.frames.jsonl of f_###.png."""
    stem = FRAME_PLACEHOLDER.sub("", pattern.stem).strip("_-. ") or "frames"
    return pattern.with_name(f"{stem}.frames.jsonl")


class Manifest:
    """The frames of a pattern that are done, each a JSON line: frame, file, sha256, recipe, title, time, device, ...

    A frame counts as done when its file is there with that hash and was made from the same recipe.
    """

    is_numbered = True  # files are named by the pattern and numbers; light_field.LightFieldViews has other names

    def __init__(self, pattern: Path, recipe: Json, force: bool = False):
        """`recipe` names what the pixels of all frames depend on, facts() the rest.

        `force` allows to replace files that this run did not make. UserError for a manifest that is a link: nobody
        named it, so a stranger's folder could lead its lines anywhere. InputError with --untrusted if the folder
        OUT.frames is a link out of its folder.
        """
        self.path, self.pattern = manifest_path(pattern), pattern
        if self.path.is_symlink():
            raise UserError(f"{self.path}: is a link; the list of finished frames must be a file: remove the link")
        with suppress(OSError), open(self.path, "rb") as file:
            if (head := file.read(10)) and head != b'{"frame": ' and not force:
                raise UserError(f"{self.path}: holds no list of frames; --force replaces it")
        # With --untrusted: OUT.frames is a name that a video's export makes up, not one that the user gave.
        if Limits.refuses_links and self.path.parent.name.endswith(".frames"):
            refuse_links(str(self.path.parent))
        self._title, self._recipe, self._force = recipe.get("scene", {}).get("title"), recipe, force
        self._rows = {row["frame"]: row for row in self._read()}
        self._changed: list[Path] = []  # listed frames that are torn or were changed

    def file(self, number: int) -> Path:
        """Path of a frame."""
        return frame_path(self.pattern, number)

    def facts(self, number: int) -> Json:
        """The keys of a frame's recipe that differ from the common recipe: in plan.FrameManifest the time."""
        return {}

    def _read(self) -> list[Json]:
        with suppress(InputError):  # a manifest that is missing or cannot be read lists no frame
            return [row for row in read_json_lines(self.path) if isinstance(row.get("frame"), int)]
        return []

    def _recipe_hash(self, number: int) -> str:
        text = json.dumps(self._recipe | self.facts(number), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def _is_whole(self, number: int) -> bool:
        """True if the file of a listed frame is there and as it was written."""
        row, path = self._rows.get(number, {}), self.file(number)
        return row.get("file") == path.name and path.is_file() and row.get("sha256") == file_hash(path)

    def done(self, number: int) -> bool:
        """True if the frame need not be rendered again."""
        row = self._rows.get(number)
        return row is not None and row.get("recipe") == self._recipe_hash(number) and self._is_whole(number)

    def missing(self, numbers: list[int], overwrite: bool) -> list[int]:
        """The frames that must be rendered: those not done, or all; UserError if files of other runs are there."""
        self._changed.clear()
        wanted = [number for number in numbers if overwrite or not self.done(number)]
        there = set() if self._force else set(wanted)
        if self.is_numbered:  # list the folder once in place of a look for each of perhaps a million files
            form = re.compile("([0-9]+)".join(map(re.escape, FRAME_PLACEHOLDER.split(self.pattern.name))))
            there &= {int(found[1]) for name in os.listdir(self.path.parent) if (found := form.fullmatch(name))}
        paths = {number: path for number in sorted(there) if os.path.lexists(path := self.file(number))}
        others = {path: reason for number, path in paths.items() if (reason := self._refusal(number, path, overwrite))}
        if others:
            count = f" and {len(others) - 1} more" if len(others) > 1 else ""
            path, reason = next(iter(others.items()))
            raise UserError(f"{path}{count}: {reason}" + ("" if "--overwrite" in reason else "; --force replaces them"))
        return wanted

    def _refusal(self, number: int, path: Path, overwrite: bool) -> str:
        """The reason for which a frame must not replace the file at `path`; empty if it may.

        It may replace a whole frame of this scene, if --overwrite says so or the recipe is equal; an empty file; a
        frame of equal recipe that this program wrote (is_own) and no line lists with that recipe, as after a kill; and
        a listed frame that is torn or was changed, which is added to `_changed`, so that to_draw() renames it first.
        """
        row, facts = self._rows.get(number, {}), self._recipe | self.facts(number)
        if self._is_whole(number):
            if (title := row.get("title", self._title)) != self._title:
                return f"of the scene {format_value(title)}, not {format_value(self._title)}"
            if overwrite or row.get("recipe") == self._recipe_hash(number):
                return ""
            reason = "drawn with other settings, or in another size"
            if (shown := row.get("time", facts.get("time"))) != facts.get("time"):
                reason = f"shows {shown} s of the scene, not {facts['time']} s (the first frame drawn shows --time)"
            return f"{reason}; --overwrite draws them again"
        if path.is_symlink():
            return "is a link"
        has_recipe = False
        with suppress(InputError):
            has_recipe = is_of(read_recipe(path), facts)
        # A killed run may have written a frame and not listed it. One listed with this recipe was whole at that time.
        is_listed = row.get("recipe") == self._recipe_hash(number)
        if not path.stat().st_size or has_recipe and is_own(path) and not is_listed:
            return ""
        if row and (has_recipe or not is_picture(path)):  # changed by hand, or torn
            self._changed.append(path)
            return ""
        return f"not as {self.path.name} lists it" if row else f"not listed in {self.path.name}"

    def to_draw(self, numbers: list[int], overwrite: bool) -> list[int]:
        """missing() for a caller that draws these frames: renames torn or changed ones, so that nothing is lost."""
        wanted = self.missing(numbers, overwrite)
        for path in self._changed:
            names = (path.with_stem(f"{path.stem}.kept-{number}") for number in itertools.count(1))
            kept = next(name for name in names if not os.path.lexists(name))
            with writing(kept):
                path.rename(kept)
            print(f"rayfold: {path}: not as {self.path.name} lists it; kept as {kept.name}", file=sys.stderr)
        return wanted

    def add(self, number: int, seconds: float, device: str) -> None:
        """Record a frame whose file is complete."""
        path, is_new = self.file(number), number not in self._rows
        row = {"frame": number, "file": path.name, "sha256": file_hash(path), "recipe": self._recipe_hash(number)}
        row |= {"title": self._title, "time": (self._recipe | self.facts(number)).get("time")}
        row |= {"digest": read_digest(path), "seconds": round(seconds, 4), "device": device}
        self._rows[number] = row
        if is_new:
            append_line(self.path, json.dumps(row))
        else:
            self._write()

    def check_written(self, numbers: list[int]) -> None:
        """IncompleteError if a finished frame is not as it was written: --force lets other processes replace it."""
        if lost := [self.file(number) for number in numbers if not self._is_whole(number)]:
            raise IncompleteError(f"{lost[0]}: another process replaced this frame, and {len(lost) - 1} more")

    def _write(self) -> None:
        write_text(self.path, "".join(json.dumps(self._rows[n]) + "\n" for n in sorted(self._rows)))

    def remove(self, numbers: list[int]) -> int:
        """Removes listed frames, and manifest and folder once they are empty; returns the number of frames kept."""
        for number in numbers:
            if self._rows.pop(number, None):
                self.file(number).unlink(missing_ok=True)
        if self._rows:
            self._write()
        else:
            self.path.unlink(missing_ok=True)
            with suppress(OSError):  # it holds files that no export made, or is a link
                self.path.parent.rmdir()
        return len(self._rows)


def is_of(recipe: Json, facts: Json) -> bool:
    """True if a picture's recipe has these facts; samples (None) and a tone mapping that they lack may be any."""
    facts, scene = json.loads(json.dumps(facts, default=str)), recipe.get("scene")  # lists for tuples, as in a file
    tone = {"tone": scene.get("tone")} if isinstance(scene, dict) else {}
    facts |= {"scene": tone | facts.get("scene", {}), "samples": facts.get("samples") or recipe.get("samples")}
    return all(recipe.get(key) == facts.get(key) for key in ("scene", "samples", "size", "time", "denoise", "transfer"))


def joint_digest(paths: list[Path]) -> str:
    """Returns one digest of many pictures: SHA-256 of their digests, a line each."""
    return hashlib.sha256("".join(f"{read_digest(path)}\n" for path in paths).encode()).hexdigest()


def file_hash(path: Path) -> str:
    """Returns the SHA-256 of a file's bytes in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
