"""Loads the model that settings name, and has those there that find things before it or beside it."""

from texelflow.gpu_delegate.reading.reader import ReadModel, read_model

from ..frame.finding.finder_opening import fetch_companions, fetch_partners
from ..models.catalogue import Progress
from ..models.finding_loading import ShownModel, load_shown_model
from ..models.finding_model import FindingModel
from ..settings.settings import Settings
from .derived import companions_of, spec_of


def session_model(settings: Settings, progress: Progress | None = None, read: ReadModel = read_model) -> ShownModel:
    """Whichever model it is, with all others fetched, too, that it runs with. Raises as load_shown_model."""
    model = load_shown_model(settings.model, spec_of(settings, settings.model), progress, read)
    if isinstance(model, FindingModel):
        fetch_partners(model, progress)
    fetch_companions(companions_of(settings), model, progress)
    return model
