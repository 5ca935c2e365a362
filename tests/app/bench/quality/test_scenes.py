"""The scenes: their data, their frames, the figures against slow and plain ones, and the verb on a row of them."""

import json
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, one_in
from texelflow.app.bench.quality.mask_quality import MaskScorer, Truth, f_score, outline
from texelflow.app.bench.quality.scene_data import (
    GROUPS,
    PARTS,
    PLAIN,
    SceneRow,
    choose_rows,
    read_scenes,
    scenes_folder,
)
from texelflow.app.bench.quality.scene_figures import (
    LEAST_PIXELS,
    LEVELS,
    MOST_PIXELS,
    SceneFigures,
    SceneScorer,
    color_error,
    stray_parts,
)
from texelflow.app.bench.quality.scene_frames import FAR, SceneFrame, scene_frames
from texelflow.app.bench.quality.scene_layers import read_portrait
from texelflow.app.bench.quality.scene_photos import FETCHED, read_photo
from texelflow.app.bench.quality.scene_table import Judged, scene_summary
from texelflow.app.bench.quality.scene_things import CANVAS, drawn_thing
from texelflow.app.media.image_file import read_image_file
from texelflow.gpu_delegate.base.errors import MediaError, UsageError

Bools = npt.NDArray[np.bool_]

FOLDER = scenes_folder()
ROWS = read_scenes(FOLDER).rows


def row(scene: str, condition: str) -> SceneRow:
    (found,) = (each for each in ROWS if (each.scene, each.condition.name) == (scene, condition))
    return found


PORTRAIT_OF = cache(partial(read_portrait, folder=FOLDER))


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


# What is stored


def test_every_row_has_its_data() -> None:
    people = {placed.person for each in ROWS for placed in each.people}
    assert {each.name for each in people if not each.stored} == set(FETCHED)
    for each in people:
        matte = read_image_file(FOLDER / "mattes" / f"{each.name}.png")
        assert (matte.width, matte.height) == (round(each.crop[2] * each.scale), round(each.crop[3] * each.scale))
        if each.stored:
            height, width, _ = read_photo(each, FOLDER).shape
            assert each.crop[0] + each.crop[2] <= width
            assert each.crop[1] + each.crop[3] <= height
    for behind in {each.background for each in ROWS if each.background}:
        picture = read_image_file(FOLDER / "backgrounds" / behind.file)
        x, y, width, height = behind.crop or (0, 0, picture.width, picture.height)
        assert x + width <= picture.width
        assert y + height <= picture.height


def test_no_one_and_no_room_is_in_both_parts_and_those_judged_have_every_condition() -> None:
    tuned, judged = (choose_rows(ROWS, part, (), ()) for part in ("tuned", "judged"))
    for seen in (lambda each: {placed.person.name for placed in each.people}, lambda each: {each.background}):
        assert not (set().union(*map(seen, tuned)) & set().union(*map(seen, judged))) - {None}
    assert len(judged) == 81  # what README.md states is of them
    assert len(tuned) <= len(judged)
    assert {each.condition.name for each in tuned} == {each.condition.name for each in judged}
    assert {each.size for each in judged} == {(640, 480), (1280, 720), (1920, 1080)}
    assert all(12 <= each.condition.frames <= len(each.condition.path) for each in ROWS)


def test_a_table_that_mixes_the_parts_is_refused(tmp_path: Path) -> None:
    table = json.loads((FOLDER / "scenes.json").read_text())
    table["scenes"][0]["part"] = "judged"
    (tmp_path / "scenes.json").write_text(json.dumps(table))
    with pytest.raises(MediaError, match="mixes the parts"):
        read_scenes(tmp_path)
    (tmp_path / "scenes.json").write_text("[]")
    with pytest.raises(MediaError, match="not a table of scenes"):
        read_scenes(tmp_path)


