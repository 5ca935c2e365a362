"""The pictures of a folder and what is true of them, in each of its forms, and what is refused in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from texelflow.app.verbs.evaluation.task_data import box_pictures, class_names, class_pictures, mask_pictures
from texelflow.gpu_delegate.base.errors import UsageError

COCO: dict[str, Any] = {
    "images": [{"id": 4, "file_name": "a.jpg"}, {"id": 9, "file_name": "sub/b.png"}],
    "annotations": [{"image_id": 4, "category_id": 2, "bbox": [1, 2, 3.5, 4], "iscrowd": 1}],
    "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
}


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"")


def test_classes_by_folders_of_numbers_or_names(tmp_path: Path) -> None:
    touch(tmp_path, "7/b.jpg", "7/a.PNG", "cat/c.png", "7/notes.txt")
    found = class_pictures(tmp_path, ("dog", "cat"))
    assert [(each.path.name, each.label) for each in found] == [("a.PNG", 7), ("b.jpg", 7), ("c.png", 1)]
    with pytest.raises(UsageError, match="no class has the name 'cat'"):
        class_pictures(tmp_path, ())


def test_classes_by_names_and_by_a_table(tmp_path: Path) -> None:
    touch(tmp_path, "285-cat.png", "3_x.jpg")
    assert [each.label for each in class_pictures(tmp_path, ())] == [285, 3]
    (tmp_path / "labels.csv").write_text("file,class\n3_x.jpg,dog\n\n285-cat.png, 12\n")
    assert [(each.path.name, each.label) for each in class_pictures(tmp_path, ("dog",))] == [
        ("3_x.jpg", 0),
        ("285-cat.png", 12),
    ]


@pytest.mark.parametrize("row", ["../a.png,1", "/etc/a.png,1", "a.png", "a.png,1,2"])
def test_tables_stay_in_their_folder(row: str, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(row + "\n")
    with pytest.raises(UsageError):
        class_pictures(tmp_path, ())


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no pictures with classes"):
        class_pictures(tmp_path, ())
    with pytest.raises(UsageError, match="no folder that can be read"):
        class_pictures(tmp_path / "nowhere", ())
    touch(tmp_path, "cat.png")
    with pytest.raises(UsageError, match=r"cat.png: its class is not known"):
        class_pictures(tmp_path, ())
    with pytest.raises(UsageError, match="there are no pictures with masks"):
        mask_pictures(tmp_path)


def test_masks_lie_beside_pictures(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg", "a.png", "b.png", "b_mask.png", "c.jpg")
    assert [(each.path.name, each.mask.name) for each in mask_pictures(tmp_path)] == [
        ("a.jpg", "a.png"),
        ("b.png", "b_mask.png"),
    ]


def test_names_of_classes(tmp_path: Path) -> None:
    assert class_names(tmp_path, ("own",)) == ("own",)
    (tmp_path / "labels.txt").write_text("dog\n cat \n")
    assert class_names(tmp_path, ("own",)) == ("dog", "cat")


def test_boxes_of_cocos_form(tmp_path: Path) -> None:
    (tmp_path / "instances.json").write_text(json.dumps(COCO))
    pictures, categories = box_pictures(tmp_path, ())
    assert categories == {0: 1, 1: 2}
    assert [each.path for each in pictures] == [tmp_path / "a.jpg", tmp_path / "sub" / "b.png"]
    assert pictures[0].true.boxes.tolist() == [[1, 2, 4.5, 6]]
    assert (pictures[0].true.classes.tolist(), pictures[0].true.crowds.tolist()) == ([2], [True])
    assert pictures[1].true.boxes.shape == (0, 4)
    assert box_pictures(tmp_path, ("???", "dog", "cow"))[1] == {0: 2}
    with pytest.raises(UsageError, match="has the name of a category"):
        box_pictures(tmp_path, ("cow",))
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UsageError, match="there are 2"):
        box_pictures(tmp_path, ())


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "'images' is no list"),
        (json.dumps({**COCO, "annotations": 3}), "'annotations' is no list"),
        (json.dumps({**COCO, "images": [4]}), "'images' is no list of objects"),
        (json.dumps({**COCO, "images": [{"id": True, "file_name": "a"}]}), "'id' is no whole number"),
        (json.dumps({**COCO, "images": [{"id": 1, "file_name": ""}]}), "'file_name' is no text"),
        (json.dumps({**COCO, "images": [{"id": 4, "file_name": "../a.png"}]}), "not in "),
        (json.dumps({**COCO, "images": []}), "an annotation is of image 4"),
        (json.dumps({**COCO, "annotations": [{"image_id": 4, "category_id": 1, "bbox": [1, 2]}]}), "'bbox' is no list"),
        ('{"images": [{"id": 4, "file_name": "a"}], "categories": [], "annotations": '
         '[{"image_id": 4, "category_id": 1, "bbox": [1, 2, NaN, 3]}]}', "'bbox' has a number out of"),
        (json.dumps({**COCO, "annotations": [{"image_id": 4, "category_id": 1, "bbox": [1, 2, -3, 1]}]}), "'bbox' has"),
    ],
)  # fmt: skip
def test_other_json_is_refused_in_one_line(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(UsageError, match=why) as raised:
        box_pictures(tmp_path, ())
    assert "\n" not in str(raised.value)
