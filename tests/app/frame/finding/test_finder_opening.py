"""Which networks a model that finds things is run with, and what they are called."""

from dataclasses import replace

from texelflow.app.frame.finding.finder_opening import loaded_models, solution_for
from texelflow.app.models.finding_loading import load_finding_model


def test_networks_have_their_own_names_under_a_name_of_several_and_in_files() -> None:
    hands = load_finding_model("body-hands")
    models = loaded_models(solution_for(hands), hands)
    assert [each.name for each in models] == ["pose-detection", "pose-landmark", "hand-recrop", "hand-landmark-full"]
    assert models[-1].graph is hands.graph
    file = replace(hands, name="hands.tflite")
    solution = solution_for(file)
    assert solution.models == ("palm-detection-full", "hands.tflite")
    assert loaded_models(solution, file)[-1] == file