@pytest.mark.parametrize(
    ("part", "conditions", "only", "complaint"),
    [
        ("both", (), (), "--part both"),
        ("all", ("rain",), (), "--conditions rain"),
        ("judged", (), ("nobody",), "no scene is left"),
    ],
)
def test_a_choice_of_nothing_is_refused(
    part: str, conditions: tuple[str, ...], only: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        choose_rows(ROWS, part, conditions, only)


def test_groups_of_scenes_are_in_both_parts_and_apart_from_the_plain_ones() -> None:
    for part in PARTS:
        for group in GROUPS:
            rows = choose_rows(ROWS, part, (), (), (group,))
            assert {each.group for each in rows} == {group}
            assert all(bool(each.things) == (group not in (PLAIN, "gap")) for each in rows)
    assert len(choose_rows(ROWS, "all", (), (), GROUPS)) == len(ROWS)
    with pytest.raises(UsageError, match="--groups cars"):
        choose_rows(ROWS, "all", (), (), ("cars",))


@pytest.mark.parametrize("change", [{"group": "cars"}, {"things": [["phone", 1, 1, 0, 0, 0, 0]]}])
def test_a_scene_of_no_group_or_with_nobodys_thing_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    table = json.loads((FOLDER / "scenes.json").read_text())
    table["scenes"][0] |= change
    (tmp_path / "scenes.json").write_text(json.dumps(table))
    with pytest.raises(MediaError, match="not a table of scenes"):
        read_scenes(tmp_path)


@one_in(2, "name", sorted({thing.thing for each in ROWS for thing in each.things}))
def test_things_are_drawn_with_mattes_that_are_whole_inside_and_soft_at_the_edge(name: str) -> None:
    drawn = drawn_thing(name)
    assert drawn.thing is not None
    assert drawn.color.shape == (*drawn.matte.shape, 3) == (CANVAS[1], CANVAS[0], 3)
    assert 0.03 < (drawn.matte == 255).mean() < 0.4
    assert ((drawn.matte > 0) & (drawn.matte < 255)).mean() < 0.02
    assert np.all(drawn.thing <= drawn.matte)
    assert bool(drawn.thing.any()) == ("hand" not in name)


def test_a_thing_that_nobody_drew_is_named() -> None:
    with pytest.raises(MediaError, match="umbrella"):
        drawn_thing("umbrella")


# Frames


def test_what_is_held_swings_and_is_a_part_of_the_truth() -> None:
    first, second, *_ = scene_frames(row("hopper phone chelsea", "still").shortened(5), FOLDER, PORTRAIT_OF)
    for frame in (first, second):
        assert frame.things is not None
        assert 0.01 < frame.things.mean() < 0.1
        assert np.all(frame.things <= frame.truth.matte + 0.01)
    assert first.things is not None
    assert second.things is not None
    assert np.abs(first.things - second.things).sum() / 480 > 1
    right, nothing = first.truth.matte, first.truth.matte * (1 - first.things)
    for mask, wanted in ((right, 0), (nothing, 1)):
        scorer = SceneScorer()
        scorer.add(mask, {LEVELS[0]: first.rgba}, first)
        scorer.add(mask, {LEVELS[0]: first.rgba}, first)
        assert scorer.figures().thing_error == pytest.approx(wanted, abs=0.05)


def test_frames_are_the_same_each_time_and_show_the_person_where_the_matte_is() -> None:
    chosen = row("hopper chelsea", "motion")
    first, again = (next(scene_frames(chosen, FOLDER, PORTRAIT_OF)) for _ in range(2))
    assert np.array_equal(first.rgba, again.rgba)
    matte, light = first.truth.matte, first.light
    assert np.all(light[matte == 0] == 0)
    inside = matte == 1
    assert 0.2 < inside.mean() < 0.6
    assert np.abs(first.rgba[..., :3][inside] - light[inside]).mean() < 4  # noise, and what 4:2:0 loses


def test_who_leaves_is_gone_at_the_end() -> None:
    leaving = row("hopper goes leaves", "leaving")
    path = leaving.condition.path
    conditions = (replace(leaving.condition, path=path[at:], frames=1) for at in (0, len(path) - 1))
    there, gone = (
        next(scene_frames(replace(leaving, condition=each), FOLDER, PORTRAIT_OF)) for each in conditions
    )  # fmt: skip
    assert there.truth.matte.mean() > 0.2
    assert gone.truth.matte.max() == 0
    assert gone.far.all()


# Figures


def parts_by_hand(found: Bools, true: Bools, ignored: Bools) -> tuple[int, int]:
    """The same as stray_parts for 640x480, pixel by pixel."""
    left, count, pixels = {(int(y), int(x)) for y, x in np.argwhere(found)}, 0, 0
    while left:
        part, edge = set[tuple[int, int]](), [left.pop()]
        while edge:
            y, x = edge.pop()
            part.add((y, x))
            for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if near in left:
                    left.remove(near)
                    edge.append(near)
        if len(part) >= LEAST_PIXELS and not any(true[at] or ignored[at] for at in part):
            count, pixels = count + 1, pixels + min(len(part), MOST_PIXELS)
    return count, pixels


def blocks(rng: np.random.Generator, count: int, most: int) -> Bools:
    """Rectangles at random in a frame of 640x480."""
    frame = np.zeros((480, 640), bool)
    for y, x, height, width in rng.integers(0, (480, 640, most, most), (count, 4)):
        frame[y : y + height, x : x + width] = True
    return frame


@pytest.mark.parametrize("seed", range(4))
def test_stray_parts_are_those_counted_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = blocks(rng, 300, 6) | blocks(rng, 6, 30)
    true, ignored = blocks(rng, 60, 20), blocks(rng, 60, 20)
    assert stray_parts(found, true, ignored) == parts_by_hand(found, true, ignored)
    half = np.ascontiguousarray(np.repeat(np.repeat(found, 2, 0), 2, 1))
    nothing = np.zeros(half.shape, bool)
    assert stray_parts(half, nothing, None) == parts_by_hand(found, nothing, nothing)


def frame_of(matte: npt.NDArray[np.float32], ignored: Bools | None = None) -> SceneFrame:
    light = np.asarray(matte[..., None] * (200, 100, 50), np.float32)
    return SceneFrame(np.zeros((*matte.shape, 4), np.uint8), light, Truth(matte, ignored))


def test_the_color_of_a_right_picture_has_no_error_and_that_of_another_its_difference() -> None:
    matte = np.zeros((40, 60), np.float32)
    matte[10:30, 20:40] = 1
    frame = frame_of(matte)
    right = np.dstack([frame.light + 30 * (1 - matte[..., None]), np.full(matte.shape, 255)]).astype(np.uint8)
    assert color_error(right, 30, frame) == 0
    assert color_error(right, 225, frame) == pytest.approx(195 * (1 - matte[frame.truth.band]).mean())


def test_far_is_beyond_a_distance_that_grows_with_the_frame() -> None:
    matte = np.zeros((96, 128), np.float32)
    matte[30:60, 40:90] = 1
    line = np.argwhere(outline(matte))
    away = np.array([np.hypot(*(line - at).T).min() for at in np.ndindex(matte.shape)]).reshape(matte.shape)
    assert np.array_equal(frame_of(matte).far, away > FAR / 5)


def test_what_is_not_judged_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    matte = np.zeros((60, 80), np.float32)
    matte[20:, 20:60] = 1
    ignored = np.zeros(matte.shape, bool)
    ignored[40:, 50:] = True
    masks = [np.clip(matte + rng.normal(0, 0.3, matte.shape), 0, 1).astype(np.float32) for _ in range(3)]
    changed = [np.where(ignored, rng.random(matte.shape), mask).astype(np.float32) for mask in masks]
    truth = Truth(matte, ignored)
    figures = []
    for each in (masks, changed):
        scorer = MaskScorer()
        for mask in each:
            scorer.add(mask, truth)
        figures.append(scorer.quality())
    assert figures[0].matte_error == figures[1].matte_error > 0
    assert figures[0].flicker == figures[1].flicker > 0
    assert figures[0].edge_error == figures[1].edge_error
    assert f_score(matte, truth) == 1


def judged(raw: SceneFigures, ours: SceneFigures) -> Judged:
    return Judged(row("hopper own", "still"), {"raw": raw, "both": ours}, {}, {})


def test_targets_and_worse_rows_are_those_of_the_figures() -> None:
    raw = SceneFigures(0.7, 0.02, 0.1, 0.01, 0, 1, 20, 1, 20, 1.2, 0.01, 10)
    better = replace(
        raw, f_score=0.8, matte_error=0.01, flicker=0.003, hole_pixels=5, outline_length=1.05, color_error=7
    )
    summary = scene_summary([judged(raw, better)] * 20)
    assert all(target["reached"] for target in summary["targets"]["both"])
    assert not any(summary["worse_than_raw"]["both"].values())
    worse = scene_summary([judged(raw, better)] * 18 + [judged(better, raw)] * 2)
    assert worse["worse_than_raw"]["both"]["flicker"] == 2
    missed = {target["name"] for target in worse["targets"]["both"] if not target["reached"]}
    assert {"rows worse in flicker", "rows worse in F by over 2 points", "rows worse in matte error"} <= missed


# The verb


@exhaustive
@pytest.mark.gl
def test_the_verb_judges_rows_and_draws_them(texelflow: Command, selfie_model: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.png"
    arguments = (
        "bench", "quality", "--scenes", "--only", "hopper chelsea", "--conditions", "still", "--frames", 3,
        "--model", selfie_model, "--sheet", sheet,
    )  # fmt: skip
    done = texelflow(*arguments, "--json")
    assert done.code == 0, done.err
    figures = json.loads(done.out)
    (found,) = figures["rows"]
    raw, both = found["ways"]["raw"], found["ways"]["both"]
    assert 0.5 < raw["f_score"] < both["f_score"] <= 1
    assert 0 < both["color_error"] < raw["color_error"] < 40
    assert both["refine_ms"] > 0 < both["composite_ms"]
    assert raw["refine_ms"] == 0
    picture = read_image_file(sheet)
    assert picture.width == 3 * 400
    assert "exists already" in texelflow(*arguments).complaint


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--scenes", "--seed", 1), "--seed is for a clip"),
        (("--sheet", "sheet.png"), "--sheet is for --scenes"),
        (("--scenes", "--steps", "raw,all"), "--steps all"),
        (("--scenes", "--steps", ","), "--steps"),
        (("--scenes", "--frames", 1), "--frames 1"),
    ],
)
def test_options_that_do_not_fit_are_refused(texelflow: Command, arguments: tuple[object, ...], complaint: str) -> None:
    assert complaint in texelflow("bench", "quality", *arguments).complaint
