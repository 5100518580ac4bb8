"""The texts of `operations.yaml`: what documents the operations of the API."""

from pathlib import Path
from typing import Any

import yaml

# A method and a path, for example `GET /traits` -> what documents the operation.
TEXTS: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / 'operations.yaml').read_text(encoding='utf-8')
)
# The parts to which several operations refer.
SHARED: dict[str, Any] = TEXTS.pop('shared')
